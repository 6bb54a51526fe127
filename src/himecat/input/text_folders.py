"""Folders of text files: every file is a document."""

from __future__ import annotations

import os
from collections.abc import Iterator
from html.parser import HTMLParser

from himecat.errors import DataError
from himecat.input.problems import Problems
from himecat.input.streams import shown, too_long
from himecat.runtime.bounds import bounds

_KINDS = (".txt", ".md", ".html", ".htm")
_UNSEEN = frozenset(("script", "style", "template", "noscript"))
_BLOCKS = frozenset(("p", "div", "br", "li", "tr", "td", "th", "h1", "h2", "h3", "h4", "h5", "h6", "title"))


def text_files(folder: str | os.PathLike[str]) -> Iterator[str]:
    """The text files below a folder in the order of their names, as paths from there on; hidden ones are left out."""
    root = os.fsdecode(folder)
    for above, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if name.lower().endswith(_KINDS) and not name.startswith("."):
                yield os.path.relpath(os.path.join(above, name), root).replace(os.sep, "/")


def holds_texts(folder: str | os.PathLike[str]) -> bool:
    """Whether there is a text file somewhere below a folder.

    Examples
    --------
    >>> holds_texts("no/such/folder")
    False
    """
    return next(text_files(folder), None) is not None


def folder_texts(
    folder: str | os.PathLike[str], problems: Problems, with_labels: bool
) -> Iterator[tuple[str, dict[str, object] | None]]:
    """The place and the fields of every text file; None where it cannot be read.

    The id is the path below the folder, and with labels the folders on this path are the category.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (pathlib.Path(folder) / "arts").mkdir()
    ...     _ = (pathlib.Path(folder) / "arts" / "a.html").write_text("<p>An <b>opera</b></p>")
    ...     [fields for _, fields in folder_texts(folder, Problems(), True)]
    [{'id': 'arts/a.html', 'text': 'An opera', 'labels': ['arts']}]
    """
    longest = bounds().line
    for name in text_files(folder):
        path = os.path.join(os.fsdecode(folder), *name.split("/"))
        place = shown(path)
        fields: dict[str, object] = {"id": name.encode(errors="replace").decode()}
        try:
            with open(path, "rb") as file:
                raw = file.read(longest + 1)
        except OSError as error:
            problems.error(place, f"the file cannot be read ({error.strerror or error}).")
            yield place, None
            continue
        if len(raw) > longest:
            problems.error(place, too_long("the text", len(raw)))
            yield place, None
            continue
        text = _decoded(raw)
        if text is None:
            problems.error(place, "the file is neither UTF-8 nor Windows-1252: save it as UTF-8.")
            yield place, None
            continue
        fields["text"] = html_text(text) if name.lower().endswith((".html", ".htm")) else text
        if with_labels and "/" in name:
            fields["labels"] = name.split("/")[:-1]
        yield place, fields


def _decoded(raw: bytes) -> str | None:
    for encoding in ("utf-16",) if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else ("utf-8-sig", "cp1252"):
        try:
            text = raw.decode(encoding)
        except UnicodeDecodeError:
            continue
        return None if "\0" in text else text
    return None


def html_text(text: str) -> str:
    """The text of a page without its tags, scripts and styles.

    Examples
    --------
    >>> html_text("<style>p {}</style><p>Salt &amp; pepper<p>Oil")
    'Salt & pepper\\nOil'
    """
    page = _Page()
    page.feed(text)
    page.close()
    lines = (" ".join(line.split()) for line in "".join(page.parts).splitlines())
    return "\n".join(line for line in lines if line)


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._unseen = 0

    def handle_starttag(self, tag: str, _: object) -> None:
        if tag in _UNSEEN:
            self._unseen += 1
        elif tag in _BLOCKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in _UNSEEN:
            self._unseen = max(0, self._unseen - 1)
        elif tag in _BLOCKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self.parts.append(data)


def check_folder(folder: str | os.PathLike[str]) -> None:
    """Refuse a folder without text files.

    Examples
    --------
    >>> check_folder("no/such/folder")
    Traceback (most recent call last):
    ...
    himecat.errors.DataError: no/such/folder: this is a folder without text files; name the file with the documents.
    """
    if not holds_texts(folder):
        raise DataError(
            f"{shown(folder)}: this is a folder without text files; name the file with the documents."
        )

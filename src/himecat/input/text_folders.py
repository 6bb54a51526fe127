"""Folders of text files: every file is a document."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from html import unescape

from himecat.errors import DataError
from himecat.input.problems import Problems
from himecat.input.streams import shown, too_long
from himecat.runtime.bounds import bounds

_KINDS = (".txt", ".md", ".html", ".htm")
_UNSEEN = frozenset(("template", "noscript"))
# Nothing in them is a tag but their own end.
_RAW = {name: re.compile(f"</{name}(?![^\\s/>])", re.IGNORECASE) for name in ("script", "style")}
_TAG_START = re.compile(r"</?[a-zA-Z]")
_TAG = re.compile(r"""<(/?)([a-zA-Z][^\s/>]*+)(?:[^>"']++|"[^"]*+"|'[^']*+')*+>""")
_PLAIN_TAG = re.compile(r"<(/?)([a-zA-Z][^\s/>]*+)[^>]*+>")
# Of more digits than any character has, and than Python takes.
_LONG_REFERENCE = re.compile(r"&#[xX]?[0-9a-fA-F]{9,}+;?")
_BLOCKS = frozenset(("p", "div", "br", "li", "tr", "td", "th", "h1", "h2", "h3", "h4", "h5", "h6", "title"))


def text_files(folder: str | os.PathLike[str]) -> Iterator[str]:
    """The text files below a folder in the order of their names, as paths from there on; hidden ones are left out."""
    root = os.fsdecode(folder)

    def refuse(error: OSError) -> None:
        # By itself the walk would pass over a folder that cannot be entered.
        raise DataError(
            f"{shown(error.filename or root)}: the folder cannot be read ({error.strerror})."
        ) from None

    if not os.path.isdir(root):
        return
    for above, folders, files in os.walk(root, onerror=refuse):
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
            if not stat.S_ISREG(os.stat(path).st_mode):
                # A pipe would be waited for, a device may never end.
                problems.error(
                    place, "this is no file but a pipe, a device or the like: take it out of the folder."
                )
                yield place, None
                continue
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
    """The text of a page without its tags, scripts and styles, whatever is wrong with them.

    Examples
    --------
    >>> html_text("<style>p {}</style><p>Salt &amp; pepper<p>Oil")
    'Salt & pepper\\nOil'
    """
    lines = (" ".join(line.split()) for line in "".join(_visible(text)).splitlines())
    return "\n".join(line for line in lines if line)


def _visible(text: str) -> Iterator[str]:
    """The pieces of a page that are seen. Its time grows with its length only, which html.parser does not promise."""
    at, unseen, quotes = 0, 0, True
    while at < len(text):
        start = text.find("<", at)
        start = len(text) if start < 0 else start
        if start > at and not unseen:
            yield _without_references(text[at:start])
        found = _TAG.match(text, start) if quotes else None
        if found is None and (begun := _TAG_START.match(text, start)):
            # A quotation mark that does not end; from here on they mean nothing.
            quotes, found = False, _PLAIN_TAG.match(text, begun.start())
            if found is None:
                # Nor does any tag behind it.
                if not unseen:
                    yield _without_references(text[start:])
                return
        if found is None:
            comment = text.startswith("<!--", start)
            if comment or text.startswith(("<!", "<?"), start):
                end = text.find("-->" if comment else ">", start)
                at = len(text) if end < 0 else end + (3 if comment else 1)
                continue
            # No tag begins so.
            if start < len(text) and not unseen:
                yield "<"
            at = start + 1
            continue
        tag, at = found[2].lower(), found.end()
        if tag in _BLOCKS:
            yield "\n"
        elif tag in _RAW and not found[1]:
            ends = _RAW[tag].search(text, at)
            at = ends.start() if ends else len(text)
        elif tag in _UNSEEN:
            unseen = max(0, unseen + (-1 if found[1] else 1))


def _without_references(text: str) -> str:
    return unescape(_LONG_REFERENCE.sub("\ufffd", text))


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

"""Documents and trees as people have them: CSV of any kind, columns of levels, other separators, folders of texts."""

from __future__ import annotations

import csv
import io
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from faults import odd_workbooks, workbooks
from faults.material import PATHS, Document
from faults.mutations import Random, odd_text, odd_value, spoil_bytes

# What the documentation promises to find without help.
DELIMITERS = [",", ";", "\t", "|"]
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "cp1252"]
SEPARATORS = ["/", " > ", " :: ", " » ", " / ", " -> "]
_ODD_DELIMITERS = ["~", ":", " ", ".", "\x1f", "a", '"', "\0"]
_ODD_ENCODINGS = ["utf-16-le", "utf-16-be", "utf-32", "latin-1", "mac-roman", "cp1250", "utf-7", "shift-jis"]
_ODD_SEPARATORS = [">", "::", "|", "»", "->", "→", ",", ";", " - ", ".", " ", "//", ">>", "\\", "e"]
_LEVELS = ["level{}", "Level {}", "cat_{}", "Label {}", "lvl-{}"]


@dataclass
class Form:
    """How documents are written; where `known` it is read without help, and tells the same as JSON lines."""

    ending: str = "csv"
    delimiter: str = ","
    encoding: str = "utf-8"
    separator: str = "/"
    levels: str = ""
    quoting: int = csv.QUOTE_MINIMAL
    ends: str = "\n"
    hint: bool = False
    known: bool = True
    options: list[str] = field(default_factory=list)

    @classmethod
    def sound(cls, rng: Random) -> Form:
        """A form that is read without help."""
        found = cls(
            rng.choice(["csv", "csv", "csv", "xlsx", "xlsx"]),
            rng.choice(DELIMITERS),
            rng.choice(ENCODINGS),
            rng.choice(SEPARATORS),
            rng.choice(["", "", *_LEVELS]),
            rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
            rng.choice(["\n", "\r\n"]),
        )
        if found.delimiter == "\t" and rng.random() < 0.5:
            found.ending = "tsv"
        return found

    @classmethod
    def odd(cls, rng: Random) -> Form:
        """A form that may have to be explained, and may be none at all."""
        found = cls.sound(rng)
        found.known = False
        for _ in range(rng.choice([0, 1, 1, 2])):
            kind = rng.choice(["delimiter", "encoding", "separator", "quoting", "ends", "hint"])
            if kind == "delimiter":
                found.delimiter = rng.choice(_ODD_DELIMITERS[:-3])
            elif kind == "encoding":
                found.encoding = rng.choice(_ODD_ENCODINGS)
            elif kind == "separator":
                found.separator = rng.choice(_ODD_SEPARATORS)
            elif kind == "quoting":
                found.quoting = csv.QUOTE_NONNUMERIC
            elif kind == "ends":
                found.ends = rng.choice(["\r", "\n\n", "\r\r\n"])
            else:
                found.hint = True
        if rng.random() < 0.4:
            found.options += rng.choice(
                [
                    [f"--delimiter={rng.choice([found.delimiter, *_ODD_DELIMITERS, 'tab', odd_text(rng)])}"],
                    [f"--separator={rng.choice([found.separator, *_ODD_SEPARATORS, 'none', odd_text(rng)])}"],
                    [f"--sheet={rng.choice(['Sheet1', 'a', 'hidden', '', odd_text(rng)])}"],
                    [f"--labels={rng.choice(['level1,level2', 'labels,tags', 'level1', odd_text(rng)])}"],
                ]
            )
        return found

    def written(self, documents: list[Any], rng: Random) -> bytes:
        """Documents in this form."""
        if self.levels:
            documents = [levelled(one, self.levels) if isinstance(one, dict) else one for one in documents]
        if self.ending == "xlsx":
            make = workbooks.sound if self.known else odd_workbooks.spoiled
            return make(documents, rng, self.separator)
        stream = io.StringIO()
        rows = csv.writer(stream, delimiter=self.delimiter, quoting=self.quoting, lineterminator=self.ends)  # type: ignore[arg-type]
        for row in workbooks.table(documents, self.separator):
            rows.writerow(["" if value is None else value for value in row])
        text = (f"sep={self.delimiter}\r\n" if self.hint else "") + stream.getvalue()
        return text.encode(self.encoding, "strict" if self.known else "replace")


def levelled(document: Document, pattern: str) -> Document:
    """A document with a column for each level of its label."""
    found = {name: value for name, value in document.items() if name != "labels"}
    label = document.get("labels")
    path = label if isinstance(label, list) else [label]
    for level in (1, 2):
        found[pattern.format(level)] = path[level - 1] if level <= len(path) else None
    return found


# -- trees -----------------------------------------------------------------------------------------------------


def tree_file(rng: Random, folder: Path) -> str:
    """Write a tree as paths or as a table, sometimes spoiled; gives the file's name."""
    paths: list[list[Any]] = [["science"], *map(list, PATHS.values())]
    for _ in range(rng.choice([0, 0, 0, 1, 2])):
        path = rng.choice(paths)
        kind = rng.randrange(5)
        if kind == 0:
            path.append(odd_text(rng))
        elif kind == 1:
            path.insert(0, odd_value(rng))
        else:
            more = [[odd_text(rng), odd_text(rng)], [*path, *path], ["x"] * rng.choice([3, 250])]
            paths.append(more[kind - 2])
    written = rng.choice(["lines", "levels", "parents", "xlsx"])
    separator = rng.choice([*SEPARATORS, *SEPARATORS, *_ODD_SEPARATORS])
    if written == "lines":
        data = "\n".join(separator.join(map(str, path)) for path in paths).encode("utf-8", "surrogatepass")
        ending = rng.choice(["txt", "txt", "paths", "csv"])
    else:
        if written == "parents":
            name = rng.choice(["name", "child", "Category", "x"])
            rows = [[rng.choice(["parent", "Parent", "above"]), name]]
            rows += [[path[-2] if len(path) > 1 else rng.choice(["", "ROOT"]), path[-1]] for path in paths]
        else:
            rows = [["level1", "level2", "note"], *(path[:40] for path in paths)]
        if written == "xlsx":
            book = workbooks.Book([[workbooks.cell("", one) for one in row] for row in rows])
            data, ending = workbooks.packed(book.parts()), "xlsx"
        else:
            stream = io.StringIO()
            csv.writer(stream, delimiter=rng.choice(DELIMITERS)).writerows(rows)
            data, ending = stream.getvalue().encode("utf-8", "surrogatepass"), "csv"
    if rng.random() < 0.2:
        data = spoil_bytes(data, rng, data)
    (folder / f"tree.{ending}").write_bytes(data)
    return f"tree.{ending}"


# -- folders of texts ------------------------------------------------------------------------------------------

_HTML = [
    "<p>{}</p>", "<html><body>{}", "<script>x</script>{}", "<style>{}", "<![CDATA[{}]]>", "<![if IE]>{}<![endif]>",
    "<![x[{}", "<!DOCTYPE x [<!ENTITY a 'b'>]>{}", "<!x {}", "{}&#xFFFFFFFFFFFF;", "{}&#99999999999999;&#0;&#xD800;",
    "<a href='{}", "<!-- {}", "<{}", "</{}", "<?{}", "{}&amp", "<p" + " a" * 500 + ">{}", "<div>" * 3_000 + "{}",
    "<template><script>{}</template>", "<textarea>{}", "<p>{}\0</p>", "<title>{}</title>\x1b[31m", "<!{}>", "<![{}",
    "{}&#" + "9" * 5_000 + ";", "{}&#x" + "f" * 5_000, "{} 1 < 2 > 0", "<SCRIPT>a</Script >{}",
    "<p>{}</p\n>", "<p a='>{}",
]  # fmt: skip
_ODD_NAMES = [
    "d\udcff.txt", "d\udcfe.txt", "d\x1b[31m.txt", "d\n.md", "-d.txt", "x" * 240 + ".txt", "[bold].txt", ".hidden.txt",
    "a\\b.txt", "UPPER.TXT", "no-ending", "d.txt.gz", "=1+1.txt", "é\u0301.html", "two  blanks.txt", "\x85.txt",
]  # fmt: skip


def text_folder(rng: Random, documents: list[Document], folder: Path) -> str:
    """A folder of texts whose folders are categories, with some things in it that are no texts."""
    for one in documents:
        ending = rng.choice([".txt", ".txt", ".md", ".html"])
        text = one["text"]
        if ending == ".html" or rng.random() < 0.1:
            text = rng.choice(_HTML).replace("{}", text)
        _place(
            folder / "texts" / "/".join(one["labels"]) / f"{one['id']}{ending}",
            text.encode("utf-8", "replace"),
        )
    inner = folder / "texts" / "science" / "physics"
    inner.mkdir(parents=True, exist_ok=True)
    for _ in range(rng.choice([0, 0, 1, 1, 2, 3])):
        _odd_file(rng, inner, documents[0]["text"] if documents else "x")
    return "texts"


def _place(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _odd_file(rng: Random, inner: Path, text: str) -> None:
    kind = rng.choice(
        [
            "name",
            "name",
            "bytes",
            "bytes",
            "link",
            "pipe",
            "device",
            "loop",
            "folder",
            "empty",
            "huge",
            "codec",
            "deep",
        ]
    )
    path = inner / f"odd-{rng.randrange(1_000_000)}.txt"
    if kind == "name":
        _place(inner / rng.choice(_ODD_NAMES), text.encode())
    elif kind == "bytes":
        _place(path, spoil_bytes(text.encode(), rng, text.encode()))
    elif kind == "link":
        path.symlink_to(
            rng.choice(["nowhere", "..", "physics-0.txt", "/etc/hostname", path.name, "../../texts"])
        )
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to(rng.choice(["/dev/zero", "/dev/null", "/dev/stdin", "/dev/full", "/proc/self/mem"]))
    elif kind == "loop":
        (inner / f"loop-{path.stem}").symlink_to(rng.choice([".", "..", "../.."]))
    elif kind == "folder":
        path.mkdir()
        _place(path / "inside.txt", text.encode())
    elif kind == "empty":
        _place(path, rng.choice([b"", b" \n", b"\xef\xbb\xbf", b"\xff\xfe"]))
    elif kind == "huge":
        with open(path, "wb") as file:
            file.truncate(rng.choice([17 << 20, 1 << 40]))
    elif kind == "codec":
        _place(path, (text + " é").encode(rng.choice([*ENCODINGS, *_ODD_ENCODINGS]), "replace"))
    else:
        deep = inner.joinpath(*(["d"] * rng.choice([5, 150, 220])))
        _place(deep / "deep.txt", text.encode())

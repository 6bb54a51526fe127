"""Workbooks, answers and pages that are small as files and large, or slow, as what they hold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from faults import material as m
from faults import workbooks
from faults.answers import rows

MB = 1 << 20
_SHEET = "xl/worksheets/sheet1.xml"
_STRINGS = "xl/sharedStrings.xml"
_LAUGHS = "".join(f'<!ENTITY {chr(98 + one)} "{f"&{chr(97 + one)};" * 10}">' for one in range(9))
_DOCTYPE = f'<!DOCTYPE x [<!ENTITY a "ha">{_LAUGHS}]>'

Parts = dict[str, bytes]


def _blanks(parts: Parts) -> None:
    parts[_SHEET] = parts[_SHEET].replace(b"<sheetData>", b" " * (700 * MB) + b"<sheetData>")


def _shared(parts: Parts) -> None:
    """One text of megabytes that every row names."""
    parts[_STRINGS] = parts[_STRINGS].replace(b"</sst>", b"<si><t>" + b"quantum " * MB + b"</t></si></sst>")
    number = parts[_STRINGS].count(b"<si>") - 1
    more = b"".join(
        b'<row><c r="B%d" t="s"><v>%d</v></c></row>' % (row, number) for row in range(99, 200_000)
    )
    parts[_SHEET] = parts[_SHEET].replace(b"</sheetData>", more + b"</sheetData>")


def _strings(parts: Parts) -> None:
    parts[_STRINGS] = parts[_STRINGS].replace(b"</sst>", b"<si/>" * (3 * MB) + b"</sst>")


def _styles(parts: Parts) -> None:
    parts["xl/styles.xml"] = parts["xl/styles.xml"].replace(
        b"</cellXfs>", b"<xf/>" * (3 * MB) + b"</cellXfs>"
    )


def _wide(parts: Parts) -> None:
    """Every row has a cell in the last column."""
    more = b"".join(b'<row><c r="XFD%d"><v>1</v></c></row>' % row for row in range(99, 300_000))
    parts[_SHEET] = parts[_SHEET].replace(b"</sheetData>", more + b"</sheetData>")


def _far(parts: Parts) -> None:
    """The last row has a number that no sheet has."""
    last = b'<row r="9999999999"><c r="A9999999999"><v>1</v></c></row>'
    parts[_SHEET] = parts[_SHEET].replace(b"</sheetData>", last + b"</sheetData>")


def _last(parts: Parts) -> None:
    """A document stands in the very last row."""
    last = b'<row r="1048576"><c r="B1048576" t="str"><v>quantum laser</v></c></row>'
    parts[_SHEET] = parts[_SHEET].replace(b"</sheetData>", last + b"</sheetData>")


def _laughs(parts: Parts) -> None:
    parts[_SHEET] = parts[_SHEET].replace(b"<worksheet", _DOCTYPE.encode() + b"<worksheet", 1)
    parts[_SHEET] = parts[_SHEET].replace(
        b"</sheetData>", b'<row><c t="str"><v>&j;</v></c></row></sheetData>'
    )


def _late_laughs(parts: Parts) -> None:
    """What a look at the first bytes does not see."""
    _laughs(parts)
    parts[_SHEET] = parts[_SHEET].replace(b"<!DOCTYPE", b"<!--" + b"x" * 9_000 + b"--><!DOCTYPE", 1)


def _recoded_laughs(parts: Parts) -> None:
    _laughs(parts)
    parts[_SHEET] = parts[_SHEET].decode().replace("UTF-8", "UTF-16").encode("utf-16")


def _nested(parts: Parts) -> None:
    parts[_SHEET] = parts[_SHEET].replace(
        b"<sheetData>", b"<a>" * (2 * MB) + b"</a>" * (2 * MB) + b"<sheetData>"
    )


def _cell(parts: Parts) -> None:
    long = b'<row><c r="B99" t="str"><v>' + b"quantum " * (12 * MB) + b"</v></c></row>"
    parts[_SHEET] = parts[_SHEET].replace(b"</sheetData>", long + b"</sheetData>")


def _sheets(parts: Parts) -> None:
    """Very many sheets that are all the same part."""
    one = b"".join(
        b'<sheet name="s%d" sheetId="%d" r:id="rId1"/>' % (number, number) for number in range(2, 30_000)
    )
    parts["xl/workbook.xml"] = parts["xl/workbook.xml"].replace(b"</sheets>", one + b"</sheets>")


KINDS: dict[str, Callable[[Parts], None]] = {
    "blanks": _blanks, "a shared text": _shared, "shared texts": _strings, "styles": _styles, "wide rows": _wide,
    "a far row": _far, "the last row": _last, "laughs": _laughs, "late laughs": _late_laughs,
    "recoded laughs": _recoded_laughs, "nested": _nested, "a long cell": _cell, "sheets": _sheets,
}  # fmt: skip


def workbook(kind: str, answers: bool) -> bytes:
    """A workbook of documents, or of answers, with such a thing in it."""
    given = rows() if answers else m.sound()
    parts = workbooks.Book(workbooks.table(given), shared=True).parts()
    KINDS[kind](parts)
    return workbooks.packed(parts)


PAGES: dict[str, str] = {
    "tags that do not end": "<a ", "comments": "<!--", "declarations": "<!x ", "sections": "<![CDATA[", "ends": "</a ",
    "less than": "<", "references": "&#", "quotation marks": "<a b='", "scripts": "<script>", "instructions": "<?x ",
    "attributes": "<p " + "a=1 " * 50, "divisions": "<div>",
}  # fmt: skip


def page_folder(kind: str, folder: Path) -> None:
    """A folder of texts with a page that repeats something two million times."""
    inner = folder / "texts" / "arts"
    inner.mkdir(parents=True)
    for one in m.sound():
        (inner / f"{one['id']}.txt").write_text(one["text"])
    piece = PAGES[kind]
    (inner / "page.html").write_text(piece * (2 * MB // len(piece)))

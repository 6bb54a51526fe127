"""Workbooks (.xlsx), written part by part."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from faults.mutations import Random

_NAMESPACE = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
_RELS = "http://schemas.openxmlformats.org/package/2006/relationships"
_TYPES = "application/vnd.openxmlformats-officedocument.spreadsheetml"
# A number with this style is a date.
_STYLES = (
    f'{_HEAD}<styleSheet xmlns="{_NAMESPACE}"><fonts><font/></fonts>'
    "<fills><fill><patternFill/></fill></fills><borders><border/></borders>"
    "<cellStyleXfs><xf/></cellStyleXfs>"
    '<cellXfs><xf numFmtId="0"/><xf numFmtId="14" applyNumberFormat="1"/><xf numFmtId="46"/></cellXfs></styleSheet>'
)


@dataclass
class Book:
    """The parts of a workbook, before they are packed."""

    rows: list[list[Any]]
    names: list[str] = field(default_factory=lambda: ["Sheet1"])
    shared: bool = False
    before: str = ""
    after: str = ""
    states: dict[int, str] = field(default_factory=dict)
    numbers: Callable[[int], str] = str
    properties: str = ""
    doctype: str = ""

    def parts(self) -> dict[str, bytes]:
        """The files in the archive by name."""
        strings: dict[str, int] = {}
        sheets = {}
        for place in range(len(self.names)):
            rows = self.rows if place == 0 else [["other"], ["sheet"]]
            sheets[f"xl/worksheets/sheet{place + 1}.xml"] = self._sheet(rows, strings)
        listed = "".join(
            f'<sheet name={quoteattr(name)} sheetId="{place}" r:id="rId{place}"{self.states.get(place, "")}/>'
            for place, name in enumerate(self.names, start=1)
        )
        related = "".join(
            f'<Relationship Id="rId{place}" Type="{_OFFICE}/worksheet" Target="worksheets/sheet{place}.xml"/>'
            for place in range(1, len(self.names) + 1)
        )
        types = "".join(
            f'<Override PartName="/{name}" ContentType="{_TYPES}.worksheet+xml"/>' for name in sheets
        )
        found = {
            "[Content_Types].xml": f'{_HEAD}<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
            '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            '<Default Extension="xml" ContentType="application/xml"/>'
            f'<Override PartName="/xl/workbook.xml" ContentType="{_TYPES}.sheet.main+xml"/>'
            f'<Override PartName="/xl/styles.xml" ContentType="{_TYPES}.styles+xml"/>'
            f'<Override PartName="/xl/sharedStrings.xml" ContentType="{_TYPES}.sharedStrings+xml"/>{types}</Types>',
            "_rels/.rels": f'{_HEAD}<Relationships xmlns="{_RELS}"><Relationship Id="rId1" '
            f'Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
            "xl/workbook.xml": f'{_HEAD}{self.doctype}<workbook xmlns="{_NAMESPACE}" xmlns:r="{_OFFICE}">'
            f"{self.properties}<sheets>{listed}</sheets></workbook>",
            "xl/_rels/workbook.xml.rels": f'{_HEAD}<Relationships xmlns="{_RELS}">{related}'
            f'<Relationship Id="s1" Type="{_OFFICE}/styles" Target="styles.xml"/>'
            f'<Relationship Id="s2" Type="{_OFFICE}/sharedStrings" Target="sharedStrings.xml"/></Relationships>',
            "xl/styles.xml": _STYLES,
            "xl/sharedStrings.xml": f'{_HEAD}{self.doctype}<sst xmlns="{_NAMESPACE}">'
            + "".join(f'<si><t xml:space="preserve">{escape(one)}</t></si>' for one in strings)
            + "</sst>",
            **sheets,
        }
        return {name: text.encode("utf-8", "surrogatepass") for name, text in found.items()}

    def _sheet(self, rows: list[list[Any]], strings: dict[str, int]) -> str:
        written = [f'{_HEAD}{self.doctype}<worksheet xmlns="{_NAMESPACE}">{self.before}<sheetData>']
        for number, row in enumerate(rows, start=1):
            shown = self.numbers(number)
            cells = (
                self._cell(f"{letters(place)}{shown}", value, strings) for place, value in enumerate(row)
            )
            written.append(f'<row r="{shown}">{"".join(cells)}</row>')
        return "".join([*written, "</sheetData>", self.after, "</worksheet>"])

    def _cell(self, reference: str, value: Any, strings: dict[str, int]) -> str:
        if value is None:
            return ""
        if isinstance(value, Raw):
            return value.xml.replace("{r}", reference)
        if isinstance(value, bool):
            return f'<c r="{reference}" t="b"><v>{int(value)}</v></c>'
        if isinstance(value, int | float):
            return f'<c r="{reference}"><v>{value!r}</v></c>'
        if self.shared:
            return f'<c r="{reference}" t="s"><v>{strings.setdefault(value, len(strings))}</v></c>'
        return f'<c r="{reference}" t="inlineStr"><is><t xml:space="preserve">{escape(value)}</t></is></c>'


@dataclass(frozen=True)
class Raw:
    """A cell that stands in the file as it is."""

    xml: str


def letters(place: int) -> str:
    """The letters of a column, by its position."""
    found, place = "", place + 1
    while place:
        place, rest = divmod(place - 1, 26)
        found = chr(65 + rest) + found
    return found


def packed(parts: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """The archive."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, data in parts.items():
            archive.writestr(zipfile.ZipInfo(name), data, compression)
    return stream.getvalue()


def cell(name: str, value: Any, separator: str = "/") -> Any:
    """A field of a document as a person would type it."""
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return (separator if name == "labels" else "|").join(value)
    if isinstance(value, list | dict):
        return json.dumps(value)
    return value


def table(documents: list[Any], separator: str = "/") -> list[list[Any]]:
    """Documents as rows below a header."""
    rows = [one for one in documents if isinstance(one, dict)]
    columns = list(dict.fromkeys(name for one in rows for name in one))[:300]
    return [list(columns), *([cell(name, one.get(name), separator) for name in columns] for one in rows)]


def sound(documents: list[Any], rng: Random, separator: str = "/") -> bytes:
    """A workbook that nothing is wrong with."""
    return packed(Book(table(documents, separator), shared=rng.random() < 0.5).parts())

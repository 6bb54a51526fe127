"""Workbooks that no spreadsheet program would write: bad as a table, as XML, or as an archive."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from typing import Any

from faults.mutations import Random, odd_text, spoil_bytes
from faults.workbooks import Book, Raw, packed, table

ODD_CELLS = [
    '<c r="{r}"><f>1+1</f></c>', '<c r="{r}"><f>1+1</f><v>2</v></c>', '<c r="{r}" t="str"><f>A1</f><v>=cmd()</v></c>',
    '<c r="{r}" t="e"><v>#N/A</v></c>', '<c r="{r}" t="e"><v>#REF!</v></c>', '<c r="{r}" t="e"><v>#SPILL!</v></c>',
    '<c r="{r}" s="1"><v>45000</v></c>', '<c r="{r}" s="1"><v>-5</v></c>', '<c r="{r}" s="1"><v>1e10</v></c>',
    '<c r="{r}" s="1"><v>2958466</v></c>', '<c r="{r}" s="1"><v>0</v></c>', '<c r="{r}" s="1"><v>60.999999</v></c>',
    '<c r="{r}" s="2"><v>1e300</v></c>', '<c r="{r}"><v>NaN</v></c>', '<c r="{r}"><v>1e999</v></c>',
    '<c r="{r}"><v>x</v></c>', '<c r="{r}"><v>' + "9" * 5_000 + "</v></c>", '<c r="{r}" t="d"><v>2024-13-45</v></c>',
    '<c r="{r}" t="d"><v>0000-01-01T99:00:00</v></c>', '<c r="{r}" t="d"><v>2024-05-01</v></c>',
    '<c r="{r}" t="s"><v>999999</v></c>', '<c r="{r}" t="s"><v>-1</v></c>', '<c r="{r}" t="s"><v>x</v></c>',
    '<c r="{r}" t="b"><v>7</v></c>', '<c r="{r}" t="b"><v>yes</v></c>', '<c r="{r}" t="zzz"><v>1</v></c>', "<c/>",
    '<c r=""><v>1</v></c>', '<c r="A0"><v>1</v></c>', '<c r="XFE1"><v>1</v></c>', '<c r="A99999999"><v>1</v></c>',
    '<c r="AAAAAAAA1"><v>1</v></c>', '<c r="1A"><v>1</v></c>', '<c r="{r}" s="999"><v>1</v></c>',
    '<c r="{r}" s="x"><v>1</v></c>', '<c r="{r}" s="-1"><v>1</v></c>', '<c r="{r}" t="inlineStr"/>',
    '<c r="{r}" t="inlineStr"><is><r><t>quan</t></r><r><t>tum</t></r></is></c>', '<c r="{r}" t="inlineStr"><is/></c>',
    '<c r="{r}"><f t="array" ref="A1:ZZ99">1</f><v>1</v></c>', '<c r="{r}"><f t="shared" si="7"/><v>1</v></c>',
    '<c r="{r}"><v>12345678901234567890</v></c>', '<c r="{r}"><v>1.5</v></c>', '<c r="{r}"><v>2.0</v></c>',
    '<c r="{r}" t="str"><v>_x0007_ _x001B_[31m _xD800_</v></c>', '<c r="{r}" t="str"><v>\t \n</v></c>',
    '<x r="{r}"><v>1</v></x>', "<c r='{r}'><v>1</v><v>2</v></c>", '<c r="{r}"><v><b>1</b></v></c>',
]  # fmt: skip
"""Cells as XML, with the place for their reference."""

FORMULAS = [
    "=1+1",
    "+1+1",
    "-1+1",
    "@SUM(A1)",
    "=cmd|' /C calc'!A0",
    "\t=1",
    "\r=1",
    "'=1",
    "-",
    "+",
    "=",
    "@",
]


def spoiled(documents: list[Any], rng: Random, separator: str = "/") -> bytes:
    """A workbook that is bad in one to three ways, as a table, as XML, or as an archive."""
    book = Book(table(documents, separator), shared=rng.random() < 0.5)
    for _ in range(rng.choice([0, 1, 1, 2, 3])):
        rng.choice(_TABLES)(book, rng)
    parts = book.parts()
    for _ in range(rng.choice([0, 0, 1, 2])):
        rng.choice(_PARTS)(parts, rng)
    data = packed(
        parts,
        rng.choice([zipfile.ZIP_DEFLATED] * 6 + [zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]),
    )
    for _ in range(rng.choice([0, 0, 0, 1])):
        data = rng.choice(_ARCHIVES)(data, rng)
    return data


# -- as a table ------------------------------------------------------------------------------------------------


def _set_cell(book: Book, rng: Random) -> None:
    row = rng.choice(book.rows)
    if row:
        row[rng.randrange(len(row))] = Raw(rng.choice(ODD_CELLS))


def _set_column(book: Book, rng: Random) -> None:
    place, value = rng.randrange(5), Raw(rng.choice(ODD_CELLS))
    for row in book.rows[1:]:
        if place < len(row):
            row[place] = value


def _formulas(book: Book, rng: Random) -> None:
    for row in book.rows[rng.choice([0, 1, 1]) :]:
        if row and rng.random() < 0.5:
            row[rng.randrange(len(row))] = rng.choice(FORMULAS)


def _odd_header(book: Book, rng: Random) -> None:
    head = book.rows[0]
    if not head:
        return
    kind = rng.choice(["gap", "twice", "odd", "number", "missing", "last", "blank"])
    place = rng.randrange(len(head))
    if kind == "gap":
        for row in book.rows:
            row.insert(place, None)
        book.rows[-1][place] = "below no name"
    elif kind == "twice":
        head.append(head[place])
    elif kind == "odd":
        head[place] = odd_text(rng)
    elif kind == "number":
        head[place] = rng.choice([1, 2.5, True, Raw('<c r="{r}" s="1"><v>45000</v></c>')])
    elif kind == "missing":
        head[place] = None
    elif kind == "last":
        head.append(odd_text(rng))
    else:
        head[place] = " "


def _empty_rows(book: Book, rng: Random) -> None:
    place = rng.randrange(len(book.rows) + 1)
    book.rows[place:place] = [[None] * rng.choice([0, 3]) for _ in range(rng.choice([1, 50]))]


def _shape(book: Book, rng: Random) -> None:
    book.rows = rng.choice(
        [[], [[]], book.rows[:1], book.rows[:2], [row[:1] for row in book.rows], book.rows[1:]]
    )
    book.rows = book.rows or [[]]


def _wide(book: Book, rng: Random) -> None:
    place = rng.choice([300, 16_383, 18_277])
    row = rng.choice(book.rows)
    row.extend([None] * (place - len(row)) + ["far away"])


def _numbers(book: Book, rng: Random) -> None:
    numbers: Callable[[int], str] = rng.choice(
        [
            lambda one: str(one * 1_000),
            lambda one: str(2 * one) if one > 3 else str(one),
            lambda one: str(1_048_576 if one == 5 else one),
            lambda one: "x" if one == 5 else str(one),
            lambda one: "-1" if one == 5 else str(one),
            lambda one: "0" if one == 1 else str(one),
            lambda one: "99999999999" if one == 9 else str(one),
            lambda one: "1e3" if one == 9 else str(one),
            lambda one: "3",
            lambda one: f"{one}.5" if one == 4 else str(one),
        ]
    )
    book.numbers = numbers


def _merged(book: Book, rng: Random) -> None:
    reference = rng.choice(["A1:B1", "A2:D5", "A1:XFD1048576", "B2", "x", "", "A2:A1"])
    book.after += f'<mergeCells count="1"><mergeCell ref="{reference}"/></mergeCells>'


def _dimension(book: Book, rng: Random) -> None:
    reference = rng.choice(["A1:XFD1048576", "A1", "A1:B2", "", "x", "A1:ZZZ99999999", "D9:A1"])
    book.before += f'<dimension ref="{reference}"/>'


def _sheets(book: Book, rng: Random) -> None:
    book.names = rng.choice(
        [
            ["a", "b"],
            [odd_text(rng), "b"],
            ["same", "same"],
            ["", ""],
            ["x" * 300, "y"],
            ["hidden", "seen", "more"],
        ]
    )
    book.states[rng.choice([1, 2])] = rng.choice([' state="hidden"', ' state="veryHidden"', ' state="x"'])


def _around(book: Book, rng: Random) -> None:
    book.after += rng.choice(
        [
            '<autoFilter ref="A1:D9"/>', '<dataValidations count="1"><dataValidation sqref="x"/></dataValidations>',
            '<conditionalFormatting sqref="A1"><cfRule type="x"/></conditionalFormatting>', "<pageMargins/>",
            '<hyperlinks><hyperlink ref="A1" r:id="x"/></hyperlinks>',
            '<tableParts count="9"><tablePart/></tableParts>',
            "<sheetData><row><c><v>1</v></c></row></sheetData>", '<drawing xmlns:r="x" r:id="rId9"/>', "<unknown/>",
            '<sheetProtection password="zz"/>', '<legacyDrawing xmlns:r="x" r:id="1"/>',
            "<rowBreaks><brk/></rowBreaks>",
        ]
    )  # fmt: skip
    book.before += rng.choice(
        [
            "",
            '<cols><col min="1" max="99999999"/></cols>',
            '<cols><col min="x"/></cols>',
            "<sheetViews/>",
            "<sheetPr/>",
        ]
    )


def _properties(book: Book, rng: Random) -> None:
    book.properties += rng.choice(
        [
            '<workbookPr date1904="1"/>', '<workbookPr date1904="x"/>', "<fileVersion/>", '<calcPr calcId="x"/>',
            '<bookViews><workbookView activeTab="99"/></bookViews>', "<definedNames><definedName/></definedNames>",
            '<definedNames><definedName name="_xlnm.Print_Area" localSheetId="9">x!$A</definedName></definedNames>',
            '<workbookProtection workbookPassword="zz"/>',
            '<externalReferences><externalReference r:id="x"/></externalReferences>',
        ]
    )  # fmt: skip


def _doctype(book: Book, rng: Random) -> None:
    laughs = '<!ENTITY a "ha">' + "".join(
        f'<!ENTITY {chr(98 + level)} "{f"&{chr(97 + level)};" * 10}">' for level in range(rng.choice([1, 9]))
    )
    kind = rng.choice(
        ["x [" + laughs + "]", 'x SYSTEM "file:///etc/passwd"', "x", 'x [<!ENTITY % p SYSTEM "x"> %p;]']
    )
    # Comments may stand before it.
    book.doctype = rng.choice(["", "<!--" + "x" * 5_000 + "-->"]) + f"<!DOCTYPE {kind}>"
    if laughs in kind and book.rows and book.rows[-1]:
        book.rows[-1][-1] = Raw(f'<c r="{{r}}" t="str"><v>&{chr(97 + laughs.count("ENTITY") - 1)};</v></c>')


_TABLES: list[Callable[[Book, Random], None]] = [
    _set_cell, _set_cell, _set_cell, _set_column, _set_column, _formulas, _odd_header, _odd_header, _empty_rows,
    _shape, _wide, _numbers, _merged, _dimension, _sheets, _around, _properties, _doctype,
]  # fmt: skip

# -- as XML ----------------------------------------------------------------------------------------------------

Parts = dict[str, bytes]


def _spoil_part(parts: Parts, rng: Random) -> None:
    name = rng.choice([*parts, *(one for one in parts if "sheet" in one)])
    parts[name] = spoil_bytes(parts[name], rng, parts["xl/workbook.xml"])


def _drop_part(parts: Parts, rng: Random) -> None:
    del parts[rng.choice(sorted(parts))]
    parts.setdefault("xl/workbook.xml", b"")


def _target(parts: Parts, rng: Random) -> None:
    name = "xl/_rels/workbook.xml.rels"
    other = rng.choice(
        [
            b"/xl/worksheets/sheet1.xml", b"../../../etc/passwd", b"worksheets/sheet9.xml", b"", b"styles.xml", b"\xff",
            b"worksheets/../worksheets/sheet1.xml", b'http://localhost/x" TargetMode="External', b"sharedStrings.xml",
        ]
    )  # fmt: skip
    parts[name] = parts.get(name, b"").replace(b"worksheets/sheet1.xml", other)


def _recoded(parts: Parts, rng: Random) -> None:
    name = rng.choice(sorted(parts))
    text = parts[name].decode("utf-8", "replace")
    codec = rng.choice(["utf-16", "utf-16-le", "latin-1", "utf-8-sig", "utf-32"])
    if rng.random() < 0.7:
        text = text.replace("UTF-8", codec.upper())
    parts[name] = text.encode(codec, "replace")


def _deep(parts: Parts, rng: Random) -> None:
    name = rng.choice([one for one in parts if one.endswith(".xml")] or sorted(parts))
    middle = rng.choice(
        [b"<a>" * 20_000 + b"</a>" * 20_000, b"<a " + b"x" * 100_000 + b"='1'/>", b"<!-- -->" * 5_000]
    )
    head, close, tail = parts[name].rpartition(b"</")
    parts[name] = head + middle + close + tail


def _chart(parts: Parts, rng: Random) -> None:
    parts["xl/_rels/workbook.xml.rels"] = parts.get("xl/_rels/workbook.xml.rels", b"").replace(
        b"/worksheet", rng.choice([b"/chartsheet", b"/dialogsheet", b"/x"])
    )


_PARTS: list[Callable[[Parts, Random], None]] = [
    _spoil_part, _spoil_part, _spoil_part, _drop_part, _target, _recoded, _deep, _chart,
]  # fmt: skip

# -- as an archive ---------------------------------------------------------------------------------------------


def _lie(data: bytes, rng: Random) -> bytes:
    """Change numbers of the archive's directory: sizes, flags, the way of compression, the place of a part."""
    found = bytearray(data)
    starts = [at for at in range(len(data) - 46) if data[at : at + 4] == b"PK\x01\x02"]
    for start in rng.sample(starts, min(len(starts), rng.choice([1, 3]))):
        offset, length = rng.choice([(8, 2), (10, 2), (16, 4), (20, 4), (24, 4), (28, 2), (30, 2), (42, 4)])
        value = rng.choice([b"\0" * 4, b"\xff" * 4, b"\1\0\0\0", rng.randbytes(4)])
        found[start + offset : start + offset + length] = value[:length]
    return bytes(found)


def _twice(data: bytes, rng: Random) -> bytes:
    import warnings

    stream = io.BytesIO(data)
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "a") as archive:
        warnings.simplefilter("ignore")
        archive.writestr(
            rng.choice(["xl/workbook.xml", "xl/worksheets/sheet1.xml", "../x", "/x", "x" * 5_000]), "x"
        )
    return stream.getvalue()


_ARCHIVES: list[Callable[[bytes, Random], bytes]] = [
    lambda data, rng: spoil_bytes(data, rng, data), lambda data, rng: spoil_bytes(data, rng, data), _lie, _lie, _twice,
    lambda data, rng: b"junk before" + data, lambda data, rng: data + b"junk behind" * rng.choice([1, 9_000]),
    lambda data, rng: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + data, lambda data, rng: b"PK\x05\x06" + b"\0" * 18,
]  # fmt: skip

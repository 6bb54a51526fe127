"""Records of files, tables and lists, one at a time: only the record at hand is in memory."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import os
import re
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, BinaryIO, Protocol, TypeAlias

import orjson

from himecat.errors import DataError, UsageError
from himecat.input.csv_form import CsvForm, csv_form
from himecat.input.hub_datasets import dataset_rows
from himecat.input.label_studio import task_records
from himecat.input.parquet import parquet_rows
from himecat.input.problems import Problems, described, half_character, quoted
from himecat.input.reading import AS_FOUND, Reading
from himecat.input.record import Record as Record
from himecat.input.sheets import sheet_rows
from himecat.input.small_files import unreadable_json
from himecat.input.streams import (
    BrokenFile,
    CheckedLines,
    LongLine,
    check_start,
    counted,
    open_stream,
    shown,
    too_long,
)
from himecat.input.tables import TableRows, column_names, present_fields, rows_of_columns, table_rows
from himecat.input.text_folders import check_folder, folder_texts
from himecat.runtime.bounds import bounds, size

# An array is read whole; it may be so many times as long as a line.
_LINES_OF_ARRAY = 64
_SKIPPED_BYTES = 1 << 20
_BLANKS = re.compile(r"[ \t\r\n]*")
_LOOK_TWICE = {float, type(None)}
_LARGE = 2.0**63


class Table(Protocol):
    """A pandas or polars data frame, or a pyarrow table."""

    @property
    def columns(self) -> Any:
        """The columns or their names."""


Source: TypeAlias = str | os.PathLike[str] | Iterable[Any] | Table


def iter_records(
    source: Source,
    problems: Problems,
    wanted: Collection[str] | None = None,
    reading: Reading = AS_FOUND,
) -> Iterator[Record]:
    """Read the records of a file, a table or a list, in order, without holding them all.

    Parameters
    ----------
    source : path, table or iterable
        A file (JSON lines in .jsonl, .ndjson or .json, one JSON array in .json, CSV or TSV with a header row, each
        plain or compressed to .gz or .zst; Parquet); a pandas, polars or pyarrow table; or mappings, texts and
        `Path` objects in any iterable.
    problems : Problems
        Receives what is wrong with single records. Such a record is still given, with `fields` None, so
        that positions stay aligned.
    wanted : collection of str, optional
        The columns of a table that are read at all; by default every one.
    reading : Reading
        What a file does not say of itself, such as the sheet of a workbook.

    Raises
    ------
    DataError
        A file is missing, not readable or of an unknown kind.

    Examples
    --------
    >>> source = ["A red fox.", {"text": "A hen.", "farm": None}]
    >>> [record.fields for record in iter_records(source, Problems())]
    [{'text': 'A red fox.'}, {'text': 'A hen.'}]
    """
    if isinstance(source, str | os.PathLike):
        return _file_records(source, problems, wanted, reading)
    table = dataset_rows(source, wanted)
    if table is None and isinstance(source, Mapping):
        source = rows_of_columns(source)
    table = table or table_rows(source, wanted)
    if table is not None:
        return _table_records(table, "", problems)
    # Iterating over a table of another library would give its column names, as if they were texts.
    if isinstance(source, bytes) or hasattr(source, "columns") or not isinstance(source, Iterable):
        kind = type(source).__name__
        known = "a path, a pandas, polars or pyarrow table, a dataset, a mapping of lists"
        raise UsageError(f"Documents come as {known}, or a list of mappings or texts, not as a {kind}.")
    return task_records(_listed_records(source, problems, wanted, reading), "", problems)


def parts_of(source: Source) -> list[Any]:
    """The files of a list of files; of any other source itself.

    Examples
    --------
    >>> from pathlib import Path
    >>> parts_of([Path("a.csv"), Path("b.csv")]), parts_of("a.csv")
    ([PosixPath('a.csv'), PosixPath('b.csv')], ['a.csv'])
    """
    if isinstance(source, list | tuple) and source and all(isinstance(one, os.PathLike) for one in source):
        return list(source)
    return [source]


def _table_records(table: TableRows, path: str, problems: Problems) -> Iterator[Record]:
    number = 0
    start = f"{path} row " if path else "row "
    for batch in table.batches:
        for row in batch:
            place = f"{start}{number}"
            number += 1
            if isinstance(row, str):
                problems.error(place, row)
                yield Record(place, None)
            else:
                yield Record(place, row, unread=table.unread, unchecked=True)


def _listed_records(
    items: Iterable[Any], problems: Problems, wanted: Collection[str] | None, reading: Reading
) -> Iterator[Record]:
    for position, item in enumerate(items):
        place = f"document {position}"
        if isinstance(item, str):
            yield Record(place, {"text": str(item)}, plain=True, unchecked=True)
        elif isinstance(item, Mapping):
            yield _unchecked(Record(place, present_fields(item)), problems)
        elif isinstance(item, Record):
            yield item
        elif isinstance(item, os.PathLike):
            yield from _file_records(item, problems, wanted, reading)
        else:
            problems.error(place, f"this is a {type(item).__name__}: a document is a mapping or a text.")
            yield Record(place, None)


def _file_records(
    source: str | os.PathLike[str], problems: Problems, wanted: Collection[str] | None, reading: Reading
) -> Iterator[Record]:
    name = path = os.fsdecode(source)
    last = ""
    if os.path.isdir(name):
        check_folder(name)
        for place, fields in folder_texts(name, problems, reading.folders):
            yield Record(place, fields, plain=True, unchecked=True)
        return
    with open_stream(path) as (kind, stream):
        path = shown(path)
        try:
            if kind == ".parquet":
                records = _table_records(parquet_rows(stream, path, wanted), path, problems)
            elif kind in {".csv", ".tsv"}:
                records = _csv_records(stream, path, csv_form(name, reading.delimiter), problems)
            elif kind in {".xlsx", ".xlsm"}:
                records = (
                    Record(f"{path} row {number}", fields, delimited=True, unchecked=True, header=header)
                    for number, header, fields in sheet_rows(stream, path, reading.sheet, problems)
                )
            else:
                records = task_records(_json_records(stream, path, kind == ".json", problems), path, problems)
            for record in counted(records, stream):
                last = record.place
                yield record
            if not last:
                problems.fatal(path, "the file is empty: it holds no document.")
        except BrokenFile as broken:
            problems.fatal(path, str(broken))
        except EOFError:
            read = f"the last whole record is {last}" if last else "no record could be read"
            problems.fatal(path, f"the compressed file is cut short ({read}): get it again.")
        except (zlib.error, gzip.BadGzipFile) as error:
            problems.fatal(path, f"the compressed file is damaged ({error}): get it again.")
        except OSError as error:
            raise DataError(f"{path}: reading failed ({error.strerror or error}).") from None


def _json_records(
    stream: io.BufferedReader, path: str, may_be_array: bool, problems: Problems
) -> Iterator[Record]:
    start = check_start(stream).removeprefix(codecs.BOM_UTF8)
    if may_be_array and start.lstrip().startswith(b"["):
        for position, item in enumerate(_json_array(stream)):
            yield _unchecked(_json_record(f"{path} document {position}", item, problems), problems)
        return
    longest = bounds().line
    # A longer line is cut, and then it is no JSON; what does not fit is never in memory.
    for number, line in enumerate(iter(partial(stream.readline, longest + 2), b""), start=1):
        # Before all else: a small file may unpack to millions of empty lines.
        if len(line) < 3 and not line.strip():
            continue
        place = f"{path} line {number}"
        try:
            item = orjson.loads(line)
            if type(item) is dict:
                types = set(map(type, item.values()))
                if not types & _LOOK_TWICE:
                    yield Record(place, item)
                    continue
                # Whole numbers of more than 64 bits come as floats, and an id must keep all its digits.
                if float not in types or not any(
                    type(value) is float and abs(value) >= _LARGE for value in item.values()
                ):
                    yield _json_record(place, item, problems)
                    continue
        except ValueError:
            pass
        # orjson refuses NaN, half a surrogate pair and deep nesting; the json module accepts them, and knows the
        # column of a fault.
        record = _careful_line(line, place, number == 1, problems, longest)
        if record is not None:
            yield record
        if len(line) > longest:
            while not line.endswith(b"\n"):
                line = stream.readline(_SKIPPED_BYTES) or b"\n"


def _unchecked(record: Record, problems: Problems) -> Record:
    """An unchecked record, unless the name of one of its fields holds half a character."""
    for name in record.fields or ():
        if half := half_character(name):
            message = f"the name of the field {quoted(name)} holds {half}, half of a character: repair it."
            problems.error(record.place, message)
            return Record(record.place, None)
    return Record(record.place, record.fields, unchecked=True)


def _json_record(place: str, item: Any, problems: Problems) -> Record:
    if isinstance(item, dict):
        # A value that differs from itself is JSON's NaN, which stands for a missing value.
        return Record(
            place, {name: value for name, value in item.items() if value is not None and value == value}
        )
    problems.error(place, f"a JSON object is expected, not {described(item)}.")
    return Record(place, None)


def _careful_line(line: bytes, place: str, first: bool, problems: Problems, longest: int) -> Record | None:
    """The record of a line; None where the line is blank."""
    if len(line.rstrip(b"\r\n")) > longest:
        problems.error(place, too_long("the line", longest))
        return Record(place, None)
    try:
        text = line.decode("utf-8-sig" if first else "utf-8")
        if text.isspace() or not text:
            return None
        return _unchecked(_json_record(place, json.loads(text), problems), problems)
    except UnicodeDecodeError as error:
        found = f"invalid UTF-8 at byte {error.start + 1} of the line (0x{error.object[error.start]:02x})"
        problems.error(place, f"{found}: save the file as UTF-8.")
    except json.JSONDecodeError as error:
        # Not `colno`, which for what is missing at the end counts from behind the line break.
        column = min(error.pos, len(text.rstrip())) + 1
        found = f"broken JSON at column {column} ({error.msg[0].lower()}{error.msg[1:]})"
        problems.error(place, f"{found}: every line must be one JSON object.")
    except (RecursionError, ValueError) as error:
        problems.error(place, unreadable_json(error))
    return Record(place, None)


def _json_array(stream: BinaryIO) -> Iterator[Any]:
    """The items of an array, one at a time: as text it is small, as objects it may be many times as large."""
    most = _LINES_OF_ARRAY * bounds().line
    raw = stream.read(most + 1)
    if len(raw) > most:
        raise BrokenFile(f"the array is larger than {size(most)}: write one object per line (JSON lines).")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BrokenFile(f"invalid UTF-8 at byte {error.start + 1}: save the file as UTF-8.") from None
    del raw
    decode = json.JSONDecoder().raw_decode
    try:
        position = _past_blanks(text, text.index("[") + 1)
        more = text[position : position + 1] != "]"
        while more:
            item, position = decode(text, position)
            yield item
            position = _past_blanks(text, position)
            more = text[position : position + 1] == ","
            if more:
                position = _past_blanks(text, position + 1)
            elif text[position : position + 1] != "]":
                raise json.JSONDecodeError("Expecting ',' delimiter", text, position)
        position = _past_blanks(text, position + 1)
        if position < len(text):
            raise json.JSONDecodeError("Extra data", text, position)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise BrokenFile(f"broken JSON at {where} ({error.msg[0].lower()}{error.msg[1:]}).") from None
    except (RecursionError, ValueError) as error:
        raise BrokenFile(unreadable_json(error)) from None


def _past_blanks(text: str, position: int) -> int:
    found = _BLANKS.match(text, position)
    return found.end() if found else position


def _csv_records(stream: io.BufferedReader, path: str, form: CsvForm, problems: Problems) -> Iterator[Record]:
    delimiter = form.delimiter
    if form.encoding != "utf-16":
        check_start(stream)
    for note in form.notes:
        problems.note(path, note)
    # The lines bound a row, and with it its fields.
    csv.field_size_limit(max(csv.field_size_limit(), bounds().line + 1))
    lines = CheckedLines(stream, form.encoding)
    if form.hint:
        next(lines)
    # Not strict, an unclosed quotation mark would silently swallow the rest of the file.
    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    header: list[str] = []
    short = first_short = 0
    empty = True
    while True:
        lines.start_row()
        line = lines.number + 1
        place = f"{path} line {line}"
        try:
            row, wrong = next(rows), ""
        except StopIteration:
            break
        except LongLine as error:
            if not header:
                raise BrokenFile(str(error)) from None
            row, wrong = [], str(error)
        except csv.Error as error:
            row, wrong = [], f"broken quotation marks ({error}): quote the field, double the quotes inside."
        if lines.damage:
            wrong = f"{lines.damage}: save the file as UTF-8."
        if wrong and not header:
            raise BrokenFile(f"the header row has {wrong}")
        if not row and not wrong:
            continue
        if not header:
            header = list(column_names(place, row))
            continue
        if len(row) > len(header) and not wrong:
            separator = {",": "a comma", "\t": "a tab"}.get(delimiter, quoted(delimiter))
            wrong = (
                f"{len(row)} fields under a header of {len(header)}: quote a field with {separator} in it."
            )
        if wrong:
            problems.error(place, wrong)
        elif len(row) < len(header):
            short += 1
            first_short = first_short or line
        empty = False
        yield Record(place, None if wrong else dict(zip(header, row, strict=False)), delimited=True)
    if short:
        rows_are = "one row has" if short == 1 else f"{short:,} rows have"
        problems.warning(
            path,
            f"{rows_are} fewer fields than the header (the first in line {first_short}): what is missing is taken "
            "as empty.",
        )
    if header and empty:
        raise BrokenFile("the file is empty: there is a header row and no document below it.")

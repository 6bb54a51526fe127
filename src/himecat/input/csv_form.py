"""How a CSV file is written: its encoding and its delimiter, told with certainty or asked for."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import shlex
import zlib
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from himecat.errors import UsageError, spelled
from himecat.input.problems import quoted
from himecat.input.streams import BrokenFile, open_stream

_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_SPOKEN = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "bar": "|", "pipe": "|"}
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UTF_32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_CHUNK = 1 << 20
# The start of a file that tells its delimiter.
_HEAD, _ROWS = 1 << 18, 25
# Bytes that no text in Windows-1252 has, and those that are no letter of ASCII.
_HOLES = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f\x81\x8d\x8f\x90\x9d]")
_HIGH = re.compile(rb"[\x80-\xff]")
_UTF_8_PAIR = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
# A letter and a quotation mark of Windows-1252 may look like UTF-8 by chance; much UTF-8 is no chance.
_CHANCE = 0.1
_HINT = re.compile(r'"?sep=(.)"?\r?\n', re.IGNORECASE)


class CsvForm(NamedTuple):
    """The encoding and the delimiter of a file, what to say of them, and whether its first line only names them.

    Examples
    --------
    >>> CsvForm().delimiter
    ','
    """

    encoding: str = "utf-8-sig"
    delimiter: str = ","
    notes: tuple[str, ...] = ()
    hint: bool = False


def checked_delimiter(given: object) -> str | None:
    """A delimiter as a user gives it, also by name; None where it is to be found.

    Examples
    --------
    >>> checked_delimiter(";"), checked_delimiter("tab"), checked_delimiter(None)
    (';', '\\t', None)
    """
    if given is None:
        return None
    found = _SPOKEN.get(given.strip().lower(), given) if isinstance(given, str) else ""
    if len(found) != 1 or found in '"\r\n\0 ':
        raise UsageError(
            f"The delimiter of a CSV file is one character such as ; or the word tab, not {quoted(given)}."
        )
    return found


def csv_form(path: str, delimiter: str | None = None) -> CsvForm:
    """Find out how a file is written; it is read once for it, and only its start is kept.

    Raises
    ------
    BrokenFile
        The encoding is none that is read, or the delimiter cannot be told.
    """
    with open_stream(path) as (kind, stream):
        try:
            start = stream.read(_HEAD)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            start = b""
        if start.startswith(_UTF_32):
            raise BrokenFile("the file is in UTF-32: save it as UTF-8.")
        if start.startswith(_UTF_16):
            encoding = "utf-16"
            _check_utf_16(start, stream)
        else:
            encoding = "utf-8-sig"
            if _is_windows(start, stream):
                encoding = "cp1252"
    usual = "\t" if kind == ".tsv" else ","
    text = start.decode(encoding, "replace")
    notes = []
    if encoding != "utf-8-sig":
        name = "UTF-16" if encoding == "utf-16" else "Windows-1252 (it is not UTF-8)"
        notes.append(f"the file is read as {name}; save it as UTF-8 where letters look wrong.")
    hinted = _HINT.match(text)
    if delimiter is None:
        delimiter = hinted[1] if hinted else _delimiter(text, usual, len(start) == _HEAD)
        if delimiter != usual:
            named = _NAMES.get(delimiter, quoted(delimiter))
            option = spelled("--delimiter", "delimiter=")
            notes.append(f"the columns are separated by {named} ({option} says otherwise).")
    return CsvForm(encoding, delimiter, tuple(notes), hinted is not None)


def _parts(start: bytes, stream: io.BufferedReader) -> Iterator[bytes]:
    """All bytes of a file; one that is cut short or damaged ends early here, and its reader says so."""
    part = start
    while part:
        yield part
        try:
            part = stream.read(_CHUNK)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            return


def _check_utf_16(start: bytes, stream: io.BufferedReader) -> None:
    decoder = codecs.getincrementaldecoder("utf-16")()
    try:
        for part in _parts(start, stream):
            decoder.decode(part)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise BrokenFile(
            f"the file starts like UTF-16, but is not ({error.reason}): save it as UTF-8."
        ) from None


def _is_windows(start: bytes, stream: io.BufferedReader) -> bool:
    """Whether bytes are no UTF-8, but text in Windows-1252 for certain."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    is_utf_8 = True
    high = pairs = 0
    for part in _parts(start, stream):
        if is_utf_8:
            try:
                decoder.decode(part)
            except UnicodeDecodeError:
                is_utf_8 = False
        if not part.isascii():
            high += len(_HIGH.findall(part))
            pairs += sum(map(len, _UTF_8_PAIR.findall(part)))
        if not is_utf_8 and (_HOLES.search(part) or pairs > _CHANCE * high + 4):
            return False
    if is_utf_8:
        try:
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            is_utf_8 = False
    return not is_utf_8 and pairs <= _CHANCE * high


def _delimiter(text: str, usual: str, is_cut: bool) -> str:
    """The delimiter with which the first rows have the columns of the header; the usual one where none is better."""
    header = next((line for line in text.splitlines() if line.strip()), "")
    widths = {one: _widths(text, one, is_cut) for one in _NAMES if one in header}
    fitting = {
        one: found[0]
        for one, found in widths.items()
        if found and found[0] > 1 and len(set(found)) == 1 and len(found) > 1
    }
    if usual in fitting:
        wider = [one for one in fitting if fitting[one] > fitting[usual]]
        if not wider:
            return usual
        raise _doubt([usual, *wider])
    if len(fitting) == 1:
        return next(iter(fitting))
    if len(fitting) > 1:
        raise _doubt(list(fitting))
    if usual in header:
        return usual
    possible = [one for one, found in widths.items() if found and found[0] > 1]
    if len(possible) > 1:
        raise _doubt(possible)
    return possible[0] if possible else usual


def _widths(text: str, delimiter: str, is_cut: bool) -> list[int]:
    """How many fields the first rows have; none where they cannot be read."""
    rows: list[int] = []
    try:
        for row in islice(
            csv.reader(text.splitlines(keepends=True), delimiter=delimiter, strict=True), _ROWS
        ):
            if row:
                rows.append(len(row))
        full = True
    except csv.Error:
        full = False
    # The last row of a part of a file is one no longer.
    if len(rows) < _ROWS and is_cut:
        rows = rows[:-1] if full else rows
    return rows if full or (is_cut and rows) else []


def _doubt(possible: Sequence[str]) -> BrokenFile:
    names = " and ".join(_NAMES[one] for one in possible)
    written = ["tab" if one == "\t" else one for one in possible]
    options = (spelled(f"--delimiter {shlex.quote(one)}", f"delimiter={one!r}") for one in written)
    return BrokenFile(f"the columns could be separated by {names}: say which ({' or '.join(options)}).")

"""Files of documents as byte streams: kind by name, decompressed; what is wrong is said in one sentence."""

from __future__ import annotations

import gzip
import io
import os
import re
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Literal, TypeVar, cast

from himecat.errors import DataError, MissingExtraError
from himecat.input.problems import clipped, quoted
from himecat.runtime.bounds import bounds, over, size

Item = TypeVar("Item")

_KINDS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".xlsx", ".xlsm")
_PACKED = (".parquet", ".xlsx", ".xlsm")
_COMPRESSIONS = (".gz", ".zst")

_BUFFER_BYTES = 1 << 18
# Short files of repeated words compress very well; only what is large can do harm.
_FREE_BYTES = 1 << 24
_FREE_DOCUMENTS = 100_000
# The largest that compressors use without being forced to.
_ZSTD_WINDOW = 1 << 27
_ESCAPED_BYTE = re.compile("[\udc80-\udcff]")
_FOREIGN_STARTS = {
    b"\xff\xfe": "the file is in UTF-16: save it as UTF-8.",
    b"\xfe\xff": "the file is in UTF-16: save it as UTF-8.",
    b"\x1f\x8b": "the file is compressed with gzip: let its name end in .gz.",
    b"\x28\xb5\x2f\xfd": "the file is compressed with zstd: let its name end in .zst.",
    b"PAR1\x15": "this is a Parquet file: let its name end in .parquet.",
    b"PK\x03\x04": "this is an archive or a workbook: let the name of a workbook end in .xlsx.",
}


class BrokenFile(Exception):
    """Nothing more can be read from a file; the text says why.

    Examples
    --------
    >>> str(BrokenFile("a quotation mark is missing in the row at line 3."))
    'a quotation mark is missing in the row at line 3.'
    """


@contextmanager
def open_stream(path: str) -> Iterator[tuple[str, io.BufferedReader]]:
    """The kind of a file by its name, such as `.csv`, and its decompressed bytes.

    Raises
    ------
    DataError
        The file is missing, not readable or of an unknown kind.

    Examples
    --------
    >>> with open_stream("no-such-letters.csv"):
    ...     pass
    Traceback (most recent call last):
    ...
    himecat.errors.DataError: no-such-letters.csv: there is no such file.
    """
    kind, compression = _kind_and_compression(path)
    with _open_file(path) as file:
        if compression == ".gz":
            yield kind, _expanded(cast(io.RawIOBase, gzip.GzipFile(fileobj=file)), file)
        elif compression == ".zst":
            yield kind, _expanded(_ZstdStream(file), file)
        else:
            yield kind, file


def path_kind(path: str | os.PathLike[str]) -> Literal["file", "pipe", "folder", "other", "nothing"]:
    """What is at a path; a `DataError` where one cannot know, as in a folder that one may not enter.

    Examples
    --------
    >>> path_kind("."), path_kind("no/such/file")
    ('folder', 'nothing')
    """
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "nothing"
    except PermissionError:
        raise DataError(f"{shown(path)}: there is no permission to enter the folder it is in.") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{shown(path)}: this cannot be the name of a file ({_reason(error)}).") from None
    if stat.S_ISDIR(mode):
        return "folder"
    return "file" if stat.S_ISREG(mode) else "pipe" if stat.S_ISFIFO(mode) else "other"


def shown(path: str | os.PathLike[str]) -> str:
    """A path for a message; with what no terminal could show written out.

    Examples
    --------
    >>> shown("letters.csv"), shown("a\\0b")
    ('letters.csv', 'a\\\\x00b')
    """
    return clipped("".join(c if c.isprintable() else repr(c)[1:-1] for c in os.fsdecode(path)), 300)


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def _kind_and_compression(path: str) -> tuple[str, str]:
    at = path_kind(path)
    if at == "folder":
        raise DataError(f"{shown(path)}: this is a folder; name the file with the documents.")
    name, compression = os.path.basename(path).lower(), ""
    if name.endswith(_COMPRESSIONS):
        name, compression = os.path.splitext(name)
    kind = os.path.splitext(name)[1]
    if kind not in _KINDS or (kind in _PACKED and compression):
        if at == "nothing":
            raise DataError(f"{shown(path)}: there is no such file (texts are given as a list of strings).")
        found = (
            f"files ending in {quoted(kind + compression)} are not known"
            if kind
            else "the name has no suffix"
        )
        known = f"{', '.join(_KINDS)} (all but .parquet and .xlsx also .gz or .zst)"
        raise DataError(f"{shown(path)}: {found}; documents are read from {known}.")
    if at == "other":
        raise DataError(f"{shown(path)}: this is a device or a socket; write the documents to a file.")
    return kind, compression


def _open_file(path: str) -> io.BufferedReader:
    try:
        return cast(io.BufferedReader, open(path, "rb", buffering=_BUFFER_BYTES))
    except FileNotFoundError:
        raise DataError(f"{shown(path)}: there is no such file.") from None
    except PermissionError:
        raise DataError(f"{shown(path)}: there is no permission to read this file.") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{shown(path)}: the file cannot be opened ({_reason(error)}).") from None


def check_expansion(expanded: int, read: int, free: int = _FREE_BYTES) -> None:
    """Refuse a file that has become too large for the bytes that were read of it; up to `free` bytes never are.

    Examples
    --------
    >>> check_expansion(1 << 20, 10)
    >>> check_expansion(1 << 30, 1 << 20)
    Traceback (most recent call last):
    ...
    himecat.input.streams.BrokenFile: the file expands to more than 200 times its size; the bound is 200 ...
    """
    ratio = bounds().ratio
    if expanded > free and expanded > ratio * read:
        larger = over("ratio", max(10 * ratio, -(-expanded // max(1, read))))
        raise BrokenFile(f"the file expands to more than {ratio:,} times its size; {larger}.")


def check_count(documents: int, read: int) -> None:
    """Refuse a compressed file in which documents have less than a byte each: they repeat a few.

    Examples
    --------
    >>> check_count(1_000, 10)
    >>> check_count(1_000_000_000, 20_000)
    Traceback (most recent call last):
    ...
    himecat.input.streams.BrokenFile: there are more documents than bytes (1,000,000,000 in 20,000 bytes): ...
    """
    if documents > max(_FREE_DOCUMENTS, read):
        found = f"{documents:,} in {size(read)}"
        raise BrokenFile(
            f"there are more documents than bytes ({found}): they repeat a few; write each once."
        )


def counted(records: Iterator[Item], stream: io.BufferedReader) -> Iterator[Item]:
    """The records of a stream; where it is compressed, with a check that they are not too many for its size.

    Examples
    --------
    >>> list(counted(iter("ab"), io.BufferedReader(io.BytesIO(b""))))
    ['a', 'b']
    """
    raw = stream.raw
    if not isinstance(raw, _CheckedExpansion):
        return records

    def checked() -> Iterator[Item]:
        for number, record in enumerate(records):
            if not number % _FREE_DOCUMENTS:
                check_count(number, raw.compressed.tell())
            yield record

    return checked()


def _expanded(raw: io.RawIOBase, compressed: io.BufferedReader) -> io.BufferedReader:
    return io.BufferedReader(_CheckedExpansion(raw, compressed), _BUFFER_BYTES)


class _CheckedExpansion(io.RawIOBase):
    """Decompressed bytes, as long as they are not too many for the compressed ones."""

    def __init__(self, raw: io.RawIOBase, compressed: io.BufferedReader) -> None:
        self._raw, self.compressed, self._count = raw, compressed, 0

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        length = self._raw.readinto(target) or 0
        self._count += length
        check_expansion(self._count, self.compressed.tell())
        return length


class _ZstdStream(io.RawIOBase):
    """Decompressed bytes; unlike the reader of the zstandard package it notices a file that was cut short."""

    def __init__(self, compressed: BinaryIO) -> None:
        try:
            import zstandard
        except ImportError:
            raise MissingExtraError.for_package("zstandard", "files", "Reading .zst files") from None
        self._error: type[Exception] = zstandard.ZstdError
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
        self._compressed = compressed
        self._frame: Any = None
        self._rest = b""
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        while not self._ready:
            # Little at a time: a kilobyte can hold megabytes of repetitive text.
            part = self._rest or self._compressed.read(1 << 10)
            if not part:
                if self._frame is not None:
                    raise EOFError
                return 0
            self._frame = self._frame or self._decompressor.decompressobj()
            try:
                self._ready = memoryview(self._frame.decompress(part))
            except self._error as error:
                raise zlib.error(str(error)) from None
            self._rest = self._frame.unused_data
            if self._frame.eof:
                self._frame = None
        size = min(len(target), len(self._ready))
        target[:size], self._ready = self._ready[:size], self._ready[size:]
        return size


def check_start(stream: io.BufferedReader) -> bytes:
    """The first bytes of a text file, after a check that they are not those of another kind of file.

    Examples
    --------
    >>> check_start(io.BufferedReader(io.BytesIO(b"id,text")))
    b'id,text'
    """
    start = stream.peek(1)
    for foreign, message in _FOREIGN_STARTS.items():
        if start.startswith(foreign):
            raise BrokenFile(message)
    return start


class LongLine(Exception):
    """A line that exceeds the bound was left out; the text says so.

    Examples
    --------
    >>> str(LongLine("the line is longer than 16 MB."))
    'the line is longer than 16 MB.'
    """


def too_long(what: str, least: int) -> str:
    """What to say of a line or a value with at least so many bytes.

    Examples
    --------
    >>> too_long("the line", 17 << 20)
    "the line is longer than it may be: the bound is 16 MB (himecat.set_bounds(line='34MB') raises it)."
    """
    return f"{what} is longer than it may be: {over('line', 2 * least)}."


class CheckedLines:
    """Lines of a text stream that remember where the first byte that is not UTF-8 stood.

    A line that is too long is passed over, and a `LongLine` raised in its place.

    Examples
    --------
    >>> lines = CheckedLines(io.BufferedReader(io.BytesIO(b"id,text\\n1,caf\\xe9\\n")))
    >>> len(list(lines)), lines.damage
    (2, 'invalid UTF-8 at byte 6 of line 2 (0xe9)')
    """

    def __init__(self, stream: io.BufferedReader, encoding: str = "utf-8-sig") -> None:
        self._text = io.TextIOWrapper(stream, encoding, "surrogateescape", newline="")
        self._longest = bounds().line
        self._row_characters = 0
        self.number = 0
        self.damage = ""

    def start_row(self) -> None:
        """Forget what was found in the lines of the row before."""
        self.damage, self._row_characters = "", 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._text.readline(self._longest + 1)
        if not line:
            raise StopIteration
        self.number += 1
        self._row_characters += len(line)
        if self._row_characters > self._longest:
            if len(line) <= self._longest:
                raise BrokenFile(
                    f"a quotation mark is missing in the row that reaches line {self.number}, or "
                    + too_long("the row", self._row_characters)
                )
            while line and not line.endswith(("\n", "\r")):
                line = self._text.readline(1 << 20)
            raise LongLine(too_long("the line", self._longest))
        if not line.isascii() and not self.damage and (bad := _ESCAPED_BYTE.search(line)):
            position = len(line[: bad.start()].encode("utf-8", "surrogateescape")) + 1
            byte = f"0x{ord(bad[0]) - 0xDC00:02x}"
            self.damage = f"invalid UTF-8 at byte {position} of line {self.number} ({byte})"
        return line

"""Files of documents as byte streams: kind by name, decompressed; what is wrong is said in one sentence."""

from __future__ import annotations

import gzip
import io
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, cast

from himecat.errors import DataError, MissingExtraError

_KINDS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet")
_COMPRESSIONS = (".gz", ".zst")

_BUFFER_BYTES = 1 << 18
_ESCAPED_BYTE = re.compile("[\udc80-\udcff]")
_FOREIGN_STARTS = {
    b"\xff\xfe": "the file is in UTF-16: save it as UTF-8.",
    b"\xfe\xff": "the file is in UTF-16: save it as UTF-8.",
    b"\x1f\x8b": "the file is compressed with gzip: let its name end in .gz.",
    b"\x28\xb5\x2f\xfd": "the file is compressed with zstd: let its name end in .zst.",
    b"PAR1\x15": "this is a Parquet file: let its name end in .parquet.",
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
            yield kind, io.BufferedReader(gzip.GzipFile(fileobj=file), _BUFFER_BYTES)
        elif compression == ".zst":
            yield kind, io.BufferedReader(_ZstdStream(file), _BUFFER_BYTES)
        else:
            yield kind, file


def _kind_and_compression(path: str) -> tuple[str, str]:
    if os.path.isdir(path):
        raise DataError(f"{path}: this is a folder; name the file with the documents.")
    name, compression = os.path.basename(path).lower(), ""
    if name.endswith(_COMPRESSIONS):
        name, compression = os.path.splitext(name)
    kind = os.path.splitext(name)[1]
    if kind not in _KINDS or (kind == ".parquet" and compression):
        if not os.path.exists(path):
            raise DataError(f"{path[:200]}: there is no such file (texts are given as a list of strings).")
        found = f"files ending in {kind + compression!r} are not known" if kind else "the name has no suffix"
        known = f"{', '.join(_KINDS)} (all but .parquet also .gz or .zst)"
        raise DataError(f"{path}: {found}; documents are read from {known}.")
    return kind, compression


def _open_file(path: str) -> io.BufferedReader:
    try:
        return cast(io.BufferedReader, open(path, "rb", buffering=_BUFFER_BYTES))
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file.") from None
    except PermissionError:
        raise DataError(f"{path}: there is no permission to read this file.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{path}: the file cannot be opened ({reason}).") from None


class _ZstdStream(io.RawIOBase):
    """Decompressed bytes; unlike the reader of the zstandard package it notices a file that was cut short."""

    def __init__(self, compressed: BinaryIO) -> None:
        try:
            import zstandard
        except ImportError:
            raise MissingExtraError.for_package("zstandard", "files", "Reading .zst files") from None
        self._error: type[Exception] = zstandard.ZstdError
        self._decompressor = zstandard.ZstdDecompressor()
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


class CheckedLines:
    """Lines of a text stream that remember the first one, and where the first byte that is not UTF-8 stood.

    Examples
    --------
    >>> lines = CheckedLines(io.BufferedReader(io.BytesIO(b"id,text\\n1,caf\\xe9\\n")))
    >>> len(list(lines)), lines.damage
    (2, 'invalid UTF-8 at byte 6 of line 2 (0xe9)')
    """

    def __init__(self, stream: io.BufferedReader) -> None:
        self._lines = enumerate(io.TextIOWrapper(stream, "utf-8-sig", "surrogateescape", newline=""), start=1)
        self.damage = ""
        self.first = ""

    def __iter__(self) -> Iterator[str]:
        for number, line in self._lines:
            if not line.isascii() and not self.damage and (bad := _ESCAPED_BYTE.search(line)):
                position = len(line[: bad.start()].encode("utf-8", "surrogateescape")) + 1
                byte = f"0x{ord(bad[0]) - 0xDC00:02x}"
                self.damage = f"invalid UTF-8 at byte {position} of line {number} ({byte})"
            if number == 1:
                self.first = line
            yield line

"""What no command may do, whatever it was given: the one place that says so."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import re
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from faults.runner import MEGABYTES, SECONDS, Ended

CODES = (0, 2, 130, 143)
LONGEST_MESSAGE = 2_100
TEMPORARY = re.compile(r"\.himecat-[^/]*|[^/]*\.(part|tmp)")
"""Names that a command may give to what it has not finished."""

_LARGE = 1 << 28
_MESSAGE = re.compile(r"(himecat: |warning:|skipped:|note:)")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_FAULTS = ("Traceback", "this should not have happened", "Exception ignored", "HARNESS ")
_FORMULA = re.compile(r"[=@\t\r\n]|[+-](?!\d*\.?\d*(e[+-]?\d+)?$)", re.IGNORECASE)
_PYTHON_WARNING = re.compile(r"\b(Runtime|Deprecation|Future|User|Resource|Syntax|Bytes|Encoding)Warning: ")

Snapshot = dict[str, tuple[Any, ...]]


def snapshot(folder: Path) -> Snapshot:
    """Everything below a folder: kind, mode, and the content of files and links."""
    found: Snapshot = {}

    def look(place: str, prefix: str) -> None:
        for entry in sorted(os.scandir(place), key=lambda one: one.name):
            name = f"{prefix}{entry.name}"
            status = entry.stat(follow_symlinks=False)
            kind = stat.S_IFMT(status.st_mode)
            if kind == stat.S_IFLNK:
                found[name] = ("link", os.readlink(entry.path))
            elif kind == stat.S_IFDIR:
                found[name] = ("folder",)
                look(entry.path, f"{name}/")
            elif kind == stat.S_IFREG and status.st_size > _LARGE:
                # Files with holes may be larger than any disk.
                found[name] = ("large file", status.st_size, status.st_mtime_ns)
            elif kind == stat.S_IFREG:
                with open(entry.path, "rb") as file:
                    found[name] = ("file", status.st_size, hashlib.file_digest(file, "sha256").hexdigest())
            else:
                found[name] = ("other", kind)

    look(str(folder), "")
    return found


def is_below(name: str, places: Iterable[str]) -> bool:
    """Whether a name is one of the places, or stands below one."""
    return any(name == place or name.startswith(f"{place}/") for place in places)


def judge_end(ended: Ended, sent: int | None = None, codes: Iterable[int] = CODES) -> list[str]:
    """What is wrong with how a command ended and what it said; `sent` is the signal the harness sent."""
    wrong: list[str] = []
    if ended.killed:
        limit = f"{SECONDS} s" if ended.killed == "time" else f"{MEGABYTES} MB"
        wrong.append(f"it took more than {limit}")
    elif ended.signal is not None and ended.signal != sent:
        wrong.append(f"it was ended by signal {ended.signal}")
    elif ended.signal is None and ended.code not in codes:
        wrong.append(f"exit code {ended.code}")
    if ended.code == 2 and not ended.err.strip():
        wrong.append("exit code 2 without a sentence")
    if ended.left and not ended.killed:
        wrong.append("it left a process running")
    for name, raw in (("standard error", ended.err), ("standard output", ended.out)):
        wrong.extend(f"{name}: {found}" for found in _judge_text(raw))
    return wrong


def _judge_text(raw: bytes) -> list[str]:
    wrong: list[str] = []
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        wrong.append("not UTF-8")
        text = raw.decode("utf-8", "surrogateescape")
    for line in text.split("\n"):
        if any(fault in line for fault in _FAULTS) or _PYTHON_WARNING.search(line):
            wrong.append(line[:300])
        if len(line) > LONGEST_MESSAGE and _MESSAGE.match(line):
            wrong.append(f"a message of {len(line):,} characters: {line[:120]} ...")
        if control := _CONTROL.search(line):
            start = max(0, control.start() - 60)
            wrong.append(f"the control character {control[0]!r} in {line[start : start + 120]!r}")
    return wrong[:5]


def judge_files(
    before: Snapshot, after: Snapshot, outputs: Iterable[str] = (), done: bool = False, killed: bool = False
) -> list[str]:
    """What is wrong with the files: only outputs change, only if the command is `done`.

    A command that was `killed` may leave unfinished files under their own names, and nothing else.
    """
    wrong: list[str] = []
    places = list(outputs)
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) == after.get(name):
            continue
        if is_below(name, places) and done:
            continue
        if name not in after:
            wrong.append(f"{name} is lost")
        elif name in before:
            wrong.append(f"{name} has changed")
        elif not killed or not any(TEMPORARY.fullmatch(part) for part in name.split("/")):
            wrong.append(f"{masked(name)} was left behind")
    return wrong


def masked(message: str) -> str:
    """A message without what differs between two attacks of the same kind, to tell new ones from known ones."""
    message = re.sub(r"\.himecat-[0-9a-f]+", ".himecat-*", message)
    return re.sub(r"0x[0-9a-f]+|\d+", "N", message)


def strict_json(text: str) -> Any:
    """Parse JSON as other programs do: NaN and Infinity are no JSON."""

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)


def judge_output(path: Path, kind: str) -> list[str]:
    """What is wrong with what a command says it has written: `lines`, `json`, `model`, `table`, `page`, `review`."""
    try:
        if kind == "table" or (kind == "review" and path.suffix != ".jsonl"):
            return [f"{path.name}: {one}" for one in _judge_table(path)]
        if kind == "page":
            return [f"{path.name}: {one}" for one in _judge_page(path.read_text(encoding="utf-8"))]
        if kind == "model":
            from himecat.model_folder.files import read_model

            read_model(path)
        elif kind == "json":
            strict_json(path.read_text(encoding="utf-8"))
        else:
            written = path.read_text(encoding="utf-8")
            if written and not written.endswith("\n"):
                return [f"{path.name} ends in the middle of a line"]
            keys = {"suggestion1", "answer"} if kind == "review" else {"id", "path", "confidence", "leaf"}
            for line in written.split("\n")[:-1]:
                if not keys <= strict_json(line).keys():
                    return [
                        f"{path.name} holds a line that is no {'question' if kind == 'review' else 'prediction'}"
                    ]
    except (OSError, ValueError, AttributeError, UnicodeError) as error:
        return [f"{path.name} is not whole: {str(error)[:200]}"]
    except Exception as error:
        return [f"{path.name} cannot be read: {type(error).__name__}: {str(error)[:200]}"]
    return []


def _judge_table(path: Path) -> list[str]:
    """A table must open, and no text in it may begin a formula."""
    ending = path.suffix.lower()
    if ending == ".parquet":
        import pyarrow.parquet as pq

        pq.read_table(path)
        return []
    if ending == ".xlsx":
        import openpyxl

        sheets = openpyxl.load_workbook(path).worksheets
        cells = [cell for row in sheets[0].iter_rows() for cell in row]
        found = next((cell for cell in cells if cell.data_type in "fe"), None)
        return (
            []
            if found is None
            else [f"the cell {found.coordinate} is a formula or an error: {found.value!r:.60}"]
        )
    with open(path, encoding="utf-8-sig", newline="") as stream:
        text = stream.read()
    csv.field_size_limit(1 << 30)
    # The delimiter is that of the documents.
    wrong = ["it is no table"]
    for delimiter in "\t" if ending == ".tsv" else ",;|\t~:.\x1fa ":
        with suppress(csv.Error):
            rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
            if len({len(row) for row in rows}) == 1 and len(rows[0]) > 2:
                found = next((cell for row in rows for cell in row if _FORMULA.match(cell)), None)
                wrong = [] if found is None else [f"a cell begins a formula: {found[:60]!r}"]
                break
    return wrong


def _judge_page(page: str) -> list[str]:
    wrong = [] if page.rstrip().endswith("</html>") else ["it does not end"]
    if "<script>alert" in page:
        wrong.append("a text of the documents is markup")
    return wrong

"""Ways to spoil sound material: by bytes, by fields of documents, by trees."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

Random = random.Random
Documents = list[Any]

DEEP = 100_000
ODD_TEXTS = [
    "", " \t ", "\0", "a\0b", "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x07\x08\x7f", "\x85\x9b31m",
    "\u2028\u2029",
    "\ud800", "\udc80 half", "é\u0301", "\u202eright", "=cmd()|'x'!A1", '"', "'", "a,b", "a\tb", "a\nb",
    "a\r\nb", "a/b",
    "/", "//", "science/", "science/physics/", "ROOT", "science", "artz", "null", "NaN", "-", "--help", "~",
    "*x", "&x",
    "!!python/object:os.system", "x" * 300, "x" * 5_000, "ü" * 2_000, "😀" * 100, "1e999", "9" * 400, "\ufeff",
    "%s%n", "{}",
    "[bold]x[/bold]", "[/]", "\\", "\\u0000", "..", "../../etc/passwd", "quantum " * 400,
    "<script>alert(1)</script>", "</script><script>alert(1)</script>", "+1+1", "-1+1", "@SUM(A1)", "a > b", "a :: b",
    "science > physics", "science|physics",
]  # fmt: skip
ODD_VALUES: list[Any] = [
    None, True, False, 0, -1, 1.5, 10**400, -(10**30), float("nan"), float("inf"), -float("inf"), 1e308, [],
    {}, [[]],
    [None], [1], ["a", 1], {"a": 1}, [["a"]], "", ["", ""], [{}], ["x"] * 1_000, {"": ""}, [float("nan")],
    2**63, 2**64,
]  # fmt: skip


def odd_text(rng: Random) -> str:
    """A text that could upset a reader or a terminal, alone or inside a plain one."""
    found = rng.choice(ODD_TEXTS)
    return found if rng.random() < 0.5 else f"quantum {found} laser"


def odd_value(rng: Random) -> Any:
    """A value of a type or size that a field should not have, or an odd text."""
    chosen = rng.random()
    if chosen < 0.45:
        return odd_text(rng)
    if chosen < 0.55:
        return [odd_text(rng) for _ in range(rng.randint(1, 3))]
    return copy.deepcopy(rng.choice(ODD_VALUES))


# -- documents -------------------------------------------------------------------------------------------------


def spoil_documents(documents: Documents, rng: Random) -> Documents:
    """Change a list of documents in one way."""
    found = copy.deepcopy(documents)
    return rng.choice(_DOCUMENTS)(found, rng) if found else found


def _row(found: Documents, rng: Random) -> Any:
    return rng.choice([one for one in found if isinstance(one, dict)] or [{}])


def _set_field(found: Documents, rng: Random) -> Documents:
    _row(found, rng)[rng.choice(["id", "text", "tags", "labels"])] = odd_value(rng)
    return found


def _set_column(found: Documents, rng: Random) -> Documents:
    name, value = rng.choice(["id", "text", "tags", "labels"]), odd_value(rng)
    for one in found:
        if isinstance(one, dict):
            one[name] = copy.deepcopy(value)
    return found


def _drop_field(found: Documents, rng: Random) -> Documents:
    _row(found, rng).pop(rng.choice(["id", "text", "tags", "labels"]), None)
    return found


def _drop_column(found: Documents, rng: Random) -> Documents:
    name = rng.choice(["id", "text", "tags", "labels"])
    for one in found:
        if isinstance(one, dict):
            one.pop(name, None)
    return found


def _odd_name(found: Documents, rng: Random) -> Documents:
    _row(found, rng)[odd_text(rng)] = odd_value(rng)
    return found


def _many_columns(found: Documents, rng: Random) -> Documents:
    _row(found, rng).update({f"column {number}": "x" for number in range(rng.choice([300, 3_000]))})
    return found


def _same_ids(found: Documents, rng: Random) -> Documents:
    _row(found, rng)["id"] = _row(found, rng).get("id")
    return found


def _not_a_document(found: Documents, rng: Random) -> Documents:
    found[rng.randrange(len(found))] = odd_value(rng)
    return found


def _few(found: Documents, rng: Random) -> Documents:
    return found[: rng.choice([0, 1, 2, 3])]


def _shuffled(found: Documents, rng: Random) -> Documents:
    rng.shuffle(found)
    return found[: rng.randint(1, len(found))]


def _one_leaf(found: Documents, rng: Random) -> Documents:
    label = rng.choice(["arts", "science", "science/physics", ["science", "biology"], "ROOT", odd_text(rng)])
    for one in found:
        if isinstance(one, dict) and one.get("labels"):
            one["labels"] = label
    return found


def _same_text(found: Documents, rng: Random) -> Documents:
    text = rng.choice(
        ["quantum", "the of and", "12 34", "x " * 50, "日本語の文章です。", "\u0e44\u0e17\u0e22"]
    )
    for one in found:
        if isinstance(one, dict):
            one["text"] = text
    return found


_DOCUMENTS: list[Callable[[Documents, Random], Documents]] = [
    _set_field, _set_field, _set_field, _set_field, _set_column, _set_column, _drop_field, _drop_column, _odd_name,
    _many_columns, _same_ids, _not_a_document, _few, _shuffled, _one_leaf, _same_text,
]  # fmt: skip

# -- bytes -----------------------------------------------------------------------------------------------------

_PIECES = [
    b"\0", b"\xff", b"\xfe\xff", b"\xef\xbb\xbf", b"\xc0\x80", b"\xed\xa0\x80", b"\x1b[31m", b"\r", b"\r\n",
    b"\n", b'"', b"'",
    b",", b"\t", b"{", b"}", b"[", b"]", b":", b"\\", b"\\ud800", b"NaN", b"-Infinity", b"1e999", b"9" * 5_000,
    b"- ",
    b"&a [*a, *a]", b"*a", b"!!python/object/apply:os.system ['true']", b"? ", b"<<: *a", b"---\n", b"%YAML 9.9\n",
    b"=1+1", b"\x85", b"\xe2\x80\xa8", b"\x1f\x8b\x08", b"(\xb5/\xfd", b"PAR1", b"\n\n\n", b" " * 2_000, b"#",
    b"!", b"| ", b"> ",
    b"[" * DEEP, b'{"a":' * 20_000, b"(" * 1_000, b"a: " * 500, b"  " * 3_000 + b"x:\n",
]  # fmt: skip


def spoil_bytes(data: bytes, rng: Random, other: bytes = b"") -> bytes:
    """Change a file in one way, knowing nothing of its format."""
    return rng.choice(_BYTES)(data, rng, other)


def _span(data: bytes, rng: Random) -> tuple[int, int]:
    start = rng.randrange(len(data) + 1)
    return start, min(len(data), start + rng.choice([1, 2, 8, 100, 1_000]))


def _flip(data: bytes, rng: Random, _: bytes) -> bytes:
    found = bytearray(data)
    for _ in range(rng.choice([1, 1, 3, 30])):
        if found:
            found[rng.randrange(len(found))] ^= 1 << rng.randrange(8)
    return bytes(found)


def _insert(data: bytes, rng: Random, _: bytes) -> bytes:
    start, _end = _span(data, rng)
    piece = rng.choice(_PIECES) if rng.random() < 0.8 else rng.randbytes(rng.choice([1, 4, 50]))
    return data[:start] + piece + data[start:]


def _delete(data: bytes, rng: Random, _: bytes) -> bytes:
    start, end = _span(data, rng)
    return data[:start] + data[end:]


def _duplicate(data: bytes, rng: Random, _: bytes) -> bytes:
    start, end = _span(data, rng)
    return data[:end] + data[start:end] * rng.choice([1, 2, 50]) + data[end:]


def _truncate(data: bytes, rng: Random, _: bytes) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _splice(data: bytes, rng: Random, other: bytes) -> bytes:
    return data[: rng.randrange(len(data) + 1)] + other[rng.randrange(len(other) + 1) :]


def _replace(data: bytes, rng: Random, _: bytes) -> bytes:
    start, end = _span(data, rng)
    return data[:start] + rng.choice(_PIECES) + data[end:]


def _encode(data: bytes, rng: Random, _: bytes) -> bytes:
    text = data.decode("utf-8", "replace") + "é"
    codec = rng.choice(["latin-1", "utf-16", "utf-16-le", "utf-32", "utf-8-sig", "utf-7", "cp1252"])
    return text.encode(codec, "replace")


def _line_ends(data: bytes, rng: Random, _: bytes) -> bytes:
    ends = [b"\n", b"\r\n", b"\r", b"\n\n", b"\x0b", b"\x85"]
    return b"".join(line + rng.choice(ends) for line in data.split(b"\n"))


def _swap_lines(data: bytes, rng: Random, _: bytes) -> bytes:
    lines = data.split(b"\n")
    rng.shuffle(lines)
    return b"\n".join(lines)


def _nothing(_: bytes, rng: Random, other: bytes) -> bytes:
    return rng.choice([b"", b"\n", b" ", b"\xef\xbb\xbf", b"\0" * 100, b"null", b"[]", b"{}", b"0", other])


_BYTES: list[Callable[[bytes, Random, bytes], bytes]] = [
    _flip, _flip, _insert, _insert, _insert, _delete, _duplicate, _truncate, _splice, _replace, _replace, _encode,
    _line_ends, _swap_lines, _nothing,
]  # fmt: skip

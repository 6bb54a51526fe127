"""Damaged models: a command refuses them with a sentence, or gives exactly what the sound model gives."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from faults import material as m
from faults.case import Scene
from faults.inputs import models
from faults.judge import judge_files, snapshot
from faults.mutations import Random
from faults.runner import Pool, Run

_FILES = ("model.json", "weights.safetensors")
_COMMANDS: dict[str, list[str]] = {
    "predict": ["predict", "model", "docs.jsonl", "-q", "--threads=1", "-o", "-"],
    "explain": ["explain", "model", "physics", "--json", "-"],
    "synthesize": ["synthesize", "model", "physics", "-n", "3", "--json", "-"],
}
Damage = Callable[[Path, Path, Random], str]


def expected(pool: Pool) -> dict[tuple[str, str], bytes]:
    """What the sound models answer, by model and command."""

    def make(folder: Path) -> dict[tuple[str, str], bytes]:
        m.write_sound(folder)
        found: dict[tuple[str, str], bytes] = {}
        for name, sound in models(pool).items():
            shutil.copytree(sound, folder / "model")
            for command, arguments in _COMMANDS.items():
                ended = pool.command(folder, arguments)
                assert ended.code == 0, ended.err
                assert ended.out
                found[name, command] = ended.out
            shutil.rmtree(folder / "model")
        return found

    found: dict[tuple[str, str], bytes] = pool.once("answers", make)
    return found


def attack(scene: Scene) -> None:
    """Damage a model in one way and ask it."""
    rng = scene.random
    answers, sound = expected(scene.pool), models(scene.pool)
    name = rng.choice(sorted(sound))
    other = next(one for one in sound if one != name)
    command = rng.choice(["predict"] * 6 + ["explain", "synthesize"])
    m.write_sound(scene.folder)
    model = scene.folder / "model"
    shutil.copytree(sound[name], model)
    damage = rng.choice(_DAMAGES)
    scene.verdict.title = f"{command} with the model {name}, {damage(model, sound[other], rng)}"
    before = snapshot(scene.folder)
    (ended,) = scene.run(Run(list(_COMMANDS[command])))
    scene.wrong(*judge_files(before, snapshot(scene.folder)))
    if ended.code == 0 and ended.out != answers[name, command]:
        scene.wrong("it answers otherwise than the sound model")
    if ended.code == 2:
        if ended.out:
            scene.wrong("it answers and refuses")
        if len(ended.sentences) != 1:
            scene.wrong(f"{len(ended.sentences)} sentences instead of one")


# -- bytes -----------------------------------------------------------------------------------------------------


def damage_corpus(model: Path, other: Path, rng: Random) -> str:
    """Damage the documents that are kept with a model; what was done to them."""
    name = "corpus.safetensors"
    return rng.choice([_bytes, _bytes, _bytes, _header, _header, _files])(model, other, rng, name)


def _bytes(model: Path, _: Path, rng: Random, name: str = "") -> str:
    file = model / (name or rng.choice(_FILES))
    data = bytearray(file.read_bytes())
    at = rng.randrange(len(data))
    run = rng.choice([1, 4, 16, 300])
    kind = rng.choice(
        ["flip", "flip", "flip", "noise", "zeros", "truncated", "swapped", "inserted", "removed", "repeated"]
    )
    if kind == "flip":
        data[at] ^= 1 << rng.randrange(8)
    elif kind == "noise":
        data[at : at + run] = rng.randbytes(len(data[at : at + run]))
    elif kind == "zeros":
        data[at : at + run] = bytes(len(data[at : at + run]))
    elif kind == "truncated":
        del data[at:]
    elif kind == "swapped":
        here = min(at, len(data) - 2 * run) if len(data) > 2 * run else 0
        first, second = data[here : here + run], data[here + run : here + 2 * run]
        data[here : here + 2 * run] = second + first
    elif kind == "inserted":
        data[at:at] = rng.randbytes(run)
    elif kind == "removed":
        del data[at : at + run]
    else:
        data[at:at] = data[at : at + run]
    file.write_bytes(data)
    return f"{kind} at byte {at} of {file.name}"


# -- JSON ------------------------------------------------------------------------------------------------------

_LITERALS = [
    "NaN", "Infinity", "-Infinity", "1e999", "-1", "0", "0.0", "9" * 5_000, "null", "true", '""', "[]", "{}",
    '"x"', "[[]]",
    "1.5", '"\\ud800"', '"\\u001b[31m"', "[" * 50_000 + "]" * 50_000, '"' + "x" * 10_000 + '"', "[null]",
    "2147483648", "-1e308",
    "18446744073709551616",
]  # fmt: skip
_MARK = "@@here@@"


def _places(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where values stand; of a long list only the first few and the last."""
    found = [path] if path else []
    if isinstance(document, dict):
        for key, value in document.items():
            found += _places(value, (*path, key))
    elif isinstance(document, list):
        for index in {0, 1, 2, len(document) - 1} & set(range(len(document))):
            found += _places(document[index], (*path, index))
    return found


def _json(model: Path, _: Path, rng: Random) -> str:
    file = model / "model.json"
    document = json.loads(file.read_text())
    path = rng.choice(_places(document))
    place = document
    for key in path[:-1]:
        place = place[key]
    last, kind = (
        path[-1],
        rng.choice(["value", "value", "value", "value", "deleted", "repeated", "renamed", "added"]),
    )
    literal = rng.choice(_LITERALS)
    if kind == "value":
        place[last] = _MARK
    elif kind == "deleted":
        del place[last]
    elif kind == "repeated" and isinstance(place, list):
        place.insert(last, copy.deepcopy(place[last]))
    elif kind == "renamed" and isinstance(place, dict):
        place[f"{last}x"] = place.pop(last)
    elif isinstance(place, dict):
        place["a new key"] = _MARK
    else:
        place.append(_MARK)
    text = json.dumps(document, ensure_ascii=False).replace(f'"{_MARK}"', literal)
    if kind == "repeated" and isinstance(place, dict):
        # A key that stands there twice.
        text = text.replace(f'"{last}": ', f'"{last}": {literal}, "{last}": ', 1)
    file.write_text(text)
    return f"{kind} {literal[:20]} at {'/'.join(map(str, path))} of model.json"


def _header(model: Path, _: Path, rng: Random, file_name: str = "weights.safetensors") -> str:
    """A header of the weights that claims too much, with the length and hash that go with it."""
    import hashlib

    file = model / file_name
    data = file.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    name = rng.choice([key for key in header if key != "__metadata__"])
    kind = rng.choice(
        ["length", "shape", "offsets", "dtype", "negative", "overflow", "missing", "extra", "not JSON"]
    )
    if kind == "shape":
        header[name]["shape"] = [2**40, 2**20]
    elif kind == "offsets":
        header[name]["data_offsets"] = [0, 2**62]
    elif kind == "dtype":
        header[name]["dtype"] = rng.choice(["F64", "BF16", "U8", "F8_E4M3", "BOOL", "C64", "", "X"])
    elif kind == "negative":
        header[name]["shape"] = [-1]
    elif kind == "overflow":
        header[name]["shape"] = [2**64]
    elif kind == "missing":
        del header[name]
    elif kind == "extra":
        header["a" * 1_000] = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    written = b"{" if kind == "not JSON" else json.dumps(header).encode()
    size = rng.choice([2**63, 2**40, 0, 7]) if kind == "length" else len(written)
    data = size.to_bytes(8, "little") + written + data[8 + length :]
    file.write_bytes(data)
    if rng.random() < 0.7:
        document = json.loads((model / "model.json").read_text())
        document[file_name.partition(".")[0]] |= {
            "bytes": len(data),
            "sha256": hashlib.sha256(data).hexdigest(),
        }
        (model / "model.json").write_text(json.dumps(document, ensure_ascii=False))
    return f"a header with another {kind} of {name}"


# -- files -----------------------------------------------------------------------------------------------------


def _files(model: Path, other: Path, rng: Random, name: str = "") -> str:
    file = model / (name or rng.choice(_FILES))
    kind = rng.choice(
        ["swapped", "missing", "empty", "folder", "link", "loop", "fifo", "extra", "model is a file",
        "model is a loop",
         "model is a link", "each other's names", "unreadable bytes"]
    )  # fmt: skip
    if kind in ("missing", "folder", "link", "loop"):
        moved = model.parent / "moved"
        file.rename(moved)
        if kind == "folder":
            file.mkdir()
        elif kind == "link":
            file.symlink_to(moved)
        elif kind == "loop":
            file.symlink_to(file.name)
    elif kind == "swapped":
        shutil.copyfile(other / file.name, file)
    elif kind == "empty":
        file.write_bytes(b"")
    elif kind == "fifo":
        # A reader that opens it waits for ever; a link to nothing is as bad, and ends.
        file.unlink()
        file.symlink_to("/dev/null")
    elif kind == "extra":
        (model / "extra.txt").write_text("x")
        (model / ".himecat-00000000.part").write_text("x")
    elif kind.startswith("model is"):
        moved = model.parent / "moved"
        model.rename(moved)
        if kind == "model is a file":
            model.write_bytes((moved / "model.json").read_bytes())
        else:
            model.symlink_to("moved" if kind == "model is a link" else "model")
    elif kind == "each other's names":
        one, two = (model / name for name in _FILES)
        content = one.read_bytes()
        one.write_bytes(two.read_bytes())
        two.write_bytes(content)
    else:
        file.write_bytes(rng.randbytes(2_000))
    return f"{kind} ({file.name})"


_DAMAGES: list[Damage] = [_bytes] * 5 + [_json] * 4 + [_header, _files]

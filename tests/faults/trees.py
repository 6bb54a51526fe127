"""Category trees and keywords, sound and odd, in every format."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from faults import material as m
from faults.mutations import Random, odd_text, odd_value

Maker = Callable[[Random], bytes]


def _spoiled(rng: Random) -> Any:
    """The tree as nested objects, with a name or a value that is odd."""
    tree: Any = json.loads(m.TREE_JSON)
    for _ in range(rng.choice([0, 0, 1, 2])):
        place = rng.choice([tree, tree["science"]]) if isinstance(tree.get("science"), dict) else tree
        if rng.random() < 0.5:
            place[odd_text(rng)] = None
        else:
            place[rng.choice([*place, "new"])] = odd_value(rng)
    return tree


def _yaml(rng: Random) -> bytes:
    import yaml

    if rng.random() < 0.5:
        return m.TREE_YAML.encode()
    written: str = yaml.safe_dump(_spoiled(rng), allow_unicode=rng.random() < 0.5, sort_keys=False)
    return written.encode("utf-8", "surrogatepass")


def _json(rng: Random) -> bytes:
    return json.dumps(_spoiled(rng)).encode()


def _lines(rng: Random) -> bytes:
    lines = m.TREE_LINES.splitlines()
    for _ in range(rng.choice([0, 0, 1, 2])):
        lines.append(
            rng.choice(
                [
                    "physics ROOT",
                    "physics science",
                    "arts arts",
                    "science physics",
                    "arts physics",
                    "biology physics",
                    "other a b",
                    "ROOT",
                    "a",
                    f"arts {odd_text(rng)}",
                    f"{odd_text(rng)} arts",
                    "arts\tpop art\tfine art",
                    "# x",
                ]
            )
        )
    rng.shuffle(lines)
    return "\n".join(lines).encode("utf-8", "surrogatepass")


_YAML_TRICKS = [
    "a: &a\n  b: *a\n", "a: &a [x, y]\nb: *a\nc: *a\n", "<<: {a: b}\n", "? [a, b]\n: c\n", "? {a: b}\n: c\n",
    "- a\n- b\n- c: [d]\n",
    "science: [physics, biology]\narts:\n", "1: 2\n3: 4.5\n", "yes: no\non: off\n", "2020-01-01: 10:20\n",
    "~: ~\n", "a: !!binary aGk=\n",
    "!!set {a, b}\n", "!!omap [a: b]\n", "a: !!timestamp 99999-01-01\n",
    "%TAG ! tag:x,2000:\n--- !foo {a: b}\n", "a: |\n  b\n",
    "---\na: b\n---\nc: d\n", "a: b: c\n", "\ta: b\n", "science:\n  physics:\nscience:\n  biology:\narts:\n",
    "0x1F: .inf\n.nan: 1_000\n",
    "science: {physics: , biology: }\narts: ''\n", "'': {'': {'': }}\n", "a/b: [c/d]\n",
    "- [a, b]\n- [c, [d]]\n", "&a {*a : b}\n",
]  # fmt: skip


def _yaml_tricks(rng: Random) -> bytes:
    return rng.choice(_YAML_TRICKS).encode()


TREE_FILES: dict[str, Maker] = {
    "yaml": _yaml,
    "yaml again": _yaml,
    "json": _json,
    "txt lines": _lines,
    "yaml tricks": _yaml_tricks,
    "yml": lambda _: m.TREE_YAML.encode(),
}


def _keywords(rng: Random) -> Any:
    found: dict[str, Any] = dict(m.KEYWORDS)
    for _ in range(rng.choice([0, 1, 2])):
        found[rng.choice([*found, "science", odd_text(rng)])] = odd_value(rng)
    return found


def _keywords_yaml(rng: Random) -> bytes:
    import yaml

    written: str = yaml.safe_dump(_keywords(rng), allow_unicode=True)
    return written.encode("utf-8", "surrogatepass")


KEYWORD_FILES: dict[str, Maker] = {
    "yaml": _keywords_yaml,
    "json": lambda rng: json.dumps(_keywords(rng)).encode(),
    "yaml tricks": _yaml_tricks,
}

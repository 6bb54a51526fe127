"""What `himecat check` passes, `himecat fit` accepts; what `fit` refuses, `check` refuses with the same sentence."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from himecat.cli import main
from himecat.input import validate
from himecat.input.problems import Problem

TEXTS = [
    "red fox in the snow",
    "the red hen and the fox",
    "an opera in the old town",
    "the old opera singer sang",
    "laser light in the lab",
]
ODD: dict[str, list[Any]] = {
    "text": [None, "", " ", 5, ["red"], "rare", "unheard unseen", "\u0007", "née", "fox\ud83d"],
    "labels": [
        *("physics", "science", "science/physics", "arts/physics", "zoology", "ROOT", " arts ", "/", ""),
        *(5, 2.5, True, {"a": 1}, [5], [None], [["arts"]], [], ["science", "physics"], ["physics", "arts"]),
    ],
    "id": [None, 0, 1, "0", "a", "a", "", 1.5, True, ["x"]],
    "tags": [None, "t1", ["t1", "t2"], [], 3, {"a": 1}, ["t1", None], [3]],
}
TREES: list[tuple[str, str] | None] = [
    None,
    ("tree.yaml", "science: [physics, biology]\narts:\n"),
    ("tree.json", '{"science": ["physics"], "arts": null}'),
    ("tree.txt", "ROOT science arts\nscience physics biology\n"),
    ("tree.yaml", "arts:\n"),
    ("tree.yaml", "science: [physics, physics]\n"),
    ("tree.txt", "ROOT a\na b\nb a\n"),
    ("tree.json", "{broken"),
    ("tree.yaml", ""),
]
KEYWORDS: list[str | None] = [
    None,
    None,
    '{"physics": ["laser", "light"], "biology": "fox, hen"}',
    '{"arts": "opera", "physics": "laser", "biology": "hen"}',
    '{"arts": "unheard"}',
    '{"artz": "opera"}',
    '{"arts": []}',
    '{"arts": 5}',
    "[1]",
    "{",
]
OPTIONS = {
    "--skip-bad": [],
    "--allow-empty-leaves": [],
    "--metadata": ["tags", "tags,nowhere", "text", "labels"],
    "--set": ["min_count=1", "min_count=3", "min_count=100", "max_tokens=2", "min_count=0"],
    "--preset": ["paper"],
    "--text": ["title,text", "title"],
}


@st.composite
def documents(draw: Callable[[Any], Any]) -> list[dict[str, Any]]:
    """Documents of which most are sound and labelled."""
    sound = [
        {"text": text, "labels": label, "tags": ["t1"]}
        for text, label in zip(TEXTS, ["physics", "biology", "arts", "arts", None], strict=True)
    ]
    found: list[dict[str, Any]] = sound[draw(st.sampled_from([0, 0, 0, 1, 4])) :] * draw(st.integers(1, 3))
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 1, 2]))):
        row, name = draw(st.integers(0, len(found) - 1)), draw(st.sampled_from(list(ODD)))
        found[row] = {**found[row], name: draw(st.sampled_from(ODD[name]))}
        if draw(st.booleans()):
            del found[row][draw(st.sampled_from(sorted(found[row])))]
    return found


@st.composite
def commands(draw: Callable[[Any], Any]) -> dict[str, Any]:
    """Files of input, and options."""
    files = {"docs.jsonl": "".join(json.dumps(one) + "\n" for one in draw(documents()))}
    if not draw(st.integers(0, 9)):
        broken = draw(st.sampled_from(["{broken\n", "[1]\n", "\n\n", '"text"\n']))
        files["docs.jsonl"] = broken + files["docs.jsonl"] * draw(st.integers(0, 1))
    options: list[str] = []
    tree = draw(st.sampled_from(TREES[:4]) | st.sampled_from(TREES[:4]) | st.sampled_from(TREES))
    if tree is not None:
        files[tree[0]] = tree[1]
        options += ["--taxonomy", tree[0]]
    keywords = draw(st.sampled_from(KEYWORDS[:4]) | st.sampled_from(KEYWORDS))
    if keywords is not None:
        files["words.json"] = keywords
        options += ["--keywords", "words.json"]
    for name in sorted(draw(st.sets(st.sampled_from(list(OPTIONS)), max_size=2))):
        options += [name, *([draw(st.sampled_from(OPTIONS[name]))] if OPTIONS[name] else [])]
    return {"files": files, "options": options}


class Started(BaseException):
    """Training would start now."""


@contextlib.contextmanager
def training_forbidden() -> Iterator[None]:
    read = validate.read_material

    def stop(*arguments: Any, **options: Any) -> None:
        read(*arguments, **options)
        raise Started

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(validate, "read_material", stop)
        yield


def run(*command: str) -> tuple[int | None, list[str], str]:
    """The exit code, None where training would start, the sentences of standard error, and standard output."""
    errors, output = io.StringIO(), io.StringIO()
    code: int | None = None
    with (
        contextlib.redirect_stderr(errors),
        contextlib.redirect_stdout(output),
        contextlib.suppress(Started),
    ):
        try:
            main(list(command))
        except SystemExit as end:
            code = int(end.code or 0)
    assert "Traceback" not in errors.getvalue()
    said = [line.removeprefix("himecat: ") for line in errors.getvalue().splitlines()]
    return code, said, output.getvalue()


def compare(folder: Path, given: dict[str, Any]) -> None:
    for name, content in given["files"].items():
        (folder / name).write_text(content, encoding="utf-8", errors="surrogatepass")
    with contextlib.chdir(folder):
        checked, said, report = run("check", "docs.jsonl", *given["options"], "--json", "-")
        fitted, refused, _ = run("fit", "docs.jsonl", *given["options"], "-o", "model", "-q")
    event(f"check ends with {checked}")
    assert checked in (0, 2)
    assert (checked == 0) == (fitted in (0, None)), (said, refused)
    if checked:
        assert fitted == 2
        assert refused
        if report:
            # Documents that were left out are warnings; `fit` repeats them where none remains.
            for one in json.loads(report)["problems"]:
                said.append(f"{one['place']}: {one['message']}")
                more = one.get("count", 1), tuple(one.get("more_places", ()))
                said.append(str(Problem("warning", one["place"], one["message"], *more)))
        assert set(refused) <= set(said)


FAST = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


@FAST
@given(commands())
def test_check_passes_exactly_what_fit_accepts(
    tmp_path_factory: pytest.TempPathFactory, given: dict[str, Any]
) -> None:
    with training_forbidden():
        compare(tmp_path_factory.mktemp("any"), given)


@pytest.mark.slow
@settings(FAST, max_examples=2000)
@given(commands())
def test_check_passes_exactly_what_fit_accepts_at_length(
    tmp_path_factory: pytest.TempPathFactory, given: dict[str, Any]
) -> None:
    with training_forbidden():
        compare(tmp_path_factory.mktemp("any"), given)


@pytest.mark.slow
@settings(FAST, max_examples=200)
@given(commands())
def test_what_check_passes_can_be_learned_from(
    tmp_path_factory: pytest.TempPathFactory, given: dict[str, Any]
) -> None:
    if "--preset" not in given["options"]:
        compare(tmp_path_factory.mktemp("any"), given)


# -- the two that differed ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("documents", "sentence"),
    [
        (
            [
                {"text": "unheard", "labels": "a"},
                {"text": "unseen", "labels": "b"},
                {"text": "red fox"},
                {"text": "red fox"},
            ],
            "No labelled document has a word that occurs often enough: label others, or lower min_count "
            "(--set min_count=1).",
        ),
        (
            [
                {"text": "red fox", "labels": "a"},
                {"text": "red hen", "labels": 5.5},
                {"text": "b", "labels": "b"},
            ],
            "docs.jsonl line 2: a label must be a name or a list of names, but the number 5.5 was found.",
        ),
    ],
    ids=["rare words", "a number as label"],
)
def test_both_say_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, documents: list[dict[str, Any]], sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("docs.jsonl").write_text("".join(json.dumps(one) + "\n" for one in documents))
    with training_forbidden():
        assert run("check", "docs.jsonl", "-q")[:2] == (2, [sentence])
        assert run("fit", "docs.jsonl", "-o", "model", "-q")[:2] == (2, [sentence])

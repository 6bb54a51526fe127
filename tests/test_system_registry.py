"""Finding systems by name, in the package and in files of the user's own, and what systems are given."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import numpy as np
import pytest

from himecat import Supervision, Taxonomy, read_corpus
from himecat.compare.systems.registry import built_in_systems, check_installed, systems_in
from himecat.compare.systems.system import NodeArray, System, Task, with_metadata_words
from himecat.errors import DataError, UsageError

PAGES = Path(__file__).parents[1] / "docs" / "systems"

OWN = """
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from himecat.compare.systems.system import System, Task
from himecat.compare.systems.tfidf_svm import TfidfSvm


class Constant(System):
    "Has no name, so it is no system to choose."


@dataclass(frozen=True)
class First(Constant):
    name = "first"
    title = "First leaf"
    about = "Puts every document on one leaf."
    position: int = 0

    def fit_predict(self, task: Task) -> np.ndarray:
        return np.full(len(task.corpus), task.taxonomy.leaves[self.position])
"""


def written(folder: Path, text: str, name: str = "own.py") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def test_the_systems_of_the_package_can_be_made_and_tell_people_what_they_are() -> None:
    found = built_in_systems()
    assert {"tfidf-svm", "encoder-lr", "hiersvm", "pcem"} <= set(found)
    for name, kind in found.items():
        system = kind()
        assert system.name == name
        assert system.title
        assert system.about.endswith(".")
        assert dataclasses.is_dataclass(system)
        # Parameters are part of a cached result's key, so they must not change afterwards.
        assert system == kind()
        with pytest.raises(dataclasses.FrozenInstanceError):
            system.name = "other"  # type: ignore[misc]


def test_every_system_has_a_page() -> None:
    others = [name for name in built_in_systems() if not name.startswith("himecat")]
    assert [name for name in others if not (PAGES / f"{name}.md").is_file()] == []


def test_a_file_written_for_version_0_2_works(tmp_path: Path) -> None:
    found = systems_in(written(tmp_path, OWN.replace("def fit_predict", "def place")))
    tree = Taxonomy.from_paths([("a",), ("b",)])
    task = Task(read_corpus(["x", "y"]), tree, Supervision(np.array([0]), np.array([1])))
    assert found["first"]().fit_predict(task).tolist() == [1, 1]  # type: ignore[union-attr]


def test_a_users_own_file_gives_its_own_systems_only(tmp_path: Path) -> None:
    found = systems_in(written(tmp_path, OWN))
    assert list(found) == ["first"]
    tree = Taxonomy.from_paths([("a",), ("b",)])
    task = Task(read_corpus(["x", "y"]), tree, Supervision(np.array([0]), np.array([1])))
    assert found["first"](position=1).fit_predict(task).tolist() == [2, 2]  # type: ignore[call-arg]


def test_a_file_is_read_anew_each_time(tmp_path: Path) -> None:
    systems_in(written(tmp_path, OWN))
    again = systems_in(written(tmp_path, OWN.replace('"first"', '"second one"')))
    assert list(again) == ["second one"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("import nothing_of_this_name", r"own\.py cannot be run: ModuleNotFoundError: No module named"),
        ("def broken(:", r"own\.py cannot be run: SyntaxError"),
        ("1 / 0", r"own\.py cannot be run: ZeroDivisionError: division by zero"),
        (
            "from himecat.compare.systems.tfidf_svm import TfidfSvm",
            r"own\.py defines no system: a class with",
        ),
        ("", r"own\.py defines no system"),
        ("import sys; sys.exit('usage: own.py')", r"own\.py cannot be run: SystemExit: usage: own\.py"),
        (
            OWN.replace("@dataclass(frozen=True)", ""),
            r"First is no system yet: write `@dataclass\(frozen=True\)`",
        ),
        (OWN.replace('title = "First leaf"', ""), r"First is no system yet: write `title = "),
        (
            OWN.replace("def fit_predict", "def put"),
            r"First is no system yet: it has no method `fit_predict`",
        ),
        (OWN.replace("int = 0", "int"), r"First is no system yet: its parameter `position` has no default"),
        ("from himecat.errors import DataError\nraise DataError('No data.')", r"^No data\.$"),
    ],
)
def test_a_file_that_is_of_no_use_is_told_in_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises((UsageError, DataError), match=sentence) as error:
        systems_in(written(tmp_path, text))
    assert "\n" not in str(error.value)


def test_files_of_one_name_do_not_stand_for_each_other(tmp_path: Path) -> None:
    kinds = []
    for number, folder in enumerate(("a", "b")):
        (tmp_path / folder).mkdir()
        own = OWN.replace('name = "first"', f'name = "first-{folder}"').replace("= 0", f"= {number}")
        kinds.append(systems_in(written(tmp_path / folder, own))[f"first-{folder}"])
    files = [Path(str(sys.modules[kind.__module__].__file__)) for kind in kinds]
    assert files == [tmp_path / "a" / "own.py", tmp_path / "b" / "own.py"]


def test_what_a_file_prints_does_not_reach_standard_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    systems_in(written(tmp_path, OWN + "print('hello')\n"))
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "hello\n")


def test_a_path_that_is_no_python_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no such file"):
        systems_in(tmp_path)
    with pytest.raises(UsageError, match="this is not a Python file"):
        systems_in(written(tmp_path, OWN, "own.txt"))


def test_what_has_to_be_installed_is_said_in_one_sentence() -> None:
    class Needy(System):
        name = "needy"
        requires = ("numpy", "nothing_of_this_name")

        def fit_predict(self, task: Task) -> NodeArray:
            raise AssertionError("it is never asked to place anything")

    with pytest.raises(UsageError, match=r"'needy' needs nothing_of_this_name: install it with `pip install"):
        check_installed(Needy)


def test_only_documents_labelled_with_a_leaf_name_a_leaf() -> None:
    tree = Taxonomy.from_paths([("a", "b"), ("c",)])
    corpus = read_corpus(["x", "y", "z"])
    inner, leaf = tree.find("a"), tree.find("c")
    task = Task(corpus, tree, Supervision(np.array([2, 0]), np.array([inner, leaf])))
    assert (task.leaf_rows.tolist(), task.leaf_nodes.tolist()) == ([0], [leaf])
    without = Task(corpus, tree, Supervision(np.array([2]), np.array([inner])))
    with pytest.raises(DataError, match="label about five documents of each"):
        _ = without.leaf_rows


def test_metadata_words_stand_at_the_end_of_their_own_document() -> None:
    documents = [
        {"text": "red fox", "by": ["ann", "bo"], "tags": ["fox"]},
        {"text": "fox"},
        {"text": "hen", "tags": ["ann"]},
        {"text": "red", "by": ["ann"], "tags": ["fox"]},
    ]
    corpus = read_corpus(documents, metadata=["by", "tags"])
    merged = with_metadata_words(corpus)
    names = [[merged.words.names[word] for word in merged.tokens[row]] for row in range(len(merged))]
    assert names == [
        ["red", "fox", "by:ann", "by:bo", "tags:fox"],
        ["fox"],
        ["hen", "tags:ann"],
        ["red", "by:ann", "tags:fox"],
    ]
    assert merged.metadata == {}
    assert merged.ids == corpus.ids
    assert merged.tokens.values.dtype == corpus.tokens.values.dtype
    seen = np.bincount(merged.tokens.values, minlength=len(merged.words))
    assert merged.words.counts.tolist() == seen.tolist()


def test_without_metadata_the_words_stay_as_they_are() -> None:
    corpus = read_corpus(["red fox", "fox"])
    merged = with_metadata_words(corpus)
    assert merged.words.names == corpus.words.names
    assert merged.tokens.values.tolist() == corpus.tokens.values.tolist()
    assert merged.tokens.offsets.tolist() == corpus.tokens.offsets.tolist()

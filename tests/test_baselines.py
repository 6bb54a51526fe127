"""The simple systems to compare with, and the benchmark that runs them."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from himecat import Supervision, Taxonomy, read_corpus
from himecat.compare.protocol.evaluate import DrawResult
from himecat.compare.systems.encoder_logistic import encoder_logistic
from himecat.compare.systems.tfidf_svm import tfidf_svm, token_counts
from himecat.errors import DataError, UsageError
from himecat.sample import write_sample

ROOT = Path(__file__).parents[1]
DATA = ROOT / ".." / "shared" / "data"
TREE = Taxonomy.from_paths([("arts", "music"), ("arts", "film"), ("sport",)])
MUSIC, FILM, SPORT, ARTS = (TREE.find(name) for name in ("music", "film", "sport", "arts"))


def labelled(**node_of: int) -> Supervision:
    rows = [int(row.removeprefix("row")) for row in node_of]
    return Supervision(np.array(rows, dtype=np.int64), np.array(list(node_of.values()), dtype=np.int64))


@pytest.fixture(scope="module")
def accuracy() -> Any:
    spec = importlib.util.spec_from_file_location("accuracy", ROOT / "benchmarks" / "accuracy.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["accuracy"] = module
    spec.loader.exec_module(module)
    return module


def test_metadata_alone_can_tell_documents_apart() -> None:
    documents = [{"text": "one same text", "tags": [tag]} for tag in ("a", "b", "a", "b")]
    found = tfidf_svm(read_corpus(documents, metadata="tags"), labelled(row0=MUSIC, row1=SPORT), TREE)
    assert found.tolist() == [MUSIC, SPORT, MUSIC, SPORT]


def test_a_value_of_two_metadata_types_is_two_tokens() -> None:
    corpus = read_corpus(
        [{"text": "text", "by": ["ann"]}, {"text": "text", "to": ["ann"]}], metadata=["by", "to"]
    )
    assert token_counts(corpus).toarray().tolist() == [[1, 1, 0], [1, 0, 1]]


def test_words_are_those_of_scikit_learn() -> None:
    corpus = read_corpus(["state-of-the-art art, a x-ray"])
    assert sorted(token_counts(corpus).toarray()[0].tolist()) == [1, 1, 1, 1, 2]


def test_documents_labelled_with_an_inner_node_are_not_used() -> None:
    corpus = read_corpus(["song", "match", "song", "match"])
    found = tfidf_svm(corpus, labelled(row0=MUSIC, row1=SPORT, row3=ARTS), TREE)
    assert found.tolist() == [MUSIC, SPORT, MUSIC, SPORT]
    with pytest.raises(DataError, match="No leaf has a labelled document"):
        tfidf_svm(corpus, labelled(row0=ARTS), TREE)


def test_without_any_word_everything_goes_to_the_leaf_with_most_labels() -> None:
    corpus = read_corpus(["...", "!", "?", "-"])
    assert tfidf_svm(corpus, labelled(row0=FILM, row1=SPORT, row2=SPORT), TREE).tolist() == [SPORT] * 4


def test_with_one_labelled_leaf_everything_goes_there() -> None:
    assert tfidf_svm(read_corpus(["song", "match"]), labelled(row0=FILM), TREE).tolist() == [FILM, FILM]


def test_the_length_of_a_vector_does_not_matter_and_zeros_do_not_break() -> None:
    vectors = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 90, 1], [0, 0, 0]], dtype=np.float32)
    given = labelled(row0=MUSIC, row1=FILM, row2=SPORT)
    found = encoder_logistic(vectors, given, TREE)
    assert found[:4].tolist() == [MUSIC, FILM, SPORT, FILM]
    assert found.tolist() == encoder_logistic(vectors * np.float32(7), given, TREE).tolist()


def test_vectors_that_are_absent_or_too_few_are_told() -> None:
    with pytest.raises(UsageError, match="read without a text encoder"):
        encoder_logistic(None, labelled(row0=MUSIC), TREE)
    with pytest.raises(UsageError, match="Document 5 is labelled, but there are features for 2 documents"):
        encoder_logistic(np.eye(2, dtype=np.float32), labelled(row0=MUSIC, row5=FILM), TREE)


def result(draw: int, micro: float) -> DrawResult:
    return DrawResult(draw, {"micro": micro, "macro": 0.2}, {"micro": 0.3, "macro": 0.4}, 1.0, 2.0, 100.0)


def test_a_stopped_benchmark_goes_on_where_it_was(
    accuracy: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "results.json"
    rows = accuracy.systems("models/mini", ablations=True)
    asked: list[tuple[int, str]] = []

    def measured(folder: str, number: int, system: Any) -> DrawResult:
        if len(asked) == 3:
            raise KeyboardInterrupt
        asked.append((number, system.title))
        return result(number, 0.5 + number / 10)

    with pytest.raises(KeyboardInterrupt):
        accuracy.run(tmp_path, ["corpus"], 2, rows, accuracy.Results(file), measured)
    assert len(json.loads(file.read_text())) == 3
    before = list(asked)
    asked.clear()

    def rest(folder: str, number: int, system: Any) -> DrawResult:
        asked.append((number, system.title))
        return result(number, 0.5 + number / 10)

    results = accuracy.Results(file)
    assert accuracy.run(tmp_path, ["corpus"], 2, rows, results, rest) == 0
    assert not set(before) & set(asked)
    assert len(asked) == 2 * len(rows) - 3
    assert capsys.readouterr().out.count("(measured before)") == 3
    table = accuracy.markdown(["corpus"], 2, rows, results)
    assert (
        "| ours | .5500 ± .0707 | .2000 ± .0000 | .3000 ± .0000 | .4000 ± .0000 | 2 ± 0 | 100 ± 0 | 2 |"
        in table
    )
    assert [line.split(" | ")[0] for line in table.splitlines() if line.startswith("| ") and "±" in line] == [
        f"| {system.title}" for system in rows
    ]


def test_a_row_with_other_arguments_is_measured_again(accuracy: Any, tmp_path: Path) -> None:
    results = accuracy.Results(tmp_path / "results.json")
    one = accuracy.System("ours, x", arguments={"beta": 1})
    results.add("corpus", one, result(0, 0.5))
    again = accuracy.Results(tmp_path / "results.json")
    assert again.find("corpus", one, 0) is not None
    assert again.find("corpus", accuracy.System("ours, x", arguments={"beta": 2}), 0) is None
    assert again.find("other", one, 0) is None


def test_the_results_do_not_name_the_machines_folders(accuracy: Any, tmp_path: Path) -> None:
    results = accuracy.Results(None)
    record = results.add(
        "c", accuracy.System("ours", arguments={"encoder": str(tmp_path / "mini" / "model")}), result(0, 0.5)
    )
    assert record["arguments"] == {"encoder": "mini/model"}


def test_a_row_that_fails_leaves_the_others(
    accuracy: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def measured(folder: str, number: int, system: Any) -> DrawResult:
        if system.peer:
            raise UsageError("It cannot work.")
        return result(number, 0.5)

    results = accuracy.Results(None)
    assert accuracy.run(tmp_path, ["corpus"], 1, accuracy.systems(None, False), results, measured) == 1
    assert [record["system"] for record in results.records] == ["ours"]
    assert "failed: It cannot work." in capsys.readouterr().out


def test_a_peer_is_measured_on_the_documents_that_were_not_drawn(accuracy: Any, tmp_path: Path) -> None:
    write_sample(tmp_path)
    found = accuracy.run_peer(str(tmp_path), 0, "tfidf-svm", None)
    assert 0.3 < found.leaf["micro"] < 0.95
    assert found.overall["micro"] > found.leaf["micro"]


@pytest.mark.real
def test_the_peer_scores_what_is_known_of_it(accuracy: Any) -> None:
    folder = DATA / "packages"
    if not folder.is_dir():
        pytest.skip("../shared/data/packages is absent")
    found = [accuracy.run_peer(str(folder), draw, "tfidf-svm", None).leaf["micro"] for draw in range(5)]
    assert np.mean(found) == pytest.approx(0.5579, abs=0.005)

"""The flat systems to compare with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from himecat import Corpus, Supervision, Taxonomy, read_corpus
from himecat.compare.protocol.measure import Source, measure
from himecat.compare.systems.encoder_logistic import EncoderLogistic
from himecat.compare.systems.system import NodeArray, Task
from himecat.compare.systems.tfidf_svm import TfidfSvm, token_counts
from himecat.errors import DataError, UsageError
from himecat.views.encoder_cache import COLUMN

DATA = Path(__file__).parents[1] / ".." / "shared" / "data"
TREE = Taxonomy.from_paths([("arts", "music"), ("arts", "film"), ("sport",)])
MUSIC, FILM, SPORT, ARTS = (TREE.find(name) for name in ("music", "film", "sport", "arts"))


def labelled(**node_of: int) -> Supervision:
    rows = [int(row.removeprefix("row")) for row in node_of]
    return Supervision(np.array(rows, dtype=np.int64), np.array(list(node_of.values()), dtype=np.int64))


def tfidf_svm(corpus: Corpus, given: Supervision) -> NodeArray:
    return TfidfSvm().fit_predict(Task(corpus, TREE, given))


def encoder_logistic(vectors: Any, given: Supervision) -> NodeArray:
    corpus = read_corpus(["text"] * (1 if vectors is None else len(vectors)))
    columns = {} if vectors is None else {COLUMN: vectors}
    return EncoderLogistic().fit_predict(Task(replace(corpus, columns=columns), TREE, given))


def test_metadata_alone_can_tell_documents_apart() -> None:
    documents = [{"text": "one same text", "tags": [tag]} for tag in ("a", "b", "a", "b")]
    found = tfidf_svm(read_corpus(documents, metadata="tags"), labelled(row0=MUSIC, row1=SPORT))
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
    found = tfidf_svm(corpus, labelled(row0=MUSIC, row1=SPORT, row3=ARTS))
    assert found.tolist() == [MUSIC, SPORT, MUSIC, SPORT]
    with pytest.raises(DataError, match="No leaf has a labelled document"):
        tfidf_svm(corpus, labelled(row0=ARTS))


def test_without_any_word_everything_goes_to_the_leaf_with_most_labels() -> None:
    corpus = read_corpus(["...", "!", "?", "-"])
    assert tfidf_svm(corpus, labelled(row0=FILM, row1=SPORT, row2=SPORT)).tolist() == [SPORT] * 4


def test_with_one_labelled_leaf_everything_goes_there() -> None:
    assert tfidf_svm(read_corpus(["song", "match"]), labelled(row0=FILM)).tolist() == [FILM, FILM]


def test_the_length_of_a_vector_does_not_matter_and_zeros_do_not_break() -> None:
    vectors = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 90, 1], [0, 0, 0]], dtype=np.float32)
    given = labelled(row0=MUSIC, row1=FILM, row2=SPORT)
    found = encoder_logistic(vectors, given)
    assert found[:4].tolist() == [MUSIC, FILM, SPORT, FILM]
    assert found.tolist() == encoder_logistic(vectors * np.float32(7), given).tolist()


def test_vectors_that_are_absent_are_told() -> None:
    with pytest.raises(UsageError, match="read without a text encoder"):
        encoder_logistic(None, labelled(row0=MUSIC))


def test_it_is_measured_on_the_documents_that_were_not_drawn(letters: Path) -> None:
    found = measure(Source(letters), TfidfSvm())
    assert 0.3 < found.leaf["micro"] < 0.95
    assert found.overall["micro"] > found.leaf["micro"]


@pytest.mark.real
def test_its_scores_are_those_that_are_known() -> None:
    folder = DATA / "packages"
    if not folder.is_dir():
        pytest.skip("../shared/data/packages is absent")
    found = [measure(Source(folder), TfidfSvm(), draw).leaf["micro"] for draw in range(5)]
    assert np.mean(found) == pytest.approx(0.5579, abs=0.005)

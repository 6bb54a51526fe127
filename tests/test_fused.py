"""The default classifier: its parts together, there and back, and on next to no documents."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from himecat import Corpus, HiMeCat, Supervision, Taxonomy, read_corpus
from himecat.classify import fused
from himecat.classify.calibration import AS_IT_IS, TYPICAL_SHARPNESS
from himecat.classify.fused import FusedClassifier, FusedSettings, count_fits, fit_fused
from himecat.classify.fused_state import from_state, state_of
from himecat.classify.seeds import sow
from himecat.embedding.views import learn_views
from himecat.parallel import Stopped, run_all
from himecat.samples import METADATA, sample_documents, sample_split, sample_taxonomy

TREE = sample_taxonomy()


@pytest.fixture(scope="module")
def letters() -> tuple[Corpus, Supervision]:
    documents = sample_documents(330)
    labels = sample_split(documents)
    rows = np.array([row for row, label in enumerate(labels) if label is not None])
    corpus = read_corpus(documents, metadata=METADATA, min_count=2)
    return corpus, Supervision(rows, np.array([TREE.find(documents[row]["labels"]) for row in rows]))


def fit(
    corpus: Corpus,
    supervision: Supervision,
    settings: FusedSettings | None = None,
    *,
    topics: int = 10,
    **options: Any,
) -> FusedClassifier:
    views, seen = learn_views(
        corpus,
        list(corpus.metadata),
        dimension=20,
        contexts=500,
        weigh_words=True,
        learned_trust=True,
        seed=0,
        topics=topics,
    )
    seeds = sow(TREE, views, corpus.words, supervision.keywords, use_names=True)
    return fit_fused(TREE, views, seen, supervision, seeds, settings or FusedSettings(), **options)


@pytest.fixture(scope="module")
def model(letters: tuple[Corpus, Supervision]) -> FusedClassifier:
    return fit(*letters)


def test_there_and_back(model: FusedClassifier, letters: tuple[Corpus, Supervision]) -> None:
    settings, arrays = state_of(model)
    again = from_state(TREE, model.views.words, settings, arrays)
    assert again.place(letters[0]).tobytes() == model.place(letters[0]).tobytes()
    assert again.calibration == model.calibration
    # All of it was there to be kept.
    assert model.views.topics is not None
    assert any(model.calibration.bias)
    assert len(model.calibration.surest) == 3


def test_a_model_without_topics_biases_and_confidences_of_paths_is_read(
    model: FusedClassifier, letters: tuple[Corpus, Supervision]
) -> None:
    """As the first such models were written."""
    plain = fit(*letters, FusedSettings(calibrated=False), topics=0)
    settings, arrays = state_of(plain)
    assert not {"topics", "topic_centre"} & set(arrays)
    del settings["bias"], settings["surest"]
    again = from_state(TREE, plain.views.words, settings, arrays)
    assert again.calibration == plain.calibration
    assert again.place(letters[0]).tobytes() == plain.place(letters[0]).tobytes()


def test_a_state_must_fit_the_tree(model: FusedClassifier) -> None:
    settings, arrays = state_of(model)
    with pytest.raises(ValueError, match="'fused/leaf_directions' should hold 2 x 30 numbers, not 22 x 30"):
        from_state(Taxonomy.from_paths([("x",), ("y",)]), model.views.words, settings, arrays)


@pytest.mark.parametrize(
    ("name", "cut", "said"),
    [
        ("topics", (slice(-1), slice(None)), r"'fused/topics' should hold \d+ x 10 numbers, not \d+ x 10"),
        ("topics", (slice(None), slice(-1)), r"'fused/topics' should hold \d+ x 10 numbers, not \d+ x 9"),
        ("topic_centre", (slice(-1),), "'fused/"),
    ],
)
def test_topics_must_fit_the_words_and_each_other(
    model: FusedClassifier, name: str, cut: tuple[slice, ...], said: str
) -> None:
    settings, arrays = state_of(model)
    with pytest.raises(ValueError, match=said):
        from_state(TREE, model.views.words, settings, arrays | {name: arrays[name][cut]})


@pytest.mark.parametrize("name", ["topics", "topic_centre"])
def test_half_of_the_topics_is_not_enough(model: FusedClassifier, name: str) -> None:
    settings, arrays = state_of(model)
    del arrays[name]
    with pytest.raises(ValueError, match="'fused/"):
        from_state(TREE, model.views.words, settings, arrays)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("bias", [0.0] * 21, "'bias' should hold 22 numbers"),
        ("bias", [float("nan")] * 22, "'bias' should hold 22 numbers"),
        ("surest", [[1.0, 0.0]] * 2, "'surest' should hold a slope and an offset for each of 3 levels"),
        ("surest", [[1.0, float("inf")]] * 3, "'surest' should hold a slope and an offset"),
    ],
)
def test_a_calibration_must_fit_the_tree(model: FusedClassifier, name: str, value: Any, said: str) -> None:
    settings, arrays = state_of(model)
    with pytest.raises(ValueError, match=said):
        from_state(TREE, model.views.words, settings | {name: value}, arrays)


def test_probabilities_are_whole_and_the_same_in_batches_and_on_threads(
    model: FusedClassifier, letters: tuple[Corpus, Supervision], monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, _ = letters
    found = model.place(corpus)
    assert found.shape == (330, 22)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-5)
    assert model.place(corpus, threads=2).tobytes() == found.tobytes()
    monkeypatch.setattr(fused, "_BATCH", 50)
    np.testing.assert_allclose(model.place(corpus, threads=2), found, atol=1e-5)
    assert model.place(corpus.take(np.zeros(0, np.int64))).shape == (0, 22)


@pytest.mark.parametrize("part", ["text_weights", "feature_weights"])
def test_the_linear_classifiers_are_heard(
    model: FusedClassifier, letters: tuple[Corpus, Supervision], part: str
) -> None:
    silent = replace(model, scorer=replace(model.scorer, **{part: getattr(model.scorer, part) * 0}))
    assert np.abs(silent.place(letters[0]) - model.place(letters[0])).max() > 0.05


def test_without_self_training_the_mixture_stands_alone(letters: tuple[Corpus, Supervision]) -> None:
    found = fit(*letters, FusedSettings(self_training=0))
    assert found.scorer.text_weights.size == found.scorer.feature_weights.size == 0
    settings, arrays = state_of(found)
    again = from_state(TREE, found.views.words, settings, arrays)
    assert again.place(letters[0]).tobytes() == found.place(letters[0]).tobytes()


def test_calibration_needs_documents_to_hold_out(letters: tuple[Corpus, Supervision]) -> None:
    corpus, labelled = letters
    assert fit(corpus, labelled).calibration.sharpness != TYPICAL_SHARPNESS
    first = np.unique(labelled.nodes, return_index=True)[1]
    one_each = Supervision(labelled.rows[first], labelled.nodes[first])
    for found in (fit(corpus, one_each), fit(corpus, labelled, FusedSettings(calibrated=False))):
        assert found.calibration.sharpness == TYPICAL_SHARPNESS
        assert found.calibration.levels == (AS_IT_IS,) * 3
        assert found.calibration.bias == found.calibration.surest == ()


def test_held_out_documents_are_judged_without_their_labels(
    letters: tuple[Corpus, Supervision], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each fold is judged by a model that started, and was trained, without the labels of that fold."""
    corpus, labelled = letters
    used: dict[int, set[int]] = {}
    trained: list[Any] = []
    asked: list[set[int]] = []
    frequencies_from: list[int] = []
    whole_start, whole_fit, rows_of = fused.start_from, fused.fit_scorer, fused._rows_of
    whole_frequencies = fused.log_frequencies

    def start_from(taxonomy: Any, seen: Any, supervision: Supervision, *rest: Any, **options: Any) -> Any:
        # Every leaf is still known, and none is taken for frequent because of the documents that are left.
        assert len(set(supervision.nodes.tolist())) == 22
        assert options == {"learn_prior": False}
        start = whole_start(taxonomy, seen, supervision, *rest, **options)
        used[id(start)] = set(supervision.rows.tolist())
        return start

    def fit_scorer(seen: Any, start: Any, settings: Any, seed: int, log_prior: Any = None) -> Any:
        trained.append((start, log_prior))
        return whole_fit(seen, start, settings, seed, log_prior)

    def asked_for(seen: Any, rows: Any) -> Any:
        asked.append(set(rows.tolist()))
        return rows_of(seen, rows)

    def log_frequencies(logits: Any, *rest: Any) -> Any:
        frequencies_from.append(len(logits))
        return whole_frequencies(logits, *rest)

    monkeypatch.setattr(fused, "start_from", start_from)
    monkeypatch.setattr(fused, "fit_scorer", fit_scorer)
    monkeypatch.setattr(fused, "_rows_of", asked_for)
    monkeypatch.setattr(fused, "log_frequencies", log_frequencies)
    fit(corpus, labelled)
    everything = set(labelled.rows.tolist())
    assert len(asked) == 5
    assert set.union(*asked) == everything
    first, *folds, last = trained
    assert used[id(first[0])] == everything
    for (start, log_prior), held_out in zip(folds, asked, strict=True):
        assert used[id(start)] == everything - held_out
        assert not log_prior.any()
    # The last fit goes on from where the first one started, with what was found out about the frequencies.
    assert last[0] is first[0]
    assert frequencies_from == [len(corpus) - len(everything)]


@pytest.mark.parametrize("learn_prior", [True, False])
@pytest.mark.parametrize("seed", range(2))
def test_progress_counts_every_fit(letters: tuple[Corpus, Supervision], seed: int, learn_prior: bool) -> None:
    """One with all labels, one for each of five folds, and one with the frequencies found."""
    steps: list[int] = []
    settings = FusedSettings(learn_prior=learn_prior)
    fit(*letters, settings, seed=seed, advance=steps.append)
    assert sum(steps) == count_fits(TREE, letters[1], 330, settings) == 6 + learn_prior


@pytest.mark.parametrize("calibrated", [True, False])
def test_frequencies_are_only_learned_on_request(
    letters: tuple[Corpus, Supervision], calibrated: bool
) -> None:
    even, skewed = (
        fit(*letters, FusedSettings(learn_prior=learn_prior, calibrated=calibrated)).scorer.log_prior
        for learn_prior in (False, True)
    )
    assert not even.any()
    assert skewed.std() > 0.05


def test_frequent_leaves_are_found_frequent(letters: tuple[Corpus, Supervision]) -> None:
    corpus, labelled = letters
    documents = sample_documents(330)
    leaves = TREE.leaf_position[[TREE.find(document["labels"]) for document in documents]]
    # Four labelled letters of every leaf say nothing about how many there are.
    sizes = np.bincount(leaves, minlength=22)
    found = fit(corpus, labelled).scorer.log_prior
    assert np.corrcoef(found, np.log(sizes))[0, 1] > 0.5
    assert found[sizes.argmax()] > found[sizes.argmin()] + 0.2


def test_it_gives_up_when_another_job_failed(
    letters: tuple[Corpus, Supervision], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fused, "stop_requested", lambda: True)
    with pytest.raises(Stopped):
        run_all([lambda: fit(*letters)], 1)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("with_labels", [True, False])
def test_next_to_no_documents(n: int, with_labels: bool) -> None:
    texts = ["red fox", "old car", "red fox den", "old car wheel", "fox", "car", "den"][:n]
    keywords = {"animals": ["fox", "den"], "things": ["car", "wheel", "fox"]}
    labels = [("animals" if "fox" in text else "things") if with_labels else None for text in texts]
    model = HiMeCat({"animals": None, "things": None}, keywords=keywords, min_count=1, threads=1)
    found = model.fit(texts, labels).predict_proba([*texts, "nothing of it"])
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-5)


def test_one_thread_and_two_write_the_same_bytes(tmp_path: Path) -> None:
    documents = sample_documents(330)
    labels = sample_split(documents)
    for threads in (1, 2):
        model = HiMeCat(TREE, METADATA, threads=threads, dimension=50).fit(documents, labels)
        model.save(tmp_path / str(threads))
    for file in ("model.json", "weights.safetensors"):
        assert (tmp_path / "1" / file).read_bytes() == (tmp_path / "2" / file).read_bytes()
    loaded = HiMeCat.load(tmp_path / "1")
    assert loaded.predict_proba(documents).tobytes() == model.predict_proba(documents).tobytes()
    assert loaded.transform(documents).tobytes() == model.transform(documents).tobytes()

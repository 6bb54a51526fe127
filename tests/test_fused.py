"""The default classifier: its parts together, there and back, and on next to no documents."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from himecat import Corpus, HiMeCat, Supervision, Taxonomy, read_corpus
from himecat.classifier import cross_validation as held_out
from himecat.classifier import fit as fused
from himecat.classifier import linear, scorer
from himecat.classifier.calibration import AS_IT_IS, TYPICAL_SHARPNESS
from himecat.classifier.fit import FusedClassifier, count_fits, fit_fused
from himecat.classifier.name_seeds import sow
from himecat.classifier.scorer import FusedSettings
from himecat.classifier.state import from_state, state_of
from himecat.runtime.threads import Stopped, run_parallel
from himecat.sample import METADATA, sample_documents, sample_split, sample_taxonomy
from himecat.views.base import Seen, learn_views

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


@pytest.mark.parametrize("enough", [12_000, 40], ids=["all documents", "some documents"])
def test_held_out_documents_are_judged_without_their_labels(
    letters: tuple[Corpus, Supervision], monkeypatch: pytest.MonkeyPatch, enough: int
) -> None:
    """Each fold is judged by a model that started, and was trained, without the labels of that fold."""
    corpus, labelled = letters
    started: list[Any] = []
    trained: list[Any] = []
    asked: list[Any] = []
    frequencies: list[Any] = []
    whole_start, whole_fit, rows_of = fused.start_from, fused.fit_scorer, held_out._rows_of
    whole_believed = held_out.believed

    def start_from(taxonomy: Any, seen: Any, supervision: Supervision, *rest: Any, **options: Any) -> Any:
        # Every leaf is still known, and none is taken for frequent because of the documents that are left.
        assert len(set(supervision.nodes.tolist())) == 22
        assert options["learn_prior"] is False
        # The leaves' frequencies are not known before all folds have been judged.
        assert options.get("log_prior") is (frequencies[-1] if frequencies else None)
        start = whole_start(taxonomy, seen, supervision, *rest, **options)
        started.append((start, seen, supervision))
        return start

    def fit_scorer(
        seen: Any, start: Any, settings: Any, seed: int, log_prior: Any = None, *, threads: int = 1
    ) -> Any:
        trained.append((start, seen, log_prior))
        return whole_fit(seen, start, settings, seed, log_prior, threads=threads)

    def asked_for(seen: Any, rows: Any) -> Any:
        found = rows_of(seen, rows)
        asked.append(found)
        return found

    def believed(*estimates: Any) -> Any:
        frequencies.append(whole_believed(*estimates))
        return frequencies[-1]

    monkeypatch.setattr(held_out, "_ENOUGH", enough)
    for module in (fused, held_out):
        monkeypatch.setattr(module, "start_from", start_from)
        monkeypatch.setattr(module, "fit_scorer", fit_scorer)
    monkeypatch.setattr(held_out, "_rows_of", asked_for)
    monkeypatch.setattr(held_out, "believed", believed)
    fit(corpus, labelled)
    everything = dict(zip(labelled.rows.tolist(), labelled.nodes.tolist(), strict=True))
    n_others = min(enough, len(corpus) - len(everything))
    # The last fit sees all documents with all labels: a row of its matrix tells which document another row is.
    (_, whole, of_all) = started[-1]
    assert len(whole.text) == len(corpus)
    assert labels_in(whole, of_all, whole) == everything
    if n_others < len(corpus) - len(everything):
        # The documents that take part.
        del asked[0]
    *folds, others, one_half, other_half, _ = started
    *asked_of_folds, asked_of_others, of_one, others_of_one, of_other, others_of_other = asked
    assert len(folds) == len(asked_of_folds) == 5
    judged: set[int] = set()
    for (_, seen, supervision), away_from in zip(
        [*folds, one_half, other_half], [*asked_of_folds, of_one, of_other], strict=True
    ):
        assert len(seen.text) == len(everything) + n_others
        away = documents_in(away_from, whole)
        assert labels_in(seen, supervision, whole) == {
            row: node for row, node in everything.items() if row not in away
        }
        judged |= away
    assert judged == set(everything)
    # Either half learns from what the other one is judged by.
    halves = [documents_in(half, whole) for half in (of_one, of_other)]
    assert not halves[0] & halves[1]
    assert halves[0] | halves[1] == set(everything)
    # The frequencies come from documents without a label, judged with all labels and with half of them.
    assert labels_in(others[1], others[2], whole) == everything
    for asked_for_shares in (asked_of_others, others_of_one, others_of_other):
        assert not documents_in(asked_for_shares, whole) & set(everything)
        assert len(asked_for_shares.text) == n_others
    assert len(trained) == len(started)
    for (start, seen, _), (fitted, fitted_on, log_prior) in zip(started, trained, strict=True):
        assert fitted is start
        assert fitted_on is seen
        if fitted is not trained[-1][0]:
            assert not log_prior.any()
    # The last one is told what was found out about the frequencies.
    assert len(frequencies) == 1
    assert trained[-1][2] is frequencies[0]


def documents_in(seen: Seen, whole: Seen) -> set[int]:
    """Which documents these are, by how they are seen."""
    row_of = {row.tobytes(): number for number, row in enumerate(whole.whole)}
    assert len(row_of) == len(whole.whole)
    return {row_of[row.tobytes()] for row in seen.whole}


def labels_in(seen: Seen, supervision: Supervision, whole: Seen) -> dict[int, int]:
    """The labels that a fit knows, by document."""
    row_of = {row.tobytes(): number for number, row in enumerate(whole.whole)}
    return {
        row_of[seen.whole[row].tobytes()]: int(node)
        for row, node in zip(supervision.rows, supervision.nodes, strict=True)
    }


@pytest.mark.parametrize("enough", [0, 1, 40, 242, 1000])
def test_documents_with_labels_always_take_part(letters: tuple[Corpus, Supervision], enough: int) -> None:
    _, labelled = letters
    rows = held_out.enough(labelled, 330, enough, seed=5)
    assert set(labelled.rows.tolist()) <= set(rows.tolist())
    assert len(rows) == len(labelled) + min(enough, 330 - len(labelled))
    # In order and once each: labelled documents are looked up in them.
    assert (np.diff(rows) > 0).all()
    assert 0 <= rows[0] <= rows[-1] < 330
    np.testing.assert_array_equal(held_out.enough(labelled, 330, enough, seed=5), rows)


def test_the_seed_decides_which_others_take_part(letters: tuple[Corpus, Supervision]) -> None:
    one, other = (set(held_out.enough(letters[1], 330, 40, seed).tolist()) for seed in (0, 1))
    assert one != other


@pytest.mark.parametrize("enough", [1, 40])
def test_a_few_other_documents_are_enough_to_hold_out_among(
    letters: tuple[Corpus, Supervision], model: FusedClassifier, monkeypatch: pytest.MonkeyPatch, enough: int
) -> None:
    corpus, labelled = letters
    monkeypatch.setattr(held_out, "_ENOUGH", enough)
    one, two = (fit(corpus, labelled, threads=threads) for threads in (1, 2))
    found = one.place(corpus)
    assert two.place(corpus).tobytes() == found.tobytes()
    assert one.calibration == two.calibration
    assert one.calibration.sharpness != TYPICAL_SHARPNESS
    assert np.isfinite(one.scorer.log_prior).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-5)
    # What is learned from all documents stays much the same.
    assert (found.argmax(axis=1) == model.place(corpus).argmax(axis=1)).mean() > 0.85


def test_when_every_document_has_a_label(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is none without, to learn the frequencies from."""
    documents = sample_documents(110)
    corpus = read_corpus(documents, metadata=METADATA, min_count=2)
    labelled = Supervision(np.arange(110), np.array([TREE.find(one["labels"]) for one in documents]))
    monkeypatch.setattr(held_out, "_ENOUGH", 3)
    found = fit(corpus, labelled).place(corpus)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-5)


@pytest.mark.parametrize("learn_prior", [True, False])
@pytest.mark.parametrize("seed", range(2))
def test_progress_counts_every_fit(letters: tuple[Corpus, Supervision], seed: int, learn_prior: bool) -> None:
    """One for each of five folds, one to find the frequencies, and one with all labels."""
    steps: list[int] = []
    settings = FusedSettings(learn_prior=learn_prior)
    fit(*letters, settings, seed=seed, advance=steps.append)
    assert sum(steps) == count_fits(TREE, letters[1], 330, settings) == 6 + 3 * learn_prior


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
    monkeypatch.setattr(scorer, "stop_requested", lambda: True)
    with pytest.raises(Stopped):
        run_parallel([lambda: fit(*letters)], 1)


def test_it_asks_before_each_classifier_whether_to_go_on(
    letters: tuple[Corpus, Supervision], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fit within another job ends at the next classifier once nobody waits for it."""
    trained: list[int] = []
    whole_pieces = linear._pieces

    def pieces(*arguments: Any) -> Any:
        trained.append(1)
        return whole_pieces(*arguments)

    monkeypatch.setattr(linear, "_pieces", pieces)
    monkeypatch.setattr(scorer, "stop_requested", lambda: len(trained) >= 4)
    with pytest.raises(Stopped):
        fit(*letters, FusedSettings(calibrated=False))
    assert len(trained) == 4


def test_a_failure_ends_a_fit_on_two_threads(
    letters: tuple[Corpus, Supervision], monkeypatch: pytest.MonkeyPatch
) -> None:
    trained: list[int] = []

    def fail(*_: Any) -> Any:
        trained.append(1)
        raise MemoryError

    monkeypatch.setattr(linear, "_pieces", fail)
    with pytest.raises(MemoryError):
        fit(*letters, FusedSettings(calibrated=False), threads=2)
    # Six classifiers in a round; those not yet begun are left out.
    assert len(trained) <= 2


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

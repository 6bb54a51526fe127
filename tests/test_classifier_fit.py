"""The default classifier: its parts together, there and back, and on next to no documents."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from himecat import Corpus, HiMeCat, Supervision, Taxonomy, read_corpus
from himecat.classifier import cross_validation, linear, scorer
from himecat.classifier import fit as fit_module
from himecat.classifier.calibration import DEFAULT_INVERSE_TEMPERATURE, IDENTITY
from himecat.classifier.cross_validation import plan_folds
from himecat.classifier.fit import DefaultClassifier, fit_classifier
from himecat.classifier.learned import subsample
from himecat.classifier.name_seeds import name_seeds
from himecat.methods import Default
from himecat.runtime.threads import Stopped, run_parallel
from himecat.sample import METADATA, sample_documents, sample_split, sample_taxonomy
from himecat.views.combined import DocumentVectors, learn_views
from himecat.views.metadata import MetadataView
from himecat.views.space import JointSpace
from himecat.views.topics import TopicsView
from himecat.views.words import WordsView

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
    method: Default | None = None,
    *,
    topics: int = 10,
    **options: Any,
) -> DefaultClassifier:
    kinds = tuple(corpus.metadata)
    words = WordsView(20, 500, metadata=kinds)
    beside = [TopicsView(topics)] if topics else []
    views, vectors = learn_views([words, *beside, MetadataView(kinds)], corpus)
    seeds = name_seeds(TREE, views, corpus.words, supervision.keywords, use_names=True)
    chosen = method or Default()
    plan = plan_folds(TREE, supervision, len(corpus), chosen, options.get("seed", 0))
    return fit_classifier(TREE, views, vectors, supervision, seeds, chosen, plan, **options)


def space_of(model: DefaultClassifier, corpus: Corpus, tree: Taxonomy = TREE) -> JointSpace:
    """What a model folder keeps beside the state of the classifier."""
    words = model.views["words"].vectors
    values = {kind: one.vocabulary for kind, one in corpus.metadata.items()}
    return JointSpace(tree, words[:0], words, words[:0], {}, corpus.words, values)


@pytest.fixture(scope="module")
def model(letters: tuple[Corpus, Supervision]) -> DefaultClassifier:
    return fit(*letters)


def rebuilt(
    model: DefaultClassifier, corpus: Corpus, state: tuple[Any, Any] | None = None, tree: Taxonomy = TREE
) -> DefaultClassifier:
    return DefaultClassifier.from_state(space_of(model, corpus, tree), *(state or model.state()))


def test_state_round_trip(model: DefaultClassifier, letters: tuple[Corpus, Supervision]) -> None:
    again = rebuilt(model, letters[0])
    assert again.leaf_probabilities(letters[0]).tobytes() == model.leaf_probabilities(letters[0]).tobytes()
    assert again.calibration == model.calibration
    # All of it was there to be kept.
    assert "topics" in again.views.centres
    assert any(model.calibration.mixture[1])
    assert len(model.calibration.paths) == 3


def test_a_model_without_topics_and_calibration(letters: tuple[Corpus, Supervision]) -> None:
    plain = fit(*letters, Default(calibrate=False), topics=0)
    settings, arrays = plain.state()
    assert not any(name.startswith("views/topics") for name in arrays)
    again = rebuilt(plain, letters[0], (settings, arrays))
    assert again.calibration == plain.calibration
    assert again.leaf_probabilities(letters[0]).tobytes() == plain.leaf_probabilities(letters[0]).tobytes()


def test_a_state_must_fit_the_tree(model: DefaultClassifier, letters: tuple[Corpus, Supervision]) -> None:
    settings, arrays = model.state()
    settings["calibration"] |= {"levels": [[1.0, 0.0]], "bias": [], "paths": [], "mixture": []}
    with pytest.raises(ValueError, match="'directions' should hold 2 x 30 numbers, not 22 x 30"):
        rebuilt(model, letters[0], (settings, arrays), Taxonomy.from_paths([("x",), ("y",)]))


@pytest.mark.parametrize(
    ("name", "cut", "said"),
    [
        ("vectors", (slice(-1), slice(None)), r"'topics/vectors' should hold \d+ x 10 numbers, not \d+ x 10"),
        ("vectors", (slice(None), slice(-1)), "'topics/centre' should hold 9 numbers, not 10"),
        ("centre", (slice(-1),), "'topics/centre' should hold 10 numbers, not 9"),
    ],
)
def test_topics_must_fit_the_words_and_each_other(
    model: DefaultClassifier,
    letters: tuple[Corpus, Supervision],
    name: str,
    cut: tuple[slice, ...],
    said: str,
) -> None:
    settings, arrays = model.state()
    arrays[f"views/topics/{name}"] = arrays[f"views/topics/{name}"][cut]
    with pytest.raises(ValueError, match=said):
        rebuilt(model, letters[0], (settings, arrays))


def test_topics_of_other_words(model: DefaultClassifier, letters: tuple[Corpus, Supervision]) -> None:
    settings, arrays = model.state()
    for name in ("views/topics/vectors", "views/topics/idf"):
        arrays[name] = arrays[name][:-1]
    with pytest.raises(ValueError, match="'topics/idf' should hold"):
        rebuilt(model, letters[0], (settings, arrays))


@pytest.mark.parametrize("name", ["vectors", "centre", "idf"])
def test_half_of_the_topics_is_not_enough(
    model: DefaultClassifier, letters: tuple[Corpus, Supervision], name: str
) -> None:
    settings, arrays = model.state()
    del arrays[f"views/topics/{name}"]
    with pytest.raises(KeyError, match=name):
        rebuilt(model, letters[0], (settings, arrays))


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("bias", [0.0] * 21, "'bias' should hold 22 numbers"),
        ("bias", [float("nan")] * 22, "'bias' should hold 22 numbers"),
        ("paths", [[1.0, 0.0]] * 2, "'paths' should hold a slope and an offset for each of 3 levels"),
        ("paths", [[1.0, float("inf")]] * 3, "'paths' should hold a slope and an offset"),
    ],
)
def test_a_calibration_must_fit_the_tree(
    model: DefaultClassifier, letters: tuple[Corpus, Supervision], name: str, value: Any, said: str
) -> None:
    settings, arrays = model.state()
    settings["calibration"][name] = value
    with pytest.raises(ValueError, match=said):
        rebuilt(model, letters[0], (settings, arrays))


def test_probabilities_are_whole_and_the_same_in_batches_and_on_threads(
    model: DefaultClassifier, letters: tuple[Corpus, Supervision], monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, _ = letters
    found = model.leaf_probabilities(corpus)
    assert found.shape == (330, 22)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-5)
    assert model.leaf_probabilities(corpus, threads=2).tobytes() == found.tobytes()
    monkeypatch.setattr(fit_module, "_BATCH", 50)
    np.testing.assert_allclose(model.leaf_probabilities(corpus, threads=2), found, atol=1e-5)
    assert model.leaf_probabilities(corpus.take(np.zeros(0, np.int64))).shape == (0, 22)


@pytest.mark.parametrize("part", ["text_weights", "feature_weights"])
def test_the_linear_classifiers_are_heard(
    model: DefaultClassifier, letters: tuple[Corpus, Supervision], part: str
) -> None:
    silent = replace(model, scorer=replace(model.scorer, **{part: getattr(model.scorer, part) * 0}))
    assert np.abs(silent.leaf_probabilities(letters[0]) - model.leaf_probabilities(letters[0])).max() > 0.05


def test_without_self_training_the_mixture_stands_alone(letters: tuple[Corpus, Supervision]) -> None:
    found = fit(*letters, Default(self_training=0))
    assert found.scorer.text_weights.size == found.scorer.feature_weights.size == 0
    again = rebuilt(found, letters[0])
    assert again.leaf_probabilities(letters[0]).tobytes() == found.leaf_probabilities(letters[0]).tobytes()


def test_calibration_needs_documents_to_hold_out(letters: tuple[Corpus, Supervision]) -> None:
    corpus, labelled = letters
    assert fit(corpus, labelled).calibration.inverse_temperature != DEFAULT_INVERSE_TEMPERATURE
    first = np.unique(labelled.nodes, return_index=True)[1]
    one_each = Supervision(labelled.rows[first], labelled.nodes[first])
    for found in (fit(corpus, one_each), fit(corpus, labelled, Default(calibrate=False))):
        assert found.calibration.inverse_temperature == DEFAULT_INVERSE_TEMPERATURE
        assert found.calibration.levels == (IDENTITY,) * 3
        assert found.calibration.bias == found.calibration.paths == ()


@pytest.mark.parametrize("most", [12_000, 40], ids=["all documents", "some documents"])
def test_held_out_documents_are_scored_without_their_labels(
    letters: tuple[Corpus, Supervision], monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Each fold is scored by a model that was trained without the labels of that fold."""
    corpus, labelled = letters
    located: list[Any] = []
    trained: list[Any] = []
    scored: list[Any] = []
    real_locate, real_fit, real_take = cross_validation.locate, fit_module.fit_scorer, DocumentVectors.take

    def locate(taxonomy: Any, vectors: Any, supervision: Supervision, *rest: Any, **options: Any) -> Any:
        # Every leaf still has a label, and the prior is never learned from the documents that are left.
        assert len(set(supervision.nodes.tolist())) == 22
        assert not options.get("learn_prior")
        located.append((vectors, supervision))
        return real_locate(taxonomy, vectors, supervision, *rest, **options)

    def fit_scorer(taxonomy: Any, vectors: Any, supervision: Supervision, *rest: Any, **options: Any) -> Any:
        trained.append((vectors, supervision, options["correction"]))
        return real_fit(taxonomy, vectors, supervision, *rest, **options)

    def take(vectors: DocumentVectors, rows: Any) -> DocumentVectors:
        scored.append(real_take(vectors, rows))
        return scored[-1]

    monkeypatch.setattr(cross_validation, "MAX_UNLABELLED", most)
    monkeypatch.setattr(cross_validation, "locate", locate)
    for module in (fit_module, cross_validation):
        monkeypatch.setattr(module, "fit_scorer", fit_scorer)
    monkeypatch.setattr(DocumentVectors, "take", take)
    # What the finished fit says about itself scores documents too.
    monkeypatch.setattr(fit_module, "assess", lambda *_: None)
    fit(corpus, labelled)
    everything = dict(zip(labelled.rows.tolist(), labelled.nodes.tolist(), strict=True))
    n_others = min(most, len(corpus) - len(everything))
    # The last fit sees all documents with all labels: a row of its matrix tells which document another row is.
    *folds, (whole, of_all, correction), (again, _, refined) = trained
    assert len(whole) == len(corpus)
    assert labels_in(whole, of_all, whole) == everything
    # The label prior is known only to it, and learned once more from its scores of the unlabelled documents.
    assert again is whole
    assert correction.log_prior is not None
    assert not np.array_equal(refined.log_prior, correction.log_prior)
    assert not documents_in(scored.pop(), whole) & set(everything)
    if n_others < len(corpus) - len(everything):
        # The documents that take part.
        del scored[0]
    assert len(folds) == len(scored) == 5
    held_out: set[int] = set()
    for (vectors, supervision, known), chosen in zip(folds, scored, strict=True):
        assert known.log_prior is None
        assert len(vectors) == len(everything) + n_others
        away = documents_in(chosen, whole)
        assert labels_in(vectors, supervision, whole) == {
            row: node for row, node in everything.items() if row not in away
        }
        held_out |= away
    assert held_out == set(everything)
    # What is wrong with the scores of one fold is never learned from that fold.
    assert len({known.inverse_temperature for _, _, known in folds}) == 5
    # The mixture alone: the same folds, all labels, and each half of them.
    known_labels = [set(labels_in(*one, whole)) for one in located]
    assert known_labels[:5] == [set(labels_in(vectors, known, whole)) for vectors, known, _ in folds]
    assert known_labels[5] == set(everything)
    assert not known_labels[6] & known_labels[7]
    assert known_labels[6] | known_labels[7] == set(everything)


def documents_in(vectors: DocumentVectors, whole: DocumentVectors) -> set[int]:
    """Which documents these are, by their vectors."""
    row_of = {row.tobytes(): number for number, row in enumerate(whole.smoothed)}
    assert len(row_of) == len(whole)
    return {row_of[row.tobytes()] for row in vectors.smoothed}


def labels_in(vectors: DocumentVectors, supervision: Supervision, whole: DocumentVectors) -> dict[int, int]:
    """The labels that a fit knows, by document."""
    row_of = {row.tobytes(): number for number, row in enumerate(whole.smoothed)}
    return {
        row_of[vectors.smoothed[row].tobytes()]: int(node)
        for row, node in zip(supervision.rows, supervision.nodes, strict=True)
    }


@pytest.mark.parametrize("most", [0, 1, 40, 242, 1000])
def test_documents_with_labels_always_take_part(letters: tuple[Corpus, Supervision], most: int) -> None:
    _, labelled = letters
    rows = subsample(labelled, 330, most, seed=5)
    assert set(labelled.rows.tolist()) <= set(rows.tolist())
    assert len(rows) == len(labelled) + min(most, 330 - len(labelled))
    # In order and once each: labelled documents are looked up in them.
    assert (np.diff(rows) > 0).all()
    assert 0 <= rows[0] <= rows[-1] < 330
    np.testing.assert_array_equal(subsample(labelled, 330, most, seed=5), rows)


def test_the_seed_decides_which_others_take_part(letters: tuple[Corpus, Supervision]) -> None:
    one, other = (set(subsample(letters[1], 330, 40, seed).tolist()) for seed in (0, 1))
    assert one != other


@pytest.mark.parametrize("most", [1, 40])
def test_a_few_other_documents_are_enough_to_hold_out_among(
    letters: tuple[Corpus, Supervision], model: DefaultClassifier, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    corpus, labelled = letters
    monkeypatch.setattr(cross_validation, "MAX_UNLABELLED", most)
    one, two = (fit(corpus, labelled, threads=threads) for threads in (1, 2))
    found = one.leaf_probabilities(corpus)
    assert two.leaf_probabilities(corpus).tobytes() == found.tobytes()
    assert one.calibration == two.calibration
    assert one.calibration.inverse_temperature != DEFAULT_INVERSE_TEMPERATURE
    assert np.isfinite(one.scorer.log_prior).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-5)
    # What is learned from all documents stays much the same.
    assert (found.argmax(axis=1) == model.leaf_probabilities(corpus).argmax(axis=1)).mean() > 0.85


def test_when_every_document_has_a_label(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is none without, to learn the frequencies from."""
    documents = sample_documents(110)
    corpus = read_corpus(documents, metadata=METADATA, min_count=2)
    labelled = Supervision(np.arange(110), np.array([TREE.find(one["labels"]) for one in documents]))
    monkeypatch.setattr(cross_validation, "MAX_UNLABELLED", 3)
    found = fit(corpus, labelled).leaf_probabilities(corpus)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-5)


@pytest.mark.parametrize("learn_prior", [True, False])
@pytest.mark.parametrize("seed", range(2))
def test_progress_counts_every_fit(letters: tuple[Corpus, Supervision], seed: int, learn_prior: bool) -> None:
    """The mixture and the whole for each of five folds, three mixtures for the prior, and one with all labels."""
    steps: list[int] = []
    method = Default(learn_prior=learn_prior)
    fit(*letters, method, seed=seed, advance=steps.append)
    assert sum(steps) == plan_folds(TREE, letters[1], 330, method).n_fits == 11 + 5 * learn_prior


@pytest.mark.parametrize("calibrate", [True, False])
def test_frequencies_are_only_learned_on_request(
    letters: tuple[Corpus, Supervision], calibrate: bool
) -> None:
    even, skewed = (
        fit(*letters, Default(learn_prior=learn_prior, calibrate=calibrate)).scorer
        for learn_prior in (False, True)
    )
    # Held-out documents also say which leaves are chosen too often.
    assert bool(even.log_prior.any()) == calibrate
    assert (
        skewed.log_prior / skewed.scales["mixture"] - even.log_prior / even.scales["mixture"]
    ).std() > 0.05


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
        fit(*letters, Default(calibrate=False))
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
        fit(*letters, Default(calibrate=False), threads=2)
    # Six classifiers in a round; those not yet begun are left out.
    assert len(trained) <= 2


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("with_labels", [True, False])
def test_next_to_no_documents(n: int, with_labels: bool) -> None:
    texts = ["red fox", "old car", "red fox den", "old car wheel", "fox", "car", "den"][:n]
    keywords = {"animals": ["fox", "den"], "things": ["car", "wheel", "fox"]}
    labels = [("animals" if "fox" in text else "things") if with_labels else None for text in texts]
    model = HiMeCat(
        {"animals": None, "things": None}, keywords=keywords, method=Default(min_count=1), threads=1
    )
    found = model.fit(texts, labels).predict_proba([*texts, "nothing of it"])
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-5)


def test_one_thread_and_two_write_the_same_bytes(tmp_path: Path) -> None:
    documents = sample_documents(330)
    labels = sample_split(documents)
    for threads in (1, 2):
        model = HiMeCat(TREE, METADATA, method=Default(dimension=50), threads=threads).fit(documents, labels)
        model.save(tmp_path / str(threads))
    for file in ("model.json", "weights.safetensors"):
        assert (tmp_path / "1" / file).read_bytes() == (tmp_path / "2" / file).read_bytes()
    loaded = HiMeCat.load(tmp_path / "1")
    assert loaded.predict_proba(documents).tobytes() == model.predict_proba(documents).tobytes()
    assert loaded.transform(documents).tobytes() == model.transform(documents).tobytes()

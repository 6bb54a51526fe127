"""Joint representation learning and the space it gives."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from himecat.errors import UsageError
from himecat.input.builder import load_corpus, read_corpus
from himecat.input.corpus import Corpus, Ragged, Supervision, Vocabulary
from himecat.input.dataset import draw, open_dataset, true_nodes
from himecat.input.documents import Fields
from himecat.input.taxonomy.tree import Taxonomy
from himecat.methods import Paper, hyperparameters
from himecat.paper.pairs import Relations, relate
from himecat.paper.sampled_space import (
    Trained,
    _deal,
    _passes_before,
    count_steps,
    default_samples,
    learn_vectors,
    pairs_per_pass,
    space_from,
)
from himecat.sample import METADATA, sample_documents, sample_split, sample_taxonomy
from himecat.views.space import JointSpace

TOPICS = ("x", "y", "z")
TREE = Taxonomy.from_children({"a": {"x": {}, "y": {}}, "b": {"z": {}}})
NODES = [TREE.find(topic) for topic in TOPICS]


@cache
def topic_corpus(n_documents: int = 1100, metadata: bool = True) -> Corpus:
    """Documents of three topics in turn; words, authors and tags show the topic, some are missing."""
    rng = np.random.default_rng(0)
    documents = []
    for row in range(n_documents):
        topic = TOPICS[row % 3]
        words = [
            f"{topic}{rng.integers(8)}" if rng.random() < 0.7 else f"any{rng.integers(20)}" for _ in range(9)
        ]
        document: dict[str, Any] = {"text": " ".join(words)}
        if metadata and rng.random() < 0.8:
            document["by"] = [f"{topic}-author{rng.integers(6)}"]
        if metadata and rng.random() < 0.5:
            document["tags"] = [f"{topic}-tag{rng.integers(3)}", f"tag{rng.integers(3)}"]
        documents.append(document)
    return read_corpus(documents, metadata=["by", "tags"] if metadata else [])


def labelled(n: int, tree_nodes: list[int] = NODES) -> Supervision:
    """The first n documents, labelled with their topics."""
    return Supervision(np.arange(n), np.array([tree_nodes[row % 3] for row in range(n)], dtype=np.int64))


def learn(relations: Relations, **options: Any) -> Trained:
    given = {"dimension": 16, "samples": 100_000, "rate": 0.04} | options
    own = {name: given.pop(name) for name in hyperparameters(Paper) if name in given}
    return learn_vectors(relations, Paper(**own), **given)


def as_bytes(found: Trained) -> bytes:
    return found.anchors.tobytes() + found.documents.tobytes()


@cache
def standard() -> tuple[Relations, Trained]:
    relations = relate(topic_corpus(), TREE, labelled(30))
    return relations, learn(relations, samples=2_000_000)


# -- determinism ---------------------------------------------------------------------------------------


def test_the_number_of_threads_changes_nothing() -> None:
    relations = relate(topic_corpus(), TREE, labelled(30))
    one, two, three = (learn(relations, threads=threads, block_documents=100) for threads in (1, 2, 3))
    assert as_bytes(one) == as_bytes(two) == as_bytes(three)
    assert [done.objective for done in one.rounds] == [done.objective for done in three.rounds]


def test_another_seed_gives_another_space() -> None:
    relations = relate(topic_corpus(300), TREE, labelled(30))
    one, same, other = (learn(relations, samples=20_000, seed=seed) for seed in (0, 0, 1))
    assert as_bytes(one) == as_bytes(same)
    assert not np.isclose(one.anchors, other.anchors).all(axis=1).any()
    assert not np.isclose(one.documents, other.documents).all(axis=1).any()


@pytest.mark.parametrize(
    "change",
    [
        {"dimension": 17},
        {"negatives": 2},
        {"margin_words": 0.4},
        {"rate": 0.02},
        {"scaled_steps": False},
        {"samples": 40_000},
        {"block_documents": 50},
    ],
    ids=lambda change: next(iter(change)),
)
def test_every_option_takes_effect(change: dict[str, Any]) -> None:
    relations = relate(topic_corpus(300), TREE, labelled(30))
    options: dict[str, Any] = {"samples": 20_000}
    assert as_bytes(learn(relations, **options)) != as_bytes(learn(relations, **(options | change)))


def test_margins_belong_to_their_relations() -> None:
    relations = relate(topic_corpus(300), TREE, labelled(30))
    plain = learn(relations, samples=5_000)
    kinds = {
        "margin_hierarchy": {"hierarchy"},
        "margin_metadata": {"label", "metadata"},
        "margin_words": {"word"},
    }
    for margin, having in kinds.items():
        first = learn(relations, samples=5_000, **{margin: 1.5}).rounds[0].objective
        changed = {
            name for name, value in first.items() if abs(value - plain.rounds[0].objective[name]) > 0.5
        }
        # A margin of 1.5 is out of reach at first, so its relations' objective falls by more than 1.
        assert changed == {name for name in first if name.split(":")[0] in having}


# -- what is learned -----------------------------------------------------------------------------------


def test_all_vectors_have_length_one_and_the_dimension_asked_for() -> None:
    relations = relate(topic_corpus(300), TREE, labelled(30))
    for dimension in (2, 8, 13):
        found = learn(relations, dimension=dimension, samples=20_000)
        assert found.anchors.shape == (relations.n_anchors, dimension)
        assert found.documents.shape == (relations.n_documents, dimension)
        for rows in (found.anchors, found.documents):
            assert rows.dtype == np.float32
            assert rows.flags.c_contiguous
            np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-6)


def test_the_objective_of_every_relation_rises() -> None:
    _, found = standard()
    assert len(found.rounds) > 5
    first, last = found.rounds[0].objective, found.rounds[-1].objective
    assert set(first) == {"label", "metadata:by", "metadata:tags", "word", "hierarchy"}
    for name in first:
        assert first[name] < last[name] <= 0.0


def test_what_belongs_together_lies_together() -> None:
    relations, found = standard()
    space = space_from(found, relations, topic_corpus(), TREE)
    for topic, node in zip(TOPICS, NODES, strict=True):
        near = space.nearest(space.labels[node], "word", 8)
        assert {one.name[0] for one in near} == {topic}
        assert {one.name[0] for one in space.nearest(space.labels[node], "metadata:by", 6)} == {topic}
        assert {one.name[0] for one in space.nearest(space.labels[node], "metadata:tags", 3)} == {topic}
    # Documents without a label lie nearest to the label of their topic.
    closest = (found.documents[30:] @ space.labels[NODES].T).argmax(axis=1)
    assert (closest == np.arange(30, 1100) % 3).mean() > 0.98


def test_children_lie_at_their_parents() -> None:
    relations, found = standard()
    labels = found.anchors[: len(TREE)]
    a, b = TREE.find("a"), TREE.find("b")
    for topic, parent, other in (("x", a, b), ("y", a, b), ("z", b, a)):
        child = labels[TREE.find(topic)]
        assert child @ labels[parent] > child @ labels[other] + 0.1
    without = relate(topic_corpus(), TREE, labelled(30), hierarchy=False)
    free = learn(without, samples=600_000).anchors
    start = learn(without, samples=1).anchors
    # Without the hierarchy inner labels take part in nothing: they stay where they were.
    for node in (0, a, b):
        assert free[node] @ start[node] == pytest.approx(1.0, abs=1e-5)
    assert free[NODES[0]] @ start[NODES[0]] < 0.9
    assert relations.n_anchors == without.n_anchors


# -- switches ------------------------------------------------------------------------------------------


def test_without_hierarchy_the_relation_is_absent() -> None:
    relations = relate(topic_corpus(300), TREE, labelled(30), hierarchy=False)
    found = learn(relations, samples=20_000)
    assert set(found.rounds[0].objective) == {"label", "metadata:by", "metadata:tags", "word"}


def test_without_metadata_there_are_no_vectors_for_it() -> None:
    corpus = topic_corpus(300)
    relations = relate(corpus, TREE, labelled(30), metadata=[])
    found = learn(relations, samples=20_000)
    space = space_from(found, relations, corpus, TREE)
    assert set(found.rounds[0].objective) == {"label", "word", "hierarchy"}
    assert space.metadata == {}
    assert space.kinds == ("label", "word")
    assert len(found.anchors) == len(TREE) + len(corpus.words)
    # The same words without the metadata fields give the same space.
    bare = relate(topic_corpus(300, metadata=False), TREE, labelled(30))
    assert len(bare.names) == 2


def test_a_type_left_out_has_no_vectors() -> None:
    corpus = topic_corpus(300)
    relations = relate(corpus, TREE, labelled(30), metadata=["tags"])
    found = learn(relations, samples=20_000)
    space = space_from(found, relations, corpus, TREE)
    assert set(space.metadata) == set(space.values) == {"tags"}
    assert "metadata:by" not in found.rounds[0].objective
    with pytest.raises(
        UsageError, match="no kind 'metadata:by' in the space; it has label, word, metadata:tags"
    ):
        space.nearest(space.labels[1], "metadata:by")


def test_the_names_stand_at_their_vectors() -> None:
    relations, found = standard()
    corpus = topic_corpus()
    space = space_from(found, relations, corpus, TREE)
    starts = relations.anchor_start
    np.testing.assert_array_equal(space.labels, found.anchors[: len(TREE)])
    np.testing.assert_array_equal(space.words, found.anchors[starts["word"] :])
    for kind in ("by", "tags"):
        start = starts[f"metadata:{kind}"]
        vectors = space.metadata[kind]
        np.testing.assert_array_equal(vectors, found.anchors[start : start + len(vectors)])
        assert len(vectors) == len(space.values[kind])
    assert space.dimension == 16


# -- odd corpora ---------------------------------------------------------------------------------------


def from_lists(words: list[list[int]], metadata: list[list[int]] | None = None) -> Corpus:
    """A corpus given by ids."""
    from himecat.input.corpus import MetadataColumn

    def vocabulary(rows: list[list[int]], letter: str) -> Vocabulary:
        count = max((value for row in rows for value in row), default=-1) + 1
        return Vocabulary(tuple(f"{letter}{i}" for i in range(count)), np.ones(count, dtype=np.int64))

    columns = {}
    if metadata is not None:
        columns["by"] = MetadataColumn(vocabulary(metadata, "m"), Ragged.from_lists(metadata))
    ids = [str(row) for row in range(len(words))]
    return Corpus(ids, vocabulary(words, "w"), Ragged.from_lists(words), columns)


FLAT = Taxonomy.from_paths([("p",), ("q",)])


def test_two_documents_are_told_apart() -> None:
    for rows, nodes in (([0], [1]), ([0, 1], [1, 2]), ([], [])):
        corpus = from_lists([[0, 1, 2], [3, 4]])
        supervision = Supervision(np.array(rows, dtype=np.int64), np.array(nodes, dtype=np.int64))
        relations = relate(corpus, FLAT, supervision)
        found = learn(relations, samples=5_000)
        words = found.anchors[relations.anchor_start["word"] :] @ found.documents.T
        assert words.argmax(axis=1).tolist() == [0, 0, 0, 1, 1]
        for row, node in zip(rows, nodes, strict=True):
            assert found.anchors[node] @ found.documents[row] > found.anchors[node] @ found.documents[1 - row]


def test_a_single_labelled_document_teaches_its_label() -> None:
    corpus = topic_corpus(300)
    relations = relate(corpus, TREE, labelled(1))
    found = learn(relations, samples=200_000)
    cosines = found.documents @ found.anchors[NODES[0]]
    assert cosines[0] > np.delete(cosines, 0).mean() + 0.2


def test_a_single_document_is_no_failure() -> None:
    relations = relate(from_lists([[0, 1]]), FLAT, Supervision(np.array([0]), np.array([1])))
    found = learn(relations, samples=100)
    np.testing.assert_allclose(np.linalg.norm(found.documents, axis=1), 1.0, atol=1e-6)


def test_documents_without_words_or_metadata_are_no_failure() -> None:
    words = [[0, 1], [], [2, 3], [], [0, 2], []]
    metadata = [[0], [0], [], [], [1], [1]]
    # The labelled ones have no words at all; one of them has no metadata either.
    supervision = Supervision(np.array([1, 3, 5]), np.array([1, 2, 2]))
    relations = relate(from_lists(words, metadata), FLAT, supervision)
    found = learn(relations, samples=20_000)
    for rows in (found.anchors, found.documents):
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-6)
    assert found.anchors[1] @ found.documents[1] > found.anchors[1] @ found.documents[3]


def test_a_corpus_without_any_word_ends_at_once() -> None:
    relations = relate(from_lists([[], []], [[0], [1]]), FLAT, Supervision(np.array([0]), np.array([1])))
    found = learn(relations, samples=None)
    assert [done.pairs for done in found.rounds] == [0]
    assert found.rounds[0].objective == {}
    assert count_steps(relations, None) == 0


# -- how the work is cut -------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    n_documents=st.integers(2, 40),
    share=st.sampled_from([0.0, 0.05, 0.5, 0.95, 1.0]),
    block_documents=st.integers(2, 20),
    n_shards=st.integers(1, 4),
    seed=st.integers(0, 99),
)
def test_every_document_is_dealt_once_and_none_is_alone(
    n_documents: int, share: float, block_documents: int, n_shards: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    rows = np.flatnonzero(rng.random(n_documents) < share)
    corpus = from_lists([[0]] * n_documents)
    relations = relate(corpus, FLAT, Supervision(rows, np.full(len(rows), 1)))
    shards = _deal(relations, block_documents, n_shards, rng)
    assert len(shards) == n_shards
    blocks = [block for shard in shards for block in shard]
    assert sorted(np.concatenate(blocks).tolist()) == list(range(n_documents))
    assert min(len(block) for block in blocks) >= 2
    if len(rows):
        assert np.isin(rows, shards[0][0]).all()
    # Blocks of unlabelled documents are of about the same size, and every shard has about as many.
    counts = [len(shard) for shard in shards]
    assert max(counts) - min(counts) <= 2


def test_rounds_draw_about_the_samples_asked_for() -> None:
    for supervision in (labelled(30), labelled(3)):
        relations = relate(topic_corpus(), TREE, supervision)
        found = learn(relations, samples=150_000)
        assert sum(done.pairs for done in found.rounds) == pytest.approx(150_000, rel=0.1)
        assert found.rounds[0].pairs == pytest.approx(pairs_per_pass(relations), rel=0.01)


def test_a_tiny_corpus_is_learned_by_default_in_a_moment() -> None:
    relations = relate(from_lists([[0, 1, 2], [3, 4]]), FLAT, Supervision(np.array([0]), np.array([1])))
    told: list[int] = []
    found = learn(relations, samples=None, advance=told.append)
    assert sum(told) == count_steps(relations, None) == 2000 * 5
    assert 20 <= len(found.rounds) <= 100


@settings(max_examples=200, deadline=None, derandomize=True)
@given(n_passes=st.integers(1, 5000), n_words=st.integers(0, 20_000))
def test_passes_over_a_small_corpus_share_a_round(n_passes: int, n_words: int) -> None:
    before = _passes_before(n_passes, n_words)
    per_round = np.diff(before)
    assert (before[0], before[-1]) == (0, n_passes)
    assert per_round.min() >= 1
    assert per_round.max() - per_round.min() <= 1
    # A round is short: it could not lose a pass and still have its 5,000 steps, and there are 20 of them.
    assert per_round.max() == 1 or (per_round.max() - 1) * n_words < 5000
    assert len(per_round) >= min(n_passes, 20)


def test_default_samples_are_bounded() -> None:
    def relations(n_documents: int, n_words: int) -> Relations:
        return relate(from_lists([[0] * n_words] * n_documents), FLAT, labelled(0))

    assert default_samples(relations(10, 10)) == 2000 * 100
    assert default_samples(relations(100, 300)) == 30_000_000
    large = relations(100, 300)
    words = Ragged(np.broadcast_to(np.int32(0), 10**8), np.array([0, 10**8]))
    assert 10**8 <= default_samples(replace(large, pairs=(Ragged.from_lists([[]]), words))) <= 10**9


@pytest.mark.parametrize("threads", [1, 2])
def test_steps_are_told_as_announced(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("himecat.paper.sampled_space._STEPS_PER_CALL", 1000)
    relations = relate(topic_corpus(), TREE, labelled(30))
    told: list[int] = []
    reported: list[Any] = []
    found = learn(relations, advance=told.append, report=reported.append, threads=threads)
    assert sum(told) == count_steps(relations, 100_000)
    assert max(told) <= 1000
    assert reported == found.rounds


def test_the_step_size_falls_to_almost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from himecat.kernels import sampled_space as _kernels

    rates: list[tuple[float, float]] = []
    kernel = _kernels.train_block

    def watched(*arguments: Any) -> None:
        rate, drop, steps = arguments[12:15]
        rates.append((rate, rate - drop * steps))
        kernel(*arguments)

    monkeypatch.setattr(_kernels, "train_block", watched)
    monkeypatch.setattr("himecat.paper.sampled_space._STEPS_PER_CALL", 1000)
    learn(relate(topic_corpus(200), TREE, labelled(30)), samples=30_000, rate=0.03)
    starts, ends = np.array(rates).T
    assert starts[0] == pytest.approx(0.03)
    assert ends[-1] == pytest.approx(0.03 * 1e-4)
    # Every call goes on where the one before ended.
    np.testing.assert_allclose(starts[1:], ends[:-1])


def test_an_interrupt_ends_training_at_once() -> None:
    relations = relate(topic_corpus(), TREE, labelled(30))
    began = time.monotonic()

    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn(relations, samples=None, threads=2, advance=interrupted)
    assert time.monotonic() - began < 10


# -- the space -----------------------------------------------------------------------------------------


def axes_space() -> JointSpace:
    axes = np.eye(4, dtype=np.float32)
    words = Vocabulary(("fox", "car", "red"), np.ones(3, dtype=np.int64))
    authors = Vocabulary(("ann",), np.ones(1, dtype=np.int64))
    return JointSpace(FLAT, axes[:3], axes[:3], axes[:0], {"by": axes[3:]}, words, {"by": authors})


def test_neighbours_of_every_kind_are_named() -> None:
    space = axes_space()
    vector = np.array([0.1, 0.8, 0.5, 0.2])
    assert [one.name for one in space.nearest(vector, "word")] == ["car", "red", "fox"]
    assert space.nearest(vector, "word", 1)[0].cosine == pytest.approx(0.8)
    assert [one.name for one in space.nearest(vector, "label")] == ["p", "q", "ROOT"]
    assert [one.kind for one in space.nearest(vector, "metadata:by")] == ["metadata:by"]
    assert space.kinds == ("label", "word", "metadata:by")
    for kind in ("by", "words", "metadata:tags", ""):
        with pytest.raises(UsageError, match="There is no kind"):
            space.nearest(vector, kind)


def test_a_document_lies_in_the_direction_of_what_it_holds() -> None:
    space = axes_space()
    corpus = read_corpus(
        [{"text": "red red fox", "by": "ann"}, {"text": "car"}, {"text": "new", "by": "bob"}], metadata=["by"]
    )
    found = space.fold_in(corpus.aligned(space.vocabulary, space.values))
    np.testing.assert_allclose(found[0], np.array([1, 0, 2, 1]) / np.sqrt(6), atol=1e-6)
    np.testing.assert_allclose(found[1], [0, 1, 0, 0])
    assert found[2].tolist() == [0.0] * 4
    assert found.dtype == np.float32


def test_a_folded_document_lies_near_its_trained_vector() -> None:
    relations, found = standard()
    corpus = topic_corpus()
    folded = space_from(found, relations, corpus, TREE).fold_in(corpus)
    own = (folded * found.documents).sum(axis=1).mean()
    others = (folded * np.roll(found.documents, 1, axis=0)).sum(axis=1).mean()
    assert own > others + 0.3


# -- corpora as they are -------------------------------------------------------------------------------


def check_rising(corpus: Corpus, tree: Taxonomy, supervision: Supervision) -> None:
    relations = relate(corpus, tree, supervision)
    found = learn(relations, samples=8 * pairs_per_pass(relations))
    table: npt.NDArray[np.float64] = np.array([list(done.objective.values()) for done in found.rounds])
    assert len(table) >= 7
    # Every relation ends above where it began, and their sum rises in (almost) every round.
    assert (table[-1] > table[0]).all()
    total = table.sum(axis=1)
    assert (np.diff(total) > -0.01 * abs(total[0])).all()
    for rows in (found.anchors, found.documents):
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-6)


def test_the_objective_rises_on_the_sample_corpus() -> None:
    documents = sample_documents(400)
    tree = sample_taxonomy()
    shown = sample_split(documents, per_leaf=3)
    corpus = read_corpus(documents, metadata=METADATA, min_count=3)
    nodes = {row: tree.find(path) for row, path in enumerate(shown) if path is not None}
    check_rising(corpus, tree, Supervision(np.array(list(nodes)), np.array(list(nodes.values()))))


@pytest.mark.real
def test_the_objective_rises_on_a_real_corpus(shared_data: Callable[[str], Path]) -> None:
    dataset = open_dataset(shared_data("packages"))
    loaded = load_corpus(dataset.documents, Fields(metadata=dataset.metadata), min_count=5)
    check_rising(loaded.corpus, dataset.taxonomy, draw(dataset, true_nodes(dataset, loaded), 0))

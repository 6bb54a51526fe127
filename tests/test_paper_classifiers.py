"""The flat classifiers, the training sets at the inner nodes, the walk down the tree."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from himecat.classifier.assignments import assign, node_probabilities
from himecat.errors import UsageError
from himecat.input.corpus import Ragged, Supervision
from himecat.input.taxonomy.tree import Taxonomy
from himecat.paper.flat_classifier import FlatClassifier, TrainingSet
from himecat.paper.kimcnn import Batch, KimCNN, KimNetwork, Pass, Weights
from himecat.paper.logistic import MeanLogistic
from himecat.paper.registry import classifier_class, register_classifier
from himecat.paper.synthesis import SyntheticDocuments, synthesize
from himecat.paper.topdown import TopDownWalk, fit_top_down, training_set
from oracles.kimcnn import filters_by_width, plain_copy

few = settings(max_examples=60, deadline=None, derandomize=True)
Float32 = npt.NDArray[np.float32]


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    """As where the package trains; several threads only wait for each other on networks this small."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def unit_rows(n: int, p: int, seed: int = 0) -> Float32:
    rows = np.random.default_rng(seed).standard_normal((n, p))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@st.composite
def trees(draw: st.DrawFn) -> Taxonomy:
    """Ragged trees with one-child nodes, of at least two leaves."""
    parents = [-1, 0, 0]
    for _ in range(draw(st.integers(0, 9))):
        parents.append(draw(st.integers(0, len(parents) - 1)))
    nested: list[dict[str, Any]] = [{} for _ in parents]
    for node, parent in enumerate(parents[1:], start=1):
        nested[parent][f"n{node}"] = nested[node]
    return Taxonomy.from_children(nested[0])


RAGGED = Taxonomy.from_children({"a": {"x": {}, "y": {"deep": {}, "deeper": {}}}, "b": {}, "c": {"only": {}}})


# -- the network ---------------------------------------------------------------------------------------


@few
@given(
    widths=st.lists(st.integers(1, 6), min_size=1, max_size=4, unique=True).map(tuple),
    maps=st.sampled_from([1, 3, 7, 8, 9, 20, 30]),
    dimension=st.sampled_from([1, 5, 8, 11, 40]),
    lengths=st.lists(st.integers(0, 9), min_size=1, max_size=6),
    seed=st.integers(0, 2**16),
)
def test_the_network_is_the_textbook_network(
    widths: tuple[int, ...], maps: int, dimension: int, lengths: list[int], seed: int
) -> None:
    """Outputs and gradients agree, for short documents, single words, no words and filters of width 1 too."""
    rng = np.random.default_rng(seed)
    vectors = unit_rows(7, dimension, seed)
    words = rng.integers(7, size=sum(lengths)).astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    network = KimNetwork(dimension, 3, widths, maps, 6, rng)
    for name in ("bias", "dense_bias", "output_bias"):
        bias = network.weights.arrays[name]
        bias[:] = rng.uniform(-0.3, 0.5, bias.shape)
    plain = plain_copy(network, torch.from_numpy(vectors))
    seen, expected = network.forward(Batch(vectors, words, offsets)), plain(words, offsets)
    np.testing.assert_allclose(seen.scores, expected.detach().numpy(), atol=1e-5, rtol=1e-5)

    slope = rng.standard_normal(seen.scores.shape).astype(np.float32)
    gradient = Weights(*network.weights.sizes)
    network.backward(seen, slope, gradient)
    (expected * torch.from_numpy(slope)).sum().backward()

    def compare(found: Float32 | torch.Tensor, wanted: torch.Tensor | None) -> None:
        assert wanted is not None
        np.testing.assert_allclose(np.asarray(found), wanted.numpy(), atol=2e-5, rtol=1e-4)

    by_width = filters_by_width(torch.from_numpy(gradient.filters), widths, maps)
    for position, convolution in enumerate(plain.convolutions):
        compare(by_width[sorted(widths)[position]], convolution.weight.grad)  # type: ignore[arg-type]
        compare(gradient.bias[position * maps : (position + 1) * maps], convolution.bias.grad)  # type: ignore[arg-type]
    compare(gradient.dense.T, plain.dense.weight.grad)
    compare(gradient.dense_bias, plain.dense.bias.grad)
    compare(gradient.output.T, plain.output.weight.grad)
    compare(gradient.output_bias, plain.output.bias.grad)
    assert plain.embedding.weight.grad is None


def test_padding_never_wins_the_maximum() -> None:
    """Every response of the words is negative; the padding of the shorter document would give 0."""
    network = KimNetwork(2, 2, (2,), 1, 3, np.random.default_rng(0))
    network.weights.filters[:] = -1.0
    network.weights.bias[:] = 10.0
    documents = Ragged.from_lists([[0, 0], [0, 0, 0, 0, 0]])
    found = network.forward(Batch(np.ones((1, 2), np.float32), documents.values, documents.offsets)).scores
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)
    plain = plain_copy(network, torch.ones((1, 2)))
    np.testing.assert_allclose(
        plain(documents.values, documents.offsets).detach().numpy(), found, rtol=1e-5, atol=1e-6
    )


def test_filters_start_as_wide_as_their_own_fan_allows() -> None:
    widths, maps, p = (2, 5), 8, 30
    network = KimNetwork(p, 2, widths, maps, 4, np.random.default_rng(0))
    for width, weight in filters_by_width(torch.from_numpy(network.weights.filters), widths, maps).items():
        limit = math.sqrt(6 / (width * p + width * maps))
        assert 0.9 * limit < float(weight.abs().max()) <= limit


# -- Kim-CNN as a flat classifier ----------------------------------------------------------------------


def two_topics(n: int = 40) -> tuple[TrainingSet, Float32]:
    """Documents of two topics over ten words, five words each."""
    rng = np.random.default_rng(5)
    lists = [(rng.integers(5, size=6) + 5 * (row % 2)).tolist() for row in range(n)]
    return TrainingSet(Ragged.from_lists(lists), np.arange(n) % 2, 2), unit_rows(10, 8)


@pytest.fixture(params=["kim-cnn", "mean-logistic"])
def flat(request: pytest.FixtureRequest) -> FlatClassifier:
    """Every classifier that comes with the package, untrained."""
    if request.param == "kim-cnn":
        return KimCNN(epochs=25, batch_size=8, maps=5)
    return MeanLogistic()


def test_a_flat_classifier_learns(flat: FlatClassifier) -> None:
    training, words = two_topics()
    assert isinstance(flat, FlatClassifier)
    passes: list[int] = []
    flat.fit(training, words, seed=1, advance=passes.append)
    found = flat.predict_proba(training.documents, words)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-6)
    assert (found.argmax(axis=1) == training.targets).all()
    assert sum(passes) == getattr(flat, "epochs", 1)


def test_a_document_without_words_gets_equal_probabilities(flat: FlatClassifier) -> None:
    training, words = two_topics()
    flat.fit(training, words, seed=1)
    found = flat.predict_proba(Ragged.from_lists([[], [0], []]), words)
    assert found[[0, 2]].tolist() == [[0.5, 0.5]] * 2
    assert found[1, 0] != 0.5
    assert flat.predict_proba(Ragged.from_lists([]), words).shape == (0, 2)
    assert flat.predict_proba(Ragged.from_lists([[]]), words).tolist() == [[0.5, 0.5]]


def test_a_flat_classifier_survives_its_state(flat: FlatClassifier) -> None:
    training, words = two_topics()
    flat.fit(training, words, seed=1)
    parameters, arrays = flat.state()
    again = classifier_class(flat.name).from_state(parameters, arrays)
    assert (
        again.predict_proba(training.documents, words).tobytes()
        == flat.predict_proba(training.documents, words).tobytes()
    )
    assert again.state()[0] == parameters


def test_a_child_without_documents_is_not_chosen(flat: FlatClassifier) -> None:
    training, words = two_topics()
    wider = TrainingSet(training.documents, training.targets * 2, 3)
    flat.fit(wider, words, seed=1)
    found = flat.predict_proba(training.documents, words)
    assert found.shape == (len(training), 3)
    assert (found.argmax(axis=1) == wider.targets).all()


@pytest.mark.parametrize("targets", [[], [1, 1]])
def test_one_class_or_none_to_learn_from_is_no_failure(flat: FlatClassifier, targets: list[int]) -> None:
    """With beta = 0 and leaves without labelled documents there may be nothing to tell apart."""
    words = unit_rows(4, 8)
    documents = Ragged.from_lists([[0, 1], [2]][: len(targets)])
    flat.fit(TrainingSet(documents, np.array(targets, dtype=np.int64), 3), words, seed=0)
    found = flat.predict_proba(Ragged.from_lists([[0], [3, 3]]), words)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-6)
    if targets:
        assert found.argmax(axis=1).tolist() == [1, 1]


def test_the_seed_decides_the_network() -> None:
    training, words = two_topics()
    states = []
    for seed in (1, 1, 2):
        cnn = KimCNN(epochs=2, maps=3)
        cnn.fit(training, words, seed=seed)
        states.append(b"".join(array.tobytes() for array in cnn.state()[1].values()))
    assert states[0] == states[1]
    assert states[0] != states[2]


def test_a_small_training_set_is_passed_over_more_often(monkeypatch: pytest.MonkeyPatch) -> None:
    training, words = two_topics()
    batches: list[int] = []
    forward = KimNetwork.forward

    def counted(network: KimNetwork, batch: Batch) -> Pass:
        batches.append(len(batch.offsets) - 1)
        return forward(network, batch)

    monkeypatch.setattr(KimNetwork, "forward", counted)
    # 40 documents are 3 batches: 4 passes are 12 steps, and 14 steps are 5 whole passes.
    for min_steps, steps in ((0, 12), (12, 12), (14, 15), (100, 102)):
        batches.clear()
        told: list[int] = []
        cnn = KimCNN(epochs=4, batch_size=16, maps=2, min_steps=min_steps)
        cnn.fit(training, words, seed=0, advance=told.append)
        assert len(batches) == steps
        assert sum(batches) == steps / 3 * 40
        assert sum(told) == 4
    # Of 2 classes with 24 documents each an epoch has 3 steps, of 1 and 40 it has 1 and 5, whatever there is.
    for documents, min_steps, steps in ((24, 0, 12), (1, 0, 4), (40, 0, 20), (1, 7, 7)):
        batches.clear()
        told.clear()
        cnn = KimCNN(epochs=4, batch_size=16, maps=2, min_steps=min_steps, epoch_documents=documents)
        cnn.fit(training, words, seed=0, advance=told.append)
        assert len(batches) == steps
        assert sum(told) == 4


def test_training_of_the_network_leaves_the_global_randomness_alone() -> None:
    training, words = two_topics(8)
    torch.manual_seed(3)
    np.random.seed(3)  # noqa: NPY002
    expected = torch.rand(1), np.random.rand()  # noqa: NPY002
    torch.manual_seed(3)
    np.random.seed(3)  # noqa: NPY002
    KimCNN(epochs=1, maps=3).fit(training, words, seed=0)
    assert (torch.rand(1), np.random.rand()) == expected  # noqa: NPY002


def test_the_network_learns_the_order_of_words() -> None:
    """What the mean of word vectors cannot tell apart."""
    lists = [[0, 1, 0, 1], [1, 1, 0, 0]] * 20
    training, words = TrainingSet(Ragged.from_lists(lists), np.array([0, 1] * 20), 2), unit_rows(2, 8)
    cnn = KimCNN(epochs=60, batch_size=8)
    cnn.fit(training, words, seed=0)
    assert (cnn.predict_proba(training.documents, words).argmax(axis=1) == training.targets).all()
    mean = MeanLogistic()
    mean.fit(training, words, seed=0)
    assert mean.predict_proba(training.documents, words)[0] == pytest.approx([0.5, 0.5], abs=1e-3)


def test_many_documents_are_scored_as_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    training, words = two_topics()
    cnn = KimCNN(epochs=3, maps=3)
    cnn.fit(training, words, seed=0)
    whole = cnn.predict_proba(training.documents, words)
    monkeypatch.setattr("himecat.paper.kimcnn._PREDICT_BATCH", 7)
    np.testing.assert_allclose(cnn.predict_proba(training.documents, words), whole, atol=1e-6)


def test_training_takes_the_steps_of_the_textbook() -> None:
    """Stochastic gradient descent with momentum on the mean cross-entropy, as PyTorch has it."""
    training, words = two_topics()
    cnn = KimCNN(epochs=3, batch_size=16, maps=9)
    cnn.fit(training, words, seed=4)
    rng = np.random.default_rng(4)
    plain = plain_copy(KimNetwork(8, 2, cnn.widths, 9, cnn.hidden, rng), torch.from_numpy(words))
    learned = [weight for weight in plain.parameters() if weight.requires_grad]
    optimiser = torch.optim.SGD(learned, lr=cnn.rate, momentum=cnn.momentum)
    for _ in range(cnn.epochs):
        order = rng.permutation(len(training))
        for start in range(0, len(order), cnn.batch_size):
            chosen = order[start : start + cnn.batch_size]
            batch = training.documents.take(chosen)
            optimiser.zero_grad()
            scores = plain(batch.values, batch.offsets)
            torch.nn.functional.cross_entropy(scores, torch.from_numpy(training.targets[chosen])).backward()
            optimiser.step()
    assert cnn.network is not None
    wanted = plain_copy(cnn.network, torch.from_numpy(words))
    for found, expected in zip(plain.parameters(), wanted.parameters(), strict=True):
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


def test_an_unknown_word_is_an_error_and_not_a_crash() -> None:
    training, words = two_topics()
    cnn = KimCNN(epochs=1, maps=3)
    cnn.fit(training, words, seed=0)
    for unknown in (-1, len(words)):
        with pytest.raises(UsageError, match="word ids outside 0 to 9"):
            cnn.predict_proba(Ragged.from_lists([[0], [unknown]]), words)


def test_weights_of_another_shape_are_refused() -> None:
    training, words = two_topics()
    cnn = KimCNN(epochs=1, maps=3)
    cnn.fit(training, words, seed=0)
    settings, arrays = cnn.state()
    with pytest.raises(ValueError, match=r"'bias' should have the shape \(12,\), not \(1,\)"):
        KimCNN.from_state(settings, {**arrays, "bias": arrays["bias"][:1]})


# -- what is trained on --------------------------------------------------------------------------------


@st.composite
def labelled_trees(draw: st.DrawFn) -> tuple[Taxonomy, Supervision, Ragged]:
    """A tree and documents labelled at random nodes, inner ones included; each has a word of its own."""
    tree = draw(trees())
    nodes = draw(st.lists(st.integers(1, len(tree) - 1), min_size=1, max_size=20))
    lengths = draw(st.lists(st.integers(0, 3), min_size=len(nodes), max_size=len(nodes)))
    real = Ragged.from_lists([[row] * length for row, length in enumerate(lengths)])
    return tree, Supervision(np.arange(len(nodes)) * 3, np.array(nodes)), real


@few
@given(
    drawn=labelled_trees(),
    beta=st.sampled_from([0, 1, 2, 7, 20]),
    real_share=st.sampled_from([0.0, 0.2, 1.0, 3.0]),
)
def test_every_labelled_document_keeps_its_label(
    drawn: tuple[Taxonomy, Supervision, Ragged], beta: int, real_share: float
) -> None:
    tree, supervision, real = drawn
    n_real = len(supervision)
    space = unit_rows(len(tree) + 30, 6)
    # The words of synthetic documents are numbered behind those that tell the real ones apart.
    made = synthesize(tree, space[: len(tree)], space[len(tree) :], beta=beta, length=2, neighbours=5)
    made = SyntheticDocuments(
        Ragged(made.documents.values + np.int32(n_real), made.documents.offsets), made.members
    )
    for node in tree.inner:
        mixed = training_set(tree, node, real, supervision, made, real_share)
        children = tree.children[node]
        assert mixed.n_classes == len(children)
        assert len(mixed.documents) == len(mixed.targets)
        counts = np.zeros(n_real, dtype=int)
        synthetic_counts = np.zeros(len(children), dtype=int)
        for row in range(len(mixed)):
            document = mixed.documents[row]
            if document[0] >= n_real:
                synthetic_counts[mixed.targets[row]] += 1
                continue
            labelled = int(document[0])
            counts[labelled] += 1
            assert document.tolist() == real[labelled].tolist()
            # The child it counts for is on the way from the root to its label.
            assert children[mixed.targets[row]] in tree.lineages[supervision.nodes[labelled]]
        assert synthetic_counts.tolist() == [beta] * len(children)
        belongs = [
            any(child in tree.lineages[label] for child in children) and bool(real.lengths[row])
            for row, label in enumerate(supervision.nodes)
        ]
        assert (counts[belongs] > 0).all()
        assert not counts[np.logical_not(belongs)].any()
        if any(belongs):
            # All are repeated equally often: as often as the share asks for, and not once more.
            (repeats,) = set(counts[belongs].tolist())
            wanted = real_share * beta * len(children)
            assert repeats == 1 or (repeats - 1) * sum(belongs) < wanted
            assert repeats * sum(belongs) >= wanted - 1e-9


def test_without_any_document_the_training_set_is_empty() -> None:
    made = synthesize(RAGGED, unit_rows(len(RAGGED), 4), unit_rows(5, 4), beta=0)
    labelled = Supervision(np.array([0]), np.array([RAGGED.find("b")]))
    mixed = training_set(RAGGED, RAGGED.find("a"), Ragged.from_lists([[1]]), labelled, made, 0.2)
    assert (len(mixed), mixed.n_classes) == (0, 2)


# -- the walk ------------------------------------------------------------------------------------------


class Fixed:
    """A flat classifier that gives the same probabilities to every document."""

    name = "fixed"

    def __init__(self, probabilities: list[float] | None = None) -> None:
        self.probabilities = np.array(probabilities or [], dtype=np.float32)
        self.seed = -1
        self.n_documents = -1

    def fit(
        self,
        training: TrainingSet,
        words: Float32,
        *,
        seed: int,
        advance: Callable[[int], None] | None = None,
    ) -> None:
        self.seed, self.n_documents = seed, len(training)
        self.probabilities = np.full(training.n_classes, 1 / training.n_classes, dtype=np.float32)

    def predict_proba(self, documents: Ragged, words: Float32) -> Float32:
        return np.tile(self.probabilities, (len(documents), 1))

    def state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        return {}, {"probabilities": self.probabilities}

    @classmethod
    def from_state(cls, settings: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> Fixed:
        return cls(arrays["probabilities"].tolist())


def test_probabilities_multiply_down_a_ragged_tree() -> None:
    walk = TopDownWalk(
        RAGGED,
        {
            0: Fixed([0.5, 0.2, 0.3]),
            RAGGED.find("a"): Fixed([0.4, 0.6]),
            RAGGED.find("y"): Fixed([0.25, 0.75]),
        },
    )
    found = walk.leaf_probabilities(Ragged.from_lists([[0]] * 3), unit_rows(1, 2))
    expected = {"b": 0.2, "a/x": 0.2, "c/only": 0.3, "a/y/deep": 0.075, "a/y/deeper": 0.225}
    assert [RAGGED.title(leaf) for leaf in RAGGED.leaves] == list(expected)
    np.testing.assert_allclose(found, [list(expected.values())] * 3, atol=1e-7)


def test_batches_and_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = Taxonomy.from_paths([("p",), ("q",)])
    training, words = two_topics()
    cnn = KimCNN(epochs=3, maps=3)
    cnn.fit(training, words, seed=0)
    walk = TopDownWalk(tree, {0: cnn})
    whole = walk.leaf_probabilities(training.documents, words)
    monkeypatch.setattr("himecat.paper.topdown._BATCH", 7)
    told: list[int] = []
    one = walk.leaf_probabilities(training.documents, words, threads=1, advance=told.append)
    two = walk.leaf_probabilities(training.documents, words, threads=2)
    assert one.tobytes() == two.tobytes()
    assert sum(told) == len(training)
    np.testing.assert_allclose(one, whole, atol=1e-6)
    assert walk.leaf_probabilities(Ragged.from_lists([]), words).shape == (0, 2)


def test_a_classifier_that_answers_in_the_wrong_shape_is_named() -> None:
    walk = TopDownWalk(RAGGED, {0: Fixed([0.5, 0.5])})
    with pytest.raises(
        UsageError, match=r"'fixed' at 'ROOT' gave an array of shape \(1, 2\) for .* 3 children"
    ):
        walk.leaf_probabilities(Ragged.from_lists([[0]]), unit_rows(1, 2))


def test_nodes_with_a_choice_get_a_classifier_and_a_seed_of_their_own() -> None:
    labels, words = unit_rows(len(RAGGED), 4), unit_rows(6, 4)
    made = synthesize(RAGGED, labels, words, beta=4, length=3)
    supervision = Supervision(np.array([0, 1]), np.array([RAGGED.find("b"), RAGGED.find("deep")]))
    real = Ragged.from_lists([[0], [1]])

    def fitted(seed: int, threads: int) -> dict[int, Fixed]:
        walk = fit_top_down(RAGGED, real, supervision, made, words, Fixed, seed=seed, threads=threads)
        return {node: flat for node, flat in walk.classifiers.items() if isinstance(flat, Fixed)}

    one, two, other = fitted(3, 1), fitted(3, 2), fitted(4, 1)
    assert set(one) == {0, RAGGED.find("a"), RAGGED.find("y")}
    assert {node: flat.seed for node, flat in one.items()} == {node: flat.seed for node, flat in two.items()}
    assert len({flat.seed for flat in (*one.values(), *other.values())}) == 6
    # At the root three children with four synthetic documents each and two real ones, repeated to a fifth.
    assert one[0].n_documents == 12 + 2 * 2


# -- assignments ---------------------------------------------------------------------------------------


@few
@given(tree=trees(), seed=st.integers(0, 2**16), min_confidence=st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0]))
def test_paths_and_confidences_agree_with_the_leaf_probabilities(
    tree: Taxonomy, seed: int, min_confidence: float
) -> None:
    rng = np.random.default_rng(seed)
    leaves = rng.dirichlet(np.full(tree.n_leaves, 0.4), size=5).astype(np.float32)
    nodes = node_probabilities(tree, leaves)
    np.testing.assert_allclose(nodes[:, 0], 1.0, atol=1e-6)
    for node in tree.inner:
        np.testing.assert_allclose(nodes[:, list(tree.children[node])].sum(axis=1), nodes[:, node], atol=1e-6)
    placed = assign(tree, leaves, min_confidence)
    assert len(placed) == 5
    for row in range(5):
        best = tree.leaves[int(leaves[row].argmax())]
        end = int(placed.nodes[row])
        depth = tree.depths[end]
        assert placed.path(row) == tree.path(end)
        np.testing.assert_array_equal(placed.confidence[row, :depth], nodes[row, list(tree.lineages[end])])
        assert np.isnan(placed.confidence[row, depth:]).all()
        # It goes as deep as the confidence allows, and to the most probable node there.
        sure = [node for node in range(1, len(tree)) if nodes[row, node] >= np.float32(min_confidence)]
        if best in sure:
            assert end == best
        elif sure:
            deepest = max(tree.depths[node] for node in sure)
            assert depth == deepest
            assert nodes[row, end] == max(nodes[row, node] for node in sure if tree.depths[node] == deepest)
        else:
            assert end == 0
        assert placed.reached_leaf[row] == tree.is_leaf(end)
        assert len(placed.confidences(row)) == depth
    assert list(placed) == [placed.path(row) for row in range(5)]


def test_confidence_cuts_the_path() -> None:
    leaves = np.array([[0.1, 0.05, 0.05, 0.3, 0.5]], dtype=np.float32)
    full = assign(RAGGED, leaves)
    assert full.path(0) == ("a", "y", "deeper")
    assert full.confidences(0) == (0.85, 0.8, 0.5)
    assert full.reached_leaf.tolist() == [True]
    for limit, path in [(0.5, ("a", "y", "deeper")), (0.6, ("a", "y")), (0.85, ("a",)), (0.9, ())]:
        cut = assign(RAGGED, leaves, min_confidence=limit)
        assert cut.path(0) == path
        assert cut.confidences(0) == (0.85, 0.8, 0.5)[: len(path)]
        assert cut.reached_leaf.tolist() == [len(path) == 3]
    assert assign(RAGGED, leaves, min_confidence=0.9).nodes.tolist() == [0]


def test_no_documents_are_no_assignments() -> None:
    placed = assign(RAGGED, np.zeros((0, RAGGED.n_leaves), dtype=np.float32), 0.5)
    assert (len(placed), list(placed), placed.reached_leaf.tolist()) == (0, [], [])


# -- by name -------------------------------------------------------------------------------------------


def test_classifiers_are_known_by_name() -> None:
    assert classifier_class("kim-cnn") is KimCNN
    assert classifier_class("mean-logistic") is MeanLogistic
    with pytest.raises(UsageError, match=r"no classifier 'forest'; known are .*kim-cnn, mean-logistic"):
        classifier_class("forest")


def test_a_classifier_can_be_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("himecat.paper.registry._registered", {})
    assert register_classifier(Fixed) is Fixed
    assert classifier_class("fixed") is Fixed
    again = classifier_class("fixed").from_state({}, {"probabilities": np.array([0.5, 0.5])})
    assert isinstance(again, Fixed)

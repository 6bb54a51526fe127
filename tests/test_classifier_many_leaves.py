"""Trees with very many leaves: what is held out, what stands together, and that placing still works."""

from __future__ import annotations

import numpy as np
import pytest

from himecat import HiMeCat
from himecat.classifier.cross_validation import plan_folds
from himecat.classifier.scorer import leaf_groups
from himecat.input.corpus import Supervision
from himecat.input.taxonomy.tree import Taxonomy
from himecat.methods import Default


def tree(*widths: int) -> Taxonomy:
    """All leaves equally deep, and all nodes of a level equally wide."""
    paths: list[tuple[str, ...]] = [()]
    for width in widths:
        paths = [(*path, f"{path[-1] if path else 'n'}.{child}") for path in paths for child in range(width)]
    return Taxonomy.from_paths(paths)


@pytest.mark.parametrize(
    ("widths", "count"), [((20, 20), 20), ((8, 8, 8), 50), ((40, 10), 40), ((4, 100), 4)]
)
def test_groups_are_every_leaf_once_and_below_one_node(widths: tuple[int, ...], count: int) -> None:
    given = tree(*widths)
    groups = leaf_groups(given)
    assert len(groups) == count
    assert sorted(np.concatenate(groups).tolist()) == list(range(given.n_leaves))
    for group in groups:
        lineages = [given.lineages[given.leaves[leaf]] for leaf in group]
        shared = set(lineages[0]).intersection(*lineages)
        assert any(len(given.leaves_under(node)) == len(group) for node in shared)


@pytest.mark.parametrize("widths", [(10, 10), (400,), (2, 200), (300, 1)])
def test_few_leaves_and_flat_trees_have_no_groups(widths: tuple[int, ...]) -> None:
    assert leaf_groups(tree(*widths)) == ()


def test_an_uneven_tree_is_cut_where_it_is_wide() -> None:
    paths = [("small", f"s{number}") for number in range(3)]
    paths += [("large", f"l{part}", f"l{part}.{number}") for part in range(20) for number in range(20)]
    groups = leaf_groups(Taxonomy.from_paths(paths))
    assert sorted(len(group) for group in groups) == [3, *[20] * 20]


def test_enough_held_out_documents_are_enough() -> None:
    few, many = tree(4, 5), tree(20, 20)
    for given, fold_sizes in ((few, [20] * 5), (many, [667])):
        supervision = Supervision(np.arange(5 * given.n_leaves), np.repeat(np.array(given.leaves), 5))
        found = plan_folds(given, supervision, 10_000, Default()).folds
        assert len(found) == len(fold_sizes)
        assert sum(map(len, found)) == pytest.approx(sum(fold_sizes), rel=0.1)


def test_the_prior_needs_a_few_documents_per_leaf() -> None:
    given = tree(4, 5)
    supervision = Supervision(np.arange(40), np.repeat(np.array(given.leaves), 2))

    def estimated(n_unlabelled: int, method: Default) -> bool:
        return plan_folds(given, supervision, 40 + n_unlabelled, method).estimates_prior

    assert [estimated(n, Default()) for n in (0, 99, 100)] == [False, False, True]
    assert not estimated(1000, Default(learn_prior=False))
    assert not estimated(1000, Default(calibrate=False))


def test_documents_of_very_many_categories_find_their_place() -> None:
    rng = np.random.default_rng(0)
    widths = (15, 15)
    paths = [(f"a{top}", f"a{top}b{leaf}") for top in range(widths[0]) for leaf in range(widths[1])]
    documents, truth = [], []
    for number in range(4 * len(paths)):
        top, leaf = divmod(number % len(paths), widths[1])
        words = [f"top{top}w{w}" for w in rng.integers(6, size=6)]
        words += [f"leaf{top}x{leaf}w{w}" for w in rng.integers(4, size=3)]
        words += [f"noise{w}" for w in rng.integers(300, size=8)]
        documents.append({"id": str(number), "text": " ".join(words)})
        truth.append(paths[number % len(paths)])
        if number < 2 * len(paths):
            documents[-1]["labels"] = list(truth[-1])  # type: ignore[assignment]
    model = HiMeCat(taxonomy=Taxonomy.from_paths(paths), method=Default(min_count=1))
    model.fit(documents)
    placed = model.predict(documents[2 * len(paths) :])
    right = np.mean([path == wanted for path, wanted in zip(placed, truth[2 * len(paths) :], strict=True)])
    assert right > 0.8

"""Parts of terminals: leaves that are alike stand together, and probabilities add up."""

from __future__ import annotations

import numpy as np

from himecat import Supervision, Taxonomy
from himecat.classifier.parts import group_leaves, parted
from himecat.classifier.stages import cut

PATHS = [(a, f"{a}{number}") for a in "ab" for number in range(8)] + [("c",)]
TREE = Taxonomy.from_paths(PATHS)
FIRST = cut(TREE, most=5, few=8)[0]


def known() -> np.ndarray:
    """Even and odd leaves of a category have nothing in common."""
    found = np.zeros((TREE.n_leaves, 5), dtype=np.float32)
    for position, leaf in enumerate(TREE.leaves):
        path = TREE.path(leaf)
        axis = 4 if len(path) == 1 else "ab".index(path[0]) * 2 + int(path[1][1:]) % 2
        found[position, axis] = 1.0
    return found


def test_leaves_that_are_alike_are_one_part() -> None:
    found = group_leaves(TREE, FIRST, known(), most=5)
    ends = [TREE.names[node] for node in FIRST.terminals]
    assert dict(zip(ends, found.counts.tolist(), strict=True)) == {"a": 2, "b": 2, "c": 0}
    for name in "ab":
        nodes = {
            number: found.leaf_nodes[TREE.leaf_position[TREE.find(f"{name}{number}")]] for number in range(8)
        }
        assert len({nodes[number] for number in (0, 2, 4, 6)}) == 1
        assert len(set(nodes.values())) == 2
    assert (found.leaf_nodes >= 0).all()
    assert found.sums(np.ones(TREE.n_leaves, dtype=np.float32)).tolist() == [1, 4, 4, 4, 4]


def test_labels_of_leaves_are_labels_of_parts() -> None:
    found = group_leaves(TREE, FIRST, known(), most=5)
    labels = Supervision(np.array([1, 3, 4]), np.array([TREE.find(name) for name in ("a1", "b", "c")]))
    own = found.supervision(TREE, FIRST, labels, np.arange(9))
    paths = [found.parted.tree.path(node) for node in own.nodes.tolist()]
    assert [path[0] for path in paths] == ["a", "b", "c"]
    # Of a label of the category itself no part is known.
    assert [len(path) for path in paths] == [2, 1, 1]


def test_without_room_nothing_is_divided() -> None:
    found = group_leaves(TREE, FIRST, known(), most=3)
    assert not found.counts.any()
    assert found.parted.tree == FIRST.tree
    some = np.array([[0.2, 0.3, 0.5]], dtype=np.float32)
    assert found.parted.summed(some) is some


def test_probabilities_add_up_at_terminals_of_any_depth() -> None:
    tree = Taxonomy.from_paths([("a",), ("b", "x"), ("b", "y")])
    found = parted(tree, [3, 0, 2])
    rng = np.random.default_rng(0)
    some = rng.dirichlet([1.0] * found.tree.n_leaves, 4).astype(np.float32)
    summed = found.summed(some)
    for column, terminal in enumerate(tree.leaves):
        under = found.tree.positions_under(int(found.nodes[terminal]))
        np.testing.assert_allclose(summed[:, column], some[:, under].sum(axis=1), rtol=1e-5)
    assert [found.tree.names[node] for node in found.nodes] == list(tree.names)

"""Documents and labels in two dimensions."""

from __future__ import annotations

import json
import re
import time

import numpy as np
import pytest

from himecat import Taxonomy
from himecat.teaching.map import arrange
from himecat.teaching.map_page import map_page
from himecat.views.map2d import place_nodes
from himecat.views.matrices import unit

RNG = np.random.default_rng(3)


def a_tree(n_top: int, n_below: int) -> Taxonomy:
    return Taxonomy.from_paths([(f"t{a}", f"t{a}.{b}") for a in range(n_top) for b in range(n_below)])


@pytest.mark.parametrize(("n_top", "n_below"), [(2, 2), (5, 12), (40, 3), (1, 700)])
def test_discs_lie_within_their_parents_and_beside_their_siblings(n_top: int, n_below: int) -> None:
    tree = a_tree(n_top, n_below)
    labels = unit(RNG.normal(size=(len(tree), 20))).astype(np.float32)
    points, radii = place_nodes(tree, labels, RNG.integers(0, 50, len(tree)))
    for node in range(1, len(tree)):
        parent = tree.parents[node]
        assert np.hypot(*(points[node] - points[parent])) + radii[node] <= radii[parent] * 1.001
    for node in tree.inner:
        children = list(tree.children[node])
        apart = np.linalg.norm(points[children][:, None] - points[children][None], axis=2)
        needed = radii[children][:, None] + radii[children][None]
        np.fill_diagonal(needed, 0)
        assert (apart >= 0.97 * needed).all()


def test_siblings_that_are_alike_lie_side_by_side() -> None:
    tree = Taxonomy.from_paths([(name,) for name in "abcdef"])
    labels = np.zeros((7, 3), dtype=np.float32)
    labels[1:3], labels[3:5], labels[5:7] = [1, 0.1, 0], [0.1, 1, 0], [0, 0.1, 1]
    labels[[2, 4, 6]] += 0.05
    points, radii = place_nodes(tree, unit(labels), np.ones(7))
    for one in (1, 3, 5):
        assert np.hypot(*(points[one] - points[one + 1])) < 1.1 * (radii[one] + radii[one + 1])


def test_150_000_documents_take_seconds() -> None:
    tree = a_tree(10, 17)
    leaves = np.array(tree.leaves)
    n = 150_000
    best = leaves[RNG.integers(len(leaves), size=(n, 4))]
    sure = np.sort(RNG.random((n, 4)).astype(np.float32), axis=1)[:, ::-1] / 4
    labels = unit(RNG.normal(size=(len(tree), 50))).astype(np.float32)
    vectors = RNG.normal(size=(n, 24)).astype(np.float32)
    started = time.process_time()
    found = arrange(tree, labels, best, sure, vectors)
    assert time.process_time() - started < 12
    assert np.isfinite(found.points).all()
    assert np.abs(found.points).max() < 1.5


def test_texts_cannot_leave_their_place_in_the_page() -> None:
    tree = Taxonomy.from_paths([("</script><b>",), ("$title",)])
    sure = np.ones((2, 1), np.float32)
    page = map_page(
        arrange(
            tree, np.eye(3, dtype=np.float32), np.array([[1], [2]]), sure, sure,
            ids=["</script>", "\ud800"], texts=["<!--", "$data"],
        ),
        "<i>",
    )  # fmt: skip
    assert page.encode()
    assert page.count("</script>") == 2
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])  # type: ignore[index]
    assert data["texts"] == ["<!--", "$data"]
    assert data["nodes"][1]["path"] == ["</script><b>"]
    assert "<i>" not in page

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from himecat.errors import DataError
from himecat.input.taxonomy.tree import Taxonomy

NAMES = st.sampled_from(["a", "b", "c", "d", "e/f", "g h"])
PATHS = st.lists(st.lists(NAMES, min_size=1, max_size=5).map(tuple), min_size=1, max_size=30)


@pytest.fixture
def ragged() -> Taxonomy:
    return Taxonomy.from_paths(
        [
            ("science", "physics", "optics"),
            ("science", "biology"),
            ("arts", "music", "jazz", "bebop"),
            ("news",),
        ]
    )


def test_nodes_are_numbered_level_by_level(ragged: Taxonomy) -> None:
    assert ragged.names == (
        *("ROOT", "science", "arts", "news"),
        *("physics", "biology", "music"),
        *("optics", "jazz", "bebop"),
    )
    assert ragged.depths == (0, 1, 1, 1, 2, 2, 2, 3, 3, 4)
    assert ragged.depth == 4


def test_leaves_of_uneven_depth_and_single_children(ragged: Taxonomy) -> None:
    assert [ragged.title(leaf) for leaf in ragged.leaves] == [
        *("news", "science/biology", "science/physics/optics", "arts/music/jazz/bebop"),
    ]
    assert [ragged.names[node] for node in ragged.inner] == [
        *("ROOT", "science", "arts", "physics", "music", "jazz"),
    ]


def test_the_root_is_neither_leaf_nor_name_to_find(ragged: Taxonomy) -> None:
    assert not ragged.is_leaf(0)
    assert ragged.path(0) == ()
    assert ragged.title(0) == "ROOT"
    assert "ROOT" not in ragged.nodes_by_name
    assert not Taxonomy(["ROOT"], [-1]).leaves


def test_the_same_name_at_two_places_makes_two_nodes() -> None:
    tree = Taxonomy.from_paths([("a", "other"), ("b", "other")])
    assert [tree.title(node) for node in tree.nodes_by_name["other"]] == ["a/other", "b/other"]


def test_walk_follows_a_path_and_stops_where_it_leaves_the_tree(ragged: Taxonomy) -> None:
    assert ragged.walk([]) == 0
    optics = ragged.walk(["science", "physics", "optics"])
    assert optics is not None
    assert ragged.path(optics) == ("science", "physics", "optics")
    assert ragged.walk(["physics", "optics"]) is None
    assert ragged.walk(["news", "optics"]) is None


def test_leaf_membership_covers_every_level(ragged: Taxonomy) -> None:
    counts = dict(zip(ragged.names, ragged.leaf_membership.sum(axis=1).tolist(), strict=True))
    assert counts["ROOT"] == 4
    assert counts["science"] == 2
    assert counts["jazz"] == counts["bebop"] == counts["news"] == 1
    assert ragged.leaf_position[list(ragged.leaves)].tolist() == [0, 1, 2, 3]
    assert ragged.leaf_position[0] == -1


@pytest.mark.parametrize(
    ("names", "parents", "said"),
    [
        ([], [], "at least the root"),
        (["r", "a"], [-1], "one parent per node"),
        (["r", "a"], [0, 0], "must be its root"),
        (["r", "a", "b"], [-1, 2, 0], "comes before its parent"),
        (["r", "a", "b", "c"], [-1, 0, 1, 0], "not in top-down order"),
        (["r", "a", "a"], [-1, 0, 0], "two children named 'a'"),
    ],
)
def test_what_is_no_tree_is_refused(names: list[str], parents: list[int], said: str) -> None:
    with pytest.raises(DataError, match=said):
        Taxonomy(names, parents)


def test_equal_trees_are_equal_and_hash_alike(ragged: Taxonomy) -> None:
    twin = Taxonomy(list(ragged.names), list(ragged.parents))
    assert twin == ragged
    assert hash(twin) == hash(ragged)
    assert twin != Taxonomy.from_paths([("a",), ("b",)])
    assert twin != "tree"


@given(PATHS)
def test_a_tree_made_of_paths_holds_them_and_nothing_else(paths: list[tuple[str, ...]]) -> None:
    tree = Taxonomy.from_paths(paths)
    prefixes = {path[:end] for path in paths for end in range(1, len(path) + 1)}
    assert {tree.path(node) for node in tree if node} == prefixes
    assert len(tree) == len(prefixes) + 1
    for path in prefixes:
        node = tree.walk(path)
        assert node is not None
        assert tree.path(node) == path


@given(PATHS)
def test_the_arrays_of_a_tree_agree_with_each_other(paths: list[tuple[str, ...]]) -> None:
    tree = Taxonomy.from_paths(paths)
    for node in range(1, len(tree)):
        assert node in tree.children[tree.parents[node]]
        assert tree.depths[node] == len(tree.lineages[node])
        under = tree.leaves_under(node)
        assert np.flatnonzero(tree.leaf_membership[node]).tolist() == tree.leaf_position[list(under)].tolist()
        assert tree.is_leaf(node) == (under == (node,))
    assert tree.leaves_under(0) == tree.leaves
    assert sorted((*tree.leaves, *tree.inner)) == list(tree)

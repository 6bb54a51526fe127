from __future__ import annotations

import time

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
        member = [node in tree.lineages[leaf] for leaf in tree.leaves]
        assert tree.leaf_membership[node].tolist() == member
        assert tree.leaf_counts[node] == sum(member)
        ordered = tree.depth_first[tree.first_leaves[node] :][: sum(member)]
        assert sorted(ordered.tolist()) == np.flatnonzero(member).tolist()
    rows = tree.lineage_rows(list(tree))
    assert [tuple(row[row > 0].tolist()) for row in rows] == [tree.lineages[node] for node in tree]
    assert tree.leaves_under(0) == tree.leaves
    assert sorted((*tree.leaves, *tree.inner)) == list(tree)


@given(PATHS)
def test_sums_children_and_meetings_are_those_of_the_lineages(paths: list[tuple[str, ...]]) -> None:
    tree = Taxonomy.from_paths(paths)
    rows = np.random.default_rng(0).integers(9, size=(tree.n_leaves, 3)).astype(np.float32)
    assert (tree.sums_under(rows, list(tree)) == tree.leaf_membership @ rows).all()
    every = np.array(list(tree))
    for node in tree:
        level = tree.depths[node]
        towards = [tree.lineages[one][level : level + 1] for one in tree]
        wanted = [one[0] if set(one) & set(tree.children[node]) else 0 for one in towards]
        assert tree.child_towards(node, every).tolist() == wanted
        shared = [max({0, *tree.lineages[node]} & {0, *tree.lineages[one]}) for one in tree]
        assert tree.meeting(np.full(len(tree), node), every).tolist() == shared


@given(PATHS, st.lists(NAMES | st.just("ROOT"), min_size=1, max_size=5))
def test_a_label_means_what_its_names_have_in_common(paths: list[tuple[str, ...]], names: list[str]) -> None:
    """The plainest way to say it: every node whose lineage passes all the names, without those below another."""
    tree = Taxonomy.from_paths(paths)
    if (
        len(names) < 2
        or tree.walk(names) is not None
        or not all(name in tree.nodes_by_name for name in names)
    ):
        return
    ending = [n for n in tree.nodes_by_name[names[-1]] if tree.path(n)[-len(names) :] == tuple(names)]
    complete = {n for n in tree if n and set(names) <= set(tree.path(n))}
    meant = ending or [n for n in sorted(complete) if tree.parents[n] not in complete]
    if len(meant) == 1:
        assert tree.find(names) == meant[0]
    else:
        said = "places in the tree" if meant else "contradicts the tree|different leaves"
        with pytest.raises(DataError, match=said):
            tree.find(names)


def test_names_with_slashes_are_found_by_their_whole_title() -> None:
    tree = Taxonomy.from_paths([("a", "b/c", "d"), ("a", "b", "e"), ("x/y", "z"), ("x", "y/z")])
    assert tree.path(tree.find("a/b/c/d")) == ("a", "b/c", "d")
    assert tree.path(tree.find("ROOT/a/b/e")) == ("a", "b", "e")
    with pytest.raises(DataError, match="unknown label 'y'"):
        tree.find("x/y/z")


def test_messages_stay_short_however_long_names_are() -> None:
    long = [f"{letter * 990}{number}" for letter in "abc" for number in range(60)]
    tree = Taxonomy.from_paths(
        [(name, *long[:150], "end") for name in long[150:]] + [(name,) for name in long]
    )
    for label in (
        "end",
        [long[3], "end"],
        [long[170], long[160]],
        "a" * 999,
        [*long[:100], "nothing"],
        "end/end",
    ):
        with pytest.raises(DataError) as caught:
            tree.find(label)
        assert len(str(caught.value)) < 2000
    with pytest.raises(DataError, match=r"places in the tree: write .* or one of 20 more instead\.$"):
        tree.find("end")


def test_very_many_unknown_labels_take_seconds() -> None:
    tree = Taxonomy.from_paths([(f"group {i % 70}", f"category number {i}") for i in range(5000)])
    started = time.process_time()
    for i in range(300):
        with pytest.raises(DataError, match="did you mean 'category number"):
            tree.find(f"categry number {i}x")
        assert tree.names[tree.find(f"group {i % 70}/category number {i}")] == f"category number {i}"
    assert time.process_time() - started < 5


def test_a_deep_chain_and_very_many_leaves_take_no_time() -> None:
    started = time.process_time()
    chain = Taxonomy.from_paths([("a",) * 2000, ("b",)])
    assert len(chain.lineages[2001]) == 2000
    assert sum(len(chain.leaves_under(node)) for node in chain) == 2003
    wide = Taxonomy.from_paths([(f"g{i // 100}", f"l{i}") for i in range(100_000)])
    assert sum(len(wide.leaves_under(node)) for node in wide.children[0]) == 100_000
    assert all(wide.walk([f"g{i // 100}", f"l{i}"]) for i in range(0, 100_000, 10))
    assert time.process_time() - started < 10

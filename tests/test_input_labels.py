from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from himecat.errors import DataError
from himecat.input.corpus import Supervision
from himecat.input.labels import leaves_without_labels, readable_labels, supervise
from himecat.input.problems import Problems
from himecat.input.taxonomy.tree import Taxonomy

TREE = Taxonomy.from_paths(
    [
        ("science", "physics", "optics"),
        ("science", "physics", "TCP/IP"),
        ("science", "biology", "other"),
        ("arts", "music", "other"),
        ("arts", "film"),
        ("film",),
        ("news",),
    ]
)


def said_about(label: Any, tree: Taxonomy = TREE) -> str:
    with pytest.raises(DataError) as caught:
        tree.find(label)
    return str(caught.value)


@pytest.mark.parametrize(
    ("label", "title"),
    [
        ("optics", "science/physics/optics"),
        ("  optics ", "science/physics/optics"),
        ("physics", "science/physics"),
        ("science/physics/optics", "science/physics/optics"),
        ("ROOT/science/physics", "science/physics"),
        ("/science/physics/", "science/physics"),
        ("physics / optics", "science/physics/optics"),
        ("TCP/IP", "science/physics/TCP/IP"),
        ("science/physics/TCP/IP", "science/physics/TCP/IP"),
        ("music/other", "arts/music/other"),
        ("ROOT/film", "film"),
        ("arts/film", "arts/film"),
        (["optics"], "science/physics/optics"),
        (["science/physics"], "science/physics"),
        (("science", "physics"), "science/physics"),
        (np.array(["science", "physics"]), "science/physics"),
        (["ROOT", "science", " physics "], "science/physics"),
        (["science", "physics", ""], "science/physics"),
        (["physics", "optics"], "science/physics/optics"),
        (["optics", "science"], "science/physics/optics"),
        (["science", "optics"], "science/physics/optics"),
        (["science", "science/physics"], "science/physics"),
        (["biology", "other"], "science/biology/other"),
        (["arts", "other"], "arts/music/other"),
        (["film"], "film"),
        (["ROOT", "film"], "film"),
        (["science", "physics", "TCP/IP"], "science/physics/TCP/IP"),
    ],
)
def test_what_a_label_means(label: Any, title: str) -> None:
    assert TREE.title(TREE.find(label)) == title


def test_find_is_the_same_thing() -> None:
    assert TREE.find(["physics", "optics"]) == TREE.find("optics")


def test_a_name_at_several_places_lists_labels_that_work() -> None:
    assert said_about("other") == (
        "the label 'other' stands at 2 places in the tree: "
        "write science/biology/other or arts/music/other instead."
    )
    # The category at the top level has no longer path; the root in front of it makes it one.
    assert "ROOT/film or arts/film" in said_about("film")


def test_a_path_that_fits_two_places_is_refused() -> None:
    tree = Taxonomy.from_paths([("x", "a", "b"), ("y", "a", "b")])
    assert "stands at 2 places in the tree: write x/a/b or y/a/b instead" in said_about("a/b", tree)


def test_a_path_from_the_middle_means_the_nearest_place() -> None:
    tree = Taxonomy.from_paths([("r", "x", "a", "a"), ("s",)])
    assert tree.title(tree.find(["x", "a"])) == "r/x/a"


def test_unknown_labels_name_themselves_and_what_is_close() -> None:
    assert said_about("optic") == "unknown label 'optic'; did you mean 'optics'?"
    assert said_about("zzz") == "unknown label 'zzz': it is not in the tree."
    assert said_about(["science", "film noir"]) == "unknown label 'film noir'; did you mean 'film'?"
    assert "unknown label 'nowhere'" in said_about("science/nowhere")


def test_different_leaves_are_listed() -> None:
    assert said_about(["optics", "news"]) == (
        "the document is labelled with 2 different leaves: science/physics/optics and news; a list of names is one "
        "path, several paths are a list of lists."
    )
    assert "2 different leaves" in said_about(["science", "physics", "optics", "TCP/IP"])


def test_a_contradiction_says_where_the_tree_has_the_name() -> None:
    assert said_about(["arts", "physics", "optics"]) == (
        "the label path arts/physics/optics contradicts the tree, where physics is below science."
    )
    assert "where news is at the top level" in said_about("arts/news")
    assert "where other is below science/biology or arts/music" in said_about(["physics", "other"])


@pytest.mark.parametrize("label", ["ROOT", ["ROOT"], ["ROOT", "ROOT"]])
def test_the_root_is_no_label(label: Any) -> None:
    assert "'ROOT' is the root of the tree" in said_about(label)


@pytest.mark.parametrize(
    ("label", "found"),
    [
        (5.5, "the number 5.5"),
        (np.float64(5.5), "the number 5.5"),
        (True, "the truth value true"),
        ({"a": 1}, "an object"),
        (None, "nothing (null)"),
        (b"optics", "type bytes"),
        ([5.5], "the number 5.5"),
        (["science", None], "nothing (null)"),
        (["science", ["physics"]], "but a list was found"),
        ([{"a": 1}], "an object"),
    ],
)
def test_what_is_no_label_is_described(label: Any, found: str) -> None:
    assert found in said_about(label)


@pytest.mark.parametrize("label", ["", " ", [], ["", " "], "/", "//"])
def test_an_empty_label_is_refused(label: Any) -> None:
    assert said_about(label) == "the label is empty."


NAMES = st.sampled_from(["a", "b", "c", "d/e", "ROOT"])


@given(st.lists(st.lists(NAMES, min_size=1, max_size=4).map(tuple), min_size=1, max_size=12))
def test_a_full_path_from_the_top_always_means_its_node(paths: list[tuple[str, ...]]) -> None:
    tree = Taxonomy.from_paths(paths)
    for node in range(1, len(tree)):
        path = tree.path(node)
        if len(path) > 1:
            assert tree.find(list(path)) == node
        elif len(tree.nodes_by_name[path[0]]) > 1:
            assert tree.walk([path[0]]) == node == tree.find(list(path))


@given(
    st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=4), min_size=1, max_size=12),
    st.lists(st.text("abcd/ ", max_size=4), max_size=4),
)
def test_any_text_gives_a_node_below_the_root_or_a_data_error(
    paths: list[list[str]], label: list[str]
) -> None:
    tree = Taxonomy.from_paths(paths)
    for form in (label, "/".join(label)):
        try:
            node = tree.find(form)
        except DataError:
            continue
        assert 0 < node < len(tree)


def test_supervision_is_sorted_and_problems_name_their_place() -> None:
    problems = Problems()
    labels = {7: "optics", 2: ["arts", "film"], 5: "optik", 3: 8, 9: "optics", 6: "other"}
    labelled = supervise(TREE, labels, lambda row: f"docs.jsonl line {row + 1}", problems)
    assert labelled.rows.tolist() == [2, 7, 9]
    assert [TREE.title(node) for node in labelled.nodes] == [
        *("arts/film", "science/physics/optics", "science/physics/optics"),
    ]
    assert [problem.place for problem in problems.of("error")] == [
        *("docs.jsonl line 4", "docs.jsonl line 6", "docs.jsonl line 7"),
    ]


def test_a_name_and_a_list_of_that_name_are_not_confused() -> None:
    # As a list, 'film' is the path of the top-level category; as a bare name it could be either.
    problems = Problems()
    labelled = supervise(TREE, {0: ["film"], 1: "film"}, str, problems)
    assert labelled.rows.tolist() == [0]
    assert problems.counts["error"] == 1


def test_no_labels_give_an_empty_supervision() -> None:
    labelled = supervise(TREE, {}, str, Problems())
    assert len(labelled) == 0
    assert labelled.rows.dtype == labelled.nodes.dtype == np.int64


def test_leaves_without_labels_ignore_inner_nodes() -> None:
    nodes = [TREE.find(label) for label in ("physics", "optics", "news")]
    missing = leaves_without_labels(TREE, Supervision(np.arange(3), np.array(nodes)))
    assert [TREE.title(leaf) for leaf in missing] == [
        *("film", "arts/film", "science/physics/TCP/IP", "science/biology/other", "arts/music/other"),
    ]


def test_half_a_character_in_a_label_is_refused() -> None:
    tree = Taxonomy.from_paths([("a",), ("b",)])
    for judge in (partial(supervise, tree), readable_labels):
        found = Problems()
        judge({0: "a", 3: ["b", "\ud800"]}, "row {}".format, found)
        assert [str(problem) for problem in found] == [
            r"row 3: the label holds \ud800, half of a character: repair or remove it."
        ]

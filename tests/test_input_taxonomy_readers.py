from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from himecat.errors import DataError
from himecat.input.problems import Problems
from himecat.input.small_files import parse_names
from himecat.input.taxonomy import readers as taxonomy_readers
from himecat.input.taxonomy.readers import infer_taxonomy, read_taxonomy, render_tree
from himecat.input.taxonomy.tree import ROOT_NAME, Taxonomy
from himecat.runtime.bounds import VARIABLE

NAMES = st.sampled_from(["a", "b", "c", "no", "2019", "x y", "ROOT", "~", "e/f", "é", "1.0", "- z"])
PATHS = st.lists(st.lists(NAMES, min_size=1, max_size=4).map(tuple), min_size=2, max_size=20).filter(
    lambda paths: Taxonomy.from_paths(paths).n_leaves > 1
)


def taxonomy_to_nested(taxonomy: Taxonomy) -> dict[str, Any]:
    """The tree as nested dicts, as `read_taxonomy` takes them; the root is left out."""
    nested: list[dict[str, Any]] = [{} for _ in taxonomy]
    for node in range(1, len(taxonomy)):
        nested[taxonomy.parents[node]][taxonomy.names[node]] = nested[node]
    # A category named like the root would be read as the root itself.
    return {ROOT_NAME: nested[0]} if ROOT_NAME in nested[0] else nested[0]


def titles(tree: Taxonomy) -> list[str]:
    return [tree.title(leaf) for leaf in tree.leaves]


def said_about(source: Any) -> str:
    with pytest.raises(DataError) as caught:
        read_taxonomy(source)
    return str(caught.value)


def written(folder: Path, name: str, content: str | bytes) -> Path:
    file = folder / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


class TestNested:
    def test_mappings_lists_and_nothing(self) -> None:
        tree = read_taxonomy(
            {"science": {"physics": None, "biology": ["zoology", {"botany": ["moss"]}]}, "arts": {}}
        )
        assert titles(tree) == [
            *("arts", "science/physics", "science/biology/zoology", "science/biology/botany/moss"),
        ]

    def test_a_list_at_the_top(self) -> None:
        assert titles(read_taxonomy(["arts", {"science": ["physics"]}])) == ["arts", "science/physics"]

    def test_a_tree_is_given_back_as_it_is(self) -> None:
        tree = Taxonomy.from_paths([("a",), ("b",)])
        assert read_taxonomy(tree) is tree

    def test_only_root_at_the_top_is_the_root(self) -> None:
        assert titles(read_taxonomy({"ROOT": {"a": None, "b": None}})) == ["a", "b"]
        assert titles(read_taxonomy({"all": {"a": None, "b": None}})) == ["all/a", "all/b"]
        assert "'c' stands beside the root; move it below ROOT" in said_about({"ROOT": ["a", "b"], "c": None})

    def test_yaml_and_json_files(self, tmp_path: Path) -> None:
        expected = ["arts", "science/physics", "science/biology/zoology", "science/biology/botany"]
        text = "science:\n  physics:\n  biology: [zoology, botany]\narts:\n"
        for name in ("tree.yaml", "tree.YML"):
            assert titles(read_taxonomy(written(tmp_path, name, "\ufeff" + text))) == expected
        nested = {"science": {"physics": None, "biology": ["zoology", "botany"]}, "arts": {}}
        assert titles(read_taxonomy(str(written(tmp_path, "tree.json", json.dumps(nested))))) == expected

    def test_numbers_are_names_as_they_are_written(self, tmp_path: Path) -> None:
        tree = read_taxonomy(written(tmp_path, "t.yaml", "2019:\n010: [1.50, 2020-01-01]\n"))
        assert titles(tree) == ["2019", "010/1.50", "010/2020-01-01"]
        assert titles(read_taxonomy({2019: [1.5], "x": None})) == ["x", "2019/1.5"]

    def test_words_yaml_reads_as_something_else_are_to_be_quoted(self, tmp_path: Path) -> None:
        said = said_about(written(tmp_path, "t.yaml", "yes:\n  a:\n"))
        assert (
            't.yaml line 1: YAML reads yes as true or false; write it in quotes to use it as a name: "yes"'
            in said
        )
        assert "t.yaml line 3: YAML reads off" in said_about(written(tmp_path, "t.yaml", "a:\n- b\n- off\n"))
        assert "line 2: a category needs a name" in said_about(written(tmp_path, "t.yaml", "a:\n~: [x, y]\n"))
        assert "below 'a' null was found where a name" in said_about(
            written(tmp_path, "t.yaml", "a:\n- b\n-\n")
        )
        assert "below 'a' true was found where a name" in said_about(
            written(tmp_path, "t.json", '{"a": [true]}')
        )
        assert titles(read_taxonomy(written(tmp_path, "t.yaml", '"yes": \n"~":\n'))) == ["yes", "~"]

    @pytest.mark.parametrize(
        ("source", "said"),
        [
            ({"a": 5}, "below 'a' 5 was found; write the children of a category as a list of names"),
            ({"a": "b"}, "below 'a' 'b' was found"),
            ({"a": ["b", ["c"]]}, "below 'a' a list was found where a name is needed"),
            ({("a",): None}, "at the top a tuple was found where a name is needed"),
            ({" ": None}, "at the top an empty name was found"),
            ({"a": ["b", "b"]}, "'b' stands twice below 'a'"),
            ({"a": ["b", {" b": None}]}, "'b' stands twice below 'a'"),
            ({}, "there are no categories"),
            ({"a": {"b": {}}}, "only one leaf, a/b"),
        ],
    )
    def test_what_cannot_be_a_tree(self, source: Any, said: str) -> None:
        assert said in said_about(source)

    @pytest.mark.parametrize(
        ("name", "content", "said"),
        [
            ("t.yaml", "a: [b, c]\nx:\na: [d]\n", "t.yaml line 3: 'a' stands twice below one parent"),
            ("t.json", '{"a": {"b": [], "b": []}}', "t.json: 'b' stands twice below one parent"),
            ("t.yaml", "a: [b\nc: d\n", "t.yaml line 2: broken YAML"),
            ("t.yaml", "a: !!python/object:os.system {}\n", "t.yaml line 1: broken YAML"),
            ("t.yaml", "a: \x00\n", "t.yaml: broken YAML"),
            ("t.json", '{"a": [],\n"b" 1}', "t.json line 2: broken JSON"),
            ("t.yaml", "# nothing yet\n", "there are no categories"),
            ("t.yaml", " \n\n", "t.yaml: the file is empty"),
            ("t.json", b'{"a": [],\n"\xff": []}', "t.json line 2: invalid UTF-8"),
            ("t.json", "[" * 100_000, "t.json: the names are nested too deeply"),
            ("t.yaml", "[" * 800, "t.yaml: the names are nested too deeply"),
            ("t.yaml", "just words\n", "at the top 'just words' was found"),
        ],
    )
    def test_broken_files(self, tmp_path: Path, name: str, content: str | bytes, said: str) -> None:
        assert said in said_about(written(tmp_path, name, content))

    def test_aliases_are_copied_but_not_without_end(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shared = "b: &b {x: , y: }\nc: {<<: *b, z: }\nd: *b\n"
        assert titles(read_taxonomy(written(tmp_path, "t.yaml", shared))) == [
            *("b/x", "b/y", "c/x", "c/y", "c/z", "d/x", "d/y"),
        ]
        monkeypatch.setenv(VARIABLE, "nodes=1000")
        assert "more than 1,000 nodes" in said_about(written(tmp_path, "t.yaml", "a: &a\n  b: *a\n  c:\n"))

    def test_deeply_nested_names_need_no_deep_stack(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(VARIABLE, "depth=5000")
        nested: dict[str, Any] = {"end": None, "other": None}
        for level in range(3000):
            nested = {f"n{level}": nested}
        tree = read_taxonomy(nested)
        assert tree.depth == 3001
        assert taxonomy_to_nested(tree).keys() == {"n2999"}
        rows = render_tree(tree).split("\n")
        assert len(rows) == 21
        assert rows[-1].endswith("└── ... and 2,981 more levels")


class TestLines:
    def test_parent_and_children(self, tmp_path: Path) -> None:
        file = written(
            tmp_path,
            "label_hier.txt",
            "ROOT cs math\r\n\r\ncs cs.AI cs.LG\r\nmath math.AG\r\nmath math.CO\r\n",
        )
        tree = read_taxonomy(file)
        assert titles(tree) == ["cs/cs.AI", "cs/cs.LG", "math/math.AG", "math/math.CO"]
        assert tree.names[0] == "ROOT"

    def test_lines_may_come_in_any_order_and_the_root_have_any_name(self, tmp_path: Path) -> None:
        tree = read_taxonomy(written(tmp_path, "tree", "b c d\nTop a b\na\n"))
        assert tree.names[0] == "Top"
        assert titles(tree) == ["a", "b/c", "b/d"]

    def test_tabs_allow_blanks_in_names(self, tmp_path: Path) -> None:
        tree = read_taxonomy(
            written(tmp_path, "tree.tsv", "ROOT\tmachine learning\tarts\nmachine learning\tdeep nets\tx\n")
        )
        assert titles(tree) == ["arts", "machine learning/deep nets", "machine learning/x"]

    def test_a_dag_becomes_a_tree_and_says_so(self, tmp_path: Path) -> None:
        problems = Problems()
        file = written(tmp_path, "dag.txt", "ROOT a b\na s\nb s t\ns u v\n")
        tree = read_taxonomy(file, problems)
        assert titles(tree) == ["b/t", "a/s/u", "a/s/v", "b/s/u", "b/s/v"]
        (note,) = problems
        assert note.severity == "note"
        assert note.place == str(file)
        assert "3 labels can be reached in several ways (s, u, v)" in note.message
        assert "9 categories instead of 6" in note.message
        read_taxonomy(file)

    def test_a_dag_that_explodes_is_refused(self, tmp_path: Path) -> None:
        ladder = "".join(f"n{i} n{i + 1} m{i + 1}\nm{i} n{i + 1} m{i + 1}\n" for i in range(40))
        assert "more than 250,000 nodes" in said_about(written(tmp_path, "t.txt", "ROOT n0 m0\n" + ladder))

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            ("ROOT a b\na c d\nc a\n", ["t.txt line 3: the tree runs in a circle, a -> c -> a"]),
            ("a b\nb c\nc a\n", ["t.txt line 3: the tree runs in a circle, a -> b -> c -> a"]),
            ("ROOT x y\na b\nb a\n", ["t.txt line 3: the tree runs in a circle, a -> b -> a"]),
            ("x a b\n\ny c\n", ["there are 2 roots, 'x' (line 1), 'y' (line 3); add one line", "ROOT"]),
            ("ROOT a b\ny c\nz\n", ["line 2: 'y' has no parent; add it to", "line 3: 'z' has no parent"]),
            (
                "ROOT a b\na a\nb c c\n",
                ["line 2: 'a' is its own parent", "line 3: 'c' stands twice below 'b'"],
            ),
            ("ROOT a b\nROOT c a\n", ["t.txt line 2: 'a' stands twice below 'ROOT'"]),
            ("\n \n", ["t.txt: the file is empty"]),
            ("ROOT a\n", ["only one leaf, a; a tree needs two or more"]),
            ("ROOT\n", ["there are no categories"]),
            (b"ROOT a b\na \xe9\n", ["t.txt line 2: invalid UTF-8"]),
        ],
    )
    def test_what_is_no_tree(self, tmp_path: Path, content: str | bytes, said: list[str]) -> None:
        found = said_about(written(tmp_path, "t.txt", content))
        for sentence in said:
            assert sentence in found

    def test_files_that_cannot_be_read(self, tmp_path: Path) -> None:
        assert said_about(tmp_path / "no.txt").endswith("no.txt: there is no such file.")
        assert "this is a folder" in said_about(tmp_path)

    @given(PATHS)
    def test_lines_of_unique_names_hold_the_whole_tree(self, paths: list[tuple[str, ...]]) -> None:
        # Numbering the names makes them unique, which lines need to be a tree and not a DAG.
        source = Taxonomy.from_paths(paths)
        names = ["ROOT", *(f"{name} {node}" for node, name in enumerate(source.names[1:], start=1))]
        expected = Taxonomy(names, source.parents)
        lines = [
            "\t".join([names[node], *(names[c] for c in source.children[node])]) for node in source.inner
        ]
        problems = Problems()
        assert taxonomy_readers.tree_of_lines("\n".join(lines), "tree", problems) == expected
        assert not problems.items


class TestInferred:
    def test_lists_strings_and_bare_names(self) -> None:
        tree = infer_taxonomy([["b", "y"], "b/x", "a", ("b",), ["c/z"], "ROOT/d/q", ["ROOT", "d"], "b/x"])
        assert titles(tree) == ["a", "b/x", "b/y", "c/z", "d/q"]

    def test_the_order_of_documents_does_not_matter(self) -> None:
        labels = ["b/x", "a", "b/y", ["c"]]
        assert infer_taxonomy(labels) == infer_taxonomy(labels[::-1])

    def test_a_bare_name_means_its_place_in_a_longer_path(self) -> None:
        tree = infer_taxonomy(["x", "b/x", "b/y", "z"])
        assert titles(tree) == ["z", "b/x", "b/y"]

    def test_a_list_of_one_name_is_a_path(self) -> None:
        tree = infer_taxonomy([["x"], ["b", "x"]])
        assert titles(tree) == ["x", "b/x"]
        assert tree.find(["x"]) == tree.walk(["x"])

    def test_what_is_no_label(self) -> None:
        with pytest.raises(DataError, match=r"the number 3\.5 was found"):
            infer_taxonomy(["a", 3.5, "b"])

    @pytest.mark.parametrize(
        ("labels", "said"), [([], "there are none"), (["a/b", "a"], "only one leaf, a/b")]
    )
    def test_too_few(self, labels: list[Any], said: str) -> None:
        with pytest.raises(DataError, match=said):
            infer_taxonomy(labels)

    @given(PATHS.filter(lambda paths: all(path[0] != "ROOT" for path in paths)))
    def test_every_label_finds_its_node_again(self, paths: list[tuple[str, ...]]) -> None:
        paths = [path for path in paths if path != ("e/f",)]  # one name with a slash is a path of two
        if not paths or Taxonomy.from_paths(paths).n_leaves < 2:
            return
        tree = infer_taxonomy(list(path) for path in paths)
        for path in paths:
            if len(path) > 1 or len(tree.nodes_by_name[path[0]]) > 1:
                assert tree.path(tree.find(path)) == path


@given(PATHS)
def test_nested_form_is_read_back_as_the_same_tree(paths: list[tuple[str, ...]]) -> None:
    tree = Taxonomy.from_paths(paths)
    nested = taxonomy_to_nested(tree)
    assert read_taxonomy(nested) == tree
    assert taxonomy_readers._from_nested(json.loads(json.dumps(nested)), "tree") == tree
    text = yaml.safe_dump(nested, sort_keys=False)
    assert taxonomy_readers._from_nested(parse_names(text, Path("tree.yaml")), "tree") == tree


def test_a_drawn_tree() -> None:
    tree = Taxonomy.from_paths([("a", "b", "c"), ("a", "d"), ("e",), ("f", "g")])
    assert render_tree(tree, lambda node: f"({node})" if tree.is_leaf(node) else "").split("\n") == [
        "a",
        "├── b",
        "│   └── c (7)",
        "└── d (5)",
        "e (2)",
        "f",
        "└── g (6)",
    ]


@pytest.mark.real
@pytest.mark.parametrize(("name", "leaves"), [("arxiv", 88), ("packages", 32), ("reviews", 41)])
def test_real_trees(shared_data: Any, name: str, leaves: int) -> None:
    tree = read_taxonomy(shared_data(name) / "label_hier.txt")
    assert tree.n_leaves == leaves
    assert tree.depth == 2


class TestBounds:
    """Each is refused with the place and the way to raise it, before the size of the input costs anything."""

    def test_depth(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        nested: dict[str, Any] = {"end": None, "other": None}
        for level in range(200):
            nested = {f"n{level}": nested}
        raised = "the bound is 200 (himecat.set_bounds(depth=201) raises it)."
        assert said_about(nested) == f"the tree: the tree has 201 levels; {raised}"
        assert said_about({"ROOT": nested}) == f"the tree: the tree has 201 levels; {raised}"
        chain = "".join(f"n{i} n{i + 1}\n" for i in range(201)) + "n200 other\n"
        said = said_about(written(tmp_path, "t.txt", chain))
        assert said.endswith(f"t.txt line 201: the tree has 201 levels down from 'n0'; {raised}")
        label = "/".join(map(str, range(201)))
        for source in ([label, "b"], [label.split("/"), "b"]):
            with pytest.raises(
                DataError, match=r"documents: the label '0/1/.* has 201 levels; the bound is 200"
            ):
                infer_taxonomy(source)
        monkeypatch.setenv(VARIABLE, "depth=201")
        assert read_taxonomy(nested).depth == read_taxonomy(tmp_path / "t.txt").depth == 201
        assert infer_taxonomy([label, "b"]).depth == 201

    def test_names(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        long = "x" * 1001
        ending = "has 1,001 characters; the bound is 1,000 (himecat.set_bounds(label=1001) raises it)."
        for source in (
            {"a": [long, "b"]},
            written(tmp_path, "t.txt", f"ROOT a\na {long} b\n"),
            written(tmp_path, "t.json", json.dumps({"a": {long: {"b": None}}})),
        ):
            said = said_about(source)
            assert ending in said
            assert "below 'a' the name" in said or "t.txt line 2: the name" in said
            assert len(said) < 500
        for label in (long, f"a/{long}", ["a", long]):
            with pytest.raises(DataError, match="documents: the name 'xxx"):
                infer_taxonomy([label, "b"])
        monkeypatch.setenv(VARIABLE, "label=1001")
        assert infer_taxonomy([long, "b"]).n_leaves == 2

    def test_nodes_of_labels(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(VARIABLE, "nodes=10")
        assert len(infer_taxonomy([f"a/{i}" for i in range(9)])) == 11
        with pytest.raises(DataError, match=r"more than 10 nodes.*set_bounds\(nodes=20\) raises it"):
            infer_taxonomy([f"a/{i}" for i in range(10)])

    def test_what_is_far_too_deep_is_refused_at_once(self, tmp_path: Path) -> None:
        chain = written(tmp_path, "t.txt", "".join(f"n{i} n{i + 1}\n" for i in range(100_000)) + "n5 m\n")
        circle = written(tmp_path, "c.txt", "".join(f"n{i} n{(i + 1) % 90_000}\n" for i in range(90_000)))
        deep = "/".join("a" * 50_000)
        started = time.process_time()
        assert "the tree has 100,000 levels" in said_about(chain)
        assert "n0 -> n1 -> n2 -> n3 -> n4 -> ... -> n89998 -> n89999 -> n0" in said_about(circle)
        with pytest.raises(DataError, match="has 50,000 levels"):
            infer_taxonomy([deep, "b"])
        with pytest.raises(DataError, match="has 50,000 levels"):
            Taxonomy.from_paths([("a", "a"), ("b",)]).find(deep)
        assert time.process_time() - started < 5

    def test_a_chain_of_2000_is_drawn_in_a_second(self) -> None:
        tree = Taxonomy.from_paths([("n" * 900,) * 2000, ("b",)])
        started = time.process_time()
        assert len(render_tree(tree)) < 10_000
        assert time.process_time() - started < 1

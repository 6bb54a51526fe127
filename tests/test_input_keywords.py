"""Keywords as supervision: reading them, what the documents have of them, and the command line's part."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import Himecat
from himecat.errors import DataError
from himecat.input.check import check
from himecat.input.corpus import Supervision, Vocabulary
from himecat.input.keywords import keyword_labels, known_keywords, read_keywords
from himecat.input.labels import leaves_without_labels
from himecat.input.problems import Problems
from himecat.input.taxonomy.readers import infer_taxonomy
from himecat.input.taxonomy.tree import Taxonomy

TREE = Taxonomy.from_children(
    {
        "science": {"physics": {"optics": {}, "theory": {}}, "biology": {}},
        "arts": {"music": {"theory": {}}, "painting": {}},
        "news": {},
        "TCP/IP": {},
        "2019": {},
    }
)


def titled(words: Mapping[int, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    return {TREE.title(node): found for node, found in words.items()}


def errors_of(source: Any) -> list[str]:
    problems = Problems()
    read_keywords(source, TREE, problems)
    return [str(problem) for problem in problems.of("error")]


def written(folder: Path, text: str, name: str = "words.yaml") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


class TestShapes:
    @pytest.mark.parametrize(
        "words",
        [
            ["Lens", "laser light"],
            ("light", "lens", "laser"),
            {"lens", "laser", "light"},
            np.array(["lens", "laser light"]),
            "lens, laser light",
            "lens laser light",
            ["lens, laser", "LIGHT", " ", "lens"],
        ],
    )
    def test_words_as_list_or_string(self, words: Any) -> None:
        found = titled(read_keywords({"optics": words}, TREE))
        assert found == {"science/physics/optics": ("laser", "lens", "light")}
        assert all(type(word) is str for word in found["science/physics/optics"])

    @pytest.mark.parametrize(
        ("label", "title"),
        [
            ("biology", "science/biology"),
            ("science/biology", "science/biology"),
            ("ROOT/science/biology", "science/biology"),
            (("science", "biology"), "science/biology"),
            ("physics/theory", "science/physics/theory"),
            ("science", "science"),
            ("TCP/IP", "TCP/IP"),
            (2019, "2019"),
        ],
    )
    def test_labels_are_those_of_documents(self, label: Any, title: str) -> None:
        assert titled(read_keywords({label: ["cell"]}, TREE)) == {title: ("cell",)}

    @pytest.mark.parametrize("name", ["words.yaml", "words.yml", "words.json", "words.txt"])
    @pytest.mark.parametrize("as_text", [True, False])
    def test_files(self, tmp_path: Path, name: str, as_text: bool) -> None:
        # This JSON is YAML too.
        path = written(tmp_path, '{"news": ["press", "daily paper"], "science": {"biology": "cell"}}', name)
        found = titled(read_keywords(str(path) if as_text else path, TREE))
        assert found == {"news": ("daily", "paper", "press"), "science/biology": ("cell",)}

    def test_yaml_keeps_what_looks_like_numbers_and_dates(self, tmp_path: Path) -> None:
        path = written(tmp_path, "2019: [010, covid]\nnews:\n- 1e3\n- 007\n")
        assert titled(read_keywords(path, TREE)) == {"news": ("007", "1e3"), "2019": ("010", "covid")}

    def test_nested_mappings_at_any_depth_beside_flat_ones(self) -> None:
        found = read_keywords(
            {
                "science": {"physics": {"optics": ["lens"]}, "biology": ["cell"]},
                "arts": {"music/theory": ["chord"]},
                "physics": ["force"],
                "news": ["press"],
            },
            TREE,
        )
        assert titled(found) == {
            "science/physics/optics": ("lens",),
            "science/biology": ("cell",),
            "arts/music/theory": ("chord",),
            "science/physics": ("force",),
            "news": ("press",),
        }

    def test_nesting_tells_categories_of_one_name_apart_and_may_leave_out_levels(self) -> None:
        found = read_keywords({"science": {"theory": ["string"]}, "music": {"theory": ["chord"]}}, TREE)
        assert titled(found) == {"science/physics/theory": ("string",), "arts/music/theory": ("chord",)}

    def test_the_root_may_stand_above_the_others(self) -> None:
        assert titled(read_keywords({"ROOT": {"news": ["press"]}}, TREE)) == {"news": ("press",)}

    def test_labels_that_mean_one_node_share_their_words(self) -> None:
        found = read_keywords({"science/biology": "gene", "science": {"biology": ["cell", "gene"]}}, TREE)
        assert titled(found) == {"science/biology": ("cell", "gene")}

    def test_words_are_those_of_the_documents(self) -> None:
        found = read_keywords({"news": ["C++", "Poincaré's", "well-known", "&amp;", 2019]}, TREE, Problems())
        assert titled(found)["news"] == ("2019", "c++", "poincaré", "well-known")

    def test_nothing_given_is_nothing_read(self) -> None:
        assert read_keywords({}, TREE) == {}

    def test_nodes_come_in_their_order(self) -> None:
        found = read_keywords({"optics": "lens", "news": "press", "biology": "cell"}, TREE)
        assert list(found) == sorted(found)


labels = st.sampled_from(
    ["news", "biology", "science/biology", "optics", "physics/optics", "science", "ROOT/science", "TCP/IP"]
)
phrases = st.lists(st.sampled_from(["lens", "Laser light", "cell", "gene, cell", "C#"]), min_size=1)


@given(st.dictionaries(labels, phrases), st.randoms(use_true_random=False))
def test_the_order_of_labels_and_words_changes_nothing(given: dict[str, list[str]], shuffler: Any) -> None:
    expected = read_keywords(given, TREE)
    keys = list(given)
    shuffler.shuffle(keys)
    again = read_keywords({key: given[key][::-1] for key in keys}, TREE)
    assert list(again.items()) == list(expected.items())


@given(st.dictionaries(st.sampled_from(["news", "biology", "science", "optics"]), phrases), st.data())
def test_nested_and_flat_mean_the_same(given: dict[str, list[str]], data: st.DataObject) -> None:
    flat = {TREE.title(TREE.find(label)): words for label, words in given.items()}
    nested: dict[str, Any] = {}
    for title in data.draw(st.permutations(list(flat))):
        if title.startswith("science/") and "science" not in flat:
            nested.setdefault("science", {})[title.removeprefix("science/")] = flat[title]
        else:
            nested[title] = flat[title]
    assert read_keywords(nested, TREE) == read_keywords(flat, TREE)


class TestErrors:
    @pytest.mark.parametrize(
        ("source", "error"),
        [
            ({"biolgy": ["cell"]}, "keywords: unknown label 'biolgy'; did you mean 'biology'?"),
            (
                {"science": {"biolgy": ["cell"]}},
                "keywords, label 'science': unknown label 'biolgy'; did you mean 'biology'?",
            ),
            (
                {"science": {"music": ["chord"]}},
                "keywords, label 'science': the label path science/music contradicts the tree, "
                "where music is below arts.",
            ),
            (
                {"physics": {"science": ["force"]}},
                "keywords, label 'science/physics': the label 'science' is not below science/physics.",
            ),
            (
                {"theory": ["chord"]},
                "keywords: the label 'theory' stands at 2 places in the tree: "
                "write science/physics/theory or arts/music/theory instead.",
            ),
            (
                {"news/biology": "x"},
                "keywords: the label names 2 different leaves: news and science/biology.",
            ),
            (
                {"ROOT": ["all"]},
                "keywords: the label 'ROOT' is the root of the tree, where every document belongs; "
                "name a category below it.",
            ),
            (
                {None: ["a"]},
                "keywords: a label must be a name or a list of names, but nothing (null) was found.",
            ),
            ({"": ["a"]}, "keywords: the label is empty."),
            (
                {"news": 5},
                "keywords, label 'news': keywords must be a list of words or one string, "
                "but the number 5 was found.",
            ),
            (
                {"news": ["press", ["daily"]]},
                "keywords, label 'news': a list of keywords must hold words only, but a list was found.",
            ),
            (
                {"news": ["press", None]},
                "keywords, label 'news': a list of keywords must hold words only, "
                "but nothing (null) was found.",
            ),
            (
                {"news": [True]},
                "keywords, label 'news': a list of keywords must hold words only, "
                "but the truth value true was found.",
            ),
            *(
                (
                    {"news": empty},
                    "keywords, label 'news': there are no keywords; write some words, or take the label out.",
                )
                for empty in ([], "", " , ", None, {}, ["", " "], ["!!"])
            ),
            (
                ["press"],
                "keywords: a mapping from labels to words is needed, such as 'physics: [quantum, laser]', "
                "but a list was found.",
            ),
            (
                3,
                "keywords: a mapping from labels to words is needed, such as 'physics: [quantum, laser]', "
                "but the number 3 was found.",
            ),
        ],
    )
    def test_one_sentence_each(self, source: Any, error: str) -> None:
        assert errors_of(source) == [error]

    @pytest.mark.parametrize(
        ("name", "text", "error"),
        [
            ("words.yaml", "news: [press\n", "words.yaml line 2: broken YAML"),
            ("words.json", '{"news": ["press"]', "words.json line 1: broken JSON"),
            ("words.yaml", "", "words.yaml: the file is empty; write labels"),
            ("words.yaml", "# nothing yet\n", "words.yaml: the file is empty; write labels"),
            ("words.yaml", "- press\n", "but a list was found."),
            ("words.yaml", "press\n", "but the text 'press' was found."),
            ("words.yaml", "news: [press]\nnews: [daily]\n", "words.yaml line 2: 'news' stands twice"),
            ("words.json", '{"news": ["a"], "news": ["b"]}', "words.json: 'news' stands twice"),
            ("words.yaml", "news: [yes]\n", "words.yaml line 1: YAML reads yes as true or false"),
            ("words.yaml", "newz: [press]\n", "words.yaml: unknown label 'newz'; did you mean 'news'?"),
            ("words.yaml", "news:\n", "words.yaml, label 'news': there are no keywords"),
            ("words.yaml", "news: &a [x, *a]\n", "label 'news': a list of keywords must hold words only"),
        ],
    )
    def test_files_are_named(self, tmp_path: Path, name: str, text: str, error: str) -> None:
        path = written(tmp_path, text, name)
        (found,) = errors_of(path)
        assert error in found
        assert found.startswith(str(path))
        assert "\n" not in found

    def test_files_that_cannot_be_read(self, tmp_path: Path) -> None:
        assert errors_of(tmp_path / "no.yaml") == [f"{tmp_path / 'no.yaml'}: there is no such file."]
        assert errors_of(tmp_path) == [f"{tmp_path}: this is a folder, but a file is needed."]
        (tmp_path / "words.yaml").write_bytes(b"news: [caf\xe9]\n")
        assert "line 1: invalid UTF-8" in errors_of(tmp_path / "words.yaml")[0]

    def test_all_errors_are_told_and_the_rest_is_read(self) -> None:
        problems = Problems()
        found = read_keywords({"newz": "a", "news": "press", "biology": []}, TREE, problems)
        assert titled(found) == {"news": ("press",)}
        assert problems.counts["error"] == 2

    def test_without_problems_errors_are_raised(self) -> None:
        with pytest.raises(DataError, match=r"unknown label 'newz'.*\n.*there are no keywords"):
            read_keywords({"newz": "a", "biology": []}, TREE)

    def test_a_phrase_without_words_is_a_warning_where_others_are_left(self) -> None:
        problems = Problems()
        assert titled(read_keywords({"news": ["press", "??"]}, TREE, problems)) == {"news": ("press",)}
        assert [str(problem) for problem in problems] == [
            "keywords, label 'news': the keyword '??' has nothing in it that counts as a word."
        ]

    def test_a_mapping_that_holds_itself_ends(self) -> None:
        endless: dict[str, Any] = {}
        endless["science"] = endless
        assert errors_of(endless) == ["keywords, label 'science': the label 'science' is not below science."]
        with pytest.raises(DataError, match="nested too deeply"):
            keyword_labels(endless)


class TestLabels:
    def test_a_tree_can_be_made_of_them(self) -> None:
        tree = infer_taxonomy(
            keyword_labels(
                {
                    "science": {"physics": {"optics": "lens"}, "biology/cells": ["cell"]},
                    "optics": "laser",
                    "arts/music": "chord",
                    ("arts", "painting"): "oil",
                    "news": None,
                }
            )
        )
        assert {tree.title(leaf) for leaf in tree.leaves} == {
            "science/physics/optics",
            "science/biology/cells",
            "arts/music",
            "arts/painting",
            "news",
        }

    def test_the_root_is_no_category(self) -> None:
        assert keyword_labels({"ROOT": {"news": "press", "a": {"b": "x"}}}) == ["news", ["a", "b"]]

    def test_what_is_no_name_is_told(self) -> None:
        with pytest.raises(DataError, match="keywords: a label must be a name"):
            keyword_labels({None: "x"})


class TestKnownWords:
    WORDS = Vocabulary(("the", "lens", "cell", "press"), np.array([9, 5, 5, 5]))

    def test_ids_of_the_words_that_documents_have(self) -> None:
        problems = Problems()
        words = read_keywords({"optics": "press lens", "biology": "cell", "science": "the"}, TREE)
        known = known_keywords(words, self.WORDS, TREE, problems)
        assert {TREE.title(node): ids.tolist() for node, ids in known.items()} == {
            "science": [0],
            "science/biology": [2],
            "science/physics/optics": [1, 3],
        }
        assert all(ids.dtype == np.int32 for ids in known.values())
        assert not list(problems)

    def test_rare_words_and_nodes_left_with_none_are_told(self) -> None:
        problems = Problems()
        words = read_keywords({"optics": "laser", "news": "daily press", "2019": "covid laser"}, TREE)
        known = known_keywords(words, self.WORDS, TREE, problems)
        assert [TREE.title(node) for node in known] == ["news"]
        assert [str(problem) for problem in problems] == [
            "keywords: too rare in the documents to be of use: covid, daily, laser.",
            "keywords: none that can be used is left for: 2019, science/physics/optics.",
        ]
        assert problems.counts["warning"] == 2

    def test_at_most_ten_are_named(self) -> None:
        problems = Problems()
        words = read_keywords({"news": ["press", *(f"word{n:02}" for n in range(14))]}, TREE)
        known_keywords(words, self.WORDS, TREE, problems)
        (warning,) = map(str, problems)
        assert warning.endswith("word08, word09 and 4 more.")


class TestLeaves:
    def supervision(self, words: Any, *labels: str) -> Supervision:
        nodes = np.array([TREE.find(label) for label in labels], dtype=np.int64)
        return Supervision(np.arange(len(nodes)), nodes, read_keywords(words, TREE))

    def test_keywords_of_a_leaf_count_those_above_it_do_not(self) -> None:
        given = self.supervision({"biology": "cell", "arts": "opera"}, "news", "TCP/IP", "optics")
        missing = [TREE.title(leaf) for leaf in leaves_without_labels(TREE, given)]
        assert missing == ["2019", "arts/painting", "science/physics/theory", "arts/music/theory"]

    def test_keywords_alone_are_enough(self) -> None:
        every = self.supervision({TREE.title(leaf): "word" for leaf in TREE.leaves})
        assert leaves_without_labels(TREE, every) == []

    def test_no_words_are_no_supervision(self) -> None:
        none = Supervision(np.zeros(0, np.int64), np.zeros(0, np.int64), {TREE.find("news"): ()})
        assert TREE.find("news") in leaves_without_labels(TREE, none)


SMALL = {"science": {"physics": None, "biology": None}, "arts": None}


def documents(*labels: str | None) -> list[dict[str, Any]]:
    texts = ("a laser and a lens", "every cell has genes", "an opera with singers")
    return [{"text": texts[n % 3], **({"labels": label} if label else {})} for n, label in enumerate(labels)]


class TestCheck:
    def test_a_leaf_with_keywords_needs_no_document(self) -> None:
        sources: dict[str, Any] = {"source": documents("physics", None, "arts"), "taxonomy": SMALL}
        without = check(**sources, allow_empty_leaves=False)
        assert [str(p) for p in without.problems.of("error")] == [
            "One leaf has no labelled document: science/biology. Label some, or allow it "
            "(allow_empty_leaves=True)."
        ]
        report = check(**sources, allow_empty_leaves=False, keywords={"biology": ["genes", "enzyme"]})
        assert not report.problems.has_errors
        assert report.keywords_per_label == (("science/biology", 1),)
        assert "keywords: too rare in the documents to be of use: enzyme." in map(str, report.problems)

    def test_keywords_alone(self) -> None:
        words = {"physics": "laser", "biology": "genes", "arts": "opera"}
        report = check(documents(None, None, None), SMALL, allow_empty_leaves=False, keywords=words)
        assert not report.problems.has_errors
        assert report.labelled == 0
        assert report.as_dict()["keywords"] == [
            {"label": "arts", "words": 1},
            {"label": "science/physics", "words": 1},
            {"label": "science/biology", "words": 1},
        ]

    def test_the_tree_can_be_that_of_the_keywords(self) -> None:
        words = {"science": {"physics": "laser", "biology": "genes"}}
        report = check(documents("arts", None, None), allow_empty_leaves=False, keywords=words)
        assert not report.problems.has_errors
        assert report.taxonomy is not None
        assert report.taxonomy.n_leaves == 3

    def test_words_that_are_too_rare_leave_a_leaf_empty(self) -> None:
        words = {"biology": ["enzyme"]}
        given: dict[str, Any] = {"taxonomy": SMALL, "allow_empty_leaves": False, "keywords": words}
        report = check(documents("physics", None, "arts"), **given)
        assert [str(p) for p in report.problems.of("error")] == [
            "One leaf has neither labelled documents nor keywords: science/biology. Label some, or allow it "
            "(allow_empty_leaves=True)."
        ]
        nothing = check(documents(None, None, None), **given)
        assert [str(p) for p in nothing.problems.of("error")] == [
            "No leaf has a labelled document or a keyword that documents use: label about five documents of each."
        ]

    def test_only_words_within_reach_count(self) -> None:
        report = check(
            documents("physics", "biology", "arts"), SMALL, max_tokens=3, keywords={"arts": "singers"}
        )
        assert report.keywords_per_label == ()
        report = check(
            documents("physics", "biology", "arts"), SMALL, min_count=2, keywords={"arts": "opera"}
        )
        assert report.keywords_per_label == ()

    def test_errors_in_keywords_are_findings(self, tmp_path: Path) -> None:
        report = check(documents("physics", "biology", "arts"), SMALL, keywords={"artz": "opera", "arts": []})
        assert report.problems.counts["error"] == 2
        missing = check(documents("physics", "biology", "arts"), keywords=tmp_path / "no.yaml")
        assert [str(p) for p in missing.problems.of("error")] == [
            f"{tmp_path / 'no.yaml'}: there is no such file."
        ]

    def test_without_keywords_nothing_is_said_of_them(self) -> None:
        report = check(documents("physics", "biology", "arts"), SMALL)
        assert report.keywords_per_label is None
        assert report.as_dict()["keywords"] is None


@pytest.fixture
def unlabelled(letters: Path, tmp_path: Path) -> tuple[Path, Path, Path]:
    """The letters without any label, their tree, and keywords for every leaf taken from labelled letters."""
    from collections import Counter

    from himecat.input.taxonomy.readers import read_taxonomy
    from himecat.input.unicode_words import tokenize

    tree = read_taxonomy(letters / "taxonomy.yaml")
    held = [json.loads(line) for line in (letters / "documents.jsonl").read_text().splitlines()]
    if not any(one.get("labels") for one in held):
        pytest.skip("the sample has no labels")
    seen: dict[int, Counter[str]] = {leaf: Counter() for leaf in tree.leaves}
    everywhere: Counter[str] = Counter()
    for one in held:
        words = set(tokenize(one["text"]))
        everywhere.update(words)
        if one.get("labels"):
            seen.setdefault(tree.find(one["labels"]), Counter()).update(words)
    keywords = {
        tree.title(leaf): [
            word
            for word, _ in sorted(
                # Words of one document alone are not in the vocabulary.
                ((word, count) for word, count in seen[leaf].items() if everywhere[word] > 1),
                key=lambda kv: (-(kv[1] ** 2) / everywhere[kv[0]], kv[0]),
            )[:5]
        ]
        for leaf in tree.leaves
    }
    target = tmp_path / "letters.jsonl"
    target.write_text("".join(json.dumps({**one, "labels": None}) + "\n" for one in held))
    return target, letters / "taxonomy.yaml", written(tmp_path, json.dumps(keywords), "words.json")


class TestCommands:
    def test_check_tells_how_many_labels_have_keywords(
        self, himecat: Himecat, letters: Path, tmp_path: Path
    ) -> None:
        leaf = next(iter(_leaves(letters)))
        words = written(tmp_path, json.dumps({leaf: ["the", "zzyzx"]}), "words.json")
        docs, tree = letters / "documents.jsonl", letters / "taxonomy.yaml"
        ended = himecat("check", docs, "--taxonomy", tree, "--keywords", words)
        assert ended.code == 0, ended.err
        assert "1 for 1 of " in ended.out
        assert "zzyzx" in ended.out
        plain = himecat("check", docs, "--taxonomy", tree, "--keywords", words, "--json", "-").json
        assert plain["keywords"] == [{"label": leaf, "words": 1}]

    def test_check_ends_with_2_where_keywords_cannot_be_used(
        self, himecat: Himecat, letters: Path, tmp_path: Path
    ) -> None:
        words = written(tmp_path, "no such label: [x]\n")
        docs, tree = letters / "documents.jsonl", letters / "taxonomy.yaml"
        ended = himecat("check", docs, "--taxonomy", tree, "--keywords", words)
        assert ended.code == 2
        assert f"{words}: unknown label 'no such label'" in ended.err

    @pytest.mark.parametrize("command", ["fit", "evaluate"])
    def test_options_are_in_the_help(self, himecat: Himecat, command: str) -> None:
        ended = himecat(command, "--help")
        assert "--keywords" in ended.out
        assert "--encoder" in ended.out

    def test_fit_on_keywords_alone(
        self, himecat: Himecat, unlabelled: tuple[Path, Path, Path], tmp_path: Path
    ) -> None:
        docs, tree, words = unlabelled
        model = tmp_path / "model"
        fit = ["fit", docs, "--taxonomy", tree, "-q", "-o", model, "--set=min_count=2"]
        without = himecat(*fit)
        assert without.code == 2
        ended = himecat(*fit, "--keywords", words)
        assert ended.code == 0, ended.err
        assert (model / "model.json").is_file()

    def test_fit_tells_what_is_wrong_with_keywords(
        self, himecat: Himecat, letters: Path, tmp_path: Path
    ) -> None:
        words = written(tmp_path, "no such label: [x]\n")
        ended = himecat(
            "fit",
            letters / "documents.jsonl",
            "--taxonomy",
            letters / "taxonomy.yaml",
            "--keywords",
            words,
            "-o",
            tmp_path / "model",
        )
        assert ended.code == 2
        assert "unknown label 'no such label'" in ended.err
        assert not (tmp_path / "model").exists()

    def test_evaluate_passes_them_to_the_estimator(
        self, himecat: Himecat, letters: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:

        given: dict[str, Any] = {}

        def run(*_: Any, arguments: Mapping[str, Any], **__: Any) -> list[Any]:
            given.update(arguments)
            raise DataError("That is enough.")

        monkeypatch.setattr("himecat.compare.protocol.evaluate.evaluate", run)
        words = written(tmp_path, "a: [x]\n")
        ended = himecat("evaluate", letters, "--keywords", words, "--encoder", "some-model")
        assert ended.errors == ["That is enough."]
        assert given["keywords"] == str(words)
        assert given["encoder"] == "some-model"
        assert pickle.loads(pickle.dumps(given)) == given


def _leaves(folder: Path) -> list[str]:
    from himecat.input.taxonomy.readers import read_taxonomy

    tree = read_taxonomy(folder / "taxonomy.yaml")
    return [tree.title(leaf) for leaf in tree.leaves]

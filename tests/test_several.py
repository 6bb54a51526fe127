"""Documents that belong to several categories."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import Himecat
from himecat import Default, HiMeCat, Supervision, Taxonomy
from himecat.classifier.set_assignments import SetAssignments, assign_sets, at_or_below
from himecat.compare.protocol.measure import Source, measure
from himecat.compare.systems.himecat import Himecat as System
from himecat.errors import DataError, UsageError
from himecat.evaluation.review_workbook import workbook
from himecat.evaluation.set_metrics import score_sets
from himecat.input.answers import read_answers
from himecat.input.documents import Fields
from himecat.input.formats import iter_records
from himecat.input.problems import Problems
from himecat.input.several import parted

TOPICS = {
    ("nature", "foxes"): "fox den cub tail fur",
    ("nature", "trees"): "oak leaf bark root branch",
    ("technology", "cars"): "car wheel brake engine fuel",
    ("technology", "phones"): "phone screen call battery signal",
    ("food",): "bread cheese soup salt apple",
}


def pile(
    size: int = 160, labelled: int = 50, seed: int = 0
) -> tuple[list[dict[str, Any]], list[list[list[str]]]]:
    """Documents of one to three topics, and the true paths; the first ones carry them as labels."""
    rng = np.random.default_rng(seed)
    paths, documents, truth = list(TOPICS), [], []
    for number in range(size):
        own = rng.choice(len(paths), rng.integers(1, 4), replace=False)
        words = [word for topic in own for word in rng.choice(TOPICS[paths[topic]].split(), 4)]
        truth.append([list(paths[topic]) for topic in own])
        documents.append({"id": f"d{number}", "text": " ".join(rng.permutation(words))})
        if number < labelled:
            documents[-1]["labels"] = truth[-1]
    return documents, truth


@pytest.fixture(scope="module")
def fitted() -> HiMeCat:
    return HiMeCat(method=Default(min_count=1), threads=1).fit(pile()[0])


class TestLabels:
    def test_a_list_of_lists_is_several_paths(self) -> None:
        assert parted({3: [["a", "b"], ["c"]]}).labels == {0: ["a", "b"], 1: ["c"]}

    def test_a_list_of_strings_with_the_separator_is_several_paths(self) -> None:
        assert parted({3: ["a/b", "a/c"]}).labels == {0: "a/b", 1: "a/c"}
        assert parted({3: ["a > b", "a > c"]}).labels == {0: "a > b", 1: "a > c"}

    def test_a_plain_list_of_names_is_one_path(self) -> None:
        given = {3: ["a", "b"], 4: "a/b", 5: ["a/b"]}
        assert parted(given).labels is given

    def test_names_with_slashes_that_are_a_path_of_the_tree_are_one_path(self) -> None:
        tree = Taxonomy.from_paths([("Audio/Video", "TV/Radio"), ("Books",)])
        assert parted({0: ["Audio/Video", "TV/Radio"]}, None, tree).rows is None

    def test_what_can_be_both_is_asked_for(self) -> None:
        with pytest.raises(
            DataError, match=r"\['a/b', 'c'\] can be one path or several: write a path as a list"
        ):
            parted({0: ["a/b", "c"]})

    def test_semicolons_separate_paths_where_it_is_said_that_there_are_several(self) -> None:
        assert parted({0: "a/b; c"}, several=True).labels == {0: "a/b", 1: "c"}
        assert parted({0: "a/b; c"}).rows is None

    def test_two_paths_without_a_tree_are_no_category_with_a_child(self) -> None:
        documents = [
            {"text": "red fox", "labels": ["nature/foxes", "colours/red"]},
            {"text": "old oak", "labels": ["nature/trees", "colours/brown"]},
        ]
        model = HiMeCat(method=Default(min_count=1), threads=1).fit(documents)
        assert sorted(model.paths_) == [
            ("colours", "brown"),
            ("colours", "red"),
            ("nature", "foxes"),
            ("nature", "trees"),
        ]

    def test_a_path_that_leads_to_another_says_nothing_more(self) -> None:
        documents, _ = pile()
        for one in documents[:50]:
            one["labels"] = [*one["labels"], [one["labels"][0][0]]]
        model = HiMeCat(method=Default(min_count=1), threads=1).fit(documents)
        assert set(model.paths_) == set(TOPICS)

    def test_it_is_found_and_said(self, fitted: HiMeCat) -> None:
        said = [str(one) for one in fitted.problems_ if "set of paths" in str(one)]
        assert len(said) == 1
        assert "of 50 labelled documents have more than one category" in said[0]

    def test_none_is_the_label_of_documents_without_a_category(self) -> None:
        documents, _ = pile()
        away = [
            {"id": f"n{row}", "text": text, "labels": label}
            for row, (text, label) in enumerate(
                [
                    ("tax law court judge", [["none"]]),
                    ("judge court tax vote", "none"),
                    ("law vote tax judge", ["none"]),
                ]
            )
        ]
        model = HiMeCat(method=Default(min_count=1), threads=1).fit([*documents, *away])
        assert set(model.paths_) == set(TOPICS)
        unlike, like = model.predict_proba(
            [{"text": "tax court law vote"}, {"text": "fox den cub tail"}]
        ).max(axis=1)
        assert unlike < 0.5 < like
        placed = model.predict_frame([*documents[:1], *away])
        assert placed["paths"].notna().tolist() == [True, False, False, False]
        assert placed["labelled"].all()

    def test_none_beside_a_category_is_refused(self) -> None:
        documents, _ = pile()
        documents[7]["labels"] = [["food"], ["none"]]
        tree = Taxonomy.from_paths(TOPICS)
        with pytest.raises(DataError, match=r"document 7: 'none' stands beside a category"):
            HiMeCat(taxonomy=tree, method=Default(min_count=1), threads=1).fit(documents)

    def test_it_is_refused_where_it_was_ruled_out(self) -> None:
        with pytest.raises(
            DataError, match=r"documents have more than one category \(document 0 first\), and one each"
        ):
            HiMeCat(method=Default(min_count=1), several=False).fit(pile()[0])

    def test_the_published_method_gives_one_path(self) -> None:
        with pytest.raises(UsageError, match="The published method gives every document one path"):
            HiMeCat(method="paper").fit(pile()[0])

    def test_one_label_each_stays_as_it_was(self) -> None:
        documents, truth = pile()
        labels = [one[0] if row < 50 else None for row, one in enumerate(truth)]
        plain = HiMeCat(method=Default(min_count=1), threads=1)
        texts = [one["text"] for one in documents]
        assert not plain.fit(texts, labels).gives_sets
        sets = HiMeCat(method=Default(min_count=1), threads=1, several=True).fit(texts, labels)
        assert sets.gives_sets


class TestSets:
    def test_every_document_has_its_topics(self, fitted: HiMeCat) -> None:
        documents, truth = pile()
        found = fitted.score(documents[50:], truth[50:])
        assert found > 0.85
        sizes = [len(one) for one in fitted.predict(documents[50:])]
        assert abs(np.mean(sizes) - np.mean([len(one) for one in truth[50:]])) < 0.4

    def test_the_surest_comes_first_and_its_levels_go_down(self, fitted: HiMeCat) -> None:
        placed = fitted.assign(pile()[0])
        assert isinstance(placed, SetAssignments)
        for row in range(len(placed)):
            sure = placed.path_confidences(row)
            assert sure == tuple(sorted(sure, reverse=True))
            assert placed.path(row) == placed.paths(row)[0]
            levels = placed.confidences(row)
            assert levels == tuple(sorted(levels, reverse=True))
            assert levels[-1] == sure[0]

    def test_probabilities_follow_the_paths(self, fitted: HiMeCat) -> None:
        found = fitted.predict_proba(pile()[0])
        assert found.shape == (160, len(fitted.paths_))
        assert 0 <= found.min() <= found.max() <= 1
        assert list(fitted.classes_) == ["/".join(path) for path in fitted.paths_]

    def test_a_saved_model_gives_the_same(self, fitted: HiMeCat, tmp_path: Path) -> None:
        fitted.save(tmp_path / "model")
        again = HiMeCat.load(tmp_path / "model")
        documents = pile()[0]
        np.testing.assert_array_equal(again.predict_proba(documents), fitted.predict_proba(documents))
        assert again.predict(documents).tolist() == fitted.predict(documents).tolist()
        again.save(tmp_path / "again")
        for name in ("model.json", "weights.safetensors", "corpus.safetensors"):
            assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "model" / name).read_bytes()

    def test_the_number_of_threads_does_not_matter(self, fitted: HiMeCat) -> None:
        documents = pile()[0]
        other = HiMeCat(method=Default(min_count=1), threads=2).fit(documents)
        np.testing.assert_array_equal(other.predict_proba(documents), fitted.predict_proba(documents))


@pytest.fixture
def loaded(fitted: HiMeCat, tmp_path: Path) -> HiMeCat:
    fitted.save(tmp_path / "loaded")
    return HiMeCat.load(tmp_path / "loaded")


def files(model: HiMeCat, folder: Path) -> list[bytes]:
    model.save(folder)
    return [
        (folder / name).read_bytes() for name in ("model.json", "weights.safetensors", "corpus.safetensors")
    ]


class TestReview:
    def test_the_set_is_suggested_and_what_is_not_in_it(self, fitted: HiMeCat) -> None:
        documents, _ = pile()
        rows = fitted.review(documents, count=30)
        assert len({row["id"] for row in rows}) == 30
        assert not {row["id"] for row in rows} & {one["id"] for one in documents[:50]}
        placed = fitted.assign(rows)
        assert isinstance(placed, SetAssignments)
        for number, row in enumerate(rows):
            assert row["suggestion1"] == [list(path) for path in placed.paths(number)]
            assert row["confidence1"] == [round(one, 4) for one in placed.path_confidences(number)]
            for other in ("suggestion2", "suggestion3"):
                assert row[other][0] not in row["suggestion1"]
            assert row["confidence2"][0] >= row["confidence3"][0]
            assert row["why"]
            assert row["answer"] == ""

    def test_suggestions_by_their_numbers(self, fitted: HiMeCat) -> None:
        rows = fitted.review(pile()[0], count=8)
        given = [
            ("1", row["suggestion1"]) if number % 2 else ("3;1", row["suggestion1"] + row["suggestion3"])
            for number, row in enumerate(rows)
        ]
        for row, (answer, _) in zip(rows, given, strict=True):
            row["answer"] = answer
        found = read_answers(
            rows, fitted.taxonomy_, Fields(), {row["id"]: 0 for row in rows}, Problems(), several=True
        )
        for row, (_, paths) in zip(rows, given, strict=True):
            nodes = found.given[row["id"]].nodes
            assert {fitted.taxonomy_.path(node) for node in nodes} == {tuple(path) for path in paths}
        assert fitted.correct(rows, dry_run=True).n_confirmed == 4

    def test_who_belongs_nowhere_is_not_asked_about_again(self, loaded: HiMeCat) -> None:
        texts = [{"id": one["id"], "text": one["text"]} for one in pile()[0]]
        first = loaded.review(texts, count=1)[0]["id"]
        loaded.correct({first: "none"})
        assert first not in {row["id"] for row in loaded.review(texts, count=1000)}


class TestCorrect:
    def test_it_is_what_a_fit_gives_with_all_labels(self, loaded: HiMeCat, tmp_path: Path) -> None:
        documents, truth = pile()
        chosen = [3, *range(50, 62)]
        found = loaded.correct({f"d{row}": truth[row] for row in chosen} | {"d4": [["food"]], "d70": "none"})
        assert (found.n_confirmed + found.n_moved, found.n_nowhere, found.n_labelled) == (14, 1, 63)
        assert found.n_replaced == (truth[4] != [["food"]])
        for row in chosen:
            documents[row]["labels"] = truth[row]
        documents[4]["labels"], documents[70]["labels"] = [["food"]], "none"
        whole = HiMeCat(method=Default(min_count=1), threads=1).fit(documents)
        assert files(loaded, tmp_path / "one") == files(whole, tmp_path / "other")

    @pytest.mark.parametrize(
        "answer",
        [
            [["food"], ["nature", "foxes"]],
            ("nature/foxes", "food"),
            ["food", "foxes"],
            "food; nature/foxes",
            " foxes ;food;",
            "nature; nature/foxes; food",
        ],
        ids=repr,
    )
    def test_ways_to_write_a_set(self, fitted: HiMeCat, answer: Any) -> None:
        assert named(fitted, answer) == {"food", "nature/foxes"}

    def test_a_list_from_the_top_down_is_one_path(self, fitted: HiMeCat) -> None:
        assert named(fitted, ["nature", "foxes"]) == named(fitted, "foxes") == {"nature/foxes"}

    def test_what_predict_gives_confirms_itself(
        self, fitted: HiMeCat, tmp_path: Path, himecat: Himecat
    ) -> None:
        documents = [{"id": one["id"], "text": one["text"]} for one in pile()[0][60:90]]
        ids = [one["id"] for one in documents]
        given = [
            dict(zip(ids, fitted.predict(documents).tolist(), strict=True)),
            dict(zip(ids, fitted.predict(documents, as_tuples=True), strict=True)),
            dict(zip(ids, fitted.predict_frame(documents)["paths"], strict=True)),
        ]
        for answers in given:
            found = fitted.correct(answers, dry_run=True)
            assert (found.n_confirmed, found.n_moved, found.n_changed) == (30, 0, None)
            assert "30 confirm, 0 change" in found.said

    def test_names_with_semicolons(self) -> None:
        texts = ["red fox den", "old car wheel", "fox and car", "red fox", "old car"]
        tree = Taxonomy.from_paths([("nature; wild", "foxes; red"), ("cars",)])
        paths = [["nature; wild", "foxes; red"], ["cars"]]
        model = HiMeCat(tree, method=Default(min_count=1), threads=1, several=True)
        model.fit(texts, [[paths[0]], [paths[1]], paths, None, None])
        both = model.predict_frame(texts, top=0)["paths"][2]
        assert both.count(";") == 3
        assert named(model, both) == {"nature; wild/foxes; red", "cars"}
        assert named(model, "cars; foxes; red") == {"nature; wild/foxes; red", "cars"}

    @pytest.mark.parametrize(
        ("answers", "said"),
        [
            ({"d60": "food; foxs"}, "the answer for 'd60': unknown label 'foxs'; did you mean 'foxes'?"),
            ({"d60": [["food"], ["nature", "cars"]]}, "the answer for 'd60': "),
            ({"d60": "food; none"}, "the answer for 'd60': 'none' stands beside a category"),
            ({"d60": "skip; food"}, "the answer for 'd60': 'skip' stands beside a category"),
            ({"d60": "food; 2"}, "the answer is 2, and there is no suggestion 2 in the row"),
            ({"d60": [[], []]}, "the answer for 'd60': "),
            ({"d60": ";"}, "the answer for 'd60': "),
            ({"d60": [{"a": 1}, "food"]}, "the answer for 'd60': "),
            ({"x": "food; foxes"}, "the answer for 'x': the model does not know the document 'x'"),
            (
                [{"id": "d60", "answer": "food; foxes"}, {"id": "d60", "answer": "food"}],
                "the document 'd60' is food here and food; nature/foxes at",
            ),
        ],
        ids=repr,
    )
    def test_what_cannot_be_used_is_told(self, fitted: HiMeCat, answers: Any, said: str) -> None:
        with pytest.raises(DataError) as error:
            fitted.correct(answers, dry_run=True)
        assert said in str(error.value)

    def test_changes_are_told_as_what_was_lost_and_got(self, loaded: HiMeCat) -> None:
        documents = pile()[0]
        before = [set(paths) for paths in loaded.predict(documents)]
        found = loaded.correct(
            {f"d{row}": [["technology", "cars"], ["technology", "phones"]] for row in range(60, 100)}
        )
        pairs = list(zip(before, [set(paths) for paths in loaded.predict(documents)], strict=True))
        assert (
            found.n_changed == sum(one != other for one, other in pairs) == sum(m.count for m in found.moves)
        )
        for move in found.moves:
            lost, got = ({*filter(None, side.split("; "))} for side in (move.before, move.after))
            assert move.count == sum((one - other, other - one) == (lost, got) for one, other in pairs)
        assert "documents have other paths now:" in found.done
        assert "  + technology/" in found.done

    def test_sets_stay_sets_where_every_label_has_become_one_path(self) -> None:
        texts = ["red fox den", "old car wheel", "fox and car", "red fox", "old car"]
        model = HiMeCat(method=Default(min_count=1), threads=1)
        model.fit(texts, [["animals"], ["things"], [["animals"], ["things"]], None, None])
        model.correct({"2": "animals"})
        assert model.gives_sets

    def test_new_documents_bring_their_sets(self, loaded: HiMeCat) -> None:
        new = [
            {
                "id": "n1",
                "text": "fox den cub wheel brake",
                "labels": [["nature", "foxes"], ["technology", "cars"]],
            },
            {"id": "n2", "text": "bread cheese soup fox", "labels": "food; foxes"},
            {"id": "n3", "text": "soup salt", "labels": "none"},
            {"id": "n4", "text": "oak leaf"},
        ]
        found = loaded.correct({"n4": "trees; food"}, new)
        assert (found.n_added, found.n_labelled, found.n_documents) == (4, 54, 164)
        corpus, labelled = loaded.learned_from()
        sets = {
            name: {loaded.taxonomy_.title(node) for node in labelled.nodes[labelled.rows == row]}
            for row, name in enumerate(corpus.ids[160:], start=160)
        }
        assert sets == {
            "n1": {"nature/foxes", "technology/cars"},
            "n2": {"food", "nature/foxes"},
            "n3": set(),
            "n4": {"nature/trees", "food"},
        }
        assert labelled.nowhere.tolist() == [162]


def named(model: HiMeCat, answer: Any) -> set[str]:
    """What an answer for a document names."""
    found = read_answers(
        {"d": answer}, model.taxonomy_, Fields(), {"d": 0}, found_wrong := Problems(), several=True
    )
    found_wrong.raise_errors()
    return {model.taxonomy_.title(node) for node in found.given["d"].nodes}


class TestAssignSets:
    TREE = Taxonomy.from_paths([("a", "b"), ("a", "c"), ("d",)])
    NODES = np.array([1, 2, 3, 4])  # a, d, a/b, a/c

    def assigned(self, *row: float, **more: Any) -> SetAssignments:
        return assign_sets(self.TREE, self.NODES, np.array([row], dtype=np.float32), 0.45, **more)

    def test_nodes_above_are_at_least_as_probable(self) -> None:
        found = at_or_below(self.TREE, self.NODES, np.array([[0.1, 0.2, 0.5, 0.5]], dtype=np.float32))
        np.testing.assert_allclose(found[0, 1:], [1 - 0.9 * 0.25, 0.2, 0.5, 0.5], rtol=1e-5)

    def test_above_the_threshold_without_what_leads_there(self) -> None:
        assert self.assigned(0.6, 0.5, 0.9, 0.1).paths(0) == (("a", "b"), ("d",))

    def test_one_at_least(self) -> None:
        assert self.assigned(0.01, 0.03, 0.02, 0.0).paths(0) == (("d",),)

    def test_a_likely_inner_node_gets_a_path(self) -> None:
        # b and c are each below the threshold, but one of them is more probable than not.
        assert self.assigned(0.0, 0.9, 0.4, 0.35).paths(0) == (("d",), ("a", "b"))

    def test_a_bound_cuts_paths_short_or_leaves_them_out(self) -> None:
        found = self.assigned(0.0, 0.55, 0.5, 0.5, min_confidence=0.7)
        assert found.paths(0) == (("a",),)
        assert found.path_confidences(0) == (0.75,)
        assert self.assigned(0.0, 0.55, 0.1, 0.1, min_confidence=0.7).paths(0) == ()

    def test_known_categories_stay(self) -> None:
        known = Supervision(np.array([0, 0]), np.array([3, 2]))
        found = self.assigned(0.0, 0.1, 0.1, 0.9, known=known, best=3)
        assert set(found.paths(0)) == {("a", "b"), ("d",)}
        assert found.path_confidences(0) == (1.0, 1.0)
        assert found.labelled is not None
        assert found.labelled.tolist() == [True]
        assert found.best is not None
        assert found.best[0, 1] == 4

    def test_what_leads_to_a_path_is_no_alternative_to_it(self) -> None:
        found = self.assigned(0.4, 0.1, 0.9, 0.2, best=4)
        assert found.best is not None
        assert found.best[0].tolist() == [3, 4, 2, 0]

    def test_unusable_documents_are_nowhere(self) -> None:
        found = assign_sets(self.TREE, self.NODES, np.full((3, 4), 0.6, dtype=np.float32), 0.5)
        left = found.without(np.array([False, True, False]))
        assert [len(paths) for paths in left] == [len(found.paths(0)), 0, len(found.paths(2))]

    def test_no_documents(self) -> None:
        assert len(assign_sets(self.TREE, self.NODES, np.zeros((0, 4), dtype=np.float32), 0.5)) == 0


class TestMetrics:
    def test_against_scikit_learn(self) -> None:
        from sklearn.metrics import f1_score

        rng = np.random.default_rng(0)
        tree = Taxonomy.from_paths([("a",), ("b",), ("c",), ("d",)])
        truth, given = (rng.random((40, 4)) < share for share in (0.5, 0.4))
        truth[:, 0] |= ~truth.any(axis=1)
        pairs = [
            Supervision(
                *(part.astype(np.int64) + [[0], [1]][place] for place, part in enumerate(np.nonzero(one)))
            )
            for one in (truth, given)
        ]
        found = score_sets(tree, *pairs)
        assert found.categories.micro == pytest.approx(f1_score(truth, given, average="micro"))
        assert found.categories.macro == pytest.approx(f1_score(truth, given, average="macro"))
        assert found.example_f1 == pytest.approx(f1_score(truth, given, average="samples", zero_division=0))
        assert found.with_ancestors == found.categories

    def test_ancestors_count_once(self) -> None:
        tree = Taxonomy.from_paths([("a", "b"), ("a", "c"), ("d",)])
        found = score_sets(
            tree, Supervision(np.array([0, 0]), np.array([3, 4])), Supervision(np.array([0]), np.array([3]))
        )
        assert found.categories.micro == pytest.approx(2 / 3)
        assert found.with_ancestors.micro == pytest.approx(2 * 2 / (3 + 2))


class TestCommands:
    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        place = tmp_path / "docs.jsonl"
        place.write_text("".join(json.dumps(one) + "\n" for one in pile()[0]))
        return place

    @pytest.fixture
    def model(self, himecat: Himecat, file: Path, tmp_path: Path) -> Path:
        done = himecat("fit", file, "-o", tmp_path / "model", "--set", "min_count=1", "--threads", 1)
        assert done.code == 0, done.err
        assert "every document gets a set of paths" in done.err
        return tmp_path / "model"

    def test_lines_and_scores(self, himecat: Himecat, model: Path, file: Path, tmp_path: Path) -> None:
        output, truth = tmp_path / "found.jsonl", tmp_path / "truth.jsonl"
        assert himecat("predict", model, file, "-o", output, "--top", 1).code == 0
        lines = [json.loads(line) for line in output.read_text().splitlines()]
        assert list(lines[60]) == ["id", "paths", "confidences", "alternatives"]
        assert lines[60]["alternatives"][0][0] not in lines[60]["paths"]
        assert lines[0]["labelled"] is True
        assert sorted(lines[0]["paths"]) == sorted(pile()[0][0]["labels"])
        assert set(lines[0]["confidences"]) == {1.0}
        rows = [{"id": f"d{row}", "labels": paths} for row, paths in enumerate(pile()[1])]
        truth.write_text("".join(json.dumps(one) + "\n" for one in rows))
        done = himecat("score", output, truth, "--json", "-")
        assert done.code == 0, done.err
        assert done.json["documents"] == 110
        assert done.json["categories"]["micro"] > 0.85
        assert "With ancestors" in himecat("score", output, truth).out

    def test_a_table_has_all_paths_and_those_of_the_surest(
        self, himecat: Himecat, model: Path, file: Path, tmp_path: Path
    ) -> None:
        output = tmp_path / "found.csv"
        page = tmp_path / "page.html"
        done = himecat("predict", model, file, "-o", output, "--report", page)
        assert done.code == 0, done.err
        assert page.exists()
        assert "the report shows the surest path of each document" in done.err
        with output.open(encoding="utf-8-sig", newline="") as stream:
            rows = list(csv.DictReader(stream))
        assert all(row["paths"].split("; ")[0] == row["path"] for row in rows)
        assert any("; " in row["paths"] for row in rows)
        assert rows[0]["labels"] == "; ".join("/".join(path) for path in pile()[0][0]["labels"])
        # What was written is read again as labels.
        again = himecat(
            "fit", output, "--labels", "paths", "--several", "--set", "min_count=1", "-o", tmp_path / "again"
        )
        assert again.code == 0, again.err
        assert set(HiMeCat.load(tmp_path / "again").paths_) == set(TOPICS)

    def test_tasks_of_label_studio_hold_all_paths(
        self, himecat: Himecat, model: Path, file: Path, tmp_path: Path
    ) -> None:
        output = tmp_path / "found.ls.json"
        assert himecat("predict", model, file, "-o", output).code == 0
        tasks = json.loads(output.read_text())
        sizes = {len(one["predictions"][0]["result"][0]["value"]["taxonomy"]) for one in tasks}
        assert len(sizes) > 1

    @pytest.mark.parametrize("ending", ["csv", "xlsx", "jsonl"])
    def test_review_fill_in_correct(
        self, ending: str, himecat: Himecat, model: Path, file: Path, tmp_path: Path
    ) -> None:
        review, true = (
            tmp_path / f"review.{ending}",
            {f"d{row}": paths for row, paths in enumerate(pile()[1])},
        )
        assert himecat("review", model, file, "-n", 12, "-o", review).code == 0
        rows = [row.fields or {} for row in iter_records(str(review), Problems())]
        if ending != "jsonl":
            assert any("; " in row["suggestion1"] and "; " in row["confidence1"] for row in rows)
        # The set as it stands there, its number, and the true one.
        for number, row in enumerate(rows):
            truth = (
                true[row["id"]]
                if ending == "jsonl"
                else "; ".join("/".join(path) for path in true[row["id"]])
            )
            row["answer"] = (row["suggestion1"], "1", truth)[number % 3]
        if ending == "xlsx":
            review.write_bytes(workbook(rows, dict.fromkeys(rows[0], 20)))
        elif ending == "jsonl":
            review.write_text("".join(json.dumps(row) + "\n" for row in rows))
        else:
            with review.open("w", encoding="utf-8", newline="") as stream:
                table = csv.DictWriter(stream, list(rows[0]))
                table.writeheader()
                table.writerows(rows)
        done = himecat("correct", model, review, "--json", tmp_path / "found.json")
        assert done.code == 0, done.err
        found = json.loads((tmp_path / "found.json").read_text())
        assert found["confirmed"] >= 8
        assert found["labelled"] == 62
        corpus, labelled = HiMeCat.load(model).learned_from()
        tree = HiMeCat.load(model).taxonomy_
        for row in rows[2::3]:
            nodes = labelled.nodes[labelled.rows == corpus.ids.index(row["id"])].tolist()
            assert {tree.path(node) for node in nodes} == set(map(tuple, true[row["id"]]))

    def test_evaluate(self, himecat: Himecat, file: Path) -> None:
        done = himecat("evaluate", file, "--draws", 2, "--set", "min_count=1", "--threads", 1, "--json", "-")
        assert done.code == 0, done.err
        assert done.json["mean"]["sets"]["categories"]["micro"] > 0.8
        assert done.json["mean"]["overall"] == done.json["mean"]["sets"]["with_ancestors"]

    def test_no_several_refuses(self, himecat: Himecat, file: Path, tmp_path: Path) -> None:
        for command in (["check", file], ["fit", file, "-o", tmp_path / "model"]):
            done = himecat(*command, "--no-several", "--set", "min_count=1")
            assert done.code == 2
            assert "more than one category" in done.err
        assert not (tmp_path / "model").exists()

    def test_check_accepts_and_says(self, himecat: Himecat, file: Path) -> None:
        done = himecat("check", file, "--set", "min_count=1")
        assert done.code == 0, done.err
        said = " ".join((done.out + done.err).split())
        assert "set of paths" in said
        assert "counts for the leaves below" not in said


@pytest.mark.real
def test_a_part_of_the_tools_is_placed_well(shared_data: Callable[[str], Path]) -> None:
    run = measure(Source(shared_data("tools"), limit=5000), System())
    assert run.sets is not None
    assert run.sets["categories"]["micro"] > 0.36
    assert run.sets["with_ancestors"]["micro"] > 0.56
    sizes = run.sets["paths_per_document"]
    assert abs(sizes["given"] - sizes["true"]) < 0.6
    [error] = run.calibration
    assert error is not None
    assert error < 0.05

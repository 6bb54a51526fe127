"""The paper's protocol: a few labelled documents per leaf, scores on all the others, several draws."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import TINY, Himecat
from himecat import Default, Paper
from himecat.compare.protocol import runner
from himecat.compare.protocol.evaluate import evaluate, figures, spread, summarise
from himecat.compare.protocol.run import Run
from himecat.compare.protocol.worker import Worker, peak_mb
from himecat.errors import DataError, HimecatError, UsageError
from himecat.input.builder import load_corpus
from himecat.input.dataset import draw, open_dataset, true_nodes
from himecat.input.documents import Fields
from himecat.views.encoder_cache import COLUMN
from himecat.views.text_encoder import TextEncoder

SMALL = {
    "method": Paper(space="spectral", beta=10, dimension=16, min_count=2, classifier="mean-logistic"),
    "text": ["text"],
    "random_state": 0,
}


class InThisProcess(Worker):
    """Does the work at once, where a test is about something else."""

    def __init__(self, work: Callable[..., Any], *task: Any, environment: object = None) -> None:
        self.receiver, sender = multiprocessing.Pipe(duplex=False)
        try:
            sender.send(work(*task))
        except HimecatError as error:
            sender.send(error)
        sender.close()

    def result(self) -> Any:
        return self.receiver.recv()

    def end(self) -> None: ...


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "Worker", InThisProcess)


def one_run(number: int = 0, *more: Any, **parts: Any) -> Run:
    """A run as if it were measured."""
    scores = {"micro": 0.5, "macro": 0.5}
    return Run("letters", "himecat", "himecat", {}, number, 0, scores, scores, 1.0, 1.0, 1.0, **parts)


@pytest.fixture(scope="session")
def evaluated(letters: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The JSON of an evaluation on two draws, each in a process of its own."""
    from himecat.cli import main

    target = tmp_path_factory.mktemp("scores") / "scores.json"
    with pytest.raises(SystemExit) as end:
        main(["evaluate", str(letters), "--draws", "2", "-q", "--threads", "2", "--json", str(target), *TINY])
    assert end.value.code == 0
    found = json.loads(target.read_text())
    assert isinstance(found, dict)
    return found


class TestShape:
    def test_the_draws(self, evaluated: dict[str, Any]) -> None:
        assert [one["draw"] for one in evaluated["draws"]] == [0, 1]
        for one in evaluated["draws"]:
            costs = ["seconds", "cpu_seconds", "peak_rss_mb"]
            assert list(one) == ["draw", "leaf", "overall", *costs, "calibration"]
            for part in ("leaf", "overall"):
                assert list(one[part]) == ["micro", "macro"]
                assert all(0 < value < 1 for value in one[part].values())
            assert len(one["calibration"]) == 3
            assert all(0 < error < 1 for error in one["calibration"])
            assert one["seconds"] > 0
            assert one["cpu_seconds"] > 0
            assert 50 < one["peak_rss_mb"] < 1500

    def test_the_mean_has_the_same_shape(self, evaluated: dict[str, Any]) -> None:
        first, second = evaluated["draws"]
        for name in ("mean", "sd"):
            assert list(evaluated[name]) == [key for key in first if key != "draw"]
        for part in ("leaf", "overall"):
            for key in ("micro", "macro"):
                both = [first[part][key], second[part][key]]
                assert evaluated["mean"][part][key] == pytest.approx(np.mean(both))
                assert evaluated["sd"][part][key] == pytest.approx(np.std(both, ddof=1))
        for cost in ("seconds", "cpu_seconds", "peak_rss_mb"):
            assert evaluated["mean"][cost] == pytest.approx((first[cost] + second[cost]) / 2)
        errors = np.array([first["calibration"], second["calibration"]])
        assert evaluated["mean"]["calibration"] == pytest.approx(errors.mean(axis=0))
        assert evaluated["sd"]["calibration"] == pytest.approx(errors.std(axis=0, ddof=1))

    def test_what_was_evaluated(self, evaluated: dict[str, Any]) -> None:
        assert evaluated["dataset"] == "letters"
        assert evaluated["arguments"]["method"]["name"] == "paper"
        assert evaluated["arguments"]["method"]["beta"] == 10
        assert evaluated["arguments"]["random_state"] == 0


class TestDraws:
    def test_they_are_the_same_every_time(
        self, letters: Path, evaluated: dict[str, Any], in_this_process: None
    ) -> None:
        # In this process, on one thread: the protocol, not the process, decides the scores.
        again = evaluate(letters, draws=[0, 1], arguments={**SMALL, "threads": 1})
        for run, one in zip(again, evaluated["draws"], strict=True):
            assert run.leaf == one["leaf"]
            assert run.overall == one["overall"]
            assert run.calibration == one["calibration"]
        assert evaluated["draws"][0]["leaf"] != evaluated["draws"][1]["leaf"]

    def test_they_are_drawn_as_the_corpora_say(self, letters: Path) -> None:
        dataset = open_dataset(letters)
        documents = [json.loads(line) for line in (letters / "corpus.jsonl").read_text().splitlines()]
        loaded = load_corpus(dataset.documents, Fields())
        truth = true_nodes(dataset, loaded)
        listed = {}
        for line in (letters / "doc_id.txt").read_text().splitlines():
            leaf, _, rows = line.partition("\t")
            listed |= dict.fromkeys(map(int, rows.split()), leaf)
        first = draw(dataset, truth, 0)
        titles = [dataset.taxonomy.title(node) for node in first.nodes.tolist()]
        assert dict(zip(first.rows.tolist(), titles, strict=True)) == listed
        # Draw s > 0: one generator, the leaves in sorted order, five of each in file order.
        rng = random.Random(3)
        rows_of: dict[tuple[str, ...], list[int]] = {}
        for row, document in enumerate(documents):
            rows_of.setdefault(tuple(document["labels"]), []).append(row)
        expected = []
        for path in sorted(rows_of, key=lambda path: (path[-1], path)):
            expected += rng.sample(rows_of[path], 5)
        assert draw(dataset, truth, 3).rows.tolist() == sorted(expected)

    def test_only_the_labels_of_the_draw_are_learned_from(
        self, letters: Path, monkeypatch: pytest.MonkeyPatch, in_this_process: None
    ) -> None:
        seen: dict[str, Any] = {}

        class Watched(Exception):
            pass

        def watching(self: Any, X: Any, y: Any, **_: Any) -> None:
            seen.update(documents=len(X), rows=y.rows.tolist())
            raise Watched

        monkeypatch.setattr("himecat.estimator.HiMeCat.fit", watching)
        with pytest.raises(Watched):
            evaluate(letters, draws=[2], per_leaf=3, arguments=SMALL)
        assert seen["documents"] == 330
        assert len(seen["rows"]) == 3 * 22


class TestPrinted:
    def test_the_table(self, himecat: Himecat, letters: Path, in_this_process: None) -> None:
        ended = himecat("evaluate", letters, "--draws", 2, "-q", *TINY)
        assert (ended.code, ended.err) == (0, "")
        *_, first, second, mean, sd = ended.out.splitlines()
        for row, name in ((first, "draw 0"), (second, "draw 1"), (mean, "mean"), (sd, "sd")):
            figures = r"( +0\.\d{4}){4}  \.\d\d \.\d\d \.\d\d( +\d+\.\d){2} +\d+$"
            assert re.match(name + figures, row), row
        assert max(map(len, ended.out.splitlines())) <= 80

    def test_progress_goes_to_standard_error(
        self, himecat: Himecat, letters: Path, in_this_process: None, evaluated: dict[str, Any]
    ) -> None:
        ended = himecat("evaluate", letters, "--draws", 1, "--json", "-", *TINY)
        assert ended.json["draws"][0]["leaf"] == evaluated["draws"][0]["leaf"]
        assert "Draw 0: 110 labelled documents, 220 to score\n" in ended.err
        assert ended.err.lower().count("draw 0") == 1
        assert "Learning the space: done in" in ended.err
        assert re.search(r"^Leaf F1 0\.\d{4} / .*, ECE( \.\d\d){3}, ", ended.err, re.MULTILINE)


@pytest.fixture(scope="module")
def found(letters: Path) -> Run:
    """A draw with a fifth of the documents held out."""
    (run,) = evaluate(letters, draws=[1], arguments={**SMALL, "threads": 1}, holdout=0.2)
    return run


class TestHoldout:
    def test_the_other_figures_are_those_without_it(self, found: Run, evaluated: dict[str, Any]) -> None:
        assert evaluated["draws"][1]["leaf"] == found.leaf
        assert evaluated["draws"][1]["calibration"] == found.calibration

    def test_both_scores(self, found: Run) -> None:
        assert found.held_out is not None
        assert found.had_them is not None
        assert 0 < found.held_out["micro"] < 1
        assert found.held_out != found.had_them
        assert list(figures(found))[-2:] == ["held_out", "had_them"]

    def test_the_second_model_never_saw_them(
        self, letters: Path, monkeypatch: pytest.MonkeyPatch, in_this_process: None
    ) -> None:
        from himecat.estimator import HiMeCat

        fitted: list[Any] = []
        placed: list[Any] = []
        fit, assign = HiMeCat.fit, HiMeCat.assign

        def fit_seen(self: Any, X: Any, y: Any, **more: Any) -> Any:
            fitted.append((X, y))
            return fit(self, X, y, **more)

        def assign_seen(self: Any, X: Any) -> Any:
            placed.append(X)
            return assign(self, X)

        monkeypatch.setattr(HiMeCat, "fit", fit_seen)
        monkeypatch.setattr(HiMeCat, "assign", assign_seen)
        evaluate(letters, draws=[1], arguments=SMALL, holdout=0.2)
        (everything, all_labels), (rest, labels) = fitted
        _, out = placed
        assert len(out) == 44 == round(0.2 * (330 - 110))
        assert set(rest.ids).isdisjoint(out.ids)
        assert set(rest.ids) | set(out.ids) == set(everything.ids)
        assert [rest.ids[row] for row in labels.rows] == [everything.ids[row] for row in all_labels.rows]
        assert labels.nodes.tolist() == all_labels.nodes.tolist()
        # And it is the corpus that reading the other documents alone gives.
        dataset = open_dataset(letters)
        lines = map(json.loads, (letters / "corpus.jsonl").read_text().splitlines())
        alone = load_corpus(
            [line for line in lines if line["id"] in set(rest.ids)],
            Fields(metadata=dataset.metadata),
            min_count=2,
        ).corpus
        assert alone.words.names == rest.words.names
        assert alone.words.counts.tolist() == rest.words.counts.tolist()
        assert alone.tokens.values.tolist() == rest.tokens.values.tolist()
        assert alone.tokens.offsets.tolist() == rest.tokens.offsets.tolist()
        for kind, column in alone.metadata.items():
            assert column.vocabulary.names == rest.metadata[kind].vocabulary.names
            assert column.values.values.tolist() == rest.metadata[kind].values.values.tolist()

    def test_printed(self, himecat: Himecat, letters: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def run(folder: Any, *, on_run: Any, holdout: float, **_: Any) -> list[Run]:
            assert holdout == 0.2
            parts = {"held_out": {"micro": 0.4, "macro": 0.3}, "had_them": {"micro": 0.5, "macro": 0.5}}
            runs = [one_run(n, calibration=[0.031, error], **parts) for n, error in enumerate((0.06, None))]
            for one in runs:
                on_run(one)
            return runs

        monkeypatch.setattr("himecat.compare.protocol.evaluate.evaluate", run)
        ended = himecat("evaluate", letters, "--holdout", 0.2)
        told = (
            "leaf F1 of documents left out of fit 0.4000 / 0.3000, of the same ones taken in 0.5000 / 0.5000"
        )
        first, second = ended.err.splitlines()
        assert first.endswith(f"; {told}")
        assert "ECE .03 -, " in second
        *_, mean, _sd, last = ended.out.splitlines()
        assert ".03 .06" in mean
        assert last == f"mean {told}"

    def test_a_share_that_leaves_nothing(self, himecat: Himecat, letters: Path) -> None:
        ended = himecat("evaluate", letters, "--holdout", 1)
        assert (ended.code, ended.out) == (2, "")
        assert ended.errors == ["holdout must be a share from 0 to less than 1, not 1.0."]


class TestEncoder:
    def test_it_is_one_more_view_whose_vectors_are_made_before_the_draws(
        self, letters: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_this_process: None
    ) -> None:
        events: list[str] = []

        class Ones(TextEncoder):
            def check_installed(self) -> None:
                pass

            def encode(self, texts: Any) -> Any:
                events.append(f"encode {len(texts)}")
                return np.ones((len(texts), 2), dtype=np.float32)

        def fit(self: Any, X: Any, y: Any, **_: Any) -> None:
            events.append(f"fit {self.encoder} {X.columns[COLUMN].shape}")
            raise UsageError("That is enough.")

        def opened(name: Any, threads: int | None = None) -> Ones:
            return Ones(name, None, "0123abcd")

        monkeypatch.setenv("HIMECAT_CACHE", str(tmp_path))
        monkeypatch.setattr("himecat.compare.protocol.measure.open_encoder", opened)
        monkeypatch.setattr("himecat.compare.protocol.runner.open_encoder", opened)
        monkeypatch.setattr("himecat.estimator.HiMeCat.fit", fit)
        with pytest.raises(UsageError, match="That is enough"):
            evaluate(letters, draws=[1], arguments={"encoder": "minilm"})
        *encoded, fitted = events
        assert sum(int(event.split()[1]) for event in encoded) >= 330
        assert fitted == "fit minilm (330, 2)"


class TestOptions:
    @pytest.fixture
    def given(self, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
        """What a draw was started with."""
        found: dict[str, Any] = {}

        def run(folder: Any, **more: Any) -> list[Run]:
            found.update(folder=folder, **more)
            return [one_run(number) for number in more["draws"]]

        monkeypatch.setattr("himecat.compare.protocol.evaluate.evaluate", run)
        return found

    def test_those_of_fit_reach_the_draws(
        self, himecat: Himecat, letters: Path, given: dict[str, Any]
    ) -> None:
        options = ["--preset=paper", "--seed=7", "--threads=2", "--metadata=tags", "--no-hierarchy"]
        more = ["--set=beta=3", "--min-confidence=0.2", "--allow-empty-leaves", "--taxonomy=tree.yaml"]
        assert himecat("evaluate", letters, "--draws", 3, "--per-leaf", 2, *options, *more).code == 0
        assert list(given["draws"]) == [0, 1, 2]
        assert given["per_leaf"] == 2
        assert given["arguments"] == {
            "method": Paper(use_hierarchy=False, beta=3),
            "taxonomy": "tree.yaml",
            "metadata": ["tags"],
            "text": ["text"],
            "label_field": "labels",
            "id_field": "id",
            "separator": None,
            "sheet": None,
            "delimiter": None,
            "keywords": None,
            "encoder": None,
            "tokenizer": "unicode",
            "allow_empty_leaves": True,
            "several": None,
            "min_confidence": 0.2,
            "random_state": 7,
            "threads": 2,
        }

    def test_five_draws_and_the_folder_s_metadata_are_the_defaults(
        self, himecat: Himecat, letters: Path, given: dict[str, Any]
    ) -> None:
        assert himecat("evaluate", letters, "-q").code == 0
        assert list(given["draws"]) == [0, 1, 2, 3, 4]
        assert given["arguments"]["metadata"] is None

    def test_another_tree(self, letters: Path, tmp_path: Path, in_this_process: None) -> None:
        other = {**SMALL, "taxonomy": letters / "taxonomy.yaml"}
        (found,) = evaluate(letters, draws=[1], arguments=other)
        assert 0 < found.leaf["micro"] < 1
        tree = tmp_path / "tree.yaml"
        tree.write_text("cats:\ndogs:\n")
        with pytest.raises(DataError, match=r"corpus\.jsonl line 1, line .*: unknown label"):
            evaluate(letters, draws=[1], arguments={**SMALL, "taxonomy": tree})

    @pytest.mark.usefixtures("in_this_process")
    @pytest.mark.parametrize("tokenizer", ["ngrams", "subwords"])
    def test_another_tokenizer_reads_and_fits(self, letters: Path, tokenizer: str) -> None:
        (run,) = evaluate(letters, draws=[1], arguments={**SMALL, "tokenizer": tokenizer, "threads": 1})
        assert run.leaf["micro"] > 0.5


def ends_at_once(*_: object) -> None:
    os._exit(9)


def broken(*_: object) -> None:
    raise KeyError("x")


class TestFaults:
    def test_bad_documents_are_told_by_the_draw(
        self, himecat: Himecat, letters: Path, tmp_path: Path
    ) -> None:
        dataset = tmp_path / "dataset"
        shutil.copytree(letters, dataset)
        with open(dataset / "corpus.jsonl", "a") as corpus:
            corpus.write("{\n")
        before = sorted(tmp_path.rglob("*"))
        ended = himecat("evaluate", dataset, "-q", "--json", tmp_path / "scores.json", *TINY)
        assert (ended.code, ended.out) == (2, "")
        assert len(ended.errors) == ended.err.count("\n") == 1
        assert ended.errors[0].startswith(f"{dataset}/corpus.jsonl line 331: broken JSON at column 2")
        assert sorted(tmp_path.rglob("*")) == before

    @pytest.mark.parametrize(
        ("spoil", "sentence"),
        [
            (lambda document: document.update(text=""), "line 1: the text is empty"),
            (lambda document: document.pop("text"), "line 1: the document has no field 'text'"),
            (
                lambda document: document.update(tags={"a": 1}),
                "line 1: the metadata field 'tags' holds an object",
            ),
            (
                lambda document: document.update(id="letter-0002"),
                "line 2: the id 'letter-0002' is also the id",
            ),
            (lambda document: document.update(labels="nowhere"), "line 1: unknown label 'nowhere'"),
            (lambda document: document.update(labels=[]), "line 1: the document has no labels"),
            (
                lambda document: document.update(labels=["pool", "lighting"]),
                "labelled with 2 different leaves",
            ),
        ],
    )
    def test_bad_documents(
        self,
        himecat: Himecat,
        letters: Path,
        tmp_path: Path,
        in_this_process: None,
        spoil: Callable[[dict[str, Any]], object],
        sentence: str,
    ) -> None:
        dataset = tmp_path / "dataset"
        shutil.copytree(letters, dataset)
        first, *others = (dataset / "corpus.jsonl").read_text().splitlines()
        document = json.loads(first)
        spoil(document)
        (dataset / "corpus.jsonl").write_text("\n".join([json.dumps(document), *others]))
        (dataset / "doc_id.txt").unlink()
        ended = himecat("evaluate", dataset, "-q", "--json", tmp_path / "scores.json", *TINY)
        assert (ended.code, ended.out) == (2, "")
        assert len(ended.errors) == 1
        assert sentence in ended.errors[0]
        assert [path.name for path in tmp_path.iterdir()] == ["dataset"]

    def test_leaves_without_documents(
        self, himecat: Himecat, letters: Path, tmp_path: Path, in_this_process: None
    ) -> None:
        dataset = tmp_path / "dataset"
        shutil.copytree(letters, dataset)
        (dataset / "doc_id.txt").unlink()
        with open(dataset / "label_hier.txt", "a") as tree:
            tree.write("lost-property umbrellas gloves\n")
        kept = [
            line
            for line in (dataset / "corpus.jsonl").read_text().splitlines()
            if json.loads(line)["labels"] != ["lost-property"]
        ]
        (dataset / "corpus.jsonl").write_text("\n".join(kept))
        arguments = ["evaluate", dataset, "--draws", 1, "--json", "-", *TINY]
        ended = himecat(*arguments, "-q")
        assert ended.code == 2
        assert "lost-property/umbrellas, lost-property/gloves" in ended.errors[0]
        assert himecat(*arguments, "--allow-empty-leaves").json["draws"][0]["leaf"]["micro"] > 0

    def test_a_draw_that_leaves_nothing_to_score(
        self, letters: Path, tmp_path: Path, in_this_process: None
    ) -> None:
        dataset = tmp_path / "dataset"
        shutil.copytree(letters, dataset)
        (dataset / "doc_id.txt").write_text("arts\t0\nlaw\t1\n")
        (dataset / "label_hier.txt").write_text("ROOT arts law\n")
        (dataset / "meta_dict.json").write_text('{"metadata": []}')
        (dataset / "corpus.jsonl").write_text(
            '{"text": "a b", "labels": "arts"}\n{"text": "a c", "labels": "law"}\n'
        )
        with pytest.raises(DataError, match="draw 0 labels every document, so none is left to score"):
            evaluate(dataset, draws=[0], arguments={**SMALL, "method": Default(min_count=1)})

    def test_a_fault_of_ours_in_a_draw(
        self, himecat: Himecat, letters: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(runner, "_run_here", broken)
        ended = himecat("evaluate", letters, "-q")
        assert ended.code == 1
        assert ended.err.count("\n") == 1
        assert "this should not have happened: RuntimeError: KeyError: 'x'" in ended.err

    def test_a_draw_that_is_killed(self, letters: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(runner, "_run_here", ends_at_once)
        with pytest.raises(HimecatError, match=r"ended without a result \(exit code 9\); out of memory\?"):
            evaluate(letters, draws=[0])

    def test_wrong_numbers(self, letters: Path) -> None:
        with pytest.raises(UsageError, match="At least one draw"):
            evaluate(letters, draws=[])
        with pytest.raises(UsageError, match="per_leaf must be at least 1"):
            evaluate(letters, per_leaf=0)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="this system counts otherwise")
def test_peak_memory_is_that_of_the_process_itself() -> None:
    # The memory of the parent of a run must not count, however much it is.
    ballast = np.ones(400_000_000, dtype=np.uint8)
    assert 5 < Worker(peak_mb).result() < len(ballast) / 2**20


def test_summaries() -> None:
    def run(number: int, value: float) -> Run:
        scores = {"micro": value, "macro": value}
        return Run("letters", "himecat", "himecat", {}, number, 0, scores, scores, 2.0, 3.0, 4.0)

    found = summarise([run(0, 0.25), run(1, 0.75)])
    assert found["leaf"] == {"micro": 0.5, "macro": 0.5}
    assert (found["seconds"], found["cpu_seconds"], found["peak_rss_mb"]) == (2.0, 3.0, 4.0)
    assert summarise([run(0, 0.25)], spread)["leaf"]["micro"] == 0
    json.dumps(found)


def test_summaries_of_calibration_leave_out_what_was_not_measured() -> None:
    both = [
        one_run(number, calibration=errors)
        for number, errors in enumerate([[0.25, 0.5, None], [0.75, None, None]])
    ]
    assert summarise(both)["calibration"] == [0.5, 0.5, None]
    json.dumps(summarise(both), allow_nan=False)
    assert "held_out" not in summarise(both)

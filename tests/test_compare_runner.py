"""Runs of systems: what a system sees, what is kept, and what a failure leaves."""

from __future__ import annotations

import json
import multiprocessing
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from himecat.compare.protocol import cache, runner
from himecat.compare.protocol.cache import code_version, dataset_fingerprint
from himecat.compare.protocol.choices import Choice
from himecat.compare.protocol.measure import Source, measure, read_draw
from himecat.compare.protocol.run import Run
from himecat.compare.protocol.runner import Conditions, run_systems
from himecat.compare.protocol.worker import Worker
from himecat.compare.systems.system import System, Task
from himecat.compare.systems.tfidf_svm import TfidfSvm
from himecat.errors import HimecatError, NoResultError, UsageError
from himecat.input.dataset import open_dataset
from himecat.runtime.progress import Progress
from himecat.views.text_encoder import TextEncoder

# Each run leaves a line in a file, so that runs can be counted whatever process they are in.
OWN = """
import os
from dataclasses import dataclass
from pathlib import Path
import numpy as np
from himecat.compare.systems.system import System

@dataclass(frozen=True)
class First(System):
    name = "first"
    title = "First leaf"
    about = "Always the first."
    leaf: int = 0

    def fit_predict(self, task):
        with open(Path(__file__).with_suffix(".log"), "a") as log:
            log.write(f"{task.seed} {len(task.corpus)} {task.threads}\\n")
        return np.full(len(task.corpus), task.taxonomy.leaves[self.leaf])

@dataclass(frozen=True)
class Broken(System):
    name = "broken"
    title = "Broken"
    about = "Never works."

    def fit_predict(self, task):
        raise KeyError("x")

@dataclass(frozen=True)
class Dies(System):
    name = "dies"
    title = "Dies"
    about = "Ends its process."

    def fit_predict(self, task):
        os._exit(9)
"""


@pytest.fixture
def own(tmp_path: Path) -> str:
    file = tmp_path / "own.py"
    file.write_text(OWN)
    return str(file)


def count(own: str) -> int:
    log = Path(own).with_suffix(".log")
    return len(log.read_text().splitlines()) if log.exists() else 0


class InThisProcess(Worker):
    """Does the work at once, where a test is about something else."""

    def __init__(self, work: Callable[..., Any], *task: Any, environment: object = None) -> None:
        self.receiver, sender = multiprocessing.Pipe(duplex=False)
        try:
            sender.send(work(*task))
        except HimecatError as error:
            sender.send(error)
        except Exception as error:
            sender.send(RuntimeError(f"{type(error).__name__}: {error}"))
        sender.close()

    def result(self) -> Any:
        return self.receiver.recv()

    def end(self) -> None: ...


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "Worker", InThisProcess)


@pytest.fixture
def conditions(letters: Path, tmp_path: Path) -> Conditions:
    return Conditions(letters, draws=1, cache=tmp_path / "kept")


class Lines(Progress):
    """Remembers what was said."""

    def __init__(self) -> None:
        super().__init__(quiet=True)
        self.said: list[str] = []

    def say(self, sentence: str) -> None:
        self.said.append(sentence)


class TestOneRun:
    def test_a_system_sees_the_drawn_labels_only_and_is_scored_on_the_rest(self, letters: Path) -> None:
        seen: list[Task] = []

        @dataclass(frozen=True)
        class Watching(System):
            name = "watching"
            title = "Watching"
            about = ""
            min_count = 3
            max_tokens = 5
            texts = True

            def fit_predict(self, task: Task) -> Any:
                seen.append(task)
                found = np.full(len(task.corpus), task.taxonomy.leaves[0])
                # Right for all that was shown: it must not help.
                found[task.supervision.rows] = task.supervision.nodes
                return found

        run = measure(Source(letters), Watching(), seed=7, threads=2)
        (task,) = seen
        dataset = open_dataset(letters)
        assert dataset.first_draw is not None
        assert sorted(task.supervision.rows.tolist()) == sorted(
            row for rows in dataset.first_draw.values() for row in rows
        )
        assert (task.seed, task.threads) == (7, 2)
        assert task.corpus.tokens.lengths.max() == 5
        assert task.corpus.words.counts.min() >= 3
        assert run.leaf["micro"] < 0.2
        documents = [json.loads(line) for line in (letters / "corpus.jsonl").read_text().splitlines()]
        for text, document in zip(task.texts, documents, strict=True):
            assert text == " ".join([document["text"], *document["senders"], *document["tags"]])

    @pytest.mark.parametrize(
        ("answer", "sentence"),
        [
            (lambda task: np.ones(3, dtype=int), "one leaf for each of 330 documents, and gave 3"),
            (
                lambda task: np.zeros(330, dtype=int),
                "put document 0 on node 0, the root, which is not a leaf",
            ),
            (lambda task: np.full(330, 9999), "on node 9999 which is not a leaf"),
            (lambda task: np.full(330, 1.0), "as whole numbers, not float64"),
            (lambda task: None, "one leaf for each of 330 documents, and gave a single value"),
        ],
    )
    def test_a_wrong_answer_is_told_in_a_sentence(
        self, letters: Path, answer: Callable[[Task], Any], sentence: str
    ) -> None:
        @dataclass(frozen=True)
        class Wrong(System):
            name = "wrong"
            title = "Wrong"
            about = ""

            def fit_predict(self, task: Task) -> Any:
                return answer(task)

        with pytest.raises(UsageError, match=sentence):
            measure(Source(letters), Wrong())

    def test_vectors_are_those_of_the_documents_that_are_read(
        self, letters: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        @dataclass(frozen=True)
        class Reads(TfidfSvm):
            vectors = True

        asked: list[str] = []

        class Ones(TextEncoder):
            def check_installed(self) -> None:
                pass

            def encode(self, texts: Any) -> Any:
                asked.extend(texts)
                return np.ones((len(texts), 2), dtype=np.float32)

        monkeypatch.setattr(
            "himecat.compare.protocol.measure.open_encoder",
            lambda name, threads: Ones(name, None, "0123abcd"),
        )
        with pytest.raises(UsageError, match="needs an encoder"):
            measure(Source(letters), Reads())
        read = read_draw(Source(letters, limit=150), open_dataset(letters), Reads(), 0, encoder="some/model")
        assert read.corpus.columns["encoder"].shape == (150, 2)
        assert len(set(asked)) == len(asked) <= len(read.corpus) == 150


class TestLimit:
    def test_the_labelled_documents_and_a_part_that_only_grows(self, letters: Path) -> None:
        dataset = open_dataset(letters)
        whole, small, large = (
            read_draw(Source(letters, limit=limit), dataset, TfidfSvm(), 1) for limit in (None, 150, 200)
        )
        assert (len(small.corpus), len(large.corpus)) == (150, 200)
        assert set(small.corpus.ids) < set(large.corpus.ids) < set(whole.corpus.ids)
        labelled = {whole.corpus.ids[row] for row in whole.labelled.rows}
        assert {small.corpus.ids[row] for row in small.labelled.rows} == labelled
        truth = dict(zip(whole.corpus.ids, whole.truth.tolist(), strict=True))
        assert [truth[name] for name in small.corpus.ids] == small.truth.tolist()
        assert small.truth[small.labelled.rows].tolist() == small.labelled.nodes.tolist()
        # Documents beyond the limit bring no words.
        assert len(small.corpus.words) < len(whole.corpus.words)
        assert small.corpus.words.counts.sum() == len(small.corpus.tokens.values)

    def test_more_than_there_are_is_all(self, letters: Path) -> None:
        read = read_draw(Source(letters, limit=9999), open_dataset(letters), TfidfSvm(), 0)
        assert len(read.corpus) == 330

    def test_too_few(self, letters: Path) -> None:
        with pytest.raises(UsageError, match="limit=3 leaves no document to score: draw 0 labels"):
            read_draw(Source(letters, limit=3), open_dataset(letters), TfidfSvm(), 0)


@pytest.mark.usefixtures("in_this_process")
class TestKeptRuns:
    def test_nothing_is_measured_twice(self, conditions: Conditions, own: str) -> None:
        twice = Conditions(conditions.folder, draws=2, seeds=2, cache=conditions.cache)
        first = run_systems(twice, [Choice("first", file=own)])
        assert [(run.draw, run.seed) for run in first] == [(0, 0), (0, 1), (1, 0), (1, 1)]
        assert count(own) == 4
        lines = Lines()
        assert run_systems(twice, [Choice("first", file=own)], progress=lines) == first
        assert count(own) == 4
        assert all(line.endswith("(measured before)") for line in lines.said)

    @pytest.mark.parametrize(
        ("changed", "again"),
        [
            ({"limit": 200}, True),
            ({"at_once": 3}, False),
            # Draw 0 is listed in the folder, whatever the number per leaf.
            ({"per_leaf": 2}, False),
            ({"encoder": "some/model"}, False),
        ],
    )
    def test_what_a_result_depends_on(
        self, conditions: Conditions, own: str, changed: dict[str, Any], again: bool
    ) -> None:
        run_systems(conditions, [Choice("first", file=own)])
        other = Conditions(conditions.folder, **{"draws": 1, "cache": conditions.cache, **changed})
        (run,) = run_systems(other, [Choice("first", file=own)])
        assert count(own) == 1 + again
        assert run.dataset == ("letters (at most 200 documents)" if "limit" in changed else "letters")

    def test_a_parameter_given_as_its_default_is_no_other_run(self, conditions: Conditions, own: str) -> None:
        run_systems(conditions, [Choice("first", file=own)])
        (same,) = run_systems(conditions, [Choice("first", {"leaf": 0}, own, title="Leaf 0")])
        assert count(own) == 1
        assert (same.parameters, same.title) == ({"leaf": 0}, "Leaf 0")
        assert runner.run_line(same).startswith("Leaf 0 (leaf=0), draw 0, seed 0: leaf F1")
        (other,) = run_systems(conditions, [Choice("first", {"leaf": 1}, own)])
        assert count(own) == 2
        assert other.overall != same.overall

    def test_the_same_data_in_another_folder(self, conditions: Conditions, own: str, tmp_path: Path) -> None:
        run_systems(conditions, [Choice("first", file=own)])
        copy = Path(shutil.copytree(conditions.folder, tmp_path / "copy"))
        (run,) = run_systems(Conditions(copy, draws=1, cache=conditions.cache), [Choice("first", file=own)])
        assert (run.dataset, count(own)) == ("copy", 1)
        with (copy / "corpus.jsonl").open("a") as documents:
            documents.write('{"id": "new", "text": "one more", "labels": ["waste", "collection", "bins"]}\n')
        before = dataset_fingerprint(open_dataset(conditions.folder))
        assert dataset_fingerprint(open_dataset(copy)) != before

    @pytest.mark.parametrize("harm", ["", "{", '{"key": 1}', "cut", "no scores"])
    def test_a_damaged_file_is_left_out_with_a_note(
        self, conditions: Conditions, own: str, harm: str
    ) -> None:
        (before,) = run_systems(conditions, [Choice("first", file=own)])
        assert conditions.cache is not None
        (file,) = conditions.cache.iterdir()
        content = file.read_text()
        if harm == "no scores":
            plain = json.loads(content)
            plain["run"]["leaf"] = {}
            file.write_text(json.dumps(plain))
        else:
            file.write_text(content[:-9] if harm == "cut" else harm)
        lines = Lines()
        (after,) = run_systems(conditions, [Choice("first", file=own)], progress=lines)
        assert count(own) == 2
        assert after.leaf == before.leaf
        assert ("is damaged: it is left out" in lines.said[0]) == (harm != '{"key": 1}')
        assert json.loads(file.read_text())["run"]["leaf"] == after.leaf

    def test_a_file_that_cannot_be_read_is_measured_again(self, conditions: Conditions, own: str) -> None:
        (before,) = run_systems(conditions, [Choice("first", file=own)])
        assert conditions.cache is not None
        (file,) = conditions.cache.iterdir()
        file.unlink()
        file.mkdir()
        (after,) = run_systems(conditions, [Choice("first", file=own)])
        assert (after.leaf, count(own)) == (before.leaf, 2)

    @pytest.mark.parametrize("what", ["code", "broken code", "no code", "data"])
    def test_what_is_changed_meanwhile_is_not_kept(
        self, own: str, letters: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
    ) -> None:
        copy = Path(shutil.copytree(letters, tmp_path / "copy"))
        once = Conditions(copy, draws=1, cache=tmp_path / "kept")
        before = Path(own).read_bytes()
        run_here = runner._run_here

        def changing(*given: Any) -> Run:
            found = run_here(*given)
            if what == "data":
                (copy / "corpus.jsonl").write_bytes((copy / "corpus.jsonl").read_bytes() + b"\n")
            elif what == "no code":
                Path(own).unlink()
            else:
                Path(own).write_bytes(before + (b"# changed\n" if what == "code" else b"def :\n"))
            return found

        lines = Lines()
        with monkeypatch.context() as patch:
            patch.setattr(runner, "_run_here", changing)
            (run,) = run_systems(once, [Choice("first", file=own)], progress=lines)
        assert run.leaf
        assert lines.said[-1].endswith("(not cached: the code or the data were changed meanwhile)")
        assert not (tmp_path / "kept").exists()

    def test_a_place_that_cannot_be_written_is_told_once(
        self, letters: Path, own: str, tmp_path: Path
    ) -> None:
        (tmp_path / "file").write_text("")
        lines = Lines()
        nowhere = Conditions(letters, draws=2, cache=tmp_path / "file" / "kept")
        assert len(run_systems(nowhere, [Choice("first", file=own)], progress=lines)) == 2
        assert sum("results are not cached" in line for line in lines.said) == 1

    def test_an_interrupted_comparison_goes_on_where_it_was(
        self, conditions: Conditions, own: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        four = Conditions(conditions.folder, draws=4, cache=conditions.cache)
        kept = runner._run_here

        def interrupted(conditions: Conditions, choice: Choice, asked: Run, *rest: Any) -> Run:
            if asked.draw == 2:
                raise KeyboardInterrupt
            return kept(conditions, choice, asked, *rest)

        with monkeypatch.context() as patch:
            patch.setattr(runner, "_run_here", interrupted)
            with pytest.raises(KeyboardInterrupt):
                run_systems(four, [Choice("first", file=own)])
        assert count(own) == 2
        assert len(run_systems(four, [Choice("first", file=own)])) == 4
        assert count(own) == 4


@pytest.mark.usefixtures("in_this_process")
class TestFailures:
    def test_the_others_go_on_and_a_failed_run_is_tried_again(self, conditions: Conditions, own: str) -> None:
        choices = [Choice("broken", file=own), Choice("first", file=own)]
        lines = Lines()
        broken, first = run_systems(conditions, choices, progress=lines)
        assert broken.failure == "KeyError: 'x'"
        assert broken.leaf == {}
        assert first.failure == ""
        assert lines.said[0] == "[1/2] Broken, draw 0, seed 0: failed: KeyError: 'x'"
        assert "First leaf, draw 0, seed 0: leaf F1 0." in lines.said[1]
        assert runner.failures([broken, first]) == ["Broken failed in 1 run (draw 0): KeyError: 'x'"]
        again = Lines()
        run_systems(conditions, choices, progress=again)
        assert any(line.endswith("failed: KeyError: 'x'") for line in again.said)

    def test_not_one_result(self, conditions: Conditions, own: str) -> None:
        with pytest.raises(HimecatError, match="Not one run gave a result: KeyError: 'x'") as fault:
            run_systems(conditions, [Choice("broken", file=own)])
        assert fault.value.exit_code == 1
        small = Conditions(conditions.folder, draws=1, limit=3, cache=conditions.cache)
        with pytest.raises(NoResultError, match="Not one run gave a result: limit=3") as usage:
            run_systems(small, [Choice("first", file=own)])
        assert usage.value.exit_code == 2

    def test_wrong_numbers(self, letters: Path) -> None:
        for name in ("draws", "seeds", "per_leaf", "at_once", "limit"):
            with pytest.raises(UsageError, match=f"{name} must be at least 1, not 0"):
                Conditions(letters, **{name: 0})  # type: ignore[arg-type]


def test_a_process_that_is_killed_is_a_failed_run(conditions: Conditions, own: str) -> None:
    both = Conditions(conditions.folder, draws=1, at_once=2, cache=conditions.cache)
    died, first = run_systems(both, [Choice("dies", file=own), Choice("first", file=own)])
    assert "ended without a result (exit code 9); out of memory?" in died.failure
    assert first.leaf["micro"] > 0
    # Two at once share the cores.
    assert int(Path(own).with_suffix(".log").read_text().split()[2]) == max(
        1, runner.usable_threads(None) // 2
    )


def test_never_more_at_once_than_asked_for(
    conditions: Conditions, own: str, monkeypatch: pytest.MonkeyPatch, in_this_process: None
) -> None:
    open_now: list[int] = []
    most: list[int] = []

    class Counted(InThisProcess):
        def __init__(self, *task: Any, **options: Any) -> None:
            open_now.append(1)
            most.append(len(open_now))
            super().__init__(*task, **options)

        def result(self) -> Any:
            open_now.pop()
            return super().result()

    monkeypatch.setattr(runner, "Worker", Counted)
    three = Conditions(conditions.folder, draws=5, at_once=3, cache=conditions.cache)
    assert len(run_systems(three, [Choice("first", file=own)])) == 5
    assert max(most) == 3


class TestCodeVersion:
    def behind(self, module: str) -> set[str]:
        package = Path(cache.__file__).parents[2]
        return {path.relative_to(package).as_posix() for path in cache._files_behind(module)}

    def test_what_a_result_depends_on_counts_and_what_only_shows_it_does_not(self) -> None:
        protocol = self.behind("himecat.compare.protocol.measure")
        assert {"compare/protocol/measure.py", "input/tokenizer.py", "evaluation/metrics.py"} <= protocol
        ours = self.behind("himecat.compare.systems.himecat")
        assert {"estimator.py", "classifier/fit.py", "kernels/sampled_space.py", "paper/kimcnn.py"} <= ours
        for file in protocol | ours:
            assert not file.startswith(
                ("cli/", "evaluation/report/", "compare/figures/", "model_folder/", "samples/")
            )

    def test_one_system_does_not_depend_on_another(self) -> None:
        found = self.behind("himecat.compare.systems.tfidf_svm")
        assert {file for file in found if file.startswith("compare/systems/")} == {
            "compare/systems/tfidf_svm.py",
            "compare/systems/system.py",
        }
        assert "estimator.py" not in found

    def test_the_users_own_file_counts(self, own: str, tmp_path: Path) -> None:
        other = tmp_path / "other.py"
        other.write_text(OWN + "# changed\n")
        one, two = (code_version(Choice("first", file=str(file)).kind) for file in (own, other))
        assert one != two

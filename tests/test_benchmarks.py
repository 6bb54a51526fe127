"""The benchmarks work and measure what they say; how fast anything is is no matter here."""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Import a benchmark by its name; they find each other as they do when run."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield importlib.import_module
    for name in [file.stem for file in BENCHMARKS.glob("*.py")]:
        sys.modules.pop(name, None)


def table_rows(load: Any, part: str, figures: dict[str, Any]) -> list[Any]:
    """The rows of a part in the table of all figures, which must survive JSON."""
    speed = load("speed")
    figures = json.loads(json.dumps(figures))
    rows = list(speed.ROWS[part](figures))
    assert rows
    lines = speed.table({"short": True, "parts": {part: figures}}).splitlines()
    assert len(lines) == 2 + len(rows)
    assert len({line.count("|") for line in lines}) == 1
    return rows


# -- the short form of each part -----------------------------------------------------------------------


def test_embedding_short_form(load: Any) -> None:
    figures = load("speed").run_part("embedding", short=True)
    assert {(row["side"], row["threads"]) for row in figures["rows"]} >= {
        (side, threads) for side in ("words", "all relations") for threads in (1, 2)
    }
    table_rows(load, "embedding", figures)


def test_classifier_agrees_with_the_plain_network(load: Any) -> None:
    pytest.importorskip("torch")
    classifier = load("classifier")
    from himecat.input.builder import load_corpus
    from himecat.input.corpus import Supervision
    from himecat.input.documents import Fields
    from himecat.sample import METADATA, sample_documents, sample_split, sample_taxonomy

    documents, tree = sample_documents()[:150], sample_taxonomy()
    corpus = load_corpus(documents, Fields(metadata=METADATA), min_count=2).corpus
    shown = [(row, path) for row, path in enumerate(sample_split(documents, per_leaf=2)) if path]
    labelled = Supervision(
        np.array([row for row, _ in shown]), np.array([tree.find(path) for _, path in shown])
    )
    # The short form of the benchmark does the same with more documents.
    work = classifier.prepare(corpus, tree, labelled, samples=20_000, beta=4)
    far = classifier.agree(work, steps=1)
    assert max(far.values()) <= 1e-5
    table_rows(load, "classifier", {"largest_difference": far})


def test_reading_short_form(load: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    reading = load("reading")
    # Not in processes of their own: most of the time would go into imports.
    monkeypatch.setattr(reading, "measure", reading.measure_here)
    figures = reading.run(short=True)
    assert figures["best"]["jsonl"]["words"] == figures["best"]["parquet"]["words"] > 0
    table_rows(load, "reading", figures)


def test_cold_start_short_form(load: Any) -> None:
    table_rows(load, "cold_start", load("cold_start").run(short=True))


def test_end_to_end_short_form(load: Any) -> None:
    figures = load("end_to_end").run(short=True, lines=300, sample_size=330)
    one = figures["corpora"]["sample"]
    assert one["documents"] == 330
    # With five labelled letters per leaf both are far better than one of 13 leaves by chance.
    assert one["ours"]["leaf_micro_f1"] > 0.5
    assert one["TF-IDF + LinearSVC"]["leaf_micro_f1"] > 0.3
    assert figures["predict"]["TfidfVectorizer + LinearSVC"]["lines"] == 300
    table_rows(load, "end_to_end", figures)


def test_growth_short_form(load: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    growth = load("growth")
    seen = []

    # What these do is seen in the test of end_to_end, and takes its time.
    def fit_and_predict(pile: Any, model: Path, predictions: Path) -> dict[str, float]:
        documents = pile.documents.read_text()
        predictions.write_text(documents)
        seen.append(documents.count('"labels"'))
        return {"wall_seconds": 1.0 + len(seen), "cpu_seconds": 1.0, "peak_mb": 1.0}

    monkeypatch.setattr(growth, "fit_and_predict", fit_and_predict)
    monkeypatch.setattr(
        growth, "measure", lambda _: {"wall_seconds": 1.0, "cpu_seconds": 1.0, "peak_mb": 1.0}
    )
    figures = growth.run(short=True)
    # Five labelled documents of each leaf: 10 and 20 leaves, then 10 at depths 2 and 8.
    assert seen == [50, 100, 50, 50]
    assert [row["documents"] for row in figures["leaves"]] == [300, 300]
    assert [row["ours"]["ratio"]["wall_ms"] for row in figures["leaves"]] == [1, 3 / 2]
    table_rows(load, "growth", figures)


# -- what they are made of -----------------------------------------------------------------------------


def test_only_the_drawn_documents_keep_their_labels(load: Any, letters: Path, tmp_path: Path) -> None:
    end_to_end = load("end_to_end")
    drawn = {
        int(row)
        for line in (letters / "doc_id.txt").read_text().splitlines()
        for row in line.split("\t")[1].split()
    }
    ids = [json.loads(line)["id"] for line in (letters / "corpus.jsonl").read_text().splitlines()]
    kept = {}
    for count in ("0", "200", "250"):
        end_to_end.prepare(str(letters), str(tmp_path / count), count)
        lines = end_to_end.Pile(tmp_path / count).documents.read_text().splitlines()
        documents = [json.loads(line) for line in lines]
        assert {one["id"] for one in documents if "labels" in one} == {ids[row] for row in drawn}
        kept[count] = {one["id"] for one in documents}
    assert len(kept["0"]) == 330
    assert len(kept["200"]) == 200
    assert kept["200"] < kept["250"] < kept["0"]


def test_repeated_documents_have_ids_of_their_own_and_no_labels(
    load: Any, letters: Path, tmp_path: Path
) -> None:
    end_to_end = load("end_to_end")
    end_to_end.repeat(str(letters), str(tmp_path / "lines.jsonl"), "700")
    documents = [json.loads(line) for line in (tmp_path / "lines.jsonl").read_text().splitlines()]
    assert len({one["id"] for one in documents}) == 700
    assert not any("labels" in one for one in documents)
    assert documents[0]["text"] == documents[330]["text"]


def test_what_a_command_writes_can_be_watched(load: Any) -> None:
    watch = load("end_to_end").MemoryByProgress(3)
    cost = load("end_to_end").measure([sys.executable, "-c", "print(1); print(2); print(3)"], watch)
    assert watch.done == 3
    assert all(value > 0 for value in cost.values())


def test_a_command_that_fails_is_told_with_its_reason(load: Any) -> None:
    with pytest.raises(RuntimeError, match="no such reason"):
        load("end_to_end").measure([sys.executable, "-c", "raise SystemExit('no such reason')"])


def test_memory_is_noted_after_each_tenth(load: Any) -> None:
    if not Path("/proc/self/statm").exists():
        pytest.skip("memory of another process is read from /proc")

    class Growing:
        """What a process writes: 20 lines, and 64 MB more in memory from the middle on."""

        held = b""
        lines = 0

        def read1(self, _: int) -> bytes:
            if self.lines == 20:
                return b""
            if self.lines == 10:
                self.held = b"x" * (64 << 20)
            self.lines += 1
            return b"a prediction\n"

    watch = load("end_to_end").MemoryByProgress(20)
    watch(os.getpid(), Growing())
    assert [sample["documents"] for sample in watch.samples] == list(range(2, 21, 2))
    assert watch.samples[-1]["mb"] - watch.samples[0]["mb"] > 50


@pytest.mark.parametrize(("leaves", "depth"), [(10, 2), (256, 8), (1000, 2), (10, 8), (7, 3), (5, 1)])
def test_made_up_trees_have_the_leaves_and_depth_asked_for(load: Any, leaves: int, depth: int) -> None:
    paths = load("growth").tree_paths(leaves, depth)
    assert len(set(paths)) == len(paths) == leaves
    assert {len(path) for path in paths} == {depth}
    # A name stands at one place.
    assert len({path[-1] for path in paths}) == leaves


def test_made_up_documents_fit_their_tree(load: Any, himecat: Any, tmp_path: Path) -> None:
    from himecat.input.taxonomy.readers import read_taxonomy

    growth = load("growth")
    growth.make_up(tmp_path, 12, 3, 100, 1000, per_leaf=2)
    tree = read_taxonomy(tmp_path / "label_hier.txt")
    assert tree.n_leaves == 12
    documents = [json.loads(line) for line in (tmp_path / "documents.jsonl").read_text().splitlines()]
    assert len(documents) == 100
    labelled = Counter(tree.find(one["labels"]) for one in documents if "labels" in one)
    assert set(labelled) == set(tree.leaves)
    assert set(labelled.values()) == {2}
    given = (tmp_path / "documents.jsonl", "--taxonomy", tmp_path / "label_hier.txt", "--metadata", "authors")
    assert himecat("check", *given).code == 0
    again = tmp_path / "again"
    growth.make_up(again, 12, 3, 100, 1000, per_leaf=2)
    assert (again / "documents.jsonl").read_bytes() == (tmp_path / "documents.jsonl").read_bytes()


def grown(load: Any) -> dict[str, Any]:
    """Figures of growth as if measured: twice the leaves cost three times as much."""
    growth = load("growth")

    def row(leaves: int, factor: float) -> dict[str, Any]:
        each = {"wall_ms": 2 * factor, "cpu_ms": 3 * factor, "kb": 4 * factor}
        cost = {"wall_seconds": 1.0, "cpu_seconds": 1.0, "peak_mb": 1.0}
        sides = {title: cost | {"per_document": dict(each)} for title in ("ours", growth.PEER)}
        return {"leaves": leaves, "documents": 100} | sides

    return {"at_most": 1.5, "leaves": growth.with_ratios([row(10, 1.0), row(20, 3.0)])}


def test_growth_is_a_ratio_to_the_smallest(load: Any) -> None:
    found = grown(load)
    assert [row["ours"]["ratio"]["cpu_ms"] for row in found["leaves"]] == [1, 3]
    assert [row.met for row in table_rows(load, "growth", found)] == [False] * 3
    assert "| 20 leaves | 9.000 | 3.00 |" in load("growth").markdown(found)


def test_the_plot_shows_every_point_inside_the_picture(load: Any) -> None:
    growth = load("growth")
    picture = ElementTree.fromstring(growth.plot(grown(load)))
    _, _, width, height = map(float, picture.attrib["viewBox"].split())
    lines = picture.findall("{*}polyline")
    assert len(lines) == len(growth.SERIES)
    for line in lines:
        points = [tuple(map(float, point.split(","))) for point in line.attrib["points"].split()]
        assert len(points) == 2
        assert all(0 < x < width and 0 < y < height for x, y in points)
        # Higher is more: up in a picture is a smaller y.
        assert points[1][1] < points[0][1]


def test_wide_trees_short_form(load: Any, tmp_path: Path) -> None:
    wide = load("wide_trees")
    wide.make_up(tmp_path / "pile", 30, 200, n_words=500)
    from himecat.input.dataset import open_dataset

    tree = open_dataset(tmp_path / "pile").taxonomy
    assert tree.n_leaves == 30
    assert tree.depth <= wide.DEPTH
    row = wide.measured(tmp_path / "pile", tmp_path / "model", "10,8,2")
    assert row["fit"]["documents"] == 200
    assert row["predict"]["leaf"] > 0.2
    assert "leaf F1" in wide.line({"title": "30 leaves"} | row, row)


def test_a_part_that_lacks_a_package_or_fails_stops_no_other(
    load: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    speed = load("speed")
    monkeypatch.setattr(speed, "PARTS", {"reading": ("no_such_package",), "embedding": (), "growth": ()})

    def run_part(part: str, short: bool, more: list[str]) -> dict[str, Any]:
        if part == "embedding":
            raise RuntimeError("it broke")
        return grown(load)

    monkeypatch.setattr(speed, "run_part", run_part)
    found = speed.run(short=True, parts=["reading", "embedding", "growth"])
    assert found["left_out"] == {"reading": "needs no_such_package"}
    assert found["failed"] == {"embedding": "it broke"}
    assert {row["part"] for row in found["rows"]} == {"growth"}
    assert speed.main(["--short", "--only", "embedding"]) == 1
    assert "embedding failed: it broke" in capsys.readouterr().err


def test_a_higher_bound_places_fewer_documents_and_more_of_them_right(load: Any, tmp_path: Path) -> None:
    from himecat.sample import write_sample

    rows = load("confidence").measure(write_sample(tmp_path / "letters"), 1, (0.5, 0.9))
    placed, right, leaf, leaf_right = rows.T
    assert placed[0] >= placed[1]
    assert leaf[0] > leaf[1] > 0.3
    assert right[1] >= 0.9
    assert right[1] >= right[0]
    assert leaf_right[1] >= leaf_right[0]


def test_asking_fits_as_the_estimator_does_and_never_asks_about_the_test_set(
    load: Any, letters: Path
) -> None:
    from himecat import HiMeCat
    from himecat.input.corpus import Supervision

    bench = load("asking").Bench(letters)
    labelled, test, pile = bench.split(0)
    assert sorted([*labelled, *test, *pile]) == list(range(330))
    model = HiMeCat(bench.tree, tuple(bench.corpus.metadata), threads=1)
    model.fit(bench.corpus, Supervision(labelled, bench.truth[labelled]))
    found = bench.train(labelled)
    np.testing.assert_array_equal(found.scorer.directions, model.classifier_.scorer.directions)
    np.testing.assert_array_equal(found.scorer.text_weights, model.classifier_.scorer.text_weights)
    assert found.calibration == model.classifier_.calibration


def test_asking_goes_on_where_it_was_and_compares_with_random(
    load: Any,
    letters: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asking = load("asking")
    # Half of the answers decide, so that the fits, seen above, need not be made.
    monkeypatch.setattr(
        asking.Bench, "fit", lambda self, rows: np.full((330, self.tree.n_leaves), len(rows) / 330)
    )
    monkeypatch.setattr(asking.Bench, "micro", lambda self, probabilities, rows: float(probabilities[0, 0]))
    given = ["--data", str(letters.parent), "--corpora", letters.name, "--draws", "2", "--counts", "5", "12"]
    given += ["--randoms", "2", "--cache", str(tmp_path / "kept.jsonl")]
    assert asking.main(given) == 0
    first = capsys.readouterr().out
    kept = (tmp_path / "kept.jsonl").read_text()
    assert len(kept.splitlines()) == 2 * (1 + 2 * (len(asking.STRATEGIES) + 1))
    assert "| ratio | +0.0 ± 0.0 | +0.0 ± 0.0 | +0.0 |" in first
    monkeypatch.delattr(asking.Bench, "__init__")
    assert asking.main(given) == 0
    assert capsys.readouterr().out == first
    assert (tmp_path / "kept.jsonl").read_text() == kept


def test_asking_tells_what_was_best_without_a_corpus(load: Any) -> None:
    asking = load("asking")
    kept = {
        f"{corpus}|{draw}|{strategy}|0|50": score
        for corpus, scores in {"a": (0.5, 0.6, 0.4), "b": (0.5, 0.6, 0.4), "c": (0.5, 0.4, 0.7)}.items()
        for strategy, score in zip(("random", "margin", "badge"), scores, strict=True)
        for draw in (0, 1)
    }
    lines = asking.left_out(kept, ["a", "b", "c"], ["random", "margin", "badge"], (50,)).splitlines()
    assert lines[2:] == [
        "| `a` | badge | +5.0 | -10.0 |",
        "| `b` | badge | +5.0 | -10.0 |",
        "| `c` | margin | +10.0 | -10.0 |",
    ]


def test_accuracy_is_a_comparison_with_other_rows(
    load: Any, letters: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    accuracy = load("accuracy")
    assert [row.title for row in accuracy.rows(None, True)[2:4]] == [
        "himecat, no metadata",
        "himecat, metadata types trusted alike",
    ]
    for row in accuracy.rows("some/model", True):
        row.make()
    given = ["--data", str(letters.parent), "--corpora", letters.name, "--draws", "1"]
    assert accuracy.main([*given, "--cache", str(tmp_path), "--json", str(tmp_path / "found.json")]) == 0
    found = json.loads((tmp_path / "found.json").read_text())
    assert [run["system"] for run in found] == ["tfidf-svm", "himecat"]
    assert "| TF-IDF + SVM |" in capsys.readouterr().out


def test_versions_are_measured_beside_each_other(
    load: Any, letters: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = tmp_path / "himecat"
    command.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(BENCHMARKS.parent / 'src')!r})\n"
        "from himecat.cli import main\nif __name__ == '__main__':\n    main()\n"
    )
    command.chmod(0o755)
    given = ["--data", str(letters.parent), "--corpora", letters.name, "--draws", "1"]
    assert load("accuracy").main([*given, "--himecat", str(command), str(command)]) == 0
    *_, first, second = capsys.readouterr().out.splitlines()
    assert first.split(" | ")[:7] == second.split(" | ")[:7]

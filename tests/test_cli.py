"""The command line: what scripts and people rely on."""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import TINY, Himecat
from himecat.sample import METADATA, sample_taxonomy

COMMANDS = (
    *(
        "demo",
        "check",
        "fit",
        "predict",
        "review",
        "correct",
        "serve",
        "tree",
        "propose",
        "map",
        "explain",
        "synthesize",
        "evaluate",
        "score",
    ),
    *("compare", "ablate", "sweep"),
)
HEAVY = ("torch", "numba", "sklearn", "pandas", "scipy", "numpy", "pyarrow", "polars", "yaml")


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def in_another_process(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "himecat", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )


def fit_arguments(letters: Path, model: Path, *more: str) -> list[object]:
    tree = letters / "taxonomy.yaml"
    return [
        "fit",
        letters / "documents.jsonl",
        "--taxonomy",
        tree,
        "--metadata",
        "senders,tags",
        "-o",
        model,
        *more,
    ]


@pytest.fixture(scope="session")
def predictions(letters: Path, letters_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The predictions for the letters, made by another process than the one that fitted the model."""
    target = tmp_path_factory.mktemp("predictions") / "predictions.jsonl"
    documents = letters / "documents.jsonl"
    ended = in_another_process("predict", letters_model, documents, "--ignore-labels", "-o", target)
    assert (ended.returncode, ended.stdout) == (0, "")
    assert ended.stderr == f"Placed 330 documents; the paths are in {target}.\n"
    return target


class TestHelp:
    @pytest.mark.parametrize("name", COMMANDS)
    def test_every_command_has_help_with_an_example(self, himecat: Himecat, name: str) -> None:
        ended = himecat(name, "--help")
        assert (ended.code, ended.err) == (0, "")
        assert max(map(len, ended.out.splitlines())) <= 80
        assert "bool" not in ended.out
        example = re.search(r"Example: (himecat .*?)\n *\n", ended.out, re.DOTALL)
        assert example, ended.out
        words = shlex.split(example[1])
        assert words[:2] == ["himecat", name]
        # The options of the example are among those that are explained.
        panels = ended.out[example.end() :]
        for option in (word for word in words if word.startswith("-")):
            assert re.search(rf"(?<![\w-]){option}(?![\w-])", panels), option
        assert himecat(name, "-h").out == ended.out

    def test_the_program_lists_its_commands(self, himecat: Himecat) -> None:
        ended = himecat("--help")
        assert ended.code == 0
        assert "Example: himecat demo" in ended.out
        assert re.findall(r"^│ (\w+)  ", ended.out, re.MULTILINE) == list(COMMANDS)
        assert himecat("--version").out.startswith("himecat ")

    @pytest.mark.parametrize("arguments", [["--help"], ["fit", "--help"], ["evaluate", "--help"]])
    def test_help_appears_at_once(self, arguments: list[str]) -> None:
        def seconds() -> float:
            used = os.times()
            return used.children_user + used.children_system

        before = seconds()
        ended = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "himecat", *arguments],
            capture_output=True,
            text=True,
            timeout=60,
        )
        # Processor time, because other work on the machine does not count here.
        assert seconds() - before < 1.0
        assert ended.returncode == 0
        imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in ended.stderr.splitlines()}
        assert "typer" in imported
        assert imported.isdisjoint(HEAVY), imported & set(HEAVY)


class TestEnds:
    @pytest.mark.parametrize(
        "arguments",
        [
            [],
            ["frobnicate"],
            ["--frobnicate"],
            ["fit"],
            ["fit", "docs.jsonl"],
            ["fit", "docs.jsonl", "-o", "model", "--frobnicate"],
            ["fit", "docs.jsonl", "-o", "model", "--threads", "0"],
            ["fit", "docs.jsonl", "-o", "model", "--seed", "-1"],
            ["fit", "docs.jsonl", "-o", "model", "--seed", "x"],
            ["predict", "model", "docs.jsonl"],
            ["predict", "model", "docs.jsonl", "-o", "out", "--min-confidence", "nan"],
            ["predict", "model", "docs.jsonl", "-o", "out", "--min-confidence", "1.5"],
            ["evaluate", "dataset", "--draws", "0"],
            ["explain", "model"],
            ["synthesize", "model", "label", "-n", "0"],
        ],
    )
    def test_wrong_usage_is_2(
        self, himecat: Himecat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
    ) -> None:
        monkeypatch.chdir(tmp_path)
        assert himecat(*arguments).code == 2
        assert list(tmp_path.iterdir()) == []

    def test_a_fault_of_ours_is_1_and_one_line(
        self, himecat: Himecat, letters: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(*_: object, **__: object) -> None:
            raise KeyError("first\nsecond")

        monkeypatch.setattr("himecat.input.check.check", broken)
        ended = himecat("check", letters)
        assert (ended.code, ended.out) == (1, "")
        assert ended.err.count("\n") == 1
        assert ended.err.startswith("himecat: this should not have happened: KeyError: ")
        assert "HIMECAT_DEBUG=1" in ended.err

    def test_a_fault_of_ours_is_shown_to_those_who_ask(
        self, letters: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from himecat.cli import main

        def broken(*_: object, **__: object) -> None:
            raise ZeroDivisionError

        monkeypatch.setattr("himecat.input.check.check", broken)
        monkeypatch.setenv("HIMECAT_DEBUG", "1")
        with pytest.raises(ZeroDivisionError):
            main(["check", str(letters)])

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
    def test_a_full_disk_behind_standard_output(self, letters: Path) -> None:
        command = [sys.executable, "-m", "himecat", "check", str(letters), "--json", "-"]
        with open("/dev/full", "w") as full:
            ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        assert ended.returncode == 2
        assert ended.stderr == "himecat: The result cannot be written: No space left on device.\n"

    def test_a_reader_that_has_gone(self, letters: Path) -> None:
        command = [sys.executable, "-m", "himecat", "check", str(letters), "--json", "-"]
        reader, writer = os.pipe()
        os.close(reader)
        ended = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=60)
        os.close(writer)
        sentence = "himecat: The result cannot be written: standard output is closed.\n"
        assert (ended.returncode, ended.stderr) == (2, sentence)

    @pytest.mark.skipif(os.name != "posix", reason="a shell that closes streams")
    @pytest.mark.parametrize(
        ("closed", "code", "said"),
        [
            (">&-", 2, "himecat: The result cannot be written: standard output is closed.\n"),
            ("2>&-", 0, ""),
            ("<&-", 0, ""),
            (">&- 2>&- <&-", 2, ""),
        ],
    )
    def test_closed_streams(self, letters: Path, closed: str, code: int, said: str) -> None:
        command = (
            f"{shlex.quote(sys.executable)} -m himecat check {shlex.quote(str(letters))} --json - {closed}"
        )
        ended = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60)
        assert (ended.returncode, ended.stderr) == (code, said)
        assert (">&-" in closed.split() and not ended.stdout) or json.loads(ended.stdout)["documents"] == 330

    @pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="this system has no /dev/stdout")
    def test_a_closed_stream_under_another_name(self, letters: Path) -> None:
        command = f"{shlex.quote(sys.executable)} -m himecat check {shlex.quote(str(letters))} --json /dev/stdout >&-"
        ended = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60)
        assert ended.returncode == 2
        assert ended.stderr.startswith("himecat: The result cannot be written to /dev/stdout: ")

    @pytest.mark.skipif(os.name != "posix", reason="a shell that closes streams")
    def test_a_file_does_not_get_the_number_of_a_closed_stream(
        self, letters: Path, letters_model: Path, tmp_path: Path
    ) -> None:
        documents = letters / "documents.jsonl"
        arguments = map(
            shlex.quote, [sys.executable, "-m", "himecat", "predict", str(letters_model), str(documents)]
        )
        command = f"{' '.join(arguments)} --ignore-labels -o {shlex.quote(str(tmp_path / 'out.jsonl'))} >&- 2>&- <&-"
        assert subprocess.run(command, shell=True, timeout=60).returncode == 0
        lines = (tmp_path / "out.jsonl").read_text().splitlines()
        assert [set(json.loads(line)) for line in lines] == [{"id", "path", "confidence", "leaf"}] * 330

    @pytest.mark.parametrize("name", ["x" * 300, "docs.jsonl/more.jsonl", "a\0b"])
    def test_names_that_cannot_be(
        self, himecat: Himecat, letters_model: Path, tmp_path: Path, name: str
    ) -> None:
        (tmp_path / "docs.jsonl").write_text('{"text": "a red fox"}\n')
        docs, place = tmp_path / "docs.jsonl", f"{tmp_path}/{name}"
        for command in (
            ["check", place],
            ["check", docs, "-q", "--taxonomy", place],
            ["check", docs, "--json", place],
            ["fit", docs, "-o", place],
            ["fit", place, "-o", tmp_path / "model"],
            ["predict", letters_model, place, "-o", "-"],
            ["predict", letters_model, docs, "-o", place],
            ["predict", place, docs, "-o", "-"],
            ["evaluate", place],
            ["score", place, place],
            ["compare", place, "--csv", place],
            ["demo", "-o", place, "--overwrite"],
        ):
            ended = himecat(*command)
            assert (ended.code, ended.out) == (2, ""), command
            assert len(ended.errors) == 1, ended.err
            assert "should not have happened" not in ended.err
        assert [file.name for file in tmp_path.iterdir()] == ["docs.jsonl"]

    @pytest.mark.skipif(sys.platform != "linux", reason="names of files are bytes")
    def test_arguments_that_are_not_utf8(self, himecat: Himecat, letters_model: Path, tmp_path: Path) -> None:
        odd = os.fsdecode(b"caf\xe9")
        documents = tmp_path / f"{odd}.jsonl"
        documents.write_text('{"text": "a red fox", "labels": "a"}\n{"text": "an old oak", "labels": "b"}\n')
        model, out = tmp_path / f"model-{odd}", tmp_path / f"out-{odd}"
        ended = himecat("fit", documents, "--set=min_count=1", "-o", model)
        assert (ended.code, "model-caf\\xe9" in ended.err or "model-caf\\udce9" in ended.err) == (0, True)
        assert himecat("predict", model, documents, "-o", out).code == 0
        assert len(out.read_text().splitlines()) == 2
        assert himecat("check", documents, "--json", "-").json["documents"] == 2
        for command in (
            ["explain", model, odd],
            ["fit", documents, f"--metadata={odd}", "-o", tmp_path / "m"],
        ):
            ended = himecat(*command)
            assert ended.code == 2
            assert ended.errors[0].endswith("is not UTF-8.")


class TestCheck:
    def test_the_report_for_people(self, himecat: Himecat, letters: Path) -> None:
        arguments = [
            letters / "documents.jsonl",
            "--taxonomy",
            letters / "taxonomy.yaml",
            "--metadata",
            "senders",
        ]
        ended = himecat("check", *arguments)
        assert (ended.code, ended.err) == (0, "")
        assert re.search(r"documents +330, of which 110 labelled", ended.out)
        assert re.search(r"senders +\d+\.\d%", ended.out)
        assert "22 of them leaves" in ended.out
        assert ended.out.rstrip().endswith("no errors")
        assert max(map(len, ended.out.splitlines())) <= 80
        assert himecat("check", *arguments, "--quiet").out == ""

    def test_the_report_for_programs(self, himecat: Himecat, letters: Path, tmp_path: Path) -> None:
        report = himecat("check", letters, "--json", "-").json
        assert {
            "documents",
            "labelled",
            "vocabulary",
            "metadata",
            "tree",
            "labels",
            "problems",
        } <= report.keys()
        assert report["documents"] == 330
        assert [kind["name"] for kind in report["metadata"]] == list(METADATA)
        assert report["counts"]["error"] == 0
        himecat("check", letters, "--json", tmp_path / "report.json", "-q")
        assert json.loads((tmp_path / "report.json").read_text()) == report

    def test_errors_are_in_the_json_and_on_standard_error(self, himecat: Himecat, tmp_path: Path) -> None:
        documents = tmp_path / "docs.jsonl"
        documents.write_text('{"text": "a"}\n{"text": ""}\n')
        ended = himecat("check", documents, "--json", "-")
        assert ended.code == 2
        told = [one for one in ended.json["problems"] if one["severity"] == "error"]
        assert told[0] == {
            "severity": "error",
            "place": f"{documents} line 2",
            "message": "the text is empty.",
        }
        assert ended.errors[0] == f"{documents} line 2: the text is empty."
        assert [one["message"] for one in told[1:]] == ended.errors[1:]


class TestPredict:
    def test_one_line_per_document_in_order(self, letters: Path, predictions: Path) -> None:
        found = lines_of(predictions)
        assert [one["id"] for one in found] == [
            document["id"] for document in lines_of(letters / "documents.jsonl")
        ]
        tree = sample_taxonomy()
        for one in found:
            assert list(one) == ["id", "path", "confidence", "leaf"]
            assert one["leaf"] is True
            node = tree.walk(one["path"])
            assert node is not None
            assert tree.is_leaf(node)
            assert len(one["confidence"]) == len(one["path"])
            assert all(0 <= sure <= 1 for sure in one["confidence"])
            assert one["confidence"] == sorted(one["confidence"], reverse=True)

    def test_it_has_learned_something(self, letters: Path, predictions: Path) -> None:
        truth = {document["id"]: document["labels"] for document in lines_of(letters / "corpus.jsonl")}
        hits = [one["path"][0] == truth[one["id"]][0] for one in lines_of(predictions)]
        assert np.mean(hits) > 0.4

    def test_standard_output_holds_the_lines_only(
        self, himecat: Himecat, letters: Path, letters_model: Path, predictions: Path
    ) -> None:
        ended = himecat("predict", letters_model, letters / "documents.jsonl", "--ignore-labels", "-o", "-")
        assert (ended.code, ended.out) == (0, predictions.read_text())
        assert ended.err == "Placed 330 documents.\n"
        quiet = himecat(
            "predict", letters_model, letters / "documents.jsonl", "--ignore-labels", "-o", "-", "--quiet"
        )
        assert (quiet.out, quiet.err) == (ended.out, "")

    @pytest.mark.parametrize("threads", [1, 2])
    def test_the_number_of_threads_is_no_matter(
        self, himecat: Himecat, letters: Path, letters_model: Path, predictions: Path, threads: int
    ) -> None:
        ended = himecat(
            "predict",
            letters_model,
            letters / "documents.jsonl",
            "--ignore-labels",
            "-o",
            "-",
            "--threads",
            threads,
        )
        assert ended.out == predictions.read_text()

    def test_other_kinds_of_files(
        self, himecat: Himecat, letters: Path, letters_model: Path, predictions: Path, tmp_path: Path
    ) -> None:
        raw = (letters / "documents.jsonl").read_bytes()
        (tmp_path / "letters.jsonl.gz").write_bytes(gzip.compress(raw))
        with open(tmp_path / "letters.csv", "w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["id", "text", "senders", "tags"])
            for document in map(json.loads, raw.splitlines()):
                lists = ("|".join(document[kind]) for kind in METADATA)
                rows.writerow([document["id"], document["text"], *lists])
        for name in ("letters.jsonl.gz", "letters.csv"):
            assert (
                himecat("predict", letters_model, tmp_path / name, "--ignore-labels", "-o", "-").out
                == predictions.read_text()
            )

    def test_fields_may_have_other_names(
        self, himecat: Himecat, letters: Path, letters_model: Path, predictions: Path, tmp_path: Path
    ) -> None:
        renamed = [
            {"key": document["id"], "head": document["text"][:40], "rest": document["text"][40:]}
            for document in lines_of(letters / "documents.jsonl")
        ]
        # A cut inside a word would give other words.
        for document in renamed:
            cut = document["head"].rfind(" ")
            document["rest"] = document["head"][cut:] + document["rest"]
            document["head"] = document["head"][:cut]
        (tmp_path / "docs.jsonl").write_text("\n".join(map(json.dumps, renamed)))
        options = ["--text", "head,rest", "--id", "key", "-o", "-"]
        ended = himecat("predict", letters_model, tmp_path / "docs.jsonl", *options)
        assert ended.out == predictions.read_text()
        assert "no document has the metadata field 'senders'" in ended.err

    def test_min_confidence_cuts_paths(
        self, himecat: Himecat, letters: Path, letters_model: Path, predictions: Path
    ) -> None:
        ended = himecat(
            "predict",
            letters_model,
            letters / "documents.jsonl",
            "--ignore-labels",
            "-o",
            "-",
            "--min-confidence",
            0.4,
        )
        cut = [json.loads(line) for line in ended.out.splitlines()]
        whole = lines_of(predictions)
        for short, full in zip(cut, whole, strict=True):
            assert all(sure >= 0.4 for sure in short["confidence"])
            if full["confidence"][-1] >= 0.4:
                assert short == full
            else:
                # Never shorter than the sure part of the way to the best leaf.
                assert len(short["path"]) >= sum(sure >= 0.4 for sure in full["confidence"])
                assert not short["leaf"]
        assert len({len(one["path"]) for one in cut}) > 2, "paths end at several levels"

    def test_documents_without_ids_and_known_words(
        self, himecat: Himecat, letters_model: Path, tmp_path: Path
    ) -> None:
        (tmp_path / "docs.jsonl").write_text('{"text": "zzyzx"}\n{"text": "the pool is closed"}\n')
        ended = himecat("predict", letters_model, tmp_path / "docs.jsonl", "-o", "-")
        assert [json.loads(line)["id"] for line in ended.out.splitlines()] == ["0", "1"]
        assert (
            "note: the model knows no word of 1 document: what places them is their metadata, or how frequent the "
            "categories are." in ended.err
        )

    def test_an_older_file_is_replaced(
        self, himecat: Himecat, letters: Path, letters_model: Path, predictions: Path, tmp_path: Path
    ) -> None:
        target = tmp_path / "out.jsonl"
        target.write_text("old")
        assert (
            himecat(
                "predict", letters_model, letters / "documents.jsonl", "--ignore-labels", "-o", target
            ).code
            == 0
        )
        assert target.read_text() == predictions.read_text()


class TestFit:
    def test_progress_and_the_next_step_go_to_standard_error(
        self, himecat: Himecat, letters: Path, tmp_path: Path
    ) -> None:
        model = tmp_path / "my model"
        ended = himecat(*fit_arguments(letters, model, *TINY))
        assert (ended.code, ended.out) == (0, "")
        assert "Learning the space: done in" in ended.err
        *_, told, hint = ended.err.splitlines()
        assert told == f"Learned 22 leaves from 330 documents; the model is in {model}. Next:"
        assert sorted(file.name for file in model.iterdir()) == [
            "corpus.safetensors",
            "model.json",
            "weights.safetensors",
        ]
        _, *arguments = shlex.split(hint)
        arguments[-1] = str(tmp_path / "out.jsonl")
        assert himecat(*arguments).code == 0

    def test_the_same_model_from_one_thread_and_two(
        self, himecat: Himecat, letters: Path, tmp_path: Path
    ) -> None:
        small = ("samples=60000", "beta=10", "dimension=16", "min_count=2", "epochs=2", "filter_widths=2,3")
        settings = ["--preset=paper", *(f"--set={setting}" for setting in (*small, "filter_maps=4"))]
        found = []
        for threads in ("1", "2"):
            model = tmp_path / threads
            assert himecat(*fit_arguments(letters, model, "-q", "--threads", threads, *settings)).code == 0
            weights = (model / "weights.safetensors").read_bytes()
            found.append((weights, himecat("predict", model, letters / "documents.jsonl", "-o", "-").out))
        assert found[0] == found[1]

    def test_seeds(self, himecat: Himecat, letters: Path, letters_model: Path, tmp_path: Path) -> None:
        for seed in ("0", "1"):
            assert himecat(*fit_arguments(letters, tmp_path / seed, "-q", "--seed", seed, *TINY)).code == 0
        first = (letters_model / "weights.safetensors").read_bytes()
        assert (tmp_path / "0" / "weights.safetensors").read_bytes() == first
        assert (tmp_path / "1" / "weights.safetensors").read_bytes() != first

    def test_overwrite(self, himecat: Himecat, letters: Path, tmp_path: Path) -> None:
        model = tmp_path / "model"
        assert himecat(*fit_arguments(letters, model, "-q", *TINY)).code == 0
        before = (model / "weights.safetensors").read_bytes()
        refused = himecat(*fit_arguments(letters, model, "-q", "--seed=1", *TINY))
        assert (refused.code, refused.errors) == (
            2,
            [f"{model}/ exists already: choose another name or pass --overwrite."],
        )
        assert (model / "weights.safetensors").read_bytes() == before
        assert himecat(*fit_arguments(letters, model, "-q", "--seed=1", "--overwrite", *TINY)).code == 0
        assert (model / "weights.safetensors").read_bytes() != before
        assert [file.name for file in tmp_path.iterdir()] == ["model"]

    def test_options_reach_the_model(self, himecat: Himecat, letters: Path, tmp_path: Path) -> None:
        options = [
            "--no-hierarchy",
            "--ignore-metadata",
            "tags",
            "--min-confidence",
            "0.3",
            "--preset",
            "paper",
        ]
        settings = [setting for setting in TINY if "min_count" not in setting and "spectral" not in setting]
        settings.append("--set=samples=150000")
        assert himecat(*fit_arguments(letters, tmp_path / "model", "-q", *options, *settings)).code == 0
        document = json.loads((tmp_path / "model" / "model.json").read_text())
        assert document["method"]["name"] == "paper"
        assert document["method"]["values"]["use_hierarchy"] is False
        assert document["method"]["values"]["min_count"] == 10, "the paper's"
        assert document["method"]["values"]["beta"] == 10, "not the paper's"
        assert document["parameters"]["ignore_metadata"] == ["tags"]
        assert "hierarchy" not in document["history"][-1]["objective"]
        assert not any("tags" in name for name in document["history"][-1]["objective"])
        # The confidence is kept with the model, and can be changed when it is used.
        placed = ["predict", tmp_path / "model", letters / "documents.jsonl", "-o", "-", "-q"]
        cut = [json.loads(line) for line in himecat(*placed).out.splitlines()]
        assert not all(one["leaf"] for one in cut)
        assert all(sure >= 0.3 for one in cut for sure in one["confidence"])
        whole = [json.loads(line) for line in himecat(*placed, "--min-confidence=0").out.splitlines()]
        assert all(one["leaf"] for one in whole)

    def test_without_a_tree_the_labels_span_it(self, himecat: Himecat, letters: Path, tmp_path: Path) -> None:
        model = tmp_path / "model"
        assert himecat("fit", letters / "documents.jsonl", "-o", model, "-q", *TINY).code == 0
        names = json.loads((model / "model.json").read_text())["taxonomy"]["names"]
        assert sorted(names) == sorted(sample_taxonomy().names)


class TestExplain:
    def test_a_label_for_programs(self, himecat: Himecat, letters_model: Path) -> None:
        found = himecat("explain", letters_model, "pool", "--top", 3, "--json", "-").json
        assert list(found) == ["path", "words", "metadata", "labels"]
        assert found["path"] == ["leisure", "pool"]
        assert list(found["metadata"]) == list(METADATA)
        for nearest in (found["words"], found["labels"], *found["metadata"].values()):
            assert len(nearest) == 3
            cosines = [one["cosine"] for one in nearest]
            assert cosines == sorted(cosines, reverse=True)
            assert all(-1 <= cosine <= 1.000001 for cosine in cosines)

    def test_a_label_for_people(self, himecat: Himecat, letters_model: Path, tmp_path: Path) -> None:
        ended = himecat("explain", letters_model, "leisure/pool", "--json", tmp_path / "found.json")
        title, *rows = ended.out.splitlines()
        assert title == "leisure/pool"
        assert [row.split()[0] for row in rows if not row.startswith(" ")] == ["words", *METADATA, "labels"]
        assert max(map(len, rows)) <= 80
        assert json.loads((tmp_path / "found.json").read_text())["words"][0]["name"] in rows[0]

    def test_documents(self, himecat: Himecat, letters: Path, letters_model: Path, predictions: Path) -> None:
        arguments = ["explain", letters_model, "--documents", letters / "documents.jsonl", "--top", 4]
        found = himecat(*arguments, "--json", "-").json
        placed = lines_of(predictions)
        assert [(one["id"], one["path"], one["confidence"]) for one in found] == [
            (one["id"], one["path"], one["confidence"]) for one in placed
        ]
        assert all(len(one["evidence"]) <= 4 for one in found)
        assert set(found[0]["evidence"][0]) == {"kind", "name", "count", "weight"}
        first, second, *_ = himecat(*arguments).out.splitlines()
        assert first.split()[:2] == [placed[0]["id"], placed[0]["path"][0]]
        assert found[0]["evidence"][0]["name"] in second

    def test_documents_for_a_label(self, himecat: Himecat, letters: Path, letters_model: Path) -> None:
        arguments = [
            "explain",
            letters_model,
            "pool",
            "--documents",
            letters / "documents.jsonl",
            "--json",
            "-",
        ]
        found = himecat(*arguments).json
        assert len(found) == 330
        names = {one["name"] for document in found for one in document["evidence"]}
        nearest = himecat("explain", letters_model, "pool", "--top", 3, "--json", "-").json["words"]
        assert {one["name"] for one in nearest} <= names


class TestSynthesize:
    def test_documents_for_programs(self, himecat: Himecat, letters_model: Path) -> None:
        def made(*options: object) -> Any:
            return himecat("synthesize", letters_model, "pool", *options, "--json", "-").json

        found = made("-n", 3)
        assert found["path"] == ["leisure", "pool"]
        assert len(found["documents"]) == 3
        known = set(json.loads((letters_model / "model.json").read_text())["vocabulary"])
        assert all(set(document.split()) <= known for document in found["documents"])
        assert made("-n", 3) == found
        assert made("-n", 3, "--seed", 9) != found

    def test_documents_for_people(self, himecat: Himecat, letters_model: Path) -> None:
        listed = himecat("synthesize", letters_model, "leisure", "-n", 4).out.splitlines()
        assert len(listed) == 4
        assert (
            listed
            == himecat("synthesize", letters_model, "leisure", "-n", 4, "--json", "-").json["documents"]
        )


class TestScore:
    def test_the_scores_for_programs(
        self, himecat: Himecat, letters: Path, predictions: Path, tmp_path: Path
    ) -> None:
        found = himecat("score", predictions, letters, "--json", "-").json
        assert found["documents"] == 330
        truth = {document["id"]: document["labels"] for document in lines_of(letters / "corpus.jsonl")}
        right = np.mean([one["path"] == truth[one["id"]] for one in lines_of(predictions)])
        assert found["leaf"]["micro"] == pytest.approx(right)
        assert found["path_accuracy"] == pytest.approx(right)
        assert set(found["overall"]) == {"micro", "macro"}
        assert found["coverage"] == 1
        assert [level["level"] for level in found["levels"]] == [1, 2, 3]

    def test_perfect_predictions(self, himecat: Himecat, letters: Path, tmp_path: Path) -> None:
        corpus = lines_of(letters / "corpus.jsonl")
        (tmp_path / "out.jsonl").write_text(
            "\n".join(json.dumps({"id": document["id"], "path": document["labels"]}) for document in corpus)
        )
        ended = himecat("score", tmp_path / "out.jsonl", letters)
        assert (ended.code, ended.err) == (0, "")
        assert re.search(r"^Leaf +1\.0000 +1\.0000$", ended.out, re.MULTILINE)
        assert re.search(r"^Overall +1\.0000 +1\.0000$", ended.out, re.MULTILINE)
        assert "330 documents: whole path right 1.0000, leaf reached 1.0000\n" in ended.out
        assert max(map(len, ended.out.splitlines())) <= 80

    def test_labelled_documents_can_be_left_out(
        self, himecat: Himecat, letters: Path, predictions: Path
    ) -> None:
        for draw in (0, 1):
            found = himecat("score", predictions, letters, "--without-draw", draw, "--json", "-").json
            assert found["documents"] == 220
        found = himecat("score", predictions, letters, "--without-draw=1", "--per-leaf=1", "--json=-").json
        assert found["documents"] == 308

    def test_missing_predictions_are_told(
        self, himecat: Himecat, letters: Path, predictions: Path, tmp_path: Path
    ) -> None:
        (tmp_path / "out.jsonl").write_text("\n".join(predictions.read_text().splitlines()[:300]))
        ended = himecat("score", tmp_path / "out.jsonl", letters, "--json", "-")
        assert ended.json["documents"] == 300
        assert f"warning: there is no prediction for 30 documents of {letters}" in ended.err
        assert himecat("score", tmp_path / "out.jsonl", letters, "-q").err == ""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """The folder that a demo wrote, and what it said."""
    folder = tmp_path_factory.mktemp("demo") / "my demo"
    return folder, in_another_process("demo", "-o", folder, *TINY)


class TestDemo:
    def test_it_writes_everything_and_prints_the_scores(
        self, demo: tuple[Path, subprocess.CompletedProcess[str]]
    ) -> None:
        folder, ended = demo
        assert ended.returncode == 0
        named = {file.name for file in folder.iterdir()}
        assert {"documents.jsonl", "taxonomy.yaml", "letters.csv", "model", "report.html"} <= named
        readme = (folder / "README.md").read_text(encoding="utf-8")
        assert [name for name in sorted(named - {"README.md"}) if f"`{name}" not in readme] == []
        assert [file.name for file in folder.parent.iterdir()] == [folder.name]
        assert re.match(r" +micro F1  macro F1\nLeaf +0\.\d+ +0\.\d+\nOverall ", ended.stdout)
        assert "1,090 documents: " in ended.stdout
        assert (folder / "report.html").read_text().lower().startswith("<!doctype html>")

    def test_what_it_says_to_try_works(
        self,
        himecat: Himecat,
        demo: tuple[Path, subprocess.CompletedProcess[str]],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.chdir(tmp_path)
        _, _, tail = demo[1].stderr.partition("Then try:\n")
        hints = [shlex.split(line) for line in tail.splitlines()]
        assert [hint[:2] for hint in hints] == [["himecat", name] for name in ("explain", "predict", "fit")]
        for _, *arguments in hints:
            assert himecat(*arguments, *(TINY if arguments[0] == "fit" else [])).code == 0

    def test_its_predictions_are_those_of_its_model(
        self, himecat: Himecat, demo: tuple[Path, subprocess.CompletedProcess[str]]
    ) -> None:
        folder, ended = demo
        for letters in ("documents.jsonl", "letters.csv"):
            again = himecat("predict", folder / "model", folder / letters, "-o", "-").out
            assert again == (folder / "predictions.jsonl").read_text()
        scored = himecat("score", folder / "predictions.jsonl", folder, "--without-draw", 0)
        assert scored.out == ended.stdout

    def test_only_an_older_demo_is_replaced(
        self,
        himecat: Himecat,
        demo: tuple[Path, subprocess.CompletedProcess[str]],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        folder = tmp_path / "demo"
        shutil.copytree(demo[0], folder)
        before = (folder / "model" / "model.json").read_bytes()
        assert himecat("demo", "-o", folder, *TINY).errors == [
            f"{folder} exists already: choose another folder or pass --overwrite."
        ]

        def interrupted(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr("himecat.estimator.HiMeCat.fit", interrupted)
            ended = himecat("demo", "-o", folder, "--overwrite", *TINY)
        assert (ended.code, ended.errors) == (130, ["interrupted; nothing was left half-written."])
        assert (folder / "model" / "model.json").read_bytes() == before
        assert himecat("demo", "-o", folder, "--overwrite", "-q", "--seed=1", *TINY).err == ""
        assert (folder / "model" / "model.json").read_bytes() != before
        assert [file.name for file in tmp_path.iterdir()] == ["demo"]

    @pytest.mark.parametrize(
        "name",
        ["README.md", "letters.csv", "model/model.json", "predictions.jsonl", "report.html", "SHA256SUMS"],
    )
    @pytest.mark.parametrize("gone", [False, True])
    def test_a_demo_that_somebody_has_changed_is_left_alone(
        self,
        himecat: Himecat,
        demo: tuple[Path, subprocess.CompletedProcess[str]],
        tmp_path: Path,
        name: str,
        gone: bool,
    ) -> None:
        folder = tmp_path / "demo"
        shutil.copytree(demo[0], folder)
        if gone:
            (folder / name).unlink()
        else:
            (folder / name).write_text("mine")
        (refused,) = himecat("demo", "-o", folder, "--overwrite", *TINY).errors
        shown = "letters.csv" if name == "SHA256SUMS" else name
        assert refused == (
            f"{folder} is left alone, because {shown} is not what himecat demo wrote: choose another folder."
        )
        assert gone or (folder / name).read_text() == "mine"


def test_skipped_documents_are_counted_apart_and_take_no_id(
    himecat: Himecat, letters: Path, letters_model: Path, tmp_path: Path
) -> None:
    lines = (letters / "corpus.jsonl").read_text().splitlines()[:3]
    twin = json.dumps({"id": json.loads(lines[0])["id"], "text": "another"})
    (tmp_path / "docs.jsonl").write_text("\n".join([*lines, twin, "{broken"]) + "\n")
    out = tmp_path / "out.jsonl"
    ended = himecat(
        "predict", letters_model, tmp_path / "docs.jsonl", "--skip-bad", "--ignore-labels", "-o", out
    )
    assert ended.code == 0
    assert f"Placed 3 documents, skipped 2; the paths are in {out}." in ended.err
    found = [json.loads(line) for line in out.read_text().splitlines()]
    assert [one["id"].endswith(end) for one, end in zip(found[3:], ("line 4", "line 5"), strict=True)] == [
        True
    ] * 2
    assert [one["path"] for one in found[3:]] == [[], []]
    assert himecat("score", out, letters).code == 0

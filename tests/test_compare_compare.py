"""Which systems are compared, with which parameters; ablations and sweeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from himecat import Default
from himecat.compare.protocol import compare as module
from himecat.compare.protocol.choices import OURS, Choice, choose_systems
from himecat.compare.protocol.compare import ablation_rows, compare, sweep_rows
from himecat.compare.protocol.run import Run
from himecat.compare.protocol.runner import Conditions
from himecat.compare.protocol.summaries import find_sweeps
from himecat.compare.systems.bert import Bert
from himecat.compare.systems.himecat import Himecat, HimecatPaper
from himecat.compare.systems.metacat import MetaCat
from himecat.compare.systems.poincare import Poincare
from himecat.compare.systems.registry import built_in_systems
from himecat.errors import HimecatError, UsageError
from himecat.input.dataset import Dataset
from himecat.runtime.progress import Progress

OWN = """
from dataclasses import dataclass
from himecat.compare.systems.system import System

@dataclass(frozen=True)
class Mine(System):
    name = "{name}"
    title = "Mine"
    about = "Mine."
    widths: tuple = (2, 3)
    share: float = 0.5
    deep: bool = False
    steps: int = 10
    kind: str = "a"
    rate: float | None = None

    def fit_predict(self, task):
        raise AssertionError("it is never asked to place anything")
"""


@pytest.fixture
def mine(tmp_path: Path) -> str:
    (tmp_path / "mine.py").write_text(OWN.format(name="mine"))
    return str(tmp_path / "mine.py")


class TestChoosing:
    def test_all_that_can_run_are_the_default(self) -> None:
        without, notes = choose_systems()
        chosen = {choice.name for choice in without}
        assert {"tfidf-svm", "hiersvm", "himecat", "himecat-paper"} <= chosen
        assert not chosen & {"encoder-lr", "himecat-encoder"}
        assert "encoder-lr is left out: it needs a text encoder (encoder=)." in notes
        every, notes = choose_systems(encoder="some/model")
        assert {choice.name for choice in every} == set(built_in_systems())
        assert notes == []
        # Ours stand at the end of the table.
        assert [choice.name for choice in every[-3:]] == list(OURS)

    def test_what_is_not_installed_is_left_out_or_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(built_in_systems()["tfidf-svm"], "requires", ("no_such_module",))
        chosen, notes = choose_systems()
        assert "tfidf-svm" not in {choice.name for choice in chosen}
        assert any(note.startswith("tfidf-svm is left out. The system 'tfidf-svm' needs") for note in notes)
        with pytest.raises(UsageError, match="needs no_such_module"):
            choose_systems(["tfidf-svm"])

    def test_names_and_files_in_the_order_given(self, mine: str) -> None:
        chosen, _ = choose_systems(["himecat", mine, "tfidf-svm", "himecat"])
        assert [choice.name for choice in chosen] == ["himecat", "mine", "tfidf-svm"]
        assert chosen[1].make().title == "Mine"

    @pytest.mark.parametrize(
        ("wanted", "sentence"),
        [
            (["tfidf-svn"], "no system 'tfidf-svn'; did you mean 'tfidf-svm'. Known are .*hiersvm"),
            (["zzz"], "no system 'zzz'; known are .*himecat-paper.*and files of your own"),
            (["no-such-file.py"], "no-such-file.py: there is no such file"),
            (["encoder-lr"], "'encoder-lr' needs an encoder: name one with encoder="),
            (["tfidf-svm", "bert"], "'bert' needs an encoder: name one with encoder="),
        ],
    )
    def test_what_cannot_be_chosen(self, wanted: list[str], sentence: str) -> None:
        with pytest.raises(UsageError, match=sentence):
            choose_systems(wanted)

    def test_two_of_one_name(self, tmp_path: Path) -> None:
        (tmp_path / "again.py").write_text(OWN.format(name="tfidf-svm"))
        with pytest.raises(UsageError, match="Two of the systems have the name 'tfidf-svm'"):
            choose_systems(["tfidf-svm", str(tmp_path / "again.py")])

    def test_heavy_systems_run_last(self) -> None:
        assert Choice("bert").weight > Choice("himecat-paper").weight > Choice("tfidf-svm").weight


class TestParameters:
    def test_only_what_differs_from_the_defaults_is_recorded(self, mine: str) -> None:
        given = {"widths": [2, 3], "share": 1, "steps": 10, "rate": 0.1}
        (choice,), _ = choose_systems([mine], parameters={"mine": given})
        assert choice.parameters == {"share": 1.0, "rate": 0.1}

    @pytest.mark.parametrize(
        ("given", "sentence"),
        [
            ({"stepz": 1}, "'mine' has no parameter 'stepz'; did you mean 'steps'?"),
            ({"zzz": 1}, "'mine' has no parameter 'zzz'; known are widths, share"),
            ({"steps": 1.5}, "mine.steps must be a whole number, not 1.5"),
            ({"steps": True}, "mine.steps must be a whole number, not True"),
            ({"deep": 1}, "mine.deep must be true or false, not 1"),
            ({"kind": 3}, "mine.kind must be a word, not 3"),
        ],
    )
    def test_what_cannot_work(self, mine: str, given: dict[str, Any], sentence: str) -> None:
        with pytest.raises(UsageError) as error:
            choose_systems([mine], parameters={"mine": given})
        assert sentence in str(error.value)

    @pytest.mark.parametrize(
        ("system", "given", "sentence"),
        [
            ("bert", {"batch_size": -1}, "batch_size must be at least 1, not -1."),
            ("bert", {"epochs": 0}, "epochs must be at least 1, not 0."),
            ("bert", {"max_text_tokens": 0}, "max_text_tokens must be at least 4, not 0."),
            ("setfit", {"pairs": -1}, "pairs must be at least 1, not -1."),
            ("setfit", {"learning_rate": "high"}, "setfit.learning_rate must be a number, not 'high'."),
            ("setfit", {"c": 0}, "c must be above 0, not 0."),
            ("tfidf-svm", {"c": 0}, "c must be above 0, not 0."),
            ("encoder-lr", {"c": float("nan")}, "encoder-lr.c must be a finite number, not nan."),
            ("metacat", {"samples": "many"}, "metacat.samples must be a whole number, not 'many'."),
            ("higitclass", {"samples": 0.5}, "higitclass.samples must be a whole number, not 0.5."),
            ("weshclass", {"rate": -1}, "rate must be at least 0, not -1."),
            ("poincare", {"edge_rate": float("inf")}, "poincare.edge_rate must be a finite number, not inf."),
        ],
    )
    def test_what_a_system_of_ours_cannot_do(self, system: str, given: dict[str, Any], sentence: str) -> None:
        with pytest.raises(UsageError) as error:
            Choice(system, given).make()
        assert str(error.value).endswith(sentence)

    def test_numbers_as_people_write_them(self) -> None:
        assert Choice("metacat", {"samples": 1e7}).make() == MetaCat(samples=10_000_000)
        assert Choice("bert", {"learning_rate": 1}).make() == Bert(learning_rate=1.0)
        assert Choice("poincare", {"burn_in": 0}).make() == Poincare(burn_in=0)

    def test_ours_take_every_hyperparameter(self) -> None:
        given = {"beta": 10, "dimension": 100, "ignore_metadata": "tags"}
        (choice,), _ = choose_systems(["himecat-paper"], parameters={"himecat-paper": given})
        # 100 dimensions are the preset's own.
        assert choice.parameters == {"beta": 10, "ignore_metadata": ["tags"]}
        made = choice.make()
        assert isinstance(made, HimecatPaper)
        assert made.ignore_metadata == ("tags",)
        with pytest.raises(UsageError, match="beta must be at least 0"):
            choose_systems(["himecat-paper"], parameters={"himecat-paper": {"beta": -1}})
        with pytest.raises(UsageError, match="'himecat-paper' has no parameter 'betta'; did you mean 'beta'"):
            choose_systems(["himecat-paper"], parameters={"himecat-paper": {"betta": 1}})

    def test_of_a_system_that_is_not_compared(self) -> None:
        with pytest.raises(UsageError, match=r"parameters of 'bert': compared are himecat, and not 'bert'"):
            choose_systems(["himecat"], parameters={"bert": {"epochs": 3}})

    def test_documents_are_read_as_the_settings_say(self) -> None:
        assert (Himecat().min_count, HimecatPaper().min_count) == (2, 10)
        assert Himecat(Default(max_tokens=7)).max_tokens == 7
        assert Himecat.min_count == 1


class TestRows:
    def test_ablations(self) -> None:
        rows = ablation_rows(["users", "tags"], "paper")
        assert {row.name for row in rows} == {"himecat-paper"}
        assert [(row.title, row.changed) for row in rows] == [
            ("HiMeCat (paper)", {}),
            ("No-Hierarchy", {"use_hierarchy": False}),
            ("No-Metadata", {"use_metadata": False}),
            ("No-users", {"ignore_metadata": ["users"]}),
            ("No-tags", {"ignore_metadata": ["tags"]}),
        ]
        # One type left out is all metadata left out.
        assert len(ablation_rows(["tags"])) == 3
        assert len(ablation_rows([])) == 2

    def test_sweeps(self) -> None:
        rows = sweep_rows("p")
        assert [row.parameters["dimension"] for row in rows] == [10, 50, 100, 200, 300]
        # The preset's own value is one run for both sweeps.
        assert rows[2].changed == sweep_rows("beta")[3].changed
        assert [row.parameters["beta"] for row in sweep_rows("beta")] == [0, 50, 100, 500, 1000, 2000]
        # Steps are held equal: few synthetic documents are not also little training.
        assert {row.parameters["epoch_documents"] for row in (*rows, *sweep_rows("beta"))} == {600}
        assert sweep_rows("p", method="default")[0].parameters == {"dimension": 10}
        assert {row.name for row in sweep_rows("p", method="default")} == {"himecat"}
        with pytest.raises(UsageError, match="beta has no part in the default method"):
            sweep_rows("beta", method=None)
        with pytest.raises(UsageError, match="There is no method 'papper'"):
            sweep_rows("p", method="papper")


class TestCompare:
    @pytest.fixture
    def conditions(self, letters: Path, tmp_path: Path) -> Conditions:
        return Conditions(letters, draws=2, cache=tmp_path / "kept")

    @pytest.fixture(autouse=True)
    def _no_runs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def run(conditions: Conditions, choices: list[Choice], *, progress: Progress) -> list[Run]:
            scores = {"micro": 0.5, "macro": 0.5}
            return [
                Run("letters", choice.name, choice.name, choice.parameters, draw, seed, scores, scores)
                for choice in choices
                for draw, seed in conditions.pairs
            ]

        monkeypatch.setattr(module, "run_systems", run)

    def test_what_others_are_tested_against(self, conditions: Conditions) -> None:
        def ours(*systems: str, against: str | None = None) -> str:
            return compare(conditions, systems, against=against).ours

        assert ours("tfidf-svm", "himecat-paper", "himecat") == "himecat"
        assert ours("tfidf-svm", "himecat-paper") == "himecat-paper"
        assert ours("hiersvm", "tfidf-svm") == "hiersvm"
        assert ours("himecat", "tfidf-svm", against="tfidf-svm") == "tfidf-svm"
        with pytest.raises(UsageError, match="against='bert': compared are himecat"):
            ours("himecat", against="bert")

    def test_everything_at_once(self, conditions: Conditions) -> None:
        found = compare(conditions, ["tfidf-svm"], ablations=True, sweeps=True)
        assert len(found.runs) == 2
        assert {run.system for run in found.ablations} == {"himecat", "himecat-paper"}
        assert [sweep.parameter for sweep in find_sweeps(found.sweeps)] == ["dimension", "beta"]
        plain = found.as_dict()
        assert [one["documents"] for one in plain["datasets"]] == [330]
        assert [Run.from_dict(run) for run in plain["runs"]] == list(found.runs)

    def test_ablations_that_cannot_run_leave_the_comparison(
        self, conditions: Conditions, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: object, **__: object) -> list[Run]:
            raise HimecatError("Not one run gave a result: no memory.")

        monkeypatch.setattr(module, "ablation_rows", refuse)
        found = compare(conditions, ["tfidf-svm"], ablations=True)
        assert len(found.runs) == 2
        assert "Not one run gave a result: no memory." in found.left_out[-1]


class TestLabelMap:
    def test_it_is_made_once(self, letters: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        conditions = Conditions(letters, draws=1, cache=tmp_path / "kept")
        first = module.label_map(conditions)
        with monkeypatch.context() as patch:
            patch.setattr("himecat.compare.protocol.compare._label_vectors", None)
            again = module.label_map(conditions)
        assert first.vectors.shape[0] == len(first.taxonomy)
        assert (first.vectors == again.vectors).all()

    def test_a_damaged_or_unwritable_file_is_no_error(
        self, letters: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        learned: list[Path] = []

        def learn(dataset: Dataset, conditions: Conditions, progress: Progress | None) -> np.ndarray:
            learned.append(conditions.folder)
            return np.eye(len(dataset.taxonomy), 3, dtype=np.float32)

        monkeypatch.setattr("himecat.compare.protocol.compare._label_vectors", learn)
        conditions = Conditions(letters, draws=1, cache=tmp_path / "kept")
        first = module.label_map(conditions)
        (file,) = (tmp_path / "kept").iterdir()
        size = file.stat().st_size
        file.write_bytes(file.read_bytes()[:-7])
        assert (module.label_map(conditions).vectors == first.vectors).all()
        assert (len(learned), file.stat().st_size) == (2, size)
        (tmp_path / "file").write_text("")
        nowhere = Conditions(letters, draws=1, cache=tmp_path / "file" / "kept")
        assert (module.label_map(nowhere).vectors == first.vectors).all()
        assert len(learned) == 3

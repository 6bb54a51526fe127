"""Fixtures shared by all tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

SHARED = Path(__file__).resolve().parent.parent.parent / "shared" / "data"


@pytest.fixture
def shared_data() -> Callable[[str], Path]:
    """Give the folder of a real corpus, or skip the test where it is absent."""

    def folder(name: str) -> Path:
        found = SHARED / name
        if not found.is_dir():
            pytest.skip(f"the real corpus {name!r} is not beside the project (../shared/data)")
        return found

    return folder


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it wrote to standard output, which must be JSON and nothing else."""
        return json.loads(self.out)

    @property
    def errors(self) -> list[str]:
        """The sentences of standard error that say why it failed."""
        return [
            line.removeprefix("himecat: ") for line in self.err.splitlines() if line.startswith("himecat: ")
        ]


Himecat = Callable[..., Ended]


@pytest.fixture
def himecat(capsys: pytest.CaptureFixture[str]) -> Himecat:
    """Run a command in this process."""
    from himecat.cli import main

    def run(*arguments: object) -> Ended:
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        wrote = capsys.readouterr()
        assert "Traceback" not in wrote.err
        return Ended(int(end.value.code or 0), wrote.out, wrote.err)

    return run


# Enough to learn something from the sample corpus, and no more.
TINY = [
    "--method=paper",
    *(
        f"--set={setting}"
        for setting in (
            "space=spectral",
            "beta=10",
            "dimension=16",
            "min_count=2",
            "classifier=mean-logistic",
        )
    ),
]


@pytest.fixture(scope="session")
def letters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample corpus as a dataset folder, small; read it only."""
    from himecat.sample import write_sample

    return write_sample(tmp_path_factory.mktemp("samples") / "letters", n_documents=330)


@pytest.fixture(scope="session")
def letters_model(letters: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder that the command line has fitted on the letters; read it only."""
    from himecat.cli import main

    folder = tmp_path_factory.mktemp("models") / "model"
    tree = f"--taxonomy={letters / 'taxonomy.yaml'}"
    with pytest.raises(SystemExit) as end:
        main(
            [
                "fit",
                str(letters / "documents.jsonl"),
                tree,
                "--metadata=senders,tags",
                "-q",
                f"-o{folder}",
                *TINY,
            ]
        )
    assert end.value.code == 0
    return folder

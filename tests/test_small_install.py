"""Without PyTorch everything works but a sentence encoder."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]

WITHOUT_PYTORCH = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "sentence_transformers", "transformers"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
"""


def without_pytorch(program: str) -> str:
    """Run a program in a process that has no PyTorch; give what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PYTORCH + textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_module_but_the_tests_own_network_can_be_imported() -> None:
    printed = without_pytorch(
        """
        import importlib, pkgutil
        import himecat.cli, himecat.estimator
        for module in pkgutil.walk_packages(himecat.__path__, "himecat."):
            if module.name == "himecat.__main__":
                continue
            try:
                importlib.import_module(module.name)
            except ModuleNotFoundError as error:
                print(module.name, error.name)
        """
    )
    assert printed.splitlines() == []


def test_a_model_is_fitted_saved_loaded_and_used(tmp_path: Path) -> None:
    printed = without_pytorch(
        f"""
        from himecat import HiMeCat, Paper
        documents = ["a late goal", "goal in the match", "the new law", "a law was passed"] * 3
        labels = ["sport", None, "politics", None] * 3
        method = Paper(min_count=1, dimension=8, samples=5_000, beta=5, classifier="mean-logistic")
        model = HiMeCat(method=method, threads=1)
        model.fit(documents, labels).save({str(tmp_path / "model")!r})
        print(HiMeCat.load({str(tmp_path / "model")!r}).predict(["goal", "law"], as_tuples=True))
        print("torch" in sys.modules)
        """
    )
    assert printed.splitlines() == ["[('sport',), ('politics',)]", "False"]


def test_the_papers_way_needs_no_pytorch_either(tmp_path: Path) -> None:
    printed = without_pytorch(
        f"""
        from himecat import HiMeCat, Paper
        documents = ["a late goal", "goal in the match", "the new law", "a law was passed"] * 3
        labels = ["sport", None, "politics", None] * 3
        model = HiMeCat(method=Paper(min_count=1, dimension=8, samples=5_000, beta=5, epochs=2), threads=1)
        model.fit(documents, labels).save({str(tmp_path / "model")!r})
        print(HiMeCat.load({str(tmp_path / "model")!r}).predict_proba(["goal", "law"]).shape)
        """
    )
    assert printed.splitlines() == ["(2, 2)"]


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[<>=\[; ]", one)[0].lower().replace("_", "-") for one in requirements}


def test_the_core_asks_for_nothing_heavy_and_every_extra_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    heavy = {"torch", "sentence-transformers", "transformers", "gensim", "matplotlib", "pyarrow", "pandas"}
    assert not names(project["dependencies"]) & heavy
    assert names(extras["encoder"]) == {"sentence-transformers", "torch"}
    assert extras["all"] == ["himecat[files,encoder,onnx,dictionary,baselines,plots,server]"]
    pins = (ROOT / "constraints.txt").read_text().splitlines()[1:]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", pin) for pin in pins), "no paths and no local versions"
    wanted = names([*project["dependencies"], *(one for extra in extras.values() for one in extra)]) - {
        "himecat"
    }
    assert wanted <= names(pins)


def test_the_default_method_never_passes_through_the_published_one(tmp_path: Path) -> None:
    printed = without_pytorch(
        f"""
        from himecat import HiMeCat
        documents = ["a late goal", "goal in the match", "the new law", "a law was passed"] * 3
        HiMeCat().fit(documents, ["sport", None, "politics", None] * 3).save({str(tmp_path / "model")!r})
        HiMeCat.load({str(tmp_path / "model")!r}).explain(documents=["goal", "law"])
        print([name for name in sys.modules if name.startswith(("himecat.paper", "sklearn", "pandas"))])
        """
    )
    assert printed.splitlines() == ["[]"]

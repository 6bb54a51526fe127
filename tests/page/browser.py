"""Real `himecat serve` in a process of its own, and what a real Chromium sees of it.

Where Playwright or the server's packages are missing, importing this skips the tests of the module that does.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the page needs himecat[server]")
playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
axe_playwright = pytest.importorskip(
    "axe_playwright_python.sync_playwright", reason="axe-core is not installed"
)
expect = playwright.expect

ROOT = Path(__file__).parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
# WebGL by software, for a machine without a graphics card; a container has no sandbox.
ARGUMENTS = ["--use-angle=swiftshader-webgl", "--no-sandbox"]
SECONDS = 60
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "src")}

HOSTILE = (
    "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script> "
    "The lorry forgot our bins. 🦊 bins"
)
STRANGE = (
    "Lattice quantum chromodynamics at finite temperature, with staggered fermions and a gluon propagator."
)


class Served:
    """A server of a copy of a model; it can be killed and started again."""

    def __init__(self, model: Path, documents: Path) -> None:
        self.model, self.documents = model, documents
        self.process: subprocess.Popen[str] | None = None
        self.url, self.port = "", "0"

    def start(self) -> None:
        command = [
            sys.executable,
            "-m",
            "himecat",
            "serve",
            str(self.model),
            "--documents",
            str(self.documents),
        ]
        self.process = subprocess.Popen(
            [*command, "--port", self.port, "--no-browser", "--threads", "1"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=ENVIRONMENT,
        )
        assert self.process.stdout is not None
        wrote = []
        for line in self.process.stdout:
            wrote.append(line)
            if found := re.search(r"http://\S+/", line):
                self.url = found[0]
                self.port = self.url.rstrip("/").rpartition(":")[2]
                return
        raise AssertionError(f"the server did not start: {''.join(wrote)}")

    def kill(self) -> None:
        """As by `kill -9`: nothing can be written any more."""
        assert self.process is not None
        self.process.kill()
        self.end()

    def end(self) -> None:
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(20)
        self.process.kill()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.process = None


Open = Callable[..., Any]


def api(page: Any, path: str) -> Any:
    """What the server says itself."""
    return page.request.get(page.url.split("#")[0] + "api/v1" + path).json()


def said(page: Any, text: str) -> None:
    """Wait until the line at the bottom says that something was saved."""
    expect(page.locator("#status.saved")).to_contain_text(text)


def shown(page: Any) -> str:
    """The id of the document that is shown."""
    return str(page.locator("#document-pane h2.id").get_attribute("title"))


def is_accessible(page: Any, **options: Any) -> None:
    """No violation of WCAG 2.2 A and AA, nor of axe's best practices."""
    found = axe_playwright.Axe().run(page, options={"resultTypes": ["violations"], **options})
    assert found.response["violations"] == [], found.generate_report()


def shoot(page: Any, name: str, tmp_path: Path) -> None:
    """Keep a picture, with few colours: the docs stay small."""
    folder = os.environ.get("HIMECAT_SCREENSHOTS")
    file = Path(ROOT, folder) / f"page-{name}.png" if folder else tmp_path / f"{name}.png"
    page.screenshot(path=file, animations="disabled", caret="hide")
    if folder:
        image = pytest.importorskip("PIL.Image")
        image.open(file).convert("P", palette=image.Palette.ADAPTIVE, colors=160).save(file, optimize=True)

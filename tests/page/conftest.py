"""Real `himecat serve` in a process of its own, and a real Chromium that looks at it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the page needs himecat[server]")
playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")

ROOT = Path(__file__).parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
# WebGL by software, for a machine without a graphics card; a container has no sandbox.
ARGUMENTS = ["--use-angle=swiftshader-webgl", "--no-sandbox"]
SECONDS = 60

HOSTILE = "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script> The lorry forgot our bins. 🦊 bins"


class Served:
    """A server of a copy of a model; it can be killed and started again."""

    def __init__(self, model: Path, documents: Path) -> None:
        self.model, self.documents = model, documents
        self.process: subprocess.Popen[str] | None = None
        self.url = ""

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
            [*command, "--port", "0", "--no-browser", "--threads", "1"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        )
        assert self.process.stdout is not None
        wrote = []
        for line in self.process.stdout:
            wrote.append(line)
            if found := re.search(r"http://\S+/", line):
                self.url = found[0]
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


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample with its model, and documents of which one tries to run as HTML."""
    folder = tmp_path_factory.mktemp("page") / "sample"
    command = [sys.executable, "-m", "himecat", "demo", "-o", str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    subprocess.run(command, check=True, capture_output=True, timeout=SECONDS, env=environment)
    with (folder / "documents.jsonl").open("a", encoding="utf-8") as file:
        file.write(
            json.dumps({"id": "hostile", "text": HOSTILE, "senders": ["<b>Mallory</b>"], "tags": []}) + "\n"
        )
    return folder


@pytest.fixture(scope="module")
def served(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server of one's own for each module."""
    folder = tmp_path_factory.mktemp("served")
    shutil.copytree(sample / "model", folder / "model")
    server = Served(folder / "model", sample / "documents.jsonl")
    server.start()
    yield server
    server.end()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """The browser that is installed; Playwright's own is not needed."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"there is no Chromium on the path ({', '.join(BROWSERS)})")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield browser
        browser.close()


Open = Callable[..., Any]


@pytest.fixture
def open_page(chromium: Any, served: Served) -> Iterator[Open]:
    """Open the page as another person would: with storage of its own. Errors of its scripts fail the test."""
    contexts, problems = [], list[str]()

    def opened(
        address: str = "", *, width: int = 1280, height: int = 800, scheme: str = "light", expect: str = ""
    ) -> Any:
        context = chromium.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce"
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)

        def heard(message: Any) -> None:
            # Refused requests are what some tests ask for.
            if message.type == "error" and not re.search(expect or "^$", message.text):
                problems.append(message.text)

        page.on("console", heard)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(served.url + address)
        page.wait_for_selector("body[data-ready]")
        # The document comes after the list.
        page.wait_for_selector("#document-pane .runner, #document-pane .message", state="attached")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert problems == []


@pytest.fixture
def page(open_page: Open) -> Any:
    """The page at 1280 pixels."""
    return open_page()


def api(page: Any, path: str) -> Any:
    """What the server says itself."""
    return page.request.get(page.url.split("#")[0] + "api/v1" + path).json()


def said(page: Any, text: str) -> None:
    """Wait until the line at the bottom says that something was saved."""
    playwright.expect(page.locator("#status.saved")).to_contain_text(text)


def shown(page: Any) -> str:
    """The id of the document that is shown."""
    return str(page.locator("#document-pane h2.id").get_attribute("title"))

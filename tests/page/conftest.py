"""The sample, a server of it, and pages of it in a browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from page.browser import Open, Served


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample with its model, and documents of which one tries to run as HTML, and one belongs nowhere."""
    from page.browser import ENVIRONMENT, HOSTILE, SECONDS, STRANGE

    folder = tmp_path_factory.mktemp("page") / "sample"
    command = [sys.executable, "-m", "himecat", "demo", "-o", str(folder)]
    subprocess.run(command, check=True, capture_output=True, timeout=SECONDS, env=ENVIRONMENT)
    with (folder / "documents.jsonl").open("a", encoding="utf-8") as file:
        for name, text, sender in (
            ("hostile", HOSTILE, "<b>Mallory</b>"),
            ("stranger", STRANGE, "P. Hysicist"),
        ):
            file.write(json.dumps({"id": name, "text": text, "senders": [sender], "tags": []}) + "\n")
    return folder


@contextmanager
def _serving(sample: Path, folder: Path) -> Iterator[Served]:
    from page.browser import Served

    shutil.copytree(sample / "model", folder / "model")
    server = Served(folder / "model", sample / "documents.jsonl")
    server.start()
    yield server
    server.end()


@pytest.fixture(scope="session")
def common(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The server of those who leave everything as it was."""
    with _serving(sample, tmp_path_factory.mktemp("common")) as server:
        yield server


@pytest.fixture(scope="module")
def served(
    request: pytest.FixtureRequest, sample: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    """The common server, or one of its own for a module that changes the model: `OWN_SERVER = True`."""
    if not getattr(request.module, "OWN_SERVER", False):
        yield request.getfixturevalue("common")
        return
    with _serving(sample, tmp_path_factory.mktemp("own")) as server:
        yield server


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """The browser that is installed; Playwright's own is not needed."""
    from page.browser import ARGUMENTS, BROWSERS, playwright

    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"there is no Chromium on the path ({', '.join(BROWSERS)})")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield browser
        browser.close()


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

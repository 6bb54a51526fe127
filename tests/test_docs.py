"""The documentation: its site, its pages and its notebook."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest

import himecat
import run_notebook

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does it: a warning is an error."""
    pytest.importorskip("furo", reason="the extra docs is not installed")
    folder = tmp_path_factory.mktemp("docs") / "site"
    options = ["-W", "--keep-going", "--fresh-env", "-q", "-b", "html"]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, str(DOCS), str(folder)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return folder


class Loaded(HTMLParser):
    """What a browser fetches to show a page."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        wanted = {"script": "src", "img": "src", "link": "href", "iframe": "src"}.get(tag)
        self.addresses += [value for name, value in attrs if name == wanted and value is not None]


def test_pages_fetch_nothing_from_other_hosts(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        loaded = Loaded()
        loaded.feed(page.read_text(encoding="utf-8"))
        assert not [address for address in loaded.addresses if re.match(r"(https?:)?//", address)], page
    for style in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?(https?:)?//|@import", style.read_text(encoding="utf-8")), style


def test_every_page_has_its_place_in_the_site(site: Path) -> None:
    sources = [file for ending in ("*.md", "*.rst") for file in DOCS.rglob(ending)]
    for file in sources:
        assert (site / file.relative_to(DOCS)).with_suffix(".html").exists()
    first = (site / "index.html").read_text(encoding="utf-8")
    for file in sources:
        page = file.relative_to(DOCS).with_suffix(".html").as_posix()
        assert page == "index.html" or f'href="{page}"' in first, page


def test_every_public_name_is_described(site: Path) -> None:
    described = {
        name
        for page in (site / "api").glob("*.html")
        for name in re.findall(r'<dt[^>]* id="([\w.]+)"', page.read_text(encoding="utf-8"))
    }
    public = {f"himecat.{name}" for name in himecat.__all__ if name != "__version__"}
    assert public <= described


def test_the_first_page_is_the_readme_and_its_links_lead_to_pages(site: Path) -> None:
    first = (site / "index.html").read_text(encoding="utf-8")
    for name in re.findall(r"\]\(docs/(\w+)\.md\)", (ROOT / "README.md").read_text(encoding="utf-8")):
        assert f'href="{name}.html"' in first


def test_pages_name_only_modules_that_exist() -> None:
    """A dotted name of the package in a page is a module, or something in one."""
    import importlib

    for file in [*DOCS.rglob("*.md"), *DOCS.rglob("*.rst"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]:
        for name in set(re.findall(r"\bhimecat(?:\.\w+)+\b", file.read_text(encoding="utf-8"))):
            parts = name.split(".")
            found: object = himecat
            for depth in range(1, len(parts)):
                try:
                    found = getattr(found, parts[depth])
                except AttributeError:
                    try:
                        found = importlib.import_module(".".join(parts[: depth + 1]))
                    except ModuleNotFoundError:
                        pytest.fail(f"{file.relative_to(ROOT)} names {name}, which does not exist")


def test_the_notebook_runs_and_is_kept_with_what_it_prints() -> None:
    pytest.importorskip("ipykernel", reason="the extra docs is not installed")
    pytest.importorskip("matplotlib", reason="the extra plots is not installed")
    kept = nbformat.read(run_notebook.NOTEBOOK, as_version=4)
    nbformat.validate(kept)
    code = [cell for cell in kept.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert run_notebook.NOTEBOOK.stat().st_size < 60_000
    before = [[output.get("text") for output in cell.outputs] for cell in code]
    ran = run_notebook.run(kept)
    after = [
        [output.get("text") for output in cell.outputs] for cell in ran.cells if cell.cell_type == "code"
    ]
    # The last digits may differ between processors; which documents are where does not.
    assert [len(outputs) for outputs in after] == [len(outputs) for outputs in before]
    assert after[-1] == before[-1] == ["True\n"]

"""The documentation's site, by Sphinx: `make docs`.

README, CONTRIBUTING, CHANGELOG and the notebook stay where people look for them and are pages of the site
too: a page of `docs/` that is named in `PAGES` begins with that file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

import himecat

ROOT = Path(__file__).resolve().parent.parent
PAGES = {
    "index": "README.md",
    "contributing": "CONTRIBUTING.md",
    "changelog": "CHANGELOG.md",
    "security": "SECURITY.md",
    "notebook": "examples/quickstart.ipynb",
}

project = "himecat"
author = "The himecat contributors"
version = release = himecat.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_heading_anchors = 4

# Docstrings name code between single backticks.
default_role = "code"
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints_format = "short"
maximum_signature_line_length = 90
napoleon_google_docstring = False
napoleon_use_rtype = False

html_theme = "furo"
html_title = f"himecat {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#00695c", "color-brand-content": "#00695c"},
    "dark_css_variables": {"color-brand-primary": "#4db6ac", "color-brand-content": "#4db6ac"},
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def setup(app: Sphinx) -> None:
    """Have the pages begin with their files, and the attributes of dataclasses shown as parameters."""
    app.connect("source-read", begin_with_file)
    app.connect("autodoc-process-signature", without_protocol_arguments)
    # Before napoleon, which reads several names before one type among parameters only.
    app.connect("autodoc-process-docstring", attributes_as_parameters, priority=400)


def attributes_as_parameters(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]
) -> None:
    """Call the attributes of a dataclass its parameters, which they are."""
    if is_dataclass(thing):
        lines[:] = ["Parameters" if line == "Attributes" else line for line in lines]


def without_protocol_arguments(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, signature: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    """A protocol is not called, so it has no arguments to show."""
    return ("" if what == "class" and getattr(thing, "_is_protocol", False) else signature), returned


def begin_with_file(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put the file that belongs to a page before what the page itself says."""
    if docname in PAGES:
        file = ROOT / PAGES[docname]
        app.env.note_dependency(str(file))
        text = file.read_text(encoding="utf-8")
        shown = notebook_page(json.loads(text)) if file.suffix == ".ipynb" else relink(text)
        source[0] = f"{shown}\n\n{source[0]}"


def relink(text: str) -> str:
    """Turn links as they are in the repository's root into links of the site.

    Examples
    --------
    >>> relink("[a](docs/a.md#b), [c](CHANGELOG.md), [LICENSE](LICENSE), [d](https://doi.org/10)")
    '[a](a.md#b), [c](changelog.md), LICENSE, [d](https://doi.org/10)'
    """
    page_of = {file: f"{page}.md" for page, file in PAGES.items()}

    def moved(link: re.Match[str]) -> str:
        target, hash_sign, anchor = link[2].partition("#")
        if target not in page_of and not target.startswith("docs/") and (ROOT / target).is_file():
            return link[1]
        return f"[{link[1]}]({page_of.get(target, target.removeprefix('docs/'))}{hash_sign}{anchor})"

    return re.sub(r"\[([^\]]*)\]\(([^)]+)\)", moved, text)


def notebook_page(notebook: dict[str, Any]) -> str:
    """Give a notebook as Markdown: text, code and what it printed or drew.

    Examples
    --------
    >>> code = {"cell_type": "code", "source": ["1 + 1"], "outputs": [{"data": {"text/plain": ["2"]}}]}
    >>> print(notebook_page({"cells": [{"cell_type": "markdown", "source": ["# Sums"]}, code]}))
    # Sums
    <BLANKLINE>
    ```python
    1 + 1
    ```
    <BLANKLINE>
    ```text
    2
    ```
    """
    return "\n\n".join(part for cell in notebook["cells"] for part in _parts(cell))


def _parts(cell: dict[str, Any]) -> Iterator[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source
        return
    yield f"```python\n{source}\n```"
    for output in cell["outputs"]:
        data = output.get("data", {})
        if "image/png" in data:
            yield f"![What the cell above draws](data:image/png;base64,{data['image/png'].strip()})"
        else:
            yield "```text\n" + "".join(output.get("text", data.get("text/plain", []))).rstrip() + "\n```"

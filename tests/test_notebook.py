"""In a notebook: progress as plain lines, results as tables."""

from __future__ import annotations

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

FIT = """
from himecat import Default, HiMeCat
texts = ["the tenor sang an aria", "a late goal in the match", "an aria of the tenor", "the match had a goal"]
model = HiMeCat(method=Default(min_count=1, dimension=4, topics=2), threads=1, verbose=True)
_ = model.fit(texts, ["opera", "sport", None, None])
"""


def test_progress_and_tables() -> None:
    cells = [FIT, "model.assign(texts)", "model.explain(documents=texts)", "model.explain('sport')"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    fitted, *shown = notebook.cells
    said = "".join(one.text for one in fitted.outputs)
    assert "Learning the space: done in" in said
    # Nothing that moves a cursor, which a notebook would show as it is.
    assert "\x1b" not in said
    assert "\r" not in said
    for cell in shown:
        (result,) = cell.outputs
        assert "<table>" in result.data["text/html"]
        assert "sport" in result.data["text/html"]

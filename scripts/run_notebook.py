"""Run `examples/quickstart.ipynb` and keep what it prints and draws: `python scripts/run_notebook.py`."""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).resolve().parent.parent / "examples" / "quickstart.ipynb"


def run(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Run all cells in a new kernel; an error ends it. Times and machines are not kept."""
    for cell in notebook.cells:
        cell.metadata.clear()
    client = NotebookClient(
        notebook, timeout=300, kernel_name="python3", record_timing=False, coalesce_streams=True
    )
    ran = client.execute()
    ran.metadata.language_info = {"name": "python"}
    return ran


if __name__ == "__main__":
    nbformat.write(run(nbformat.read(NOTEBOOK, as_version=4)), NOTEBOOK)

"""Table 3: what is left of the method without the tree, without metadata, and without each type of it."""

from __future__ import annotations

from collections.abc import Sequence

from himecat.compare.protocol.results import Run
from himecat.compare.protocol.runs import Conditions, run_systems
from himecat.compare.protocol.systems import Choice, ours_with_preset
from himecat.input.dataset import open_dataset
from himecat.runtime.progress import Progress


def ablation_rows(metadata: Sequence[str], preset: str | None = None) -> list[Choice]:
    """The rows of the table: the full method, and one without each of its parts.

    A single type of metadata is not left out once more by its name: that is the row without metadata.

    Parameters
    ----------
    metadata : sequence of str
        The metadata fields of the dataset.
    preset : str, optional
        `paper` for the published method.

    Examples
    --------
    >>> [row.title for row in ablation_rows(["authors", "tags"])]
    ['himecat', 'No-Hierarchy', 'No-Metadata', 'No-authors', 'No-tags']
    """
    name = ours_with_preset(preset)
    full = Choice(name)
    rows = [
        Choice(name, title=full.kind.title),
        Choice(name, {"use_hierarchy": False}, title="No-Hierarchy"),
    ]
    if metadata:
        rows.append(Choice(name, {"use_metadata": False}, title="No-Metadata"))
    if len(metadata) > 1:
        rows += [Choice(name, {"ignore_metadata": [kind]}, title=f"No-{kind}") for kind in metadata]
    return rows


def ablate(
    conditions: Conditions, *, preset: str | None = None, progress: Progress | None = None
) -> list[Run]:
    """Run the method without each of its parts.

    Parameters
    ----------
    conditions : Conditions
        The dataset, and how often and how to run.
    preset : str, optional
        `paper` for the published method.
    progress : Progress, optional
        Told of every run.

    Examples
    --------
    >>> from pathlib import Path
    >>> ablate(Conditions(Path("no-such-folder")))
    Traceback (most recent call last):
    ...
    himecat.errors.DataError: no-such-folder: there is no such folder.
    """
    metadata = open_dataset(conditions.folder).metadata
    return run_systems(conditions, ablation_rows(metadata, preset), progress=progress)

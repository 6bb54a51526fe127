"""All systems side by side on one dataset: the runs, and what tables and the report need beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from himecat.errors import HimecatError, UsageError
from himecat.experiments.ablate import ablate
from himecat.experiments.results import Run
from himecat.experiments.runs import Conditions, failures, run_systems
from himecat.experiments.statistics import DatasetStatistics
from himecat.experiments.sweep import SWEEPS, sweep
from himecat.experiments.systems import OURS, choose_systems
from himecat.progress import Progress, silent

if TYPE_CHECKING:
    from himecat.plotting.label_map import LabelMap


@dataclass(frozen=True)
class Comparison:
    """What a comparison gave.

    Attributes
    ----------
    runs : list of Run
        Every system on every draw with every seed.
    ours : str
        The system that the others are tested against.
    statistics : DatasetStatistics
        What the dataset is made of.
    ablations, sweeps : list of Run
        Runs of our own systems with parts left out, and with other values of p and beta; often none.
    left_out : list of str
        Systems that were not run, and why.

    Examples
    --------
    >>> letters = DatasetStatistics("letters", 1200, 40, 11, 8, 3, 61.25, 900)
    >>> Comparison([], "himecat", letters).as_dict()["dataset"]
    'letters'
    """

    runs: Sequence[Run]
    ours: str
    statistics: DatasetStatistics
    ablations: Sequence[Run] = field(default_factory=list)
    sweeps: Sequence[Run] = field(default_factory=list)
    left_out: Sequence[str] = field(default_factory=list)

    @property
    def failures(self) -> list[str]:
        """Which systems failed, and why."""
        return failures([*self.runs, *self.ablations, *self.sweeps])

    def as_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {
            "dataset": self.statistics.name,
            "statistics": self.statistics.as_dict(),
            "ours": self.ours,
            "runs": [run.as_dict() for run in self.runs],
            "ablations": [run.as_dict() for run in self.ablations],
            "sweeps": [run.as_dict() for run in self.sweeps],
            "left_out": list(self.left_out),
            "failures": self.failures,
        }


def compare(
    conditions: Conditions,
    systems: Sequence[str] = (),
    *,
    parameters: Mapping[str, Mapping[str, Any]] | None = None,
    against: str | None = None,
    ablations: bool = False,
    sweeps: bool = False,
    progress: Progress | None = None,
) -> Comparison:
    """Run systems on the same draws of a dataset.

    Parameters
    ----------
    conditions : Conditions
        The dataset, and how often and how to run.
    systems : sequence of str
        Names and files of systems; by default all that can run here, see `choose_systems`.
    parameters : mapping, optional
        Parameters that are not the defaults, by system.
    against : str, optional
        The system that the others are tested against; by default `himecat` where it is among them.
    ablations, sweeps : bool
        Whether to run our systems without their parts and with other values of p and beta, too.
    progress : Progress, optional
        Told of every run.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from himecat.samples import write_sample
    >>> with tempfile.TemporaryDirectory() as place:
    ...     letters = write_sample(f"{place}/letters", 330)
    ...     found = compare(Conditions(letters, draws=1, cache=Path(place) / "kept"), ["tfidf-svm"])
    >>> [run.system for run in found.runs], found.ours, found.failures
    (['tfidf-svm'], 'tfidf-svm', [])
    """
    shown = progress or silent()
    statistics = dataset_statistics(conditions)
    chosen, notes = choose_systems(systems, encoder=conditions.encoder, parameters=parameters)
    ours = _reference([choice.name for choice in chosen], against)
    for note in notes:
        shown.say(f"note: {note}")
    runs = run_systems(conditions, chosen, progress=shown)
    parts: list[Run] = []
    swept: list[Run] = []
    try:
        for preset in ("paper", None) if ablations else ():
            parts += ablate(conditions, preset=preset, progress=shown)
        for parameter in SWEEPS if sweeps else ():
            swept += sweep(conditions, parameter, progress=shown)
    except HimecatError as error:
        # What the systems gave is worth showing without these.
        notes.append(f"Ablations or sweeps are missing. {error}")
    return Comparison(runs, ours, statistics, parts, swept, notes)


def dataset_statistics(conditions: Conditions) -> DatasetStatistics:
    """What the dataset is made of, all of it."""
    from himecat.corpus.builder import load_corpus
    from himecat.corpus.dataset import open_dataset, true_nodes
    from himecat.corpus.documents import Fields

    dataset = open_dataset(conditions.folder)
    loaded = load_corpus(dataset.documents, Fields(metadata=dataset.metadata))
    # Documents that cannot be scored come to light here, once for all systems.
    true_nodes(dataset, loaded)
    return DatasetStatistics.of(dataset, loaded)


def label_map(conditions: Conditions, progress: Progress | None = None) -> LabelMap:
    """The label vectors of the published method on draw 0, for the map of the tree."""
    from himecat.corpus.dataset import open_dataset
    from himecat.estimator import HiMeCat
    from himecat.experiments.measure import read_draw
    from himecat.experiments.systems import HimecatPaper
    from himecat.plotting.label_map import LabelMap

    dataset = open_dataset(conditions.folder)
    read = read_draw(dataset, HimecatPaper(), conditions.drawn(0))
    # The map shows the space; no documents are placed, so the quickest classifier will do.
    model = HiMeCat(
        dataset.taxonomy,
        dataset.metadata,
        preset="paper",
        classifier="mean-logistic",
        beta=1,
        allow_empty_leaves=True,
    )
    model.fit(read.corpus, read.labelled, progress=progress)
    return LabelMap(model.space_.labels, dataset.taxonomy)


def _reference(names: Sequence[str], against: str | None) -> str:
    if against is not None:
        if against not in names:
            raise UsageError(f"--against {against}: compared are {', '.join(names)}.")
        return against
    usual = ("himecat", *OURS)
    return next((name for name in usual if name in names), names[0])

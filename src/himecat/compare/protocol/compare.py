"""All systems side by side on datasets: the runs, and what tables and the report need beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from himecat.compare.protocol.ablate import ablate
from himecat.compare.protocol.results import Run
from himecat.compare.protocol.run_cache import (
    FloatArray,
    code_version,
    dataset_fingerprint,
    kept_vectors,
    results_folder,
)
from himecat.compare.protocol.runs import Conditions, failures, run_systems
from himecat.compare.protocol.statistics import DatasetStatistics
from himecat.compare.protocol.sweep import SWEEPS, sweep
from himecat.compare.protocol.systems import OURS, choose_systems
from himecat.errors import HimecatError, UsageError
from himecat.input.dataset import Dataset, open_dataset
from himecat.runtime.progress import Progress, silent

if TYPE_CHECKING:
    from himecat.compare.figures.label_map import LabelMap


@dataclass(frozen=True)
class Comparison:
    """What a comparison gave.

    Attributes
    ----------
    runs : list of Run
        Every system on every draw of every dataset with every seed.
    ours : str
        The system that the others are tested against.
    statistics : list of DatasetStatistics
        What each dataset is made of.
    ablations, sweeps : list of Run
        Runs of our own systems with parts left out, and with other values of p and beta; often none.
    left_out : list of str
        Systems and datasets that were not run, and why.

    Examples
    --------
    >>> letters = DatasetStatistics("letters", 1200, 40, 11, 8, 3, 61.25, 900)
    >>> [one["name"] for one in Comparison([], "himecat", [letters]).as_dict()["datasets"]]
    ['letters']
    """

    runs: Sequence[Run]
    ours: str
    statistics: Sequence[DatasetStatistics]
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
            "datasets": [one.as_dict() for one in self.statistics],
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
    >>> from himecat.sample import write_sample
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
    return Comparison(runs, ours, [statistics], parts, swept, notes)


def on_each(
    conditions: Sequence[Conditions],
    run: Callable[[Conditions], Comparison],
    *,
    progress: Progress | None = None,
) -> Comparison:
    """Run on one dataset after the other, and put together what they gave.

    All folders are opened before the first run, so that a wrong one is known at once. A dataset on which nothing
    gives a result is left out with the reason, if there is another.

    Parameters
    ----------
    conditions : sequence of Conditions
        One for each dataset.
    run : function
        What to do with each.
    progress : Progress, optional
        Told which dataset comes next, and which is left out.

    Raises
    ------
    UsageError
        Two datasets have the same name.

    Examples
    --------
    >>> from pathlib import Path
    >>> on_each([Conditions(Path("no-such-folder"))], compare)
    Traceback (most recent call last):
    ...
    himecat.errors.DataError: no-such-folder: there is no such folder.
    """
    shown = progress or silent()
    named: dict[str, Conditions] = {}
    for one in conditions:
        name = open_dataset(one.folder).name
        if name in named:
            raise UsageError(
                f"{named[name].folder} and {one.folder} are both called {name}: tables go by these names, so rename "
                "one of the folders."
            )
        named[name] = one
    found: list[Comparison] = []
    left_out: list[str] = []
    for name, one in named.items():
        if len(named) > 1:
            shown.say(f"{name}:")
        try:
            found.append(run(one))
        except UsageError:
            raise
        except HimecatError as error:
            left_out.append(f"{name} is left out. {error}")
            shown.say(f"note: {left_out[-1]}")
            if len(left_out) == len(named):
                raise
    return Comparison(
        [one for part in found for one in part.runs],
        found[0].ours,
        [one for part in found for one in part.statistics],
        [one for part in found for one in part.ablations],
        [one for part in found for one in part.sweeps],
        list(dict.fromkeys([*(note for part in found for note in part.left_out), *left_out])),
    )


def dataset_statistics(conditions: Conditions) -> DatasetStatistics:
    """What the dataset is made of, all of it."""
    from himecat.input.builder import load_corpus
    from himecat.input.dataset import true_nodes
    from himecat.input.documents import Fields

    dataset = open_dataset(conditions.folder)
    loaded = load_corpus(dataset.documents, Fields(metadata=dataset.metadata))
    # Documents that cannot be scored come to light here, once for all systems.
    true_nodes(dataset, loaded)
    return DatasetStatistics.of(dataset, loaded)


def label_map(conditions: Conditions, progress: Progress | None = None) -> LabelMap:
    """The label vectors of the published method on draw 0, for the map of the tree; kept like results."""
    from himecat.compare.figures.label_map import LabelMap
    from himecat.compare.protocol.systems import HimecatPaper

    dataset = open_dataset(conditions.folder)
    key = {
        "dataset": dataset_fingerprint(dataset),
        "limit": conditions.limit,
        "per_leaf": None if dataset.first_draw is not None else conditions.per_leaf,
        "code": code_version(HimecatPaper),
    }
    vectors = kept_vectors(
        results_folder(conditions.cache), "labels", key, lambda: _label_vectors(dataset, conditions, progress)
    )
    return LabelMap(vectors, dataset.taxonomy)


def _label_vectors(dataset: Dataset, conditions: Conditions, progress: Progress | None) -> FloatArray:
    from himecat.compare.protocol.measure import read_draw
    from himecat.compare.protocol.systems import HimecatPaper
    from himecat.estimator import HiMeCat
    from himecat.methods import Paper

    read = read_draw(dataset, HimecatPaper(), conditions.drawn(0))
    # The map shows the space; no documents are placed, so the quickest classifier will do.
    model = HiMeCat(
        dataset.taxonomy,
        dataset.metadata,
        method=Paper(classifier="mean-logistic", beta=1),
        allow_empty_leaves=True,
    )
    model.fit(read.corpus, read.labelled, progress=progress)
    return model.space_.labels


def _reference(names: Sequence[str], against: str | None) -> str:
    if against is not None:
        if against not in names:
            raise UsageError(f"--against {against}: compared are {', '.join(names)}.")
        return against
    usual = ("himecat", *OURS)
    return next((name for name in usual if name in names), names[0])

"""`compare`, `ablate` and `sweep`: lists of rows over one runner, on one dataset or several."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from himecat.compare.protocol.cache import (
    FloatArray,
    cached_vectors,
    code_version,
    dataset_fingerprint,
    results_folder,
)
from himecat.compare.protocol.choices import OURS, Choice, choose_systems
from himecat.compare.protocol.run import Run
from himecat.compare.protocol.runner import Conditions, failures, run_systems
from himecat.compare.protocol.statistics import DatasetStatistics
from himecat.compare.systems.himecat import HimecatPaper, system_with_method
from himecat.errors import HimecatError, UsageError, spelled
from himecat.input.dataset import Dataset
from himecat.input.taxonomy.tree import Taxonomy
from himecat.runtime.progress import Progress, silent

SWEEPS = {
    "p": ("dimension", (10, 50, 100, 200, 300)),
    "beta": ("beta", (0, 50, 100, 500, 1000, 2000)),
}
"""The paper's two sweeps: the hyperparameter and its values."""
# Documents per child that an epoch of a classifier counts as having: what the published beta of 500 gives, with a
# fifth as many labelled ones. Otherwise few synthetic documents would also mean few steps.
_EPOCH_DOCUMENTS = 600


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


def ablation_rows(metadata: Sequence[str], method: str | None = None) -> list[Choice]:
    """The rows of Table 3: the full method, and one without each of its parts.

    A single type of metadata is not left out once more by its name: that is the row without metadata.

    Parameters
    ----------
    metadata : sequence of str
        The metadata fields of the dataset.
    method : str, optional
        `paper` for the published method.

    Examples
    --------
    >>> [row.title for row in ablation_rows(["authors", "tags"])]
    ['himecat', 'No-Hierarchy', 'No-Metadata', 'No-authors', 'No-tags']
    """
    name = system_with_method(method)
    rows = [
        Choice(name, title=Choice(name).kind.title),
        Choice(name, {"use_hierarchy": False}, title="No-Hierarchy"),
    ]
    if metadata:
        rows.append(Choice(name, {"use_metadata": False}, title="No-Metadata"))
    if len(metadata) > 1:
        rows += [Choice(name, {"ignore_metadata": [kind]}, title=f"No-{kind}") for kind in metadata]
    return rows


def sweep_rows(parameter: str, *, method: str | None = "paper", values: Sequence[int] = ()) -> list[Choice]:
    """The rows of a sweep: one system at every value of a hyperparameter.

    In the published method, classifiers are trained for the same number of steps at every value.

    Parameters
    ----------
    parameter : str
        `p` or `beta`.
    method : str, optional
        `paper` for the published method, None or `default` for the default one, which makes no synthetic
        documents and so has no beta.
    values : sequence of int
        Other values than the paper's.

    Raises
    ------
    UsageError
        There is no such sweep.

    Examples
    --------
    >>> [row.parameters for row in sweep_rows("p", values=[10, 50])]
    [{'dimension': 10, 'epoch_documents': 600}, {'dimension': 50, 'epoch_documents': 600}]
    """
    if parameter not in SWEEPS:
        raise UsageError(f"There is no sweep of {parameter!r}; known are {' and '.join(SWEEPS)}.")
    name = system_with_method(method)
    if parameter == "beta" and name == "himecat":
        option = spelled("--method paper", "method='paper'")
        raise UsageError(f"beta has no part in the default method: sweep it with {option}.")
    setting, published = SWEEPS[parameter]
    chosen = list(dict.fromkeys(values or published))
    if len(chosen) < 2:
        raise UsageError(
            f"A sweep follows a parameter over two values at least, and there is only {chosen[0]}."
        )
    equal = {} if name == "himecat" else {"epoch_documents": _EPOCH_DOCUMENTS}
    return [Choice(name, {setting: value, **equal}) for value in chosen]


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
        Shows every run.

    Examples
    --------
    >>> import tempfile
    >>> from himecat.sample import write_sample
    >>> with tempfile.TemporaryDirectory() as place:
    ...     letters = write_sample(f"{place}/letters", 330)
    ...     found = compare(Conditions(letters, draws=1, cache=False), ["tfidf-svm"])
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
        for method in ("paper", None) if ablations else ():
            rows = ablation_rows(conditions.source.open().metadata, method)
            parts += run_systems(conditions, rows, progress=shown)
        for parameter in SWEEPS if sweeps else ():
            swept += run_systems(conditions, sweep_rows(parameter), progress=shown)
    except HimecatError as error:
        # What the systems gave is worth showing without these.
        notes.append(f"Ablations or sweeps are missing. {error}")
    return Comparison(runs, ours, [statistics], parts, swept, notes)


def ablate(
    conditions: Conditions, *, method: str | None = None, progress: Progress | None = None
) -> Comparison:
    """Run our method without each of its parts; see `ablation_rows`.

    Examples
    --------
    >>> from pathlib import Path
    >>> ablate(Conditions(Path("no-such-folder")))
    Traceback (most recent call last):
    ...
    himecat.errors.DataError: no-such-folder: there is no such file or folder.
    """
    rows = ablation_rows(conditions.source.open().metadata, method)
    runs = run_systems(conditions, rows, progress=progress)
    return Comparison([], system_with_method(method), [dataset_statistics(conditions)], ablations=runs)


def sweep(
    conditions: Conditions,
    parameter: str,
    *,
    method: str | None = "paper",
    values: Sequence[int] = (),
    progress: Progress | None = None,
) -> Comparison:
    """Run our method at every value of a hyperparameter; see `sweep_rows`.

    Examples
    --------
    >>> from pathlib import Path
    >>> sweep(Conditions(Path("letters")), "gamma")
    Traceback (most recent call last):
    ...
    himecat.errors.UsageError: There is no sweep of 'gamma'; known are p and beta.
    """
    runs = run_systems(conditions, sweep_rows(parameter, method=method, values=values), progress=progress)
    return Comparison([], system_with_method(method), [dataset_statistics(conditions)], sweeps=runs)


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
        Shows which dataset comes next, and which is left out.

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
    himecat.errors.DataError: no-such-folder: there is no such file or folder.
    """
    shown = progress or silent()
    named: dict[str, Conditions] = {}
    for one in conditions:
        name = one.source.open().name
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
    """Statistics of the whole dataset."""
    from himecat.input.builder import load_corpus
    from himecat.input.dataset import true_nodes
    from himecat.input.documents import Fields
    from himecat.input.set_draws import true_sets

    dataset = conditions.source.open()
    fields = dataset.fields or conditions.fields or Fields(metadata=dataset.metadata)
    loaded = load_corpus(dataset.documents, fields)
    # Documents that cannot be scored are errors here, once for all systems.
    if true_sets(dataset, loaded) is None:
        true_nodes(dataset, loaded)
    return DatasetStatistics.of(dataset, loaded)


@dataclass(frozen=True)
class LabelMap:
    """The label vectors of a tree, for a map of it.

    Attributes
    ----------
    vectors : array
        A vector for each node of the tree, the root among them.
    taxonomy : Taxonomy
        The tree.

    Examples
    --------
    >>> import numpy as np
    >>> LabelMap(np.eye(3), Taxonomy.from_paths([("a",), ("b",)])).vectors.shape
    (3, 3)
    """

    vectors: FloatArray
    taxonomy: Taxonomy


def label_map(conditions: Conditions, progress: Progress | None = None) -> LabelMap:
    """The label vectors of the published method on draw 0, for the map of the tree; cached like results."""
    dataset = conditions.source.open()
    key = {
        "dataset": dataset_fingerprint(dataset),
        "limit": conditions.limit,
        "per_leaf": None if dataset.first_draw is not None else conditions.per_leaf,
        "code": code_version(HimecatPaper),
    }
    vectors = cached_vectors(
        results_folder(conditions.cache), "labels", key, lambda: _label_vectors(dataset, conditions, progress)
    )
    return LabelMap(vectors, dataset.taxonomy)


def _label_vectors(dataset: Dataset, conditions: Conditions, progress: Progress | None) -> FloatArray:
    from himecat.compare.protocol.measure import read_draw
    from himecat.estimator import HiMeCat
    from himecat.methods import Paper

    read = read_draw(conditions.source, dataset, HimecatPaper(), 0, conditions.per_leaf)
    # The map shows the space; no document is classified, so the fastest classifier will do.
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
            option = spelled(f"--against {against}", f"against={against!r}")
            raise UsageError(f"{option}: compared are {', '.join(names)}.")
        return against
    return next((name for name in ("himecat", *OURS) if name in names), names[0])

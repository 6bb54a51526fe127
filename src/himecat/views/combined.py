"""Several views together: one direction and one row of features per document."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from himecat.errors import UsageError
from himecat.input.corpus import Corpus
from himecat.runtime.threads import Run, release_memory, run_serial
from himecat.views.base import Batch, Everyone, Group, Phrase, State, View, view_class
from himecat.views.first_words import Weights, weights_of_first_words
from himecat.views.matrices import FloatArray, check_shapes, side_by_side, unit_in_place
from himecat.views.ppmi import preload_kernels


@dataclass(frozen=True)
class DocumentVectors:
    """Documents as all views together see them; rows are documents.

    Attributes
    ----------
    text : array
        Unit directions: the parts of all views side by side.
    smoothed : array
        The same, drawn towards what metadata values let expect.
    features : sparse matrix
        Weighted words and metadata values.
    apart : sparse matrix or None
        Features with a classifier of their own: character n-grams.
    groups : mapping of str to Group
        Which documents share metadata values.
    fingerprints : array
        By these documents are known again; empty where there are no groups.
    """

    text: FloatArray
    smoothed: FloatArray
    features: Any
    apart: Any = None
    groups: Mapping[str, Group] = field(default_factory=dict)
    fingerprints: npt.NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64))

    def __len__(self) -> int:
        return len(self.text)

    def take(self, rows: npt.NDArray[np.integer]) -> DocumentVectors:
        """The given documents, in the given order."""
        apart = None if self.apart is None else self.apart[rows]
        groups = {name: Group(one.members[rows], one.decides) for name, one in self.groups.items()}
        marks = self.fingerprints[rows] if groups else self.fingerprints
        return DocumentVectors(
            self.text[rows], self.smoothed[rows], self.features[rows], apart, groups, marks
        )


@dataclass(frozen=True)
class Views:
    """Learned views, ready for any document in the same vocabularies.

    Attributes
    ----------
    views : tuple of View
        The views; those that smooth come last.
    centres : mapping of str to array
        Mean row of each view that has a part in the directions, by the name of the view.
    weights : mapping of str to float
        Length of each such part.
    """

    views: tuple[View, ...]
    centres: Mapping[str, FloatArray]
    weights: Mapping[str, float]

    def __getitem__(self, name: str) -> Any:
        """The view of this name."""
        return {view.name: view for view in self.views}[name]

    @property
    def dimension(self) -> int:
        """Length of a direction."""
        return sum(len(centre) for centre in self.centres.values())

    @property
    def n_features(self) -> int:
        """Number of columns of the features."""
        return sum(view.n_features for view in self.views if not view.apart)

    @property
    def n_apart(self) -> int:
        """Number of columns of the features that stand apart."""
        return sum(view.n_features for view in self.views if view.apart)

    @property
    def n_groups(self) -> dict[str, int]:
        """Number of groups by name, of the views that have groups."""
        return {name: count for view in self.views for name, count in view.n_groups.items()}

    def part(self, name: str) -> slice:
        """Where the part of a view stands in a direction."""
        start = 0
        for view, centre in self.centres.items():
            if view == name:
                return slice(start, start + len(centre))
            start += len(centre)
        raise KeyError(name)

    def see(self, corpus: Corpus, *, n_batches: int = 1) -> DocumentVectors:
        """See documents that took no part in learning, or that are treated as if they had not.

        Parameters
        ----------
        n_batches : int
            How many such batches there are in all.
        """
        batch = self.batch(corpus, n_batches)
        batch.directions = text = self.texts(batch)
        added = [view.see(batch) for view in self.views if view.smooths]
        return DocumentVectors(
            text, _smoothed(text, added), *_features(self.views, batch), *_groups(self.views, batch)
        )

    def batch(self, corpus: Corpus, n_batches: int = 1) -> Batch:
        """Documents as these views read them."""
        return Batch(corpus, n_batches, first_words=_first_words(self.views) or ())

    def texts(self, batch: Batch) -> FloatArray:
        """Unit directions of documents without what metadata values let expect."""
        rows = ((view, view.see(batch)) for view in self.views if view.name in self.centres)
        return self._side_by_side((view, _checked(view, seen, len(batch))) for view, seen in rows)

    def see_phrases(self, phrases: Sequence[Phrase]) -> FloatArray:
        """Directions of names and keywords as if they were texts; zeros where nothing of them is known."""
        rows = ((view, view.see_phrases(phrases)) for view in self.views if view.name in self.centres)
        return self._side_by_side(
            (
                view,
                np.zeros((len(phrases), len(self.centres[view.name])), np.float32) if seen is None else seen,
            )
            for view, seen in rows
        )

    def _side_by_side(self, rows: Iterable[tuple[View, FloatArray]]) -> FloatArray:
        return _joined([_part(seen, self.centres[view.name], self.weights[view.name]) for view, seen in rows])

    def state(self) -> State:
        """What a model folder keeps: the state of each view under its name, and the centres."""
        settings: dict[str, Any] = {}
        arrays: dict[str, npt.NDArray[Any]] = {}
        for view in self.views:
            own, parts = view.state()
            if "centre" in parts:
                raise UsageError(
                    f"The view {view.name!r} must not name an array 'centre': that is its mean row."
                )
            settings[view.name] = {"weight": self.weights.get(view.name), "settings": own}
            arrays.update({f"{view.name}/{key}": part for key, part in parts.items()})
            if view.name in self.centres:
                arrays[f"{view.name}/centre"] = self.centres[view.name]
        return settings, arrays

    @classmethod
    def from_state(cls, settings: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """The views again; classes of one's own must be registered before."""
        views, centres, weights = [], {}, {}
        for name, one in settings.items():
            start = f"{name}/"
            own = {key.removeprefix(start): part for key, part in arrays.items() if key.startswith(start)}
            if one["weight"] is not None:
                centres[name], weights[name] = own.pop("centre"), float(one["weight"])
            view = view_class(name).from_state(one["settings"], own)
            rows = view.see_phrases(())
            if name in centres and rows is not None:
                check_shapes({f"{name}/centre": (centres[name], rows.shape[1:])})
            views.append(view)
        return cls(tuple(views), centres, weights)


def learn_views(
    views: Sequence[View],
    corpus: Corpus,
    *,
    seed: int = 0,
    run: Run = run_serial,
    known: Mapping[str, View] | None = None,
    weigh: Callable[[Mapping[str, FloatArray], Mapping[str, float]], Mapping[str, float]] | None = None,
    learn_from: list[Corpus] | None = None,
    over_pile: Callable[[Views], Everyone] | None = None,
) -> tuple[Views, DocumentVectors]:
    """Learn views of a corpus, without its labels, and see its documents.

    Parameters
    ----------
    run : callable
        Runs jobs that do not depend on each other, and returns their results in order.
    known : mapping of str to View, optional
        Views by name that were learned from this very corpus before.
    weigh : callable, optional
        Given the unit rows of each view by name, and the views' own weights, gives the weights to use.
    learn_from : list of Corpus, optional
        One corpus of more documents, that views which do not smooth learn from; it is taken out of the list.
    over_pile : callable, optional
        Where the corpus is a sample: given the views that do not smooth, gives sums over all documents.

    Examples
    --------
    >>> from himecat import read_corpus
    >>> from himecat.views.metadata import MetadataView
    >>> from himecat.views.words import WordsView
    >>> corpus = read_corpus([{"text": "red fox", "by": "ann"}, {"text": "red fox den", "by": "ann"},
    ...                       {"text": "old car", "by": "bob"}, {"text": "old car wheel", "by": "bob"}],
    ...                      metadata=["by"])
    >>> views, seen = learn_views([WordsView(dimension=3), MetadataView(["by"])], corpus)
    >>> seen.text.shape, bool(seen.smoothed[0] @ seen.smoothed[1] > seen.smoothed[0] @ seen.smoothed[2])
    ((4, 3), True)
    """
    names = [view.name for view in views]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"There are two views of the name {name!r}: give one of them another.")
        if not name or "/" in name:
            raise UsageError(f"A view cannot have the name {name!r}: leave out the /.")
    known = known or {}
    more = learn_from.pop() if learn_from else corpus
    first_words = _first_words([known.get(view.name, view) for view in views])
    if first_words is None:
        first_words = weights_of_first_words(more.tokens, len(more.words), seed=seed)
    batch = Batch(corpus, first_words=first_words)
    taught = batch if more is corpus else Batch(more, first_words=first_words, lean=True)
    del more
    # Needed by several views, which learn at the same time.
    counts, _, _ = batch.counts, batch.frequencies, taught.idf
    jobs: list[Any] = [
        partial(known.get, view.name)
        if view.name in known
        else partial(view.learn, taught, seed=seed, run=run)
        for view in views
        if not view.smooths
    ]
    if taught is not batch:
        # One after the other: together they would take the memory that the sample is to spare.
        learned = []
        for job in jobs:
            learned.append(job())
            release_memory()
    else:
        learned = list(run([*jobs[:1], partial(preload_kernels, counts), *jobs[1:]]))
        del learned[1]
    del taught, counts, jobs
    release_memory()
    centres, weights, parts = {}, {}, {}
    for view in learned:
        rows = view.see(batch)
        if rows is not None:
            rows = _checked(view, rows, len(batch))
            centres[view.name], weights[view.name] = rows.mean(axis=0), float(view.weight)
            parts[view.name] = _part(rows, centres[view.name], 1.0)
        del rows
    if weigh is not None:
        weights = dict(weigh(parts, weights))
    for name, part in parts.items():
        if weights[name] != 1.0:
            part *= np.float32(weights[name])
    text = _joined(list(parts.values()))
    del parts
    batch.directions, added = text, []
    if over_pile is not None:
        batch.everyone = over_pile(Views(tuple(learned), centres, weights))
    else:
        batch.everyone = next((view.everyone for view in known.values() if view.everyone is not None), None)
    for view in views:
        if view.smooths:
            view, rows = view.learn_and_see(batch, seed=seed, run=run)
            learned.append(view)
            added.append(rows)
            del rows
    smoothed = _smoothed(text, added)
    return Views(tuple(learned), centres, weights), DocumentVectors(
        text, smoothed, *_features(learned, batch), *_groups(learned, batch)
    )


def _first_words(views: Iterable[View]) -> Weights | None:
    return next((view.first_words for view in views if view.first_words != ()), ())


def _checked(view: View, rows: Any, n_documents: int) -> FloatArray:
    found = np.asarray(rows, dtype=np.float32)
    if found.ndim != 2 or len(found) != n_documents or not np.isfinite(found.sum()):
        shape = " x ".join(map(str, found.shape))
        raise UsageError(
            f"The view {view.name!r} must give one row of finite numbers for each of {n_documents} documents; "
            f"it gave {shape} numbers{'' if np.isfinite(found.sum()) else ', not all of them finite'}."
        )
    return found


def _part(rows: FloatArray, centre: FloatArray, weight: float) -> FloatArray:
    """The rows less their centre, scaled to the length `weight`; a row of zeros stays."""
    empty = ~rows.any(axis=1)
    found = rows - centre
    found[empty] = 0.0
    unit_in_place(found)
    if weight != 1.0:
        found *= np.float32(weight)
    return found


def _joined(parts: list[FloatArray]) -> FloatArray:
    return parts[0] if len(parts) == 1 else unit_in_place(np.hstack(parts))


def _smoothed(text: FloatArray, added: list[Any]) -> FloatArray:
    total = added.pop(0) if added else np.zeros_like(text)
    for rows in added:
        total += rows
    total += text
    return unit_in_place(total)


def _features(views: Iterable[View], batch: Batch) -> tuple[Any, Any]:
    """The features of all views side by side, and those that stand apart."""
    parts: list[Any] = []
    apart: list[Any] = []
    for view in views:
        part = view.features(batch)
        if part is not None:
            if part.shape != (len(batch), view.n_features):
                raise UsageError(
                    f"The view {view.name!r} gave {part.shape[0]} x {part.shape[1]} features for {len(batch)} "
                    f"documents, and its n_features is {view.n_features}."
                )
            (apart if view.apart else parts).append(part)
    return side_by_side(parts), side_by_side(apart) if apart else None


def _groups(views: Iterable[View], batch: Batch) -> tuple[dict[str, Group], npt.NDArray[np.uint64]]:
    """The groups of all views, and the fingerprints of the documents where there are any."""
    found: dict[str, Group] = {}
    for view in views:
        found |= view.groups(batch)
    marks = np.zeros(len(batch) if found else 0, dtype=np.uint64)
    if found:
        rows = [(one.members.indices, one.members.indptr) for _, one in sorted(found.items())]
        for number, part in enumerate([(batch.corpus.tokens.values, batch.corpus.tokens.offsets), *rows]):
            marks += _fingerprints(*part, number)
    return found, marks


def _fingerprints(
    values: npt.NDArray[np.integer], ends: npt.NDArray[np.integer], number: int
) -> npt.NDArray[np.uint64]:
    """A number for every row, the same for the same values in any order."""
    mixed = values.astype(np.uint64) + np.uint64((number + 1) << 40)
    for factor in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9):
        mixed *= np.uint64(factor)
        mixed ^= mixed >> np.uint64(29)
    # Sums wrap around, so differences of running sums are sums over rows.
    total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)])
    return np.asarray(total[ends[1:]] - total[ends[:-1]], dtype=np.uint64)

"""A fitted classifier of a wide tree: one for each stage, over views that all of them share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from himecat.classifier.assignments import Assignments, hold
from himecat.classifier.calibration import Calibration
from himecat.classifier.narrowed import Narrowed, joined
from himecat.classifier.nowhere import Nowhere, familiarity
from himecat.classifier.parts import Parted, parted
from himecat.classifier.protocol import SeeingClassifier
from himecat.classifier.quality import Quality
from himecat.classifier.scorer import Scorer
from himecat.classifier.stages import FloatArray, IntArray, Stage
from himecat.classifier.walk import ROWS, Plan, Visit, dense_leaves, place, walk
from himecat.input.corpus import Corpus, Supervision
from himecat.input.taxonomy.tree import Taxonomy
from himecat.runtime.memory import refuse_beyond_memory
from himecat.runtime.threads import one_blas_thread, run_parallel
from himecat.views.base import State
from himecat.views.combined import DocumentVectors, Views
from himecat.views.matrices import check_shapes, unit
from himecat.views.space import JointSpace


@dataclass(frozen=True)
class FittedStage:
    """What is known of a stage.

    Attributes
    ----------
    stage : Stage
        The part of the tree.
    narrowed : Narrowed
        The features that its documents have.
    scorer, calibration : Scorer and Calibration, optional
        As of a whole tree; None where the stage had no documents, and its leaves are equally probable.
    parts : array
        How many parts each terminal has that stands for many leaves; 0 where it is one.
    """

    stage: Stage
    narrowed: Narrowed
    scorer: Scorer | None
    calibration: Calibration
    parts: IntArray

    @cached_property
    def parted(self) -> Parted:
        """The tree that scorer and calibration know."""
        return parted(self.stage.tree, self.parts.tolist())

    def probabilities(self, vectors: DocumentVectors, sizes: IntArray) -> FloatArray:
        """Probabilities of the terminals for documents that are in the stage; `sizes`: the leaves below each."""
        return self.probabilities_of(self.narrowed.of(vectors), sizes)

    def probabilities_of(self, narrow: DocumentVectors, sizes: IntArray) -> FloatArray:
        """The same for documents that have only the columns of the stage."""
        if self.scorer is None:
            return np.tile((sizes / sizes.sum()).astype(np.float32), (len(narrow), 1))
        return self.parted.summed(
            self.calibration.probabilities(self.parted.tree, self.scorer.scores(narrow))
        )

    def state(self) -> State:
        """The nodes, the columns, and the states of scorer and calibration."""
        settings: dict[str, Any] = {
            "calibration": self.calibration.state(),
            "kinds": list(self.narrowed.groups),
        }
        arrays: dict[str, npt.NDArray[Any]] = {"nodes": self.stage.nodes, "parts": self.parts}
        arrays |= {f"columns/{name}": part for name, part in self.narrowed.arrays().items()}
        if self.scorer is not None:
            settings["scorer"], own = self.scorer.state()
            arrays |= {f"scorer/{name}": part for name, part in own.items()}
        return settings, arrays

    @classmethod
    def from_state(
        cls,
        taxonomy: Taxonomy,
        views: Views,
        settings: Mapping[str, Any],
        arrays: Mapping[str, npt.NDArray[Any]],
    ) -> Self:
        """The same again; raises a ValueError where parts do not fit."""
        nodes = arrays["nodes"]
        if nodes.ndim != 1 or nodes.dtype.kind != "i" or len(nodes) < 2 or (np.diff(nodes) <= 0).any():
            raise ValueError("the nodes of a stage are not in order")
        inside = nodes[0] >= 0 and nodes[-1] < len(taxonomy)
        if not inside or not np.isin(taxonomy.parent_array[nodes[1:]], nodes).all():
            raise ValueError("the nodes of a stage are not a part of the tree")
        stage = Stage.of(taxonomy, nodes)
        counts = arrays["parts"]
        check_shapes({"parts": (counts, stage.terminals.shape)})
        if counts.dtype.kind != "i" or (counts < 0).any() or counts.sum() > taxonomy.n_leaves:
            raise ValueError("the parts of a stage are not those of its terminals")
        tree = parted(stage.tree, counts.tolist()).tree
        narrowed = Narrowed.from_arrays(_below(arrays, "columns/"), settings["kinds"], views)
        scorer = None
        if "scorer" in settings:
            scorer = Scorer.from_state(settings["scorer"], _below(arrays, "scorer/"))
            scorer.check(tree, narrowed.sizes(views.dimension))
        calibration = Calibration.from_state(tree, settings["calibration"])
        return cls(stage, narrowed, scorer, calibration, counts)


@dataclass(frozen=True)
class StagedClassifier(SeeingClassifier):
    """A fitted classifier of a tree with very many leaves.

    A document goes from stage to stage, into those that it may belong to, so that what is computed of it does not grow
    with the number of leaves.

    Attributes
    ----------
    taxonomy : Taxonomy
        The tree.
    views : Views
        How documents are seen.
    stages : tuple of FittedStage
        Each after the one above it.
    quality : Quality or None
        How good the fit probably is; None where it is not known.
    nowhere : Nowhere or None
        What is known of documents that belong to no category.
    """

    name: ClassVar[str] = "staged"
    together: ClassVar[int] = 16_384
    """Documents that go down together: of few, a stage would have hardly any, and there are many stages."""

    taxonomy: Taxonomy
    views: Views
    stages: tuple[FittedStage, ...]
    quality: Quality | None = None
    nowhere: Nowhere | None = None

    @cached_property
    def plan(self) -> Plan:
        """Which stage begins where."""
        return Plan(self.taxonomy, [one.stage for one in self.stages])

    def leaf_probabilities(self, corpus: Corpus, threads: int = 1) -> FloatArray:
        """Probability of every leaf, one row per document; where a document was not looked at, leaves share alike.

        Raises
        ------
        DataError
            Documents x leaves do not fit into memory.
        """
        return self.all_probabilities(corpus, threads)[0]

    def all_probabilities(self, corpus: Corpus, threads: int = 1) -> tuple[FloatArray, FloatArray | None]:
        """The same, and the probability of belonging to none of them; None where the model does not know it."""
        n_leaves = self.taxonomy.n_leaves
        refuse_beyond_memory(
            8 * len(corpus) * n_leaves,
            f"the probabilities of all {n_leaves:,} leaves for {len(corpus):,} documents at once need",
        )

        def dense(count: int, visits: list[Visit], none: FloatArray | None) -> Any:
            return dense_leaves(self.plan, count, visits), none

        parts = self._down(corpus, threads, None, dense)
        leaves = np.concatenate([np.zeros((0, n_leaves), np.float32), *(part for part, _ in parts)])
        if self.nowhere is None:
            return leaves, None
        return leaves, np.concatenate([np.zeros(0, np.float32), *(part for _, part in parts)])

    def place(
        self,
        corpus: Corpus,
        threads: int = 1,
        min_confidence: float = 0.0,
        *,
        best: int = 0,
        known: Supervision | None = None,
    ) -> Assignments:
        """Place documents as `assign` does, without the probabilities of all leaves; see there for the parameters."""
        nodes, inside = None, np.ones(len(corpus), dtype=np.float32)
        if known is not None:
            nodes = np.zeros(len(corpus), dtype=np.int64)
            nodes[known.rows] = known.nodes
            inside[known.rows] = 0.0

        def placed(count: int, visits: list[Visit], none: FloatArray | None) -> Assignments:
            if none is not None:
                none = none * inside[done : done + count]
                if known is not None:
                    away = known.nowhere[(known.nowhere >= done) & (known.nowhere < done + count)]
                    none[away - done] = 1.0
            return place(self.plan, count, visits, min_confidence, best=best, none=none)

        parts: list[Assignments] = []
        done = 0
        for part in self._parts(corpus, threads, nodes, placed):
            parts.append(part)
            done += len(part)
        found = _concatenated(self.taxonomy, parts, best, self.nowhere is not None)
        if known is None:
            return found
        away = np.zeros(len(found), dtype=np.bool_)
        away[known.nowhere] = True
        return hold(found, known).without(away)

    def _down(self, *given: Any) -> list[Any]:
        return list(self._parts(*given))

    def _parts(
        self,
        corpus: Corpus,
        threads: int,
        known: IntArray | None,
        make: Callable[[int, list[Visit], FloatArray | None], Any],
    ) -> Any:
        """What is made of the visits of some documents at a time."""

        def run(jobs: Any) -> list[Any]:
            return run_parallel(jobs, threads)

        def seen(some: Corpus, n_batches: int) -> tuple[DocumentVectors, FloatArray | None]:
            vectors = self.views.see(some, n_batches=n_batches)
            if self.nowhere is None:
                return vectors, None
            return vectors, self.nowhere.probabilities(vectors.smoothed, familiarity(self.views, some))

        for first in range(0, len(corpus), self.together):
            last = min(first + self.together, len(corpus))
            starts = range(first, last, ROWS)
            parts = run(
                [
                    partial(seen, corpus.between(at, min(at + ROWS, last)), -(-len(corpus) // ROWS))
                    for at in starts
                ]
            )
            vectors = joined([part for part, _ in parts])
            none = None if self.nowhere is None else np.concatenate([part for _, part in parts])
            del parts
            own = None if known is None else known[first:last]
            visits = walk(self.plan, last - first, partial(self.reached, vectors), run, own)
            yield make(last - first, visits, none)

    def reached(self, vectors: DocumentVectors, number: int, rows: IntArray) -> FloatArray:
        """Probabilities of the terminals of a stage for some of the documents, as if they were in it."""
        some = vectors if len(rows) == len(vectors) else vectors.take(rows)
        one = self.stages[number]
        return one.probabilities(some, self.taxonomy.leaf_counts[one.stage.terminals])

    @cached_property
    def leaf_directions(self) -> FloatArray:
        """The mean direction of every leaf."""
        found = np.zeros((self.taxonomy.n_leaves, self.views.dimension), dtype=np.float32)
        for one in self.stages:
            positions = self.taxonomy.leaf_position[one.stage.terminals]
            if one.scorer is not None:
                own = np.flatnonzero(positions[one.parted.columns] >= 0)
                found[positions[one.parted.columns[own]]] = one.scorer.directions[own]
        return found

    @one_blas_thread()
    def directions(self, corpus: Corpus) -> FloatArray:
        """Unit vectors of documents among those of words and labels: the words' part of their directions."""
        part = self.views.part("words")
        rows = [
            unit(self.views.see(corpus.between(at, min(at + ROWS, len(corpus)))).smoothed[:, part])
            for at in range(0, len(corpus), ROWS)
        ]
        return np.concatenate([np.zeros((0, part.stop - part.start), np.float32), *rows])

    @one_blas_thread()
    def evidence(self, corpus: Corpus, row: int, node: int) -> list[tuple[str, str, int, float]]:
        """What the views of one's own say for a node against its siblings: view, name, count and weight."""
        return self.evidence_by(self.leaf_directions, self.taxonomy, corpus, row, node)

    def state(self) -> State:
        """The states of the views and of each stage; the vectors of the words are the space's."""
        settings: dict[str, Any] = {"stages": []}
        arrays: dict[str, npt.NDArray[Any]] = {}
        parts: dict[str, Any] = {"views": self.views}
        if self.nowhere is not None:
            parts["nowhere"] = self.nowhere
        for name, part in parts.items():
            settings[name], own = part.state()
            arrays |= {f"{name}/{key}": value for key, value in own.items()}
        for number, one in enumerate(self.stages):
            kept, own = one.state()
            settings["stages"].append(kept)
            arrays |= {f"stages/{number}/{key}": value for key, value in own.items()}
        if self.quality is not None:
            settings["quality"] = self.quality.as_dict()
        del arrays["views/words/vectors"]
        return settings, arrays

    @classmethod
    def from_state(
        cls, space: JointSpace, settings: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]
    ) -> Self:
        """Rebuild a fitted classifier."""
        taxonomy = space.taxonomy
        views = Views.from_state(settings["views"], _below(arrays, "views/") | {"words/vectors": space.words})
        for kind, one in views["metadata"].types.items():
            shapes = {
                "rows": (one.rows, (len(space.values[kind]),)),
                "sums": (one.sums, (len(one.sums), views.dimension)),
            }
            check_shapes({f"metadata/{kind}/{name}": shape for name, shape in shapes.items()})
        # One look at the arrays for all stages: there are thousands of them.
        own: dict[str, dict[str, npt.NDArray[Any]]] = {}
        for key, part in _below(arrays, "stages/").items():
            number, _, rest = key.partition("/")
            own.setdefault(number, {})[rest] = part
        stages = tuple(
            FittedStage.from_state(taxonomy, views, kept, own[str(number)])
            for number, kept in enumerate(settings["stages"])
        )
        begins = {int(one.stage.nodes[0]) for one in stages}
        ends = [int(node) for one in stages for node in one.stage.terminals]
        if begins != {0} | {node for node in ends if not taxonomy.is_leaf(node)} or len(ends) != len(
            set(ends)
        ):
            raise ValueError("the stages do not make up the tree")
        quality = Quality.from_dict(settings["quality"]) if "quality" in settings else None
        nowhere = None
        if "nowhere" in settings:
            nowhere = Nowhere.from_state(settings["nowhere"], _below(arrays, "nowhere/"), views.dimension)
        return cls(taxonomy, views, stages, quality, nowhere)


def _below(arrays: Mapping[str, npt.NDArray[Any]], start: str) -> dict[str, npt.NDArray[Any]]:
    return {key[len(start) :]: part for key, part in arrays.items() if key.startswith(start)}


def _concatenated(taxonomy: Taxonomy, parts: list[Assignments], best: int, nowhere: bool) -> Assignments:
    """The placements of several parts of a pile, one after the other."""
    none = np.zeros(0, dtype=np.float32)
    ends = np.concatenate([np.zeros(0, dtype=np.int64), *(part.nodes for part in parts)])
    confidence = np.concatenate(
        [np.zeros((0, taxonomy.depth), dtype=np.float32), *(part.confidence for part in parts)]
    )
    leaves = sure = None
    if best:
        width = min(best, taxonomy.n_leaves)
        leaves = np.concatenate([np.zeros((0, width), np.int64), *(part.best for part in parts)])
        sure = np.concatenate([np.zeros((0, width), np.float32), *(part.best_confidence for part in parts)])
    beside = np.concatenate([none, *(part.none for part in parts)]) if nowhere else None
    return Assignments(taxonomy, ends, confidence, leaves, sure, none=beside)

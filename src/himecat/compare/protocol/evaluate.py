"""The paper's protocol: fit on a few labelled documents per leaf, score all the others, several times.

Each draw runs in a process of its own, so that its peak memory and CPU time are its own too.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from himecat.compare.protocol.processes import answer, costs_since, start
from himecat.compare.protocol.processes import peak_mb as _peak_mb  # noqa: F401 (the benchmarks find it here)
from himecat.errors import DataError, HimecatError, UsageError

if TYPE_CHECKING:
    from himecat.input.corpus import Corpus, Supervision

MEASURES = ("leaf", "overall")
COSTS = ("seconds", "cpu_seconds", "peak_rss_mb")
HOLDOUT = ("held_out", "had_them")


@dataclass(frozen=True)
class DrawResult:
    """Scores and cost of one draw.

    Attributes
    ----------
    draw : int
        Which draw of the labelled documents.
    leaf, overall : mapping
        Micro and macro F1 over the leaves, and over all categories.
    seconds, cpu_seconds, peak_rss_mb : float
        What reading, fitting and predicting cost.
    calibration : tuple of float
        Expected calibration error of each level, top-down; NaN where no document reached the level.
    held_out, had_them : mapping, optional
        Leaf F1 on the documents that `holdout` chose: of a model fitted without them, and of the model
        fitted with them.

    Examples
    --------
    >>> DrawResult(0, {"micro": 0.5, "macro": 0.4}, {"micro": 0.6, "macro": 0.5}, 1.0, 2.0, 100.0).as_dict()["draw"]
    0
    """

    draw: int
    leaf: Mapping[str, float]
    overall: Mapping[str, float]
    seconds: float
    cpu_seconds: float
    peak_rss_mb: float
    calibration: tuple[float, ...] = ()
    held_out: Mapping[str, float] | None = None
    had_them: Mapping[str, float] | None = None

    def as_dict(self) -> dict[str, Any]:
        """As plain JSON values; without a holdout there is no entry for it."""
        found = {
            "draw": self.draw,
            "leaf": dict(self.leaf),
            "overall": dict(self.overall),
            "seconds": round(self.seconds, 3),
            "cpu_seconds": round(self.cpu_seconds, 3),
            "peak_rss_mb": round(self.peak_rss_mb, 1),
            "calibration": [None if math.isnan(error) else error for error in self.calibration],
        }
        for part in HOLDOUT:
            if (scores := getattr(self, part)) is not None:
                found[part] = dict(scores)
        return found


def summarise(
    results: Sequence[DrawResult], how: Callable[[Sequence[float]], Any] = np.mean
) -> dict[str, Any]:
    """Mean (or another statistic) of every figure, in the shape of one draw.

    Examples
    --------
    >>> one = DrawResult(0, {"micro": 0.5, "macro": 0.4}, {"micro": 0.6, "macro": 0.5}, 1.0, 2.0, 100.0)
    >>> summarise([one, one])["leaf"]
    {'micro': 0.5, 'macro': 0.4}
    """
    rows = [result.as_dict() for result in results]

    def both(part: str) -> dict[str, float]:
        return {key: float(how([row[part][key] for row in rows])) for key in ("micro", "macro")}

    found: dict[str, Any] = {part: both(part) for part in MEASURES}
    found |= {cost: float(how([row[cost] for row in rows])) for cost in COSTS}
    found["calibration"] = []
    for errors in zip(*(row["calibration"] for row in rows), strict=True):
        measured = [error for error in errors if error is not None]
        found["calibration"].append(float(how(measured)) if measured else None)
    return found | {part: both(part) for part in HOLDOUT if all(part in row for row in rows)}


def spread(values: Sequence[float]) -> float:
    """Sample standard deviation; 0 for a single value.

    Examples
    --------
    >>> spread([1.0, 3.0]), spread([1.0])
    (1.4142135623730951, 0.0)
    """
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def run_draw(
    folder: str,
    number: int,
    per_leaf: int,
    arguments: Mapping[str, Any],
    quiet: bool,
    holdout: float = 0.0,
) -> DrawResult:
    """Fit on one draw of the labelled documents and score the rest, in this process.

    The costs are those of reading, fitting and predicting. With an encoder they include its vectors, which is
    next to nothing where they come from the cache: to compare fits, let a draw before them fill it. What a
    holdout adds comes last and is not in the costs.
    """
    from himecat.estimator import HiMeCat
    from himecat.evaluation.metrics import score
    from himecat.evaluation.reliability import level_calibration
    from himecat.input.builder import load_corpus
    from himecat.input.dataset import draw, open_dataset, true_nodes
    from himecat.input.documents import Fields
    from himecat.input.taxonomy.readers import read_taxonomy
    from himecat.methods import resolve_method
    from himecat.runtime.progress import Progress

    began = time.perf_counter()
    given = {name: value for name, value in arguments.items() if value is not None}
    dataset = open_dataset(folder)
    if "taxonomy" in given:
        dataset = replace(dataset, taxonomy=read_taxonomy(given.pop("taxonomy")))
    chosen = {"metadata": list(dataset.metadata), **given}
    model = HiMeCat(taxonomy=dataset.taxonomy, **chosen)
    settings = resolve_method(model.method, model.preset)
    text = (model.text,) if isinstance(model.text, str) else tuple(model.text)
    progress = Progress(quiet=quiet)
    loaded = load_corpus(
        dataset.documents,
        Fields(text, tuple(chosen["metadata"]), model.label_field, model.id_field),
        min_count=settings.min_count,
        max_tokens=settings.max_tokens,
        tokenizer=model.tokenizer,
        readers=model.readers(),
        progress=progress,
    )
    truth = true_nodes(dataset, loaded)
    labelled = draw(dataset, truth, number, per_leaf)
    test = np.setdiff1d(np.arange(len(loaded.corpus)), labelled.rows)
    if not len(test):
        raise DataError(
            f"{dataset.documents}: draw {number} labels every document, so none is left to score."
        )
    progress.say(f"Draw {number}: {len(labelled):,} labelled documents, {len(test):,} to score")
    # From here on the program sees the labels of the drawn documents and no others.
    model.fit(loaded.corpus, labelled, progress=progress)
    placed = model.assign(loaded.corpus.take(test))
    scores = score(dataset.taxonomy, truth[test], placed.nodes)
    costs = costs_since(began)
    result = DrawResult(
        draw=number,
        leaf=scores.leaf.as_dict(),
        overall=scores.overall.as_dict(),
        seconds=costs.seconds,
        cpu_seconds=costs.cpu_seconds,
        peak_rss_mb=costs.peak_rss_mb,
        calibration=tuple(level_calibration(dataset.taxonomy, truth[test], placed)),
    )
    if not holdout:
        return result
    held = _chosen(len(test), holdout, number)
    out = test[held]
    progress.say(f"Draw {number}: once more without {len(out):,} of the documents to score")
    without = HiMeCat(taxonomy=dataset.taxonomy, **chosen)
    without.fit(*_left(loaded.corpus, labelled, out, settings.min_count), progress=progress)
    later = without.assign(loaded.corpus.take(out))
    return replace(
        result,
        held_out=score(dataset.taxonomy, truth[out], later.nodes).leaf.as_dict(),
        had_them=score(dataset.taxonomy, truth[out], placed.nodes[held]).leaf.as_dict(),
    )


def _chosen(n_documents: int, share: float, seed: int) -> npt.NDArray[np.int64]:
    """Positions of that share of the documents, at least one, in order."""
    size = max(1, round(share * n_documents))
    return np.sort(np.random.default_rng(seed).choice(n_documents, size, replace=False)).astype(np.int64)


def _left(
    corpus: Corpus, labelled: Supervision, out: npt.NDArray[np.int64], min_count: int
) -> tuple[Corpus, Supervision]:
    """The corpus and its labels as if the documents `out` had never been read.

    Words and metadata values that only they bring are gone too: a model that knew them would not be meeting
    new documents.
    """
    from himecat.input.corpus import Ragged, Vocabulary

    rows = np.setdiff1d(np.arange(len(corpus)), out)
    rest = corpus.take(rows)

    def seen(vocabulary: Vocabulary, values: Ragged, least: int) -> Vocabulary:
        counts = np.bincount(values.values, minlength=len(vocabulary))
        kept = np.flatnonzero(counts >= least).tolist()
        # The order in which reading numbers them, so that this is the very same as reading the rest alone.
        kept.sort(key=lambda number: (-counts[number], vocabulary.names[number]))
        names = tuple(vocabulary.names[number] for number in kept)
        return replace(vocabulary, names=names, counts=counts[kept].astype(np.int64))

    words = seen(rest.words, rest.tokens, min_count)
    metadata = {kind: seen(column.vocabulary, column.values, 1) for kind, column in rest.metadata.items()}
    return rest.aligned(words, metadata), replace(labelled, rows=np.searchsorted(rows, labelled.rows))


def _child(sender: Any, *task: Any) -> None:
    answer(sender, run_draw, *task)


def evaluate(
    folder: str | os.PathLike[str],
    *,
    draws: Sequence[int] = range(5),
    per_leaf: int = 5,
    arguments: Mapping[str, Any] | None = None,
    quiet: bool = True,
    holdout: float = 0.0,
    told: Callable[[DrawResult], None] | None = None,
) -> list[DrawResult]:
    """Run the protocol on a dataset folder.

    Parameters
    ----------
    folder : path
        A dataset folder: documents, `label_hier.txt`, `doc_id.txt`, `meta_dict.json`.
    draws : sequence of int
        Which draws of the labelled documents; 0 is the one in `doc_id.txt`.
    per_leaf : int
        Labelled documents per leaf in the other draws.
    arguments : mapping, optional
        Constructor arguments of the estimator; None means not given. `encoder` must be a path or a name.
    quiet : bool
        Whether the fits show no progress.
    holdout : float
        Share of the unlabelled documents, from 0 to less than 1, for a second fit in each draw that does not
        see them and places them afterwards; see `DrawResult.held_out`. 0 for no second fit.
    told : callable, optional
        Told of each draw when it is done.

    Examples
    --------
    >>> import tempfile
    >>> from himecat import Paper
    >>> from himecat.sample import write_sample
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_sample(folder)
    ...     small = {"method": Paper(samples=100_000, beta=10, dimension=16, classifier="mean-logistic")}
    ...     found = evaluate(folder, draws=[0], arguments=small)
    >>> 0 < found[0].leaf["micro"] < 1
    True
    """
    if not draws:
        raise UsageError("At least one draw is needed.")
    if per_leaf < 1:
        raise UsageError(f"per_leaf must be at least 1, not {per_leaf}.")
    if not 0 <= holdout < 1:
        raise UsageError(f"holdout must be a share from 0 to less than 1, not {holdout}.")
    from himecat.input.dataset import open_dataset

    # A folder that is not complete is told at once, not by a process of its own.
    open_dataset(folder)
    results: list[DrawResult] = []
    for number in draws:
        task = (os.fspath(folder), number, per_leaf, dict(arguments or {}), quiet, holdout)
        started = start(_child, *task)
        try:
            found = started.wait()
        except EOFError:
            raise HimecatError(
                f"Draw {number} ended without a result (exit code {started.process.exitcode}); out of memory? A script "
                'has to call evaluate below `if __name__ == "__main__":`.'
            ) from None
        if isinstance(found, Exception):
            raise found
        results.append(found)
        if told is not None:
            told(found)
    return results

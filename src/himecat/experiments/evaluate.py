"""The paper's protocol: fit on a few labelled documents per leaf, score all the others, several times.

Each draw runs in a process of its own, so that its peak memory and CPU time are its own too.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from himecat.errors import DataError, HimecatError, UsageError

MEASURES = ("leaf", "overall")
COSTS = ("seconds", "cpu_seconds", "peak_rss_mb")


@dataclass(frozen=True)
class DrawResult:
    """Scores and cost of one draw.

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

    def as_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "draw": self.draw,
            "leaf": dict(self.leaf),
            "overall": dict(self.overall),
            "seconds": round(self.seconds, 3),
            "cpu_seconds": round(self.cpu_seconds, 3),
            "peak_rss_mb": round(self.peak_rss_mb, 1),
        }


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
    found: dict[str, Any] = {
        part: {key: float(how([row[part][key] for row in rows])) for key in ("micro", "macro")}
        for part in MEASURES
    }
    return {**found, **{cost: float(how([row[cost] for row in rows])) for cost in COSTS}}


def spread(values: Sequence[float]) -> float:
    """Sample standard deviation; 0 for a single value.

    Examples
    --------
    >>> spread([1.0, 3.0]), spread([1.0])
    (1.4142135623730951, 0.0)
    """
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def run_draw(
    folder: str, number: int, per_leaf: int, arguments: Mapping[str, Any], quiet: bool
) -> DrawResult:
    """Fit on one draw of the labelled documents and score the rest, in this process."""
    from himecat.corpus.builder import load_corpus
    from himecat.corpus.dataset import draw, open_dataset, true_nodes
    from himecat.corpus.documents import Fields
    from himecat.corpus.taxonomy_readers import read_taxonomy
    from himecat.estimator import HiMeCat
    from himecat.metrics import score
    from himecat.progress import Progress

    began = time.perf_counter()
    given = {name: value for name, value in arguments.items() if value is not None}
    dataset = open_dataset(folder)
    if "taxonomy" in given:
        dataset = replace(dataset, taxonomy=read_taxonomy(given.pop("taxonomy")))
    chosen = {"metadata": list(dataset.metadata), **given}
    model = HiMeCat(taxonomy=dataset.taxonomy, **chosen)
    settings = model._settings()
    text = (model.text,) if isinstance(model.text, str) else tuple(model.text)
    loaded = load_corpus(
        dataset.documents,
        Fields(text, tuple(chosen["metadata"]), model.label_field, model.id_field),
        min_count=settings.min_count,
        max_tokens=settings.max_tokens,
    )
    truth = true_nodes(dataset, loaded)
    labelled = draw(dataset, truth, number, per_leaf)
    test = np.setdiff1d(np.arange(len(loaded.corpus)), labelled.rows)
    if not len(test):
        raise DataError(
            f"{dataset.documents}: draw {number} labels every document, so none is left to score."
        )
    progress = Progress(quiet=quiet)
    progress.say(f"Draw {number}: {len(labelled):,} labelled documents, {len(test):,} to score")
    # From here on the program sees the labels of the drawn documents and no others.
    model.fit(loaded.corpus, labelled, progress=progress)
    placed = model.assign(loaded.corpus.take(test))
    scores = score(dataset.taxonomy, truth[test], placed.nodes)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return DrawResult(
        draw=number,
        leaf={"micro": scores.leaf.micro, "macro": scores.leaf.macro},
        overall={"micro": scores.overall.micro, "macro": scores.overall.macro},
        seconds=time.perf_counter() - began,
        cpu_seconds=usage.ru_utime + usage.ru_stime,
        peak_rss_mb=_peak_mb(usage.ru_maxrss),
    )


def _peak_mb(ru_maxrss: int) -> float:
    """The most memory this process has held, in megabytes."""
    with suppress(OSError), open("/proc/self/status") as status:
        for line in status:
            # Linux starts `ru_maxrss` of a new program at what its parent held.
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return ru_maxrss / (1024**2 if sys.platform == "darwin" else 1024)


def _child(sender: Any, *task: Any) -> None:
    """Run a draw and send back the result, or what went wrong."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    answer: DrawResult | Exception
    try:
        answer = run_draw(*task)
    except HimecatError as error:
        answer = error
    except Exception as error:
        if os.environ.get("HIMECAT_DEBUG"):
            traceback.print_exc()
        # Not every exception can be sent to another process as it is.
        answer = RuntimeError(f"{type(error).__name__}: {error}")
    sender.send(answer)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Processes started here do not hear Ctrl-C: it is the parent that hears it and ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def evaluate(
    folder: str | os.PathLike[str],
    *,
    draws: Sequence[int] = range(5),
    per_leaf: int = 5,
    arguments: Mapping[str, Any] | None = None,
    quiet: bool = True,
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
        Constructor arguments of the estimator; None means not given.
    quiet : bool
        Whether the fits show no progress.
    told : callable, optional
        Told of each draw when it is done.

    Examples
    --------
    >>> import tempfile
    >>> from himecat.samples import write_sample
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_sample(folder)
    ...     small = dict(samples=100_000, beta=10, dimension=16, classifier="mean-logistic")
    ...     found = evaluate(folder, draws=[0], arguments=small)
    >>> 0 < found[0].leaf["micro"] < 1
    True
    """
    if not draws:
        raise UsageError("At least one draw is needed.")
    if per_leaf < 1:
        raise UsageError(f"per_leaf must be at least 1, not {per_leaf}.")
    from himecat.corpus.dataset import open_dataset

    # A folder that is not complete is told at once, not by a process of its own.
    open_dataset(folder)
    context = multiprocessing.get_context("spawn")
    results: list[DrawResult] = []
    for number in draws:
        receiver, sender = context.Pipe(duplex=False)
        task = (sender, os.fspath(folder), number, per_leaf, dict(arguments or {}), quiet)
        process = context.Process(target=_child, args=task, daemon=True)
        with _deaf_to_interrupts():
            process.start()
        sender.close()
        try:
            answer = receiver.recv()
        except EOFError:
            process.join()
            raise HimecatError(
                f"Draw {number} ended without a result (exit code {process.exitcode}); out of memory? A script has to "
                'call evaluate below `if __name__ == "__main__":`.'
            ) from None
        except BaseException:
            process.kill()
            raise
        finally:
            process.join()
            receiver.close()
        if isinstance(answer, Exception):
            raise answer
        results.append(answer)
        if told is not None:
            told(answer)
    return results

"""Many runs, each in a process of its own: several at once, none measured twice, and a failure stops no other."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from himecat.compare.protocol.cache import RunCache, code_version, dataset_fingerprint, results_folder
from himecat.compare.protocol.choices import Choice
from himecat.compare.protocol.measure import Source, measure, read_draw
from himecat.compare.protocol.run import Run
from himecat.compare.protocol.worker import Costs, Worker, costs_since
from himecat.errors import HimecatError, NoResultError, UsageError
from himecat.input.documents import Fields
from himecat.input.problems import Problems
from himecat.input.tokenizer import Tokenizer
from himecat.runtime.progress import Progress, silent
from himecat.runtime.threads import usable_threads
from himecat.views.text_encoder import open_encoder

# Libraries read these when they are imported.
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Conditions:
    """What all runs of a comparison have in common.

    Attributes
    ----------
    folder : Path
        A dataset folder, or a file with labelled documents.
    draws : int or sequence of int
        How many draws of the labelled documents, or which; 0 is that of `doc_id.txt`.
    seeds : int or sequence of int
        How many seeds for each draw, or which.
    per_leaf : int
        Labelled documents per leaf in the draws that the folder does not list.
    limit : int or None
        Only this many documents of the dataset, for a quick look; the same ones for all systems.
    encoder : str or None
        A text encoder: folder, installed package or name.
    at_once : int
        Processes that run at the same time; they share the cores.
    cache : Path, None or False
        Where results are cached, by default in the user's cache folder; False measures all runs anew.
    holdout : float
        Share of the unlabelled documents for a second fit without them; see `Run.held_out`.
    threads : int or None
        Threads of each run; by default its share of the cores.
    fields, taxonomy, tokenizer
        Other fields and another tree than the folder names, and the tokenizer; see `Source`.
    folds : bool
        Of a file: whether the draws are folds of its labelled documents, all but one of which are shown.
    truth : str or None
        Of a file: another file with the true labels.
    verbose : bool
        Whether the runs themselves report their progress, not only one line each.

    Examples
    --------
    >>> Conditions(Path("letters"), draws=2).pairs
    [(0, 0), (1, 0)]
    """

    folder: Path
    draws: int | Sequence[int] = 5
    seeds: int | Sequence[int] = 1
    per_leaf: int = 5
    limit: int | None = None
    encoder: str | None = None
    at_once: int = 1
    cache: Path | bool | None = None
    holdout: float = 0.0
    threads: int | None = None
    fields: Fields | None = None
    taxonomy: str | None = None
    tokenizer: str | Tokenizer = "unicode"
    verbose: bool = False
    folds: bool = False
    truth: str | None = None

    def __post_init__(self) -> None:
        for name in ("draws", "seeds", "per_leaf", "at_once", "limit"):
            value = getattr(self, name)
            if isinstance(value, int) and value < 1:
                raise UsageError(f"{name} must be at least 1, not {value}.")
        if not self.pairs:
            raise UsageError("At least one draw is needed.")
        if not 0 <= self.holdout < 1:
            raise UsageError(f"holdout must be a share from 0 to less than 1, not {self.holdout}.")

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Every draw with every seed."""
        draws, seeds = (range(n) if isinstance(n, int) else n for n in (self.draws, self.seeds))
        return [(draw, seed) for draw in draws for seed in seeds]

    @property
    def source(self) -> Source:
        """The dataset and how it is read."""
        folds = 0
        if self.folds:
            folds = self.draws if isinstance(self.draws, int) else len(self.draws)
        given = (self.folder, self.fields, self.taxonomy, self.limit, self.tokenizer)
        return Source(*given, folds, self.truth)


@dataclass(frozen=True)
class Job:
    """One run that is asked for: a record without scores, and the key of its cached result."""

    choice: Choice
    asked: Run
    key: dict[str, Any]


def run_systems(
    conditions: Conditions,
    choices: Sequence[Choice],
    *,
    progress: Progress | None = None,
    on_run: Callable[[Run], None] | None = None,
    stop_on_failure: bool = False,
) -> list[Run]:
    """Run every system on every draw with every seed; a run that fails is recorded, and the others go on.

    Cached runs are not measured again, so that an interrupted comparison continues where it was. Slow systems
    come last. Vectors of an encoder are computed before the runs that read them, and are not among their costs.

    Parameters
    ----------
    conditions : Conditions
        The dataset, and how often and how to run.
    choices : sequence of Choice
        The systems with their parameters.
    progress : Progress, optional
        Shows one line for every run.
    on_run : callable, optional
        Called with each run when it is done, instead of the line.
    stop_on_failure : bool
        Raise the first failure.

    Returns
    -------
    list of Run
        In the order of the systems, draws and seeds.

    Raises
    ------
    NoResultError
        Not one run gave scores.

    Examples
    --------
    >>> import tempfile
    >>> from himecat.sample import write_sample
    >>> with tempfile.TemporaryDirectory() as place:
    ...     letters = write_sample(f"{place}/letters", 330)
    ...     runs = run_systems(Conditions(letters, draws=1, cache=False), [Choice("tfidf-svm")])
    >>> [(run.system, run.draw, run.failure) for run in runs]
    [('tfidf-svm', 0, '')]
    """
    if not choices:
        raise UsageError("There is no system to run.")
    shown = progress or silent()
    cache = RunCache(results_folder(conditions.cache), lambda sentence: shown.say(f"note: {sentence}"))
    jobs = _jobs(conditions, choices, shown)
    runs: dict[int, Run] = {}
    errors: list[Exception] = []

    def done(number: int, run: Run, note: str = "") -> None:
        runs[number] = run
        if on_run is not None:
            on_run(run)
        else:
            shown.say(f"[{len(runs)}/{len(jobs)}] {run_line(run)}{note}")

    for number, job in enumerate(jobs):
        if (cached := cache.find(job.key, job.asked)) is not None:
            done(number, cached, " (measured before)")
    missing = sorted(set(range(len(jobs))) - set(runs), key=lambda number: jobs[number].choice.weight)
    _encode_first(conditions, [jobs[number] for number in missing], shown)
    with _started(conditions, [(number, jobs[number]) for number in missing]) as results:
        for number, found in results:
            asked = jobs[number].asked
            if isinstance(found, Run):
                found = replace(found, dataset=asked.dataset, title=asked.title)
                note = ""
                if cache.folder is not None and _unchanged(jobs[number], conditions):
                    cache.add(jobs[number].key, found)
                elif cache.folder is not None:
                    note = " (not cached: the code or the data were changed meanwhile)"
                done(number, found, note)
            elif stop_on_failure:
                raise found
            else:
                errors.append(found)
                done(number, replace(asked, failure=" ".join(str(found).split())))
    if len(errors) == len(jobs):
        _raise_all(errors)
    return [runs[number] for number in range(len(jobs))]


def failures(runs: Sequence[Run]) -> list[str]:
    """Which systems failed and why, a sentence each; runs of a dataset with the same reason share one.

    Examples
    --------
    >>> failures([Run("letters", "a", "A", {}, draw, 0, failure="No memory.") for draw in (0, 1)])
    ['A failed in 2 runs (draws 0, 1): No memory.']
    """
    several = len({run.dataset for run in runs}) > 1
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        if run.failure:
            title = f"{run.dataset}: {_name(run)}" if several else _name(run)
            groups.setdefault((title, run.failure), []).append(run)
    sentences = []
    for (title, reason), failed in groups.items():
        numbers = sorted({run.draw for run in failed})
        draws = f"draw{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"
        sentences.append(f"{title} failed in {len(failed)} run{'s' * (len(failed) > 1)} ({draws}): {reason}")
    return sentences


def _jobs(conditions: Conditions, choices: Sequence[Choice], progress: Progress) -> list[Job]:
    # An incomplete folder, or no encoder, is an error at once, not one in every process.
    problems = Problems()
    dataset = conditions.source.open(problems)
    for note in problems:
        progress.say(f"{note.severity}: {note}")
    data = dataset_fingerprint(dataset)
    encoder = None if conditions.encoder is None else open_encoder(conditions.encoder).fingerprint
    name = dataset.name
    if conditions.limit is not None:
        # Wherever the scores are shown, they are those of a part.
        name += f" (at most {conditions.limit:,} documents)"
    jobs = []
    for choice in choices:
        kind = choice.kind
        shared = {
            "system": choice.name,
            "parameters": choice.changed,
            "dataset": data,
            "source": repr(replace(conditions.source, folder="")),
            "holdout": conditions.holdout,
            "encoder": encoder if kind.vectors or kind.texts else None,
            "code": code_version(kind),
        }
        for draw, seed in conditions.pairs:
            listed = draw == 0 and dataset.first_draw is not None
            per_leaf = None if listed else conditions.per_leaf
            asked = Run(name, choice.name, choice.title or kind.title, dict(choice.parameters), draw, seed)
            jobs.append(Job(choice, asked, {**shared, "draw": draw, "seed": seed, "per_leaf": per_leaf}))
    return jobs


def _unchanged(job: Job, conditions: Conditions) -> bool:
    """Whether the code and the data are still those of the key: each process reads them anew."""
    try:
        code = code_version(job.choice.kind)
        data = dataset_fingerprint(conditions.source.open())
    except (HimecatError, OSError, SyntaxError):
        return False
    return (code, data) == (job.key["code"], job.key["dataset"])


@contextmanager
def _started(
    conditions: Conditions, jobs: Sequence[tuple[int, Job]]
) -> Iterator[Iterator[tuple[int, Run | Exception]]]:
    """Results of the jobs as they come, a few jobs at once; processes that still run at the end are ended."""
    running: dict[Any, tuple[int, Worker]] = {}
    at_once = min(conditions.at_once, max(len(jobs), 1))
    threads = conditions.threads or max(1, usable_threads(None) // at_once)
    variables = dict.fromkeys(_THREAD_VARIABLES, str(threads))

    def results() -> Iterator[tuple[int, Run | Exception]]:
        waiting = list(jobs)
        while waiting or running:
            while waiting and len(running) < at_once:
                number, job = waiting.pop(0)
                task = (conditions, job.choice, job.asked, threads, at_once > 1)
                worker = Worker(_run_here, *task, environment=variables)
                running[worker.receiver] = (number, worker)
            # A wait with a time limit lets the main thread see Ctrl-C on every platform.
            for receiver in wait(list(running), timeout=0.5):
                number, worker = running.pop(receiver)
                yield number, worker.result()

    try:
        yield results()
    finally:
        for _, worker in running.values():
            worker.end()


def _run_here(conditions: Conditions, choice: Choice, asked: Run, threads: int, quiet: bool) -> Run:
    return measure(
        conditions.source,
        choice.make(),
        asked.draw,
        per_leaf=conditions.per_leaf,
        seed=asked.seed,
        parameters=asked.parameters,
        encoder=conditions.encoder,
        holdout=conditions.holdout,
        threads=threads,
        progress=Progress() if conditions.verbose else _bars_only(quiet),
    )


def _bars_only(quiet: bool) -> Progress:
    """A bar on a terminal while a run lasts; in a log the line at its end is enough."""
    return Progress(quiet=quiet or sys.stderr is None or not sys.stderr.isatty())


def _encode_first(conditions: Conditions, jobs: Sequence[Job], progress: Progress) -> None:
    """Compute the encoder's vectors once, so that no run pays for the others."""
    if conditions.encoder is None:
        return
    reading = [job for job in jobs if job.choice.make().vectors]
    if not reading:
        return
    numbers = sorted({job.asked.draw for job in reading}) if conditions.limit else [reading[0].asked.draw]
    # If this fails, the runs themselves say why, or work all the same.
    found = Worker(_encode_here, conditions, reading[0].choice, numbers).result()
    if isinstance(found, Costs):
        progress.say(
            f"The vectors of the encoder are there: {found.seconds:.1f} s, {found.cpu_seconds:.1f} CPU-s, "
            f"{found.peak_rss_mb:.0f} MB, which are not among the costs of the runs."
        )


def _encode_here(conditions: Conditions, choice: Choice, numbers: Sequence[int]) -> Costs:
    began = time.perf_counter()
    source = conditions.source
    dataset = source.open()
    for number in numbers:
        read_draw(
            source,
            dataset,
            choice.make(),
            number,
            conditions.per_leaf,
            conditions.encoder,
            progress=_bars_only(False),
        )
    return costs_since(began)


def _name(run: Run) -> str:
    """The title with the parameters, which distinguish rows of one title."""
    given = ", ".join(f"{name}={value}" for name, value in run.parameters.items())
    return f"{run.title} ({given})" if given else run.title


def run_line(run: Run) -> str:
    """One run in one line of a log.

    Examples
    --------
    >>> run_line(Run("letters", "a", "A", {"c": 2}, 0, 1, failure="No memory."))
    'A (c=2), draw 0, seed 1: failed: No memory.'
    """
    name = f"{_name(run)}, draw {run.draw}, seed {run.seed}"
    if run.failure:
        return f"{name}: failed: {run.failure}"
    leaf, overall = (f"{part['micro']:.4f} / {part['macro']:.4f}" for part in (run.leaf, run.overall))
    return (
        f"{name}: leaf F1 {leaf}, overall F1 {overall} (micro / macro), {run.seconds:.1f} s, "
        f"{run.cpu_seconds:.1f} CPU-s, {run.peak_rss_mb:.0f} MB"
    )


def _raise_all(errors: Sequence[Exception]) -> None:
    reasons = list(dict.fromkeys(" ".join(str(error).split()) for error in errors))
    more = f" (and {len(reasons) - 1} other reasons)" if len(reasons) > 1 else ""
    usage = all(isinstance(error, HimecatError) and error.exit_code == 2 for error in errors)
    raise NoResultError(f"Not one run gave a result: {reasons[0]}{more}", 2 if usage else 1)

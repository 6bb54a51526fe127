"""Many runs, each in a process of its own: several at once, none twice, and a failure leaves the others."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from himecat.compare.protocol.measure import Draw, measure, read_draw
from himecat.compare.protocol.processes import Costs, Started, answer, costs_since, start
from himecat.compare.protocol.results import Run
from himecat.compare.protocol.run_cache import RunCache, code_version, dataset_fingerprint, results_folder
from himecat.compare.protocol.systems import Choice
from himecat.errors import HimecatError, NoResultError, UsageError
from himecat.input.dataset import open_dataset
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
        A dataset folder.
    draws, seeds : int
        How many draws of the labelled documents (0 is that of `doc_id.txt`), and seeds for each.
    per_leaf : int
        Labelled documents per leaf in the draws that the folder does not list.
    limit : int or None
        Only this many documents of the dataset, for a quick look; the same ones for all systems.
    encoder : str or None
        A text encoder: folder, installed package or name.
    at_once : int
        Processes that run at the same time; they share the cores.
    cache : Path or None
        Where results are kept instead of the user's cache folder.

    Examples
    --------
    >>> Conditions(Path("letters"), draws=2).pairs
    [(0, 0), (1, 0)]
    """

    folder: Path
    draws: int = 5
    seeds: int = 1
    per_leaf: int = 5
    limit: int | None = None
    encoder: str | None = None
    at_once: int = 1
    cache: Path | None = None

    def __post_init__(self) -> None:
        for name in ("draws", "seeds", "per_leaf", "at_once"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be at least 1, not {getattr(self, name)}.")
        if self.limit is not None and self.limit < 1:
            raise UsageError(f"limit must be at least 1, not {self.limit}.")

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Every draw with every seed."""
        return [(draw, seed) for draw in range(self.draws) for seed in range(self.seeds)]

    def drawn(self, number: int) -> Draw:
        """What a run of this draw sees."""
        return Draw(number, self.per_leaf, self.limit)


@dataclass(frozen=True)
class Job:
    """One run that is asked for: a record without scores, and how to get them."""

    choice: Choice
    asked: Run
    key: dict[str, Any]


def run_systems(
    conditions: Conditions, choices: Sequence[Choice], *, progress: Progress | None = None
) -> list[Run]:
    """Run every system on every draw with every seed; a run that fails is recorded, and the others go on.

    Runs that are in the cache are not measured again, so that an interrupted comparison goes on where it was.
    Heavy systems come last. Vectors of an encoder are made before the runs that read them, and are not among
    their costs.

    Parameters
    ----------
    conditions : Conditions
        The dataset, and how often and how to run.
    choices : sequence of Choice
        The systems with their parameters.
    progress : Progress, optional
        Told of every run, in one line.

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
    ...     once = Conditions(letters, draws=1, cache=Path(place) / "kept")
    ...     runs = run_systems(once, [Choice("tfidf-svm")])
    >>> [(run.system, run.draw, run.failure) for run in runs]
    [('tfidf-svm', 0, '')]
    """
    if not choices:
        raise UsageError("There is no system to run.")
    shown = progress or silent()
    cache = RunCache(results_folder(conditions.cache), lambda sentence: shown.say(f"note: {sentence}"))
    jobs = _jobs(conditions, choices)
    runs: dict[int, Run] = {}
    errors: list[Exception] = []

    def done(number: int, run: Run, note: str = "") -> None:
        runs[number] = run
        shown.say(f"[{len(runs)}/{len(jobs)}] {_line(run)}{note}")

    for number, job in enumerate(jobs):
        if (kept := cache.find(job.key, job.asked)) is not None:
            done(number, kept, " (measured before)")
    missing = sorted(set(range(len(jobs))) - set(runs), key=lambda number: jobs[number].choice.weight)
    _encode_first(conditions, [jobs[number] for number in missing], shown)
    with _started(conditions, [(number, jobs[number]) for number in missing]) as answers:
        for number, found in answers:
            asked = jobs[number].asked
            if isinstance(found, Run):
                found = replace(found, dataset=asked.dataset, title=asked.title)
                if _still_holds(jobs[number], conditions):
                    cache.add(jobs[number].key, found)
                    done(number, found)
                else:
                    done(number, found, " (not kept: the code or the data were changed meanwhile)")
            else:
                errors.append(found)
                done(number, replace(asked, failure=" ".join(str(found).split())))
    if len(errors) == len(jobs):
        _give_up(errors)
    return [runs[number] for number in range(len(jobs))]


def failures(runs: Sequence[Run]) -> list[str]:
    """Which systems failed and why, a sentence each; the same reason in several runs of a dataset is told once.

    Examples
    --------
    >>> failures([Run("letters", "a", "A", {}, draw, 0, failure="No memory.") for draw in (0, 1)])
    ['A failed in 2 runs (draws 0, 1): No memory.']
    """
    several = len({run.dataset for run in runs}) > 1
    alike: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        if run.failure:
            title = f"{run.dataset}: {_name(run)}" if several else _name(run)
            alike.setdefault((title, run.failure), []).append(run)
    told = []
    for (title, reason), failed in alike.items():
        numbers = sorted({run.draw for run in failed})
        draws = f"draw{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"
        told.append(f"{title} failed in {len(failed)} run{'s' * (len(failed) > 1)} ({draws}): {reason}")
    return told


def _jobs(conditions: Conditions, choices: Sequence[Choice]) -> list[Job]:
    # A folder that is not complete, or no encoder, is told at once, not by a process of its own.
    dataset = open_dataset(conditions.folder)
    data = dataset_fingerprint(dataset)
    encoder = None if conditions.encoder is None else open_encoder(conditions.encoder).fingerprint
    name = dataset.name
    if conditions.limit is not None:
        # Wherever the scores are shown, they are said to be those of a part.
        name += f" (at most {conditions.limit:,} documents)"
    jobs = []
    for choice in choices:
        kind = choice.kind
        shared = {
            "system": choice.name,
            "parameters": choice.changed,
            "dataset": data,
            "limit": conditions.limit,
            "encoder": encoder if kind.vectors or kind.texts else None,
            "code": code_version(kind),
        }
        for draw, seed in conditions.pairs:
            listed = draw == 0 and dataset.first_draw is not None
            key = {
                **shared,
                "draw": draw,
                "seed": seed,
                "per_leaf": None if listed else conditions.per_leaf,
            }
            asked = Run(name, choice.name, choice.title or kind.title, dict(choice.parameters), draw, seed)
            jobs.append(Job(choice, asked, key))
    return jobs


def _still_holds(job: Job, conditions: Conditions) -> bool:
    """Whether the code and the data are those that the key names: a new process reads them as they are by then."""
    try:
        code = code_version(job.choice.kind)
        data = dataset_fingerprint(open_dataset(conditions.folder))
    except (HimecatError, OSError, SyntaxError):
        return False
    return (code, data) == (job.key["code"], job.key["dataset"])


@contextmanager
def _started(
    conditions: Conditions, jobs: Sequence[tuple[int, Job]]
) -> Iterator[Iterator[tuple[int, Run | Exception]]]:
    """Answers of the jobs as they come, a few jobs at once; whatever still runs at the end is ended."""
    running: dict[Any, tuple[int, Started]] = {}
    at_once = min(conditions.at_once, max(len(jobs), 1))
    threads = max(1, usable_threads(None) // at_once)
    variables = dict.fromkeys(_THREAD_VARIABLES, str(threads))

    def answers() -> Iterator[tuple[int, Run | Exception]]:
        waiting = list(jobs)
        while waiting or running:
            while waiting and len(running) < at_once:
                number, job = waiting.pop(0)
                task = (conditions, job.choice, job.asked, threads, at_once > 1)
                started = start(_child, *task, environment=variables)
                running[started.receiver] = (number, started)
            # A wait with a time limit lets the main thread see Ctrl-C on every platform.
            for receiver in wait(list(running), timeout=0.5):
                number, started = running.pop(receiver)
                yield number, _answer_of(started)

    try:
        yield answers()
    finally:
        for _, started in running.values():
            started.end()


def _answer_of(started: Started) -> Run | Exception:
    try:
        found: Run | Exception = started.wait()
    except EOFError:
        return HimecatError(
            f"it ended without a result (exit code {started.process.exitcode}); out of memory? A script has to start "
            'runs below `if __name__ == "__main__":`.'
        )
    return found


def _child(sender: Any, *task: Any) -> None:
    answer(sender, _run_here, *task)


def _run_here(conditions: Conditions, choice: Choice, asked: Run, threads: int, quiet: bool) -> Run:
    return measure(
        conditions.folder,
        choice.make(),
        conditions.drawn(asked.draw),
        seed=asked.seed,
        parameters=asked.parameters,
        encoder=conditions.encoder,
        threads=threads,
        progress=_bars_only(quiet),
    )


def _bars_only(quiet: bool) -> Progress:
    """A bar on a terminal while a run lasts; in a log the line at its end is enough."""
    return Progress(quiet=quiet or sys.stderr is None or not sys.stderr.isatty())


def _encode_first(conditions: Conditions, jobs: Sequence[Job], progress: Progress) -> None:
    """Make the encoder's vectors once, so that no run pays for the others."""
    reading = [job for job in jobs if job.choice.kind.vectors]
    if conditions.encoder is None or not reading:
        return
    numbers = sorted({job.asked.draw for job in reading}) if conditions.limit else [reading[0].asked.draw]
    started = start(_encoding_child, conditions, reading[0].choice, numbers)
    try:
        found = started.wait()
    except EOFError:
        # The runs themselves will tell why, or work all the same.
        return
    if isinstance(found, Costs):
        progress.say(
            f"The vectors of the encoder are there: {found.seconds:.1f} s, {found.cpu_seconds:.1f} CPU-s, "
            f"{found.peak_rss_mb:.0f} MB, which are not among the costs of the runs."
        )


def _encoding_child(sender: Any, *task: Any) -> None:
    answer(sender, _encode_here, *task)


def _encode_here(conditions: Conditions, choice: Choice, numbers: Sequence[int]) -> Costs:
    began = time.perf_counter()
    dataset = open_dataset(conditions.folder)
    for number in numbers:
        read_draw(
            dataset,
            choice.make(),
            conditions.drawn(number),
            encoder=conditions.encoder,
            progress=_bars_only(False),
        )
    return costs_since(began)


def _name(run: Run) -> str:
    """The title with the parameters that tell rows of one title apart."""
    given = ", ".join(f"{name}={value}" for name, value in run.parameters.items())
    return f"{run.title} ({given})" if given else run.title


def _line(run: Run) -> str:
    name = f"{_name(run)}, draw {run.draw}, seed {run.seed}"
    if run.failure:
        return f"{name}: failed: {run.failure}"
    leaf, overall = (f"{part['micro']:.4f} / {part['macro']:.4f}" for part in (run.leaf, run.overall))
    return (
        f"{name}: leaf F1 {leaf}, overall F1 {overall} (micro / macro), {run.seconds:.1f} s, "
        f"{run.cpu_seconds:.1f} CPU-s, {run.peak_rss_mb:.0f} MB"
    )


def _give_up(errors: Sequence[Exception]) -> None:
    reasons = list(dict.fromkeys(" ".join(str(error).split()) for error in errors))
    more = f" (and {len(reasons) - 1} other reasons)" if len(reasons) > 1 else ""
    usual = all(isinstance(error, HimecatError) and error.exit_code == 2 for error in errors)
    raise NoResultError(f"Not one run gave a result: {reasons[0]}{more}", 2 if usual else 1)

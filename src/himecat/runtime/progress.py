"""Showing how far long work has come: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, TextIO

from himecat.runtime.terminal import console, one_line

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

SECONDS_BETWEEN_LINES = 5.0


class Stage:
    """One stretch of work with a beginning and an end; made by `Progress.stage`.

    Attributes
    ----------
    title : str
        What is done.
    total : int or None
        Number of steps; None where it is not known.
    done : int
        Number of steps taken.
    note : str
        What was last said beside the steps.

    Examples
    --------
    >>> with silent().stage("Counting", total=3) as stage:
    ...     for _ in range(3):
    ...         stage.advance()
    >>> stage.done
    3
    """

    def __init__(self, title: str, total: int | None, display: _Lines) -> None:
        self.title = title
        self.total = total
        self.done = 0
        self.note = ""
        self.started = monotonic()
        self._display = display

    @property
    def seconds(self) -> float:
        """Seconds since the stage began."""
        return monotonic() - self.started

    def advance(self, steps: int = 1, note: str | None = None) -> None:
        """Say that more steps are done, from any thread; a `note` replaces the one before."""
        with self._display.lock:
            self.done += steps
            if note is not None:
                self.note = one_line(note)
            self._display.advanced(self)


class Progress:
    """Tells people how far long work has come, on `stream`.

    A terminal shows a bar per stage. Elsewhere every stage has a line when it begins and when it ends, and one
    every five seconds in between. What cannot be shown never stops the work.

    Parameters
    ----------
    quiet : bool
        Show nothing.
    stream : text stream, optional
        Standard error by default, so that results can be piped.

    Examples
    --------
    >>> progress = Progress(stream=sys.stdout)
    >>> with progress.stage("Reading documents", total=2) as stage:
    ...     stage.advance(2, note="1,200 words")
    Reading documents ...
    Reading documents: done in ... s, 1,200 words
    >>> progress.say("The tree has 3 levels.")
    The tree has 3 levels.
    """

    def __init__(self, quiet: bool = False, stream: TextIO | None = None) -> None:
        stream = sys.stderr if stream is None else stream
        # There is no standard error where a program runs without a console.
        if quiet or stream is None:
            self._display = _Lines(None)
        else:
            self._display = _Bars(stream) if _is_terminal(stream) else _Lines(stream)

    @contextmanager
    def stage(self, title: str, total: int | None = None) -> Iterator[Stage]:
        """Show a stretch of work while the block runs; a failure or Ctrl-C leaves the terminal clean.

        Examples
        --------
        >>> with Progress(stream=sys.stdout).stage("Writing the model"):
        ...     pass
        Writing the model ...
        Writing the model: done in ... s
        """
        stage = Stage(one_line(title), total, self._display)
        finished = False
        try:
            with self._display.lock:
                self._display.began(stage)
            yield stage
            finished = True
        finally:
            with self._display.lock:
                self._display.ended(stage, finished)

    def say(self, sentence: str) -> None:
        """Show a line of text, above the bars where there are any.

        Examples
        --------
        >>> Progress(stream=sys.stdout).say("2 documents were left out.")
        2 documents were left out.
        """
        shown = "\n".join(map(one_line, sentence.split("\n")))
        with self._display.lock:
            self._display.say(shown)


def silent() -> Progress:
    """A progress that shows nothing.

    Examples
    --------
    >>> silent().say("Nobody hears this.")
    """
    return Progress(quiet=True)


class ReportedProgress(Progress):
    """Tells a function how far the work has come instead of people: the stage, and the share of it that is done.

    Examples
    --------
    >>> progress = ReportedProgress(lambda title, share: print(title, share))
    >>> with progress.stage("Reading documents", total=2) as stage:
    ...     stage.advance()
    Reading documents 0.0
    Reading documents 0.5
    Reading documents 1.0
    """

    def __init__(self, report: Callable[[str, float], None]) -> None:
        super().__init__(quiet=True)
        self._display = _Reported(report)


class _SafeStream:
    """A stream that ignores a reader that is gone: the work goes on."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with suppress(OSError, ValueError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Lines:
    """Shows stages as lines, or not at all without a stream. Whoever calls holds the lock."""

    def __init__(self, stream: TextIO | None) -> None:
        self.lock = threading.RLock()
        self._stream = None if stream is None else _SafeStream(stream)
        self._last_line: dict[Stage, float] = {}

    def began(self, stage: Stage) -> None:
        self._last_line[stage] = stage.started
        self.say(f"{stage.title} ...")

    def advanced(self, stage: Stage) -> None:
        now = monotonic()
        # A worker thread may still report after the end.
        if now - self._last_line.get(stage, now) < SECONDS_BETWEEN_LINES:
            return
        self._last_line[stage] = now
        if stage.total:
            share = min(stage.done / stage.total, 1.0)
            steps = f"{share:.0%} ({stage.done:,} of {stage.total:,})"
        else:
            steps = f"{stage.done:,} so far"
        self.say(f"{stage.title}: {steps} after {stage.seconds:.0f} s{_after_comma(stage.note)}")

    def ended(self, stage: Stage, finished: bool) -> None:
        self._last_line.pop(stage, None)
        end = "done in" if finished else "stopped after"
        self.say(f"{stage.title}: {end} {stage.seconds:.1f} s{_after_comma(stage.note)}")

    def say(self, sentence: str) -> None:
        if self._stream is not None:
            self._stream.write(f"{sentence}\n")
            self._stream.flush()


class _Reported(_Lines):
    """Tells a function."""

    def __init__(self, report: Callable[[str, float], None]) -> None:
        super().__init__(None)
        self._report = report

    def began(self, stage: Stage) -> None:
        self._report(stage.title, 0.0)

    def advanced(self, stage: Stage) -> None:
        self._report(stage.title, min(stage.done / stage.total, 1.0) if stage.total else 0.0)

    def ended(self, stage: Stage, finished: bool) -> None:
        if finished:
            self._report(stage.title, 1.0)


class _Bars(_Lines):
    """Bars of all stages that are open at once, in one block that is closed with the last of them."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._is_standard_error = stream is sys.stderr
        self._bars: Bars | None = None
        self._tasks: dict[Stage, TaskID] = {}

    def began(self, stage: Stage) -> None:
        if self._bars is None:
            self._bars = _make_bars(self._stream, self._is_standard_error)
            self._bars.start()
        self._tasks[stage] = self._bars.add_task(stage.title, total=stage.total, note="")

    def advanced(self, stage: Stage) -> None:
        if self._bars is not None and stage in self._tasks:
            self._bars.update(self._tasks[stage], completed=stage.done, note=stage.note)

    def ended(self, stage: Stage, finished: bool) -> None:
        task = self._tasks.pop(stage, None)
        if self._bars is None:
            return
        try:
            if task is not None:
                if finished and stage.total is None:
                    # A bar of unknown length would stay there as if it were still moving.
                    self._bars.update(task, total=max(stage.done, 1), completed=max(stage.done, 1))
                self._bars.stop_task(task)
        finally:
            if not self._tasks:
                bars, self._bars = self._bars, None
                bars.stop()

    def say(self, sentence: str) -> None:
        if self._bars is None:
            super().say(sentence)
        else:
            self._bars.console.print(sentence, soft_wrap=True)


def _is_terminal(stream: TextIO) -> bool:
    # The stream of a notebook may say that it is one, and shows neither bars nor what moves the cursor.
    if type(stream).__module__.startswith("ipykernel"):
        return False
    return stream.isatty() and os.environ.get("TERM", "").lower() not in ("dumb", "unknown")


def _after_comma(note: str) -> str:
    return f", {note}" if note else ""


def _make_bars(stream: Any, is_standard_error: bool) -> Bars:
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.table import Column

    def at_least(width: int) -> Column:
        return Column(min_width=width, no_wrap=True)

    # On a narrow terminal the bar shrinks first, then the texts.
    return Progress(
        TextColumn("{task.description}", markup=False, table_column=at_least(10)),
        BarColumn(bar_width=20, table_column=Column(min_width=4)),
        TaskProgressColumn(table_column=at_least(4)),
        TimeElapsedColumn(table_column=at_least(7)),
        TimeRemainingColumn(compact=True, table_column=at_least(5)),
        TextColumn("{task.fields[note]}", markup=False, table_column=at_least(0)),
        console=console(stream, force_terminal=True),
        refresh_per_second=5,
        # Standard output may be a file with results; standard error would run through the bars.
        redirect_stdout=False,
        redirect_stderr=is_standard_error,
    )

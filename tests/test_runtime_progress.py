from __future__ import annotations

import io
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from himecat.runtime import progress as module
from himecat.runtime.progress import Progress, silent

HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Gone(io.StringIO):
    """A stream whose reader has gone away."""

    def write(self, text: str) -> int:
        raise BrokenPipeError


class GoneTerminal(Gone, Terminal):
    pass


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(module, "monotonic", made)
    return made


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Terminal()


def seen(terminal: Terminal) -> list[str]:
    """The texts written between control codes, line by line, without the codes."""
    return [re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", line) for line in re.split(r"[\r\n]", terminal.getvalue())]


class TestLines:
    def test_a_start_an_end_and_one_line_every_five_seconds(self, clock: Clock) -> None:
        stream = io.StringIO()
        with Progress(stream=stream).stage("Learning", total=48) as stage:
            for number in range(48):
                clock.now += 0.25
                stage.advance(1, note=f"objective {number}")
        assert stream.getvalue().splitlines() == [
            "Learning ...",
            "Learning: 42% (20 of 48) after 5 s, objective 19",
            "Learning: 83% (40 of 48) after 10 s, objective 39",
            "Learning: done in 12.0 s, objective 47",
        ]

    def test_unknown_length_and_too_many_steps(self, clock: Clock) -> None:
        stream = io.StringIO()
        progress = Progress(stream=stream)
        with progress.stage("Reading") as reading, progress.stage("Counting", total=2) as counting:
            clock.now += 6
            reading.advance(1500)
            counting.advance(3)
        assert stream.getvalue().splitlines()[2:] == [
            "Reading: 1,500 so far after 6 s",
            "Counting: 100% (3 of 2) after 6 s",
            "Counting: done in 6.0 s",
            "Reading: done in 6.0 s",
        ]

    def test_an_interrupted_stage_says_so(self, clock: Clock) -> None:
        stream = io.StringIO()
        with pytest.raises(KeyboardInterrupt), Progress(stream=stream).stage("Learning", total=3) as stage:  # noqa: PT012
            clock.now += 2
            stage.advance(1, note="objective 1")
            raise KeyboardInterrupt
        assert stream.getvalue().splitlines()[-1] == "Learning: stopped after 2.0 s, objective 1"
        stage.advance(1)
        assert stream.getvalue().count("\n") == 2

    def test_notes_stay_until_replaced(self, clock: Clock) -> None:
        stream = io.StringIO()
        with Progress(stream=stream).stage("Learning", total=3) as stage:
            stage.advance(1, note="objective 1")
            clock.now += 5
            stage.advance(1)
            stage.advance(1, note="")
        assert [line.partition(" s")[2] for line in stream.getvalue().splitlines()] == [
            "",
            ", objective 1",
            "",
        ]

    def test_sentences(self) -> None:
        stream = io.StringIO()
        Progress(stream=stream).say("The tree has [3] levels.")
        assert stream.getvalue() == "The tree has [3] levels.\n"

    def test_steps_from_many_threads_are_all_counted(self, clock: Clock) -> None:
        stream = io.StringIO()
        with Progress(stream=stream).stage("Learning", total=8000) as stage:

            def work() -> None:
                for _ in range(1000):
                    clock.now += 1
                    stage.advance(1)

            with ThreadPoolExecutor(8) as pool:
                for future in [pool.submit(work) for _ in range(8)]:
                    future.result()
        assert stage.done == 8000
        lines = stream.getvalue().splitlines()
        assert len(lines) > 100
        assert all(re.fullmatch(r"Learning(| ...|: .* s)", line) for line in lines)
        steps = [
            int(found[1].replace(",", "")) for line in lines if (found := re.search(r"\(([\d,]+) of", line))
        ]
        assert steps == sorted(set(steps))

    def test_a_dumb_terminal_gets_lines(self, terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TERM", "dumb")
        with Progress(stream=terminal).stage("Learning"):
            pass
        assert terminal.getvalue().startswith("Learning ...\n")
        assert "\x1b" not in terminal.getvalue()


class TestTerminal:
    def test_a_bar_with_all_its_parts(self, terminal: Terminal) -> None:
        with Progress(stream=terminal).stage("Learning the joint space", total=100) as stage:
            stage.advance(40, note="2.1 M pairs/s, objective -0.093")
        shown = seen(terminal)
        assert re.fullmatch(
            r"Learning the joint space \S+ +40% 0:00:\d\d \S\S:\S\S 2\.1 M pairs/s, objective -0\.093",
            next(line for line in reversed(shown) if line),
        )

    def test_the_cursor_comes_back(self, terminal: Terminal) -> None:
        with pytest.raises(KeyboardInterrupt), Progress(stream=terminal).stage("Learning", total=3) as stage:  # noqa: PT012
            stage.advance(1)
            raise KeyboardInterrupt
        text = terminal.getvalue()
        assert text.count(HIDE) == text.count(SHOW) == 1
        assert text.endswith(f"\n{SHOW}")
        stage.advance(1)
        assert terminal.getvalue() == text

    def test_an_interrupt_while_the_bar_opens(
        self, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from rich.progress import Progress as Bars

        def interrupted(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        progress = Progress(stream=terminal)
        with monkeypatch.context() as patched:
            patched.setattr(Bars, "add_task", interrupted)
            with pytest.raises(KeyboardInterrupt), progress.stage("Learning", total=3):
                pytest.fail("the block must not start")
        assert terminal.getvalue().count(HIDE) == terminal.getvalue().count(SHOW) == 1
        with progress.stage("Once more", total=1) as stage:
            stage.advance()
        assert any(line.startswith("Once more") and "100%" in line for line in seen(terminal))

    def test_stages_within_a_stage_share_the_block(self, terminal: Terminal) -> None:
        progress = Progress(stream=terminal)
        with progress.stage("Outer", total=2) as outer:
            for name in ("First", "Second"):
                with progress.stage(name) as inner:
                    inner.advance(7)
                outer.advance()
        assert terminal.getvalue().count(HIDE) == terminal.getvalue().count(SHOW) == 1
        final = [line for line in seen(terminal) if line][-3:]
        assert [line.split()[0] for line in final] == ["Outer", "First", "Second"]
        assert all("100%" in line for line in final)

    def test_texts_are_shown_as_they_are(self, terminal: Terminal) -> None:
        progress = Progress(stream=terminal)
        progress.say("before [bold]")
        with progress.stage("[red]Title[/] {0}", total=2) as stage:
            stage.advance(1, note="[1/2] {x}")
            progress.say("a [bold]long[/] :smile: " + "sentence " * 20)
        progress.say("after")
        shown = seen(terminal)
        assert shown[0] == "before [bold]"
        assert "a [bold]long[/] :smile: " + "sentence " * 20 in shown
        assert any(
            line.startswith("[red]Title[/] {0} ") and line.rstrip().endswith("[1/2] {x}") for line in shown
        )
        assert terminal.getvalue().endswith(f"{SHOW}after\n")

    @pytest.mark.parametrize("width", ["20", "40", "60"])
    def test_a_bar_keeps_to_one_line(
        self, terminal: Terminal, monkeypatch: pytest.MonkeyPatch, width: str
    ) -> None:
        monkeypatch.setenv("COLUMNS", width)
        with Progress(stream=terminal).stage("Learning the joint space", total=100) as stage:
            stage.advance(40, note="2.1 M pairs/s, objective -0.093")
        assert terminal.getvalue().count("\n") == 1
        assert max(map(len, seen(terminal))) <= int(width)

    def test_standard_output_stays_what_it_is(
        self, terminal: Terminal, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(sys, "stderr", terminal)
        with Progress().stage("Learning", total=2):
            print("a result")
            print("a warning", file=sys.stderr)
        assert capsys.readouterr().out == "a result\n"
        assert "a warning" in seen(terminal)
        assert sys.stderr is terminal

    def test_steps_from_many_threads(self, terminal: Terminal) -> None:
        with Progress(stream=terminal).stage("Learning", total=800) as stage, ThreadPoolExecutor(4) as pool:
            for _ in range(800):
                pool.submit(stage.advance, 1, "a note")
        assert stage.done == 800
        assert "100%" in next(line for line in reversed(seen(terminal)) if line)


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_quiet_shows_nothing(stream: io.StringIO) -> None:
    progress = Progress(quiet=True, stream=stream)
    with progress.stage("Learning", total=3) as stage:
        stage.advance(2, note="a note")
        progress.say("a sentence")
    assert (stage.done, stage.note) == (2, "a note")
    assert stream.getvalue() == ""


def test_silent_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with silent().stage("Learning"):
        silent().say("a sentence")
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("make", [Gone, GoneTerminal])
def test_a_reader_that_has_gone_does_not_stop_the_work(
    make: type[Gone], monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    progress = Progress(stream=make())
    with progress.stage("Learning", total=3) as stage:
        clock.now += 6
        stage.advance(3)
        progress.say("a sentence")
    assert stage.done == 3


def test_no_standard_error_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    with Progress().stage("Learning") as stage:
        stage.advance()
    assert stage.done == 1


def test_rich_is_imported_for_bars_only() -> None:
    code = (
        "import sys; from himecat.runtime.progress import Progress\n"
        "with Progress().stage('Learning') as stage: stage.advance()\n"
        "sys.exit('rich' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=False)
    assert (run.returncode, run.stderr[:12]) == (0, b"Learning ...")

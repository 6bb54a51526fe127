from __future__ import annotations

import csv
import io
import json
import re

import pytest

from conftest import Himecat
from himecat.runtime.progress import Progress
from himecat.runtime.terminal import LONGEST_LINE, console, one_line, plain_json, printable, text

STEERING = [
    *map(chr, range(9)),
    *map(chr, range(11, 32)),
    *map(chr, range(127, 160)),
    "\u202e",
    "\u2066",
    "\u2028",
]
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


@pytest.mark.parametrize("character", STEERING)
def test_what_steers_a_terminal_is_spelled_out(character: str) -> None:
    shown = printable(f"a{character}b")
    assert not RAW.search(shown)
    assert re.fullmatch(r"a\\(x[0-9a-f]{2}|u[0-9a-f]{4})b", shown)
    assert text(f"a{character}b").plain == shown
    stream = io.StringIO()
    # Given as it is, not as a text of ours: the console is the last to look at it.
    console(stream, width=80).print(f"a{character}b")
    assert not RAW.search(stream.getvalue())
    assert not RAW.search(plain_json({f"a{character}": [character]}))
    assert json.loads(plain_json({f"a{character}": [character]})) == {f"a{character}": [character]}


def test_half_a_character_can_be_written_and_read_again() -> None:
    written = plain_json("a\ud800b")
    assert written.encode() == b'"a\\ud800b"'
    assert json.loads(written) == "a\ud800b"


def test_other_letters_stay_as_they_are() -> None:
    for shown in ("Zürich", "東京", "a\tb", "عربي", "👩‍🔬"):
        assert printable(shown) == shown


def test_a_message_keeps_its_start_and_its_end() -> None:
    line = one_line("docs.jsonl line 3: the id '" + "x" * 10_000 + "' is taken: ids must differ.")
    assert len(line) == LONGEST_LINE
    assert line.startswith("docs.jsonl line 3: the id 'xxx")
    assert line.endswith("xxx' is taken: ids must differ.")


def test_progress_shows_control_characters() -> None:
    stream = io.StringIO()
    progress = Progress(stream=stream)
    with progress.stage("Reading \x1b[2J", total=1) as stage:
        stage.advance(note="\x9b31m")
    progress.say("first\x07 line\nsecond")
    assert not RAW.search(stream.getvalue())
    assert "first\\x07 line\nsecond\n" in stream.getvalue()


EVIL = "\x1b]0;owned\x07\x9b31m\x7f\u202e"


def test_names_from_data_in_every_command(
    himecat: Himecat, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(str(tmp_path))
    leaves = {f"{name}{EVIL}": words for name, words in (("a", "red fox dog"), ("b", "old oak elm"))}
    lines = [
        {
            "id": f"{leaf}{n}",
            "text": f"{words} {words} {EVIL}",
            f"tag{EVIL}": [f"v{EVIL}"],
            "labels": [f"top{EVIL}", leaf],
        }
        for leaf, words in leaves.items()
        for n in range(4)
    ]
    with open("docs.jsonl", "w") as stream:
        stream.writelines(json.dumps(line) + "\n" for line in lines)
    metadata = f"--metadata=tag{EVIL}"
    ends = [
        himecat("check", "docs.jsonl", metadata),
        himecat("check", "docs.jsonl", metadata, "--json=-"),
        himecat("check", "docs.jsonl", "--metadata=none"),
        himecat("fit", "docs.jsonl", metadata, "--output=model"),
        himecat("predict", "model", "docs.jsonl", "--output=-"),
        himecat("explain", "model", f"a{EVIL}"),
        himecat("explain", "model", f"a{EVIL}", "--json=-"),
        himecat("explain", "model", "--documents=docs.jsonl"),
        himecat("explain", "model", f"none{EVIL}"),
        himecat("synthesize", "model", f"a{EVIL}"),
        himecat("predict", "model", f"none{EVIL}.jsonl", "--output=-"),
        himecat("fit", "docs.jsonl", f"--set=none{EVIL}=1", "--output=other"),
        himecat("fit", "docs.jsonl", f"--none{EVIL}"),
    ]
    assert [ended.code for ended in ends] == [0, 0, 2, *[0] * 5, 2, 0, 2, 2, 2]
    for ended in ends:
        assert not RAW.search(ended.out + ended.err), (ended.out, ended.err)
    assert [json.loads(line)["path"][0] for line in ends[4].out.splitlines()] == [f"top{EVIL}"] * 8


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t"])
def test_no_cell_is_a_formula(start: str) -> None:
    from himecat.compare.protocol.table_styles import Cell, Table, render

    name = f"{start}HYPERLINK(1)"
    table = Table("", [("", name)], [[Cell(name)]], records=[{name: name, "change": -0.5}])
    header, row = csv.reader(io.StringIO(render([table], "csv"), newline=""))
    assert (header, row) == ([f"'{name}", "change"], [f"'{name}", "-0.5"])

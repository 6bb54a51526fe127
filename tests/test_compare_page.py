"""The page of a comparison: whole, safe, self-contained, and the same numbers as the tables."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from himecat.compare import page as module
from himecat.compare.protocol.compare import Comparison, LabelMap
from himecat.compare.protocol.run import Run
from himecat.compare.protocol.statistics import DatasetStatistics, MetadataStatistics
from himecat.errors import UsageError
from himecat.input.taxonomy.tree import Taxonomy

pytest.importorskip("matplotlib")

TREE = Taxonomy.from_paths([("arts", "film"), ("arts", "music"), ("science", "optics"), ("science", "sound")])
LETTERS = DatasetStatistics(
    "letters", 1200, 40, 11, 8, 3, 61.25, 900, (MetadataStatistics("tags", 1300, 0.5),)
)


class Page(HTMLParser):
    """Reads a page strictly: every element is closed in order and every id is there once."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self.feed(html)
        self.close()
        assert self.open == []
        self.ids = [attributes["id"] for _, attributes in self.elements if "id" in attributes]
        assert len(self.ids) == len(set(self.ids))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {key: value or "" for key, value in attrs}))
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {key: value or "" for key, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def write_comparison(path: Path, runs: list[Run], *, ours: str, label_maps: Any = None, **parts: Any) -> None:
    module.write_comparison(path, Comparison(runs, ours, parts.pop("statistics", []), **parts), label_maps)


def runs(system: str, micro: float, title: str = "", **parameters: Any) -> list[Run]:
    found = []
    for draw, noise in enumerate((0.0, 0.011, -0.008)):
        leaf, overall = ({"micro": s + noise, "macro": s - 0.05} for s in (micro, micro + 0.1))
        found.append(
            Run(
                "letters", system, title or system.upper(), parameters, draw, 0, leaf, overall, 1.0, 2.0, 99.0
            )
        )
    return found


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_comparison(
        path,
        [
            *runs("ours", 0.7),
            *runs("svm", 0.5),
            Run("letters", "bert", "BERT", {}, 0, 0, failure="Out of memory."),
        ],
        ours="ours",
        statistics=[LETTERS],
        ablations=[*runs("ours", 0.7), *runs("ours", 0.6, "No-Metadata", use_metadata=False)],
        sweeps=[run for beta in (0, 50, 500) for run in runs("ours", 0.5 + beta / 9000, beta=beta)],
        label_maps={"letters": LabelMap(np.eye(len(TREE)), TREE)},
    )
    return path.read_text("utf-8")


def test_every_section_is_there_and_linked(html: str) -> None:
    page = Page(html)
    wanted = ["scores", "systems", "significance", "ablations", "sweeps", "labels", "datasets"]
    assert [found["id"] for tag, found in page.elements if tag == "section"] == wanted
    links = [found["href"] for tag, found in page.elements if tag == "a"]
    assert links == [f"#{key}" for key in wanted]


def test_what_it_says_is_what_the_tables_say(html: str) -> None:
    text = Page(html).text
    for said in ("OURS (0.701) has the highest Leaf micro F1, before SVM (0.501)", "0.7010", "± 0.0095", "No-Metadata",
                 "tags: 1,300 (50 %)", "BERT failed in 1 of 1 runs: Out of memory.", "0 of 1"):  # fmt: skip
        assert said in text


def test_the_page_needs_nothing_from_elsewhere(html: str) -> None:
    page = Page(html)
    for tag, attributes in page.elements:
        assert tag not in ("img", "link", "iframe", "image")
        for key in ("src", "href", "xlink:href"):
            assert attributes.get(key, "#").startswith("#")
    assert "@import" not in html
    assert not re.search(r"url\((?!#)", html)
    assert "<metadata" not in html


def test_parts_of_figures_point_into_their_own_figure(html: str) -> None:
    page = Page(html)
    assert sum(tag == "svg" for tag, _ in page.elements) == 4
    wanted = {found["xlink:href"] for _, found in page.elements if "xlink:href" in found}
    wanted |= set(re.findall(r"url\((#[^)]+)\)", html))
    assert wanted
    assert {place[1:] for place in wanted} <= set(page.ids)


def test_the_page_stays_light_on_a_dark_screen(html: str) -> None:
    style = html[html.index("<style>") : html.index("</style>")]
    assert style.rindex("--paper: #ffffff") > style.rindex("prefers-color-scheme: dark")


def test_tables_sort_by_their_numbers(html: str) -> None:
    rows = re.findall(r"<tr[^>]*><th scope=\"row\".*?</tr>", html, flags=re.DOTALL)
    ours = next(row for row in rows if 'data-value="OURS"' in row)
    values = re.findall(r'<td class=n data-value="([^"]*)"', ours)
    assert float(values[0]) == pytest.approx(0.701)
    failed = next(row for row in rows if 'data-value="BERT"' in row)
    assert re.findall(r'<td class=n data-value="([^"]*)"', failed)[0] == ""
    assert 'class="ours"' in ours


def test_names_are_escaped_everywhere(tmp_path: Path) -> None:
    bad = "<script>alert('$x$')</script>"
    tree = Taxonomy.from_paths([(bad, "a"), (bad, "b")])
    found = [
        Run(bad, "a", bad, {bad: value}, 0, 0, *[{"micro": 0.5, "macro": 0.4}] * 2) for value in (1, bad)
    ]
    statistics = [DatasetStatistics(bad, 1, 1, 1, 1, 1, 1.0, 1, (MetadataStatistics(bad, 1, 1.0),))]
    path = tmp_path / "report.html"
    write_comparison(
        path,
        found,
        ours="a",
        statistics=statistics,
        ablations=found,
        sweeps=found,
        label_maps={bad: LabelMap(np.eye(4), tree)},
    )
    page = Page(path.read_text("utf-8"))
    assert sum(tag == "script" for tag, _ in page.elements) == 1


def test_a_system_that_is_not_first_is_told_its_place(tmp_path: Path) -> None:
    write_comparison(tmp_path / "r.html", [*runs("ours", 0.5), *runs("svm", 0.6)], ours="ours")
    text = Page((tmp_path / "r.html").read_text("utf-8")).text
    assert "SVM (0.601) has the highest Leaf micro F1; OURS (0.501) is number 2 of 2." in text


def test_a_sweep_alone_makes_a_page(tmp_path: Path) -> None:
    write_comparison(
        tmp_path / "r.html", [], ours="ours", sweeps=[*runs("a", 0.5, c=1), *runs("a", 0.6, c=2)]
    )
    page = Page((tmp_path / "r.html").read_text("utf-8"))
    assert [found["id"] for tag, found in page.elements if tag == "section"] == ["sweeps"]


def test_without_matplotlib_the_tables_remain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    write_comparison(tmp_path / "r.html", runs("ours", 0.5), ours="ours")
    html = (tmp_path / "r.html").read_text("utf-8")
    assert "0.5010" in Page(html).text
    assert "Figures need the package matplotlib" in html
    assert "<svg" not in html


def test_the_same_runs_give_the_same_page(tmp_path: Path) -> None:
    for place in "ab":
        write_comparison(tmp_path / place, runs("ours", 0.5), ours="ours")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_nothing_to_show_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no runs"):
        write_comparison(tmp_path / "r.html", [], ours="ours", statistics=[LETTERS])

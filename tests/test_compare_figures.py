"""Figures: drawn from any runs and any tree, readable, and the same every time."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
import xml.etree.ElementTree as ElementTree
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from himecat.compare.figures import label_map
from himecat.compare.figures.label_map import draw_label_map, project, short_name
from himecat.compare.figures.placement import place_names
from himecat.compare.figures.scores import draw_scores
from himecat.compare.figures.style import COLOURS, look
from himecat.compare.figures.sweep import draw_sweep
from himecat.compare.protocol.run import Run
from himecat.errors import OutputError, UsageError
from himecat.input.taxonomy.tree import Taxonomy

pytest.importorskip("matplotlib")

PNG = b"\x89PNG"
TREE = Taxonomy.from_children(
    {f"topic {a}": {f"topic {a}.part {b}": {} for b in range(6)} for a in range(5)} | {"alone": {}}
)


def run(system: str, micro: float, draw: int = 0, **parameters: Any) -> Run:
    leaf, overall = ({"micro": s, "macro": s - 0.05} for s in (micro, micro + 0.1))
    return Run("letters", system, system.upper(), parameters, draw, 0, leaf, overall)


def vectors(tree: Taxonomy) -> npt.NDArray[np.float64]:
    noise = np.random.default_rng(0).normal(size=(len(tree), 12))
    for node in range(1, len(tree)):
        noise[node] += 2 * noise[tree.parents[node]]
    return noise


def texts(path: Path) -> list[str]:
    root = ElementTree.parse(path).getroot()
    return ["".join(found.itertext()).strip() for found in root.iter("{http://www.w3.org/2000/svg}text")]


RUNS = [
    run(system, 0.3 + place / 10 + draw / 100, draw)
    for place, system in enumerate("abc")
    for draw in range(3)
]


def test_scores_name_every_system_best_first(tmp_path: Path) -> None:
    failed = Run("letters", "d", "D", {}, 0, 0, failure="no time")
    draw_scores([*RUNS, failed], tmp_path / "scores.svg", ours="b")
    found = texts(tmp_path / "scores.svg")
    assert [text for text in found if text in ("A", "B", "C", "D")] == ["C", "B", "A"]
    assert "0.510" in found
    assert any("standard deviation" in text for text in found)


def test_scores_of_one_run_have_no_deviation(tmp_path: Path) -> None:
    draw_scores(RUNS[:1], tmp_path / "scores.svg")
    assert not any("standard deviation" in text for text in texts(tmp_path / "scores.svg"))


def test_sweeps_show_the_values_in_order(tmp_path: Path) -> None:
    swept = [run("a", 0.4 + beta / 9000, draw, beta=beta) for beta in (2000, 0, 500) for draw in range(2)]
    draw_sweep(swept, tmp_path / "sweep.svg")
    found = texts(tmp_path / "sweep.svg")
    assert [text for text in found if text in ("0", "500", "2000")] == ["0", "500", "2000"] * 2
    assert found.count("micro") == found.count("macro") == 2


def test_two_sweeps_need_a_choice(tmp_path: Path) -> None:
    both = [run("a", 0.4, **{name: value}) for name in ("beta", "dimension") for value in (1, 2)]
    with pytest.raises(UsageError, match="beta and dimension"):
        draw_sweep(both, tmp_path / "sweep.svg")
    draw_sweep(both, tmp_path / "sweep.svg", parameter="dimension")
    assert any(text.startswith("dimension") for text in texts(tmp_path / "sweep.svg"))


def test_the_map_names_every_node_that_has_room(tmp_path: Path) -> None:
    draw_label_map(vectors(TREE), TREE, tmp_path / "map.svg", title="A map")
    found = texts(tmp_path / "map.svg")
    assert {"A map", "ROOT", "alone", *(f"topic {a}" for a in range(5))} <= set(found)
    assert [found.count(f"part {b}") for b in range(6)] == [5] * 6
    assert not any("left out" in text for text in found)


def test_a_map_without_room_says_how_many_names_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crowd = Taxonomy.from_children({f"a rather long name {n}": {} for n in range(60)})
    monkeypatch.setattr(label_map, "project", lambda rows: np.zeros((len(rows), 2)))
    draw_label_map(np.ones((61, 4)), crowd, tmp_path / "map.svg")
    found = texts(tmp_path / "map.svg")
    (note,) = (text for text in found if "t-SNE" in text)
    missing = re.search(r"(\d+) names left out", note)
    assert missing is not None
    assert sum(text.startswith(("a rather", "ROOT")) for text in found) == 61 - int(missing[1])


@pytest.mark.parametrize(
    "tree",
    [
        Taxonomy.from_paths([("only",)]),
        Taxonomy.from_paths([("a",), ("b", "c"), ("b", "d", "e")]),
        Taxonomy.from_paths([("a", "b", "c", "d", "e", "f")]),
    ],
)
def test_small_and_ragged_trees_have_maps(tree: Taxonomy, tmp_path: Path) -> None:
    draw_label_map(vectors(tree), tree, tmp_path / "map.svg")
    assert set(tree.names) <= set(texts(tmp_path / "map.svg"))


def test_equal_and_zero_vectors_have_a_map(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw_label_map(np.zeros((len(TREE), 3)), TREE, tmp_path / "map.png")
    assert np.isfinite(project(np.ones((9, 1)))).all()


def test_vectors_that_are_not_of_the_tree_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="each of the 37 nodes"):
        draw_label_map(np.ones((3, 2)), TREE, tmp_path / "map.svg")
    with pytest.raises(UsageError, match="infinite or missing"):
        draw_label_map(np.full((37, 2), np.nan), TREE, tmp_path / "map.svg")


def test_relatives_are_near_each_other_on_the_map() -> None:
    found = project(vectors(TREE))
    distances = np.linalg.norm(found[:, None] - found[None], axis=2)
    siblings = [distances[a, b] for node in TREE.children[0] for a, b in combinations(TREE.children[node], 2)]
    assert np.mean(siblings) < 0.6 * distances[np.triu_indices(len(TREE), 1)].mean()


def test_names_repeat_their_parents_only_where_nothing_would_be_left() -> None:
    tree = Taxonomy.from_paths([("games", "games-board", "games-board: chess"), ("a", "a-"), ("a", "b-c")])
    assert [short_name(tree, node) for node in tree][1:] == ["games", "a", "board", "a-", "b-c", "chess"]


def test_names_never_overlap_each_other_or_hide_a_point() -> None:
    from matplotlib.transforms import Bbox

    rng = np.random.default_rng(3)
    points, sizes = rng.uniform(60, 540, (150, 2)), rng.uniform((15, 8), (60, 12), (150, 2))
    room = Bbox([[0, 0], [600, 600]])
    places = place_names(points, sizes, np.full(150, 3.0), range(150), room)
    placed = [box for box in places if box is not None]
    assert len(placed) > 120
    assert all((box.min >= 0).all() and (box.max <= 600).all() for box in placed)
    assert not any(one.overlaps(other) for one, other in combinations(placed, 2))
    assert not any(box.contains(*point) for box in placed for point in points)
    for box, point, size in zip(places, points, sizes, strict=True):
        if box is not None:
            assert box.size == pytest.approx(size)
            assert np.hypot(*(np.clip(point, box.min, box.max) - point)) < 55


def test_many_categories_have_looks_of_their_own() -> None:
    assert len({look(number) for number in range(7 * len(COLOURS))}) == 7 * len(COLOURS)


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_the_same_figure_has_the_same_bytes(suffix: str, tmp_path: Path) -> None:
    first, second = tmp_path / f"1.{suffix}", tmp_path / f"2.{suffix}"
    for path in (first, second):
        draw_label_map(vectors(TREE), TREE, path)
    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes().startswith(PNG) == (suffix == "png")


def test_odd_names_are_drawn_as_they_are(tmp_path: Path) -> None:
    odd = [
        Run(
            "$x$ & <y>",
            "a",
            "cost $5 to $9 \x00\t\u4e2d\u6587",
            {},
            0,
            0,
            *[{"micro": 0.5, "macro": 0.4}] * 2,
        )
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw_scores(odd, tmp_path / "scores.png")
        draw_scores(odd, tmp_path / "scores.svg")
    found = texts(tmp_path / "scores.svg")
    assert "$x$ & <y>: leaf" in found
    assert any(text.startswith("cost $5 to $9") for text in found)


def test_other_suffixes_and_missing_folders_are_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"\.png or \.svg"):
        draw_scores(RUNS, tmp_path / "scores.jpg")
    with pytest.raises(OutputError):
        draw_scores(RUNS, tmp_path / "no" / "scores.png")


def test_figures_leave_matplotlib_as_it_was(tmp_path: Path) -> None:
    import matplotlib

    with matplotlib.rc_context({"font.size": 31}):
        draw_scores(RUNS, tmp_path / "scores.svg")
        assert matplotlib.rcParams["font.size"] == 31
    assert "31px" not in (tmp_path / "scores.svg").read_text("utf-8")


def test_without_matplotlib_there_is_one_clear_sentence() -> None:
    program = """
import sys
sys.modules["matplotlib"] = None
from himecat.errors import UsageError
from himecat.compare.protocol.run import Run
from himecat.compare.figures.scores import draw_scores
scores = {"micro": 0.5, "macro": 0.4}
try:
    draw_scores([Run("letters", "a", "A", {}, 0, 0, scores, scores)], "scores.png")
except UsageError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (
        done.stdout
        == 'Figures need the package matplotlib: install it with `pip install "himecat[plots]"`.\n'
    )

"""The HTML report: whole, safe, self-contained, and right."""

from __future__ import annotations

import base64
import errno
import hashlib
import os
import re
import stat
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from himecat.errors import OutputError, UsageError
from himecat.evaluation.metrics import Scores, score
from himecat.evaluation.report import ReportDocument, write_report
from himecat.evaluation.report.confidence import reliability, risk_points
from himecat.evaluation.report.examples import snippet
from himecat.evaluation.report.markup import escape, percent
from himecat.input.taxonomy.tree import Taxonomy

VOID = {"meta", "br", "hr", "img", "input", "link"}

TREE = Taxonomy.from_children(
    {"science": {"physics": {"optics": {}, "sound": {}}, "biology": {}}, "arts": {"music": {}, "film": {}}}
)


class Page(HTMLParser):
    """Reads a page strictly: every element is closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.html = html
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.text: list[str] = []
        self.sections: dict[str, list[str]] = {}
        self._section = ""
        self.feed(html)
        self.close()
        assert self.open == [], f"left open: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {key: value or "" for key, value in attrs}
        assert len(attributes) == len(attrs), f"an attribute of <{tag}> stands twice"
        self.elements.append((tag, attributes))
        if tag == "section":
            self._section = attributes["id"]
            self.sections[self._section] = []
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert "svg" in self.open, "only SVG knows elements that close themselves"
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("style", "script"):
            return
        self.text.append(data)
        if "section" in self.open:
            self.sections[self._section].append(data)

    def count(self, tag: str, css: str = "") -> int:
        return sum(t == tag and (not css or css in a.get("class", "").split()) for t, a in self.elements)

    def words(self, section: str = "") -> str:
        return " ".join(" ".join(self.sections[section] if section else self.text).split())


def make_documents(
    tree: Taxonomy, truth: Sequence[int], predicted: Sequence[int], known: bool = True
) -> list[ReportDocument]:
    found = []
    for i, (true, given_node) in enumerate(zip(truth, predicted, strict=True)):
        depth = len(tree.path(given_node))
        sure = 0.99 - 0.9 * i / max(1, len(truth))
        found.append(
            ReportDocument(
                id=f"doc{i}",
                text=f"Text of document {i}.",
                path=tree.path(given_node),
                confidence=[sure ** ((level + 1) / depth) for level in range(depth)],
                true_path=tree.path(true) if known else None,
                metadata={"authors": [f"author{i}", "everybody"], "venue": "Annals", "tags": []},
            )
        )
    return found


def render(folder: Path, tree: Taxonomy, documents: Sequence[ReportDocument], **options: Any) -> Page:
    write_report(folder / "report.html", taxonomy=tree, documents=documents, **options)
    return Page((folder / "report.html").read_text(encoding="utf-8"))


@pytest.fixture
def labelled() -> tuple[list[ReportDocument], Scores]:
    rng = np.random.default_rng(3)
    truth = rng.choice(TREE.leaves, size=200)
    predicted = np.where(rng.random(200) < 0.7, truth, rng.choice(TREE.leaves, size=200))
    predicted[::20] = TREE.find(["science"])
    predicted[1::50] = 0
    return make_documents(TREE, truth, predicted), score(TREE, truth, predicted)


def test_a_scored_report_has_every_part(
    tmp_path: Path, labelled: tuple[list[ReportDocument], Scores]
) -> None:
    documents, scores = labelled
    page = render(
        tmp_path,
        TREE,
        documents,
        scores=scores,
        title="Papers",
        settings={"preset": "paper", "seed": "7"},
        timings={"joint space": 41.25},
    )
    assert list(page.sections) == [
        "scores",
        "tree",
        "confidence",
        "confusions",
        "documents",
        "categories",
        "settings",
    ]
    links = [a["href"] for tag, a in page.elements if tag == "a"]
    assert links == [f"#{key}" for key in page.sections]
    for f1 in (scores.leaf.micro, scores.leaf.macro, scores.overall.micro, scores.overall.macro):
        assert f"{f1:.3f}" in page.words("scores")
    assert "Documents scored 200" in page.words("scores")
    assert page.count("details") == len(TREE.inner) - 1
    assert page.count("svg") == 2
    assert "Papers" in page.words()
    assert "joint space 41.2 s" in page.words("settings")
    assert "preset paper" in page.words("settings")
    assert "Not assigned to any category: 4 of 200." in page.words("tree")
    physics = TREE.find(["science", "physics"])
    row = rf"science › physics\s+inner 2 {np.sum([d.path[1:2] == ('physics',) for d in documents])} "
    assert re.search(row, page.words("categories"))
    assert f"{scores.per_category.f1[physics]:.3f}" in page.words("categories")


def test_document_cards_say_right_or_wrong_in_words(
    tmp_path: Path, labelled: tuple[list[ReportDocument], Scores]
) -> None:
    documents, scores = labelled
    page = render(tmp_path, TREE, documents, scores=scores, examples=5)
    words = page.words("documents")
    assert page.count("article", "doc") == 15
    assert words.index("Most confident") < words.index("Least confident") < words.index("confident mistakes")
    assert "✓ right" in words
    assert page.count("span", "wrong") >= 5
    # doc1 was assigned nothing: confidence 0, so it is among the least sure, with its true path.
    assert "◐ stopped doc1 nothing assigned Truly" in words
    shown = re.findall(r"\bdoc\d+\b", words)
    ranked = [d.id for d in sorted(documents, key=lambda d: -d.certainty)]
    assert shown[:10] == ranked[:5] + ranked[:-6:-1]
    wrong = {d.id for d in documents if d.path != d.true_path[: len(d.path)]}
    assert shown[10:] == [i for i in ranked if i in wrong][:5]
    start = words.index(ranked[0])
    assert f"Text of document {ranked[0][3:]}." in words[start : start + 200]
    assert "authors" in words[start : start + 200]
    assert "tags" not in words, "metadata without values is left out"


def test_confusions_show_the_most_frequent_pair_first(tmp_path: Path) -> None:
    optics, sound, music, film = (TREE.nodes_by_name[n][0] for n in ("optics", "sound", "music", "film"))
    truth = [optics] * 5 + [music] * 3
    predicted = [sound, sound, sound, optics, optics, film, music, music]
    page = render(
        tmp_path, TREE, make_documents(TREE, truth, predicted), scores=score(TREE, truth, predicted)
    )
    words = page.words("confusions")
    assert "4 of 8 documents with a known category are in a wrong one" in words
    first = re.search(r"optics science › physics ›\s+sound 3\s+60%", words)
    second = re.search(r"music arts ›\s+film 1\s+33%", words)
    assert first
    assert second
    assert first.start() < second.start()


def test_no_wrong_document(tmp_path: Path) -> None:
    truth = list(TREE.leaves) * 2
    page = render(tmp_path, TREE, make_documents(TREE, truth, truth), scores=score(TREE, truth, truth))
    assert "No document with a known category was put in a wrong one." in page.words("confusions")
    assert page.words("documents").endswith("There is no such document.")
    assert "✗" not in page.words()


def test_without_labels_there_are_no_scores_and_no_verdicts(tmp_path: Path) -> None:
    predicted = list(TREE.leaves) * 3
    page = render(tmp_path, TREE, make_documents(TREE, predicted, predicted, known=False))
    assert list(page.sections) == ["overview", "tree", "documents", "categories"]
    assert page.count("span", "verdict") == 0
    assert "F1" not in page.words()
    assert "Reached a leaf 100%" in page.words("overview")


@pytest.mark.parametrize("n_documents", [0, 1, 2, 3])
def test_few_documents_are_each_shown_once(tmp_path: Path, n_documents: int) -> None:
    documents = make_documents(TREE, TREE.leaves[:n_documents], TREE.leaves[:n_documents], known=False)
    page = render(tmp_path, TREE, documents)
    assert page.count("article") == n_documents


def test_everything_from_outside_is_escaped(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>&amp;$title${x}"
    tree = Taxonomy.from_paths([(evil, evil + "a"), (evil, "b"), ("c",)])
    odd = "null \x00 bell \x07 half \ud800 \u202e turned"
    documents = [
        ReportDocument(
            evil, evil + odd, (evil, evil + "a"), (0.9, 0.8), (evil, "b"), {evil: [evil], "k": evil}
        ),
        ReportDocument(odd, "plain", (evil,), (0.4,), ("c",), {}),
    ]
    scores = score(tree, [tree.find([evil, "b"]), tree.find(["c"])], [tree.find([evil, evil + "a"]), 1])
    page = render(
        tmp_path, tree, documents, scores=scores, title=evil, settings={evil: evil}, timings={evil: 1.0}
    )
    assert page.count("script") == 1, "only our own"
    assert page.count("img") == 0
    assert page.html.count("alert(2)") == page.html.count("onerror=alert(2)&gt;") > 10
    assert evil in page.words("documents"), "and it reads as it was written"
    assert evil in page.words("settings")
    assert not re.search("[\x00-\x08\x0b-\x1f]", page.html)


@given(st.text(st.characters(exclude_categories=())))
def test_escaped_text_is_inert_and_can_be_written(text: str) -> None:
    safe = escape(text)
    safe.encode("utf-8")
    assert not set(safe) & set("<>\"'")
    parser = HTMLParser()
    parser.handle_starttag = pytest.fail  # type: ignore[method-assign, assignment]
    parser.feed(f"{safe} ")


def test_the_page_loads_nothing_and_forbids_it(
    tmp_path: Path, labelled: tuple[list[ReportDocument], Scores]
) -> None:
    documents, scores = labelled
    page = render(tmp_path, TREE, documents, scores=scores)
    assert not re.search(r"https?://|//[a-z]+\.|url\(|@import", page.html)
    for tag, attributes in page.elements:
        assert tag not in {"link", "img", "iframe", "object", "embed", "base"}
        assert not set(attributes) & {"src", "srcset", "data", "poster", "action"}
        assert not any(key.startswith("on") for key in attributes)
        assert attributes.get("href", "#").startswith("#")
    policy = next(a["content"] for tag, a in page.elements if a.get("http-equiv"))
    assert policy.startswith("default-src 'none'")
    script = page.html.split("<script>")[1].split("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy, "browsers would refuse our own script"


def test_ids_are_unique(tmp_path: Path, labelled: tuple[list[ReportDocument], Scores]) -> None:
    documents, scores = labelled
    ids = [a["id"] for _, a in render(tmp_path, TREE, documents, scores=scores).elements if "id" in a]
    assert len(ids) == len(set(ids))


def test_large_and_deep_trees(tmp_path: Path) -> None:
    def grow(prefix: str, depth: int) -> dict[str, object]:
        return {f"{prefix}{k}": grow(f"{prefix}{k}.", depth - 1) for k in "12"} if depth else {}

    tree = Taxonomy.from_children({f"{'long' * 60}{i}": grow("", 7) for i in range(4)})
    assert (len(tree) > 1000, tree.depth) == (True, 8)
    rng = np.random.default_rng(0)
    truth = rng.choice(tree.leaves, size=500)
    predicted = rng.choice(tree.leaves, size=500)
    page = render(
        tmp_path, tree, make_documents(tree, truth, predicted), scores=score(tree, truth, predicted)
    )
    assert page.count("details") == len(tree.inner) - 1
    assert not any("open" in a for tag, a in page.elements if tag == "details"), "a large tree starts folded"
    assert page.html.count("<tr>") > len(tree)


def test_the_same_input_gives_the_same_bytes(
    tmp_path: Path, labelled: tuple[list[ReportDocument], Scores]
) -> None:
    documents, scores = labelled
    first = render(tmp_path, TREE, documents, scores=scores).html
    assert render(tmp_path, TREE, documents, scores=scores).html == first


def test_a_path_outside_the_tree_and_foreign_scores_are_refused(
    tmp_path: Path, labelled: tuple[list[ReportDocument], Scores]
) -> None:
    scores = labelled[1]
    stray = ReportDocument("d9", "text", ("science", "alchemy"), (0.9, 0.9))
    with pytest.raises(UsageError, match="'d9': the path 'science/alchemy' is not in the tree"):
        write_report(tmp_path / "r.html", taxonomy=TREE, documents=[stray])
    other = Taxonomy.from_paths([("a",), ("b",)])
    with pytest.raises(UsageError, match="another tree"):
        write_report(tmp_path / "r.html", taxonomy=other, documents=[], scores=scores)
    with pytest.raises(UsageError, match="2 levels in its path but 1 confidences"):
        ReportDocument("d1", "text", ("science", "physics"), (0.9,))
    with pytest.raises(UsageError, match="not a number"):
        ReportDocument("d1", "text", ("science",), (float("nan"),))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_failed_write_keeps_the_old_report_and_leaves_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interrupted: bool
) -> None:
    target = tmp_path / "report.html"
    target.write_text("the old report")

    def fail(_: int) -> None:
        raise KeyboardInterrupt if interrupted else OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(KeyboardInterrupt if interrupted else OutputError) as caught:
        write_report(target, taxonomy=TREE, documents=[])
    if not interrupted:
        assert str(caught.value) == f"The report cannot be written to {target}: No space left on device."
    assert target.read_text() == "the old report"
    assert list(tmp_path.iterdir()) == [target]


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="it is a folder"):
        write_report(tmp_path, taxonomy=TREE, documents=[])
    with pytest.raises(OutputError, match="does not exist"):
        write_report(tmp_path / "missing" / "r.html", taxonomy=TREE, documents=[])
    with pytest.raises(OutputError, match=r"too long\.$"):
        write_report(tmp_path / ("n" * 300), taxonomy=TREE, documents=[])


def test_the_report_is_as_readable_as_other_new_files(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    write_report(tmp_path / "report.html", taxonomy=TREE, documents=[])
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("other", "report.html")}
    assert len(modes) == 1


def test_reliability_bins_hold_every_document() -> None:
    rng = np.random.default_rng(1)
    certainty = rng.random(500)
    right = rng.random(500) < certainty
    bins = reliability(np.append(certainty, [0.0, 1.0]), np.append(right, [False, True]))
    assert sum(group.documents for group in bins) == 502
    assert all(abs(group.confidence - group.right) < 0.25 for group in bins)


def test_risk_points_do_not_depend_on_the_order_of_equals() -> None:
    certainty = np.array([0.8, 0.8, 0.8, 0.3])
    curves = [risk_points(certainty, np.array(right, dtype=bool)) for right in ([1, 0, 0, 1], [0, 0, 1, 1])]
    assert curves[0] == curves[1]
    assert [point.threshold for point in curves[0]] == [0.8, 0.3]
    assert [point.coverage for point in curves[0]] == [0.75, 1.0]
    assert [point.risk for point in curves[0]] == pytest.approx([2 / 3, 0.5])
    assert [point.promised for point in curves[0]] == pytest.approx([0.2, 0.325])


def test_walks_that_stop_on_the_right_way_count_as_right_in_the_drawings(tmp_path: Path) -> None:
    optics, science, music = TREE.find(["science", "physics", "optics"]), 1, TREE.find(["arts", "music"])
    truth, predicted = [optics, optics, optics], [science, music, 0]
    page = render(
        tmp_path, TREE, make_documents(TREE, truth, predicted), scores=score(TREE, truth, predicted)
    )
    words = page.words("confidence")
    assert words.startswith("Confidence 2 documents with a known and an assigned category")
    assert "0.990 50% 100% 99% 0.690 100% 50% 84%" in words, "threshold, placed, right, promised"
    assert "Right at least Threshold Placed 80% 0.990 50% 90% 0.990 50%" in words
    assert words.endswith("1 2 50% 91% 0.420 2 1 0% 69% 0.690 3 0 – – –"), "music ends above the third level"


def test_documents_known_less_deep_than_they_were_placed_are_left_out_of_the_drawings(tmp_path: Path) -> None:
    optics, science, music = TREE.find(["science", "physics", "optics"]), 1, TREE.find(["arts", "music"])
    truth, predicted = [optics, science, science], [optics, optics, music]
    page = render(
        tmp_path, TREE, make_documents(TREE, truth, predicted), scores=score(TREE, truth, predicted)
    )
    words = page.words("confidence")
    assert words.startswith("Confidence 1 documents with a known and an assigned category")
    assert "Left out because their known path ends above the assigned one: 2." in words
    page = render(tmp_path, TREE, make_documents(TREE, [science], [optics]))
    assert page.words("confidence") == "Confidence No document with a known category was assigned one."


def test_a_precision_that_no_threshold_reaches(tmp_path: Path) -> None:
    truth, predicted = [TREE.leaves[0]] * 2, [TREE.leaves[1], TREE.leaves[0]]
    page = render(tmp_path, TREE, make_documents(TREE, truth, predicted))
    assert "80% out of reach – 90% out of reach –" in page.words("confidence")


@pytest.mark.parametrize("n_wrong", [0, 10, 30, 100])
def test_the_curve_of_errors_stays_in_its_frame(tmp_path: Path, n_wrong: int) -> None:
    first, second = TREE.leaves[:2]
    truth = [first] * 100
    predicted = [second] * n_wrong + [first] * (100 - n_wrong)
    page = render(tmp_path, TREE, make_documents(TREE, truth, predicted))
    lines = [a["points"] for tag, a in page.elements if tag == "polyline"]
    assert len(lines) == 3
    for line in lines:
        for point in line.split():
            across, down = map(float, point.split(","))
            assert 48 <= across <= 344
            assert 12 <= down <= 208


def test_shown_thresholds_hold_for_the_digits_shown(tmp_path: Path) -> None:
    first, second = TREE.leaves[:2]
    path, true = TREE.path(first), [TREE.path(first)] * 3 + [TREE.path(second)]
    sure = [0.70049, 0.70048, 0.70047, 0.70001]
    documents = [
        ReportDocument(f"d{i}", "text", path, [0.9] * (len(path) - 1) + [sure[i]], true[i]) for i in range(4)
    ]
    words = render(tmp_path, TREE, documents).words("confidence")
    # With 0.700 all four are placed, also the wrong one.
    assert "Promised 0.700 100% 75% 70% What a precision" in words
    assert "80% out of reach" in words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("short", "short"),
        ("two\n\n lines\t", "two lines"),
        ("twelve chars and more", "twelve chars …"),
        ("twelve charsand more", "twelve …"),
        ("x" * 30, "x" * 12 + " …"),
        ("   " * 40 + "late", "late"),
        ("early" + " " * 100 + "late", "early …"),
        ("", ""),
    ],
)
def test_snippets_end_between_words(text: str, expected: str) -> None:
    assert snippet(text, 12) == expected


def test_percentages_never_claim_all_or_none_wrongly() -> None:
    shares = [0.0, 0.0001, 0.005, 0.994, 0.9951, 0.99999, 1.0]
    assert [percent(s) for s in shares] == ["0%", "&lt;1%", "&lt;1%", "99%", "&gt;99%", "&gt;99%", "100%"]

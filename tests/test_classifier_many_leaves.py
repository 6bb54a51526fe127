"""Trees with very many leaves: what is held out, what stands together, and that placing still works."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from himecat import HiMeCat, predictor
from himecat.classifier import assignments
from himecat.classifier.cross_validation import plan_folds
from himecat.classifier.fit_memory import memory_of_fit
from himecat.classifier.linear import leaf_groups
from himecat.errors import DataError
from himecat.input.corpus import Supervision
from himecat.input.problems import Problems
from himecat.input.taxonomy.tree import Taxonomy
from himecat.methods import Default, Paper
from himecat.runtime.bounds import VARIABLE


def tree(*widths: int) -> Taxonomy:
    """All leaves equally deep, and all nodes of a level equally wide."""
    paths: list[tuple[str, ...]] = [()]
    for width in widths:
        paths = [(*path, f"{path[-1] if path else 'n'}.{child}") for path in paths for child in range(width)]
    return Taxonomy.from_paths(paths)


@pytest.mark.parametrize(
    ("widths", "count"), [((20, 20), 20), ((8, 8, 8), 50), ((40, 10), 40), ((4, 100), 4)]
)
def test_groups_are_every_leaf_once_and_below_one_node(widths: tuple[int, ...], count: int) -> None:
    given = tree(*widths)
    groups = leaf_groups(given)
    assert len(groups) == count
    assert sorted(np.concatenate(groups).tolist()) == list(range(given.n_leaves))
    for group in groups:
        lineages = [given.lineages[given.leaves[leaf]] for leaf in group]
        shared = set(lineages[0]).intersection(*lineages)
        assert any(len(given.leaves_under(node)) == len(group) for node in shared)


@pytest.mark.parametrize("widths", [(10, 10), (400,), (2, 200), (300, 1)])
def test_few_leaves_and_flat_trees_have_no_groups(widths: tuple[int, ...]) -> None:
    assert leaf_groups(tree(*widths)) == ()


def test_an_uneven_tree_is_cut_where_it_is_wide() -> None:
    paths = [("small", f"s{number}") for number in range(3)]
    paths += [("large", f"l{part}", f"l{part}.{number}") for part in range(20) for number in range(20)]
    groups = leaf_groups(Taxonomy.from_paths(paths))
    assert sorted(len(group) for group in groups) == [3, *[20] * 20]


def test_enough_held_out_documents_are_enough() -> None:
    few, many = tree(4, 5), tree(20, 20)
    for given, fold_sizes in ((few, [20] * 5), (many, [667])):
        supervision = Supervision(np.arange(5 * given.n_leaves), np.repeat(np.array(given.leaves), 5))
        found = plan_folds(given, supervision, 10_000, Default()).folds
        assert len(found) == len(fold_sizes)
        assert sum(map(len, found)) == pytest.approx(sum(fold_sizes), rel=0.1)


def test_the_prior_needs_a_few_documents_per_leaf() -> None:
    given = tree(4, 5)
    supervision = Supervision(np.arange(40), np.repeat(np.array(given.leaves), 2))

    def estimated(n_unlabelled: int, method: Default) -> bool:
        return plan_folds(given, supervision, 40 + n_unlabelled, method).estimates_prior

    assert [estimated(n, Default()) for n in (0, 99, 100)] == [False, False, True]
    assert not estimated(1000, Default(learn_prior=False))
    assert not estimated(1000, Default(calibrate=False))


def test_documents_of_very_many_categories_find_their_place() -> None:
    rng = np.random.default_rng(0)
    widths = (15, 15)
    paths = [(f"a{top}", f"a{top}b{leaf}") for top in range(widths[0]) for leaf in range(widths[1])]
    documents, truth = [], []
    for number in range(4 * len(paths)):
        top, leaf = divmod(number % len(paths), widths[1])
        words = [f"top{top}w{w}" for w in rng.integers(6, size=6)]
        words += [f"leaf{top}x{leaf}w{w}" for w in rng.integers(4, size=3)]
        words += [f"noise{w}" for w in rng.integers(300, size=8)]
        documents.append({"id": str(number), "text": " ".join(words)})
        truth.append(paths[number % len(paths)])
        if number < 2 * len(paths):
            documents[-1]["labels"] = list(truth[-1])  # type: ignore[assignment]
    model = HiMeCat(taxonomy=Taxonomy.from_paths(paths), method=Default(min_count=1))
    model.fit(documents)
    placed = model.predict(documents[2 * len(paths) :], as_tuples=True)
    right = np.mean([path == wanted for path, wanted in zip(placed, truth[2 * len(paths) :], strict=True)])
    assert right > 0.8


def few_documents() -> list[dict[str, str]]:
    words = ["fox wolf den", "car wheel road", "song choir tune"]
    return [{"text": f"{words[i % 3]} {words[i % 3]} n{i % 5}", "labels": f"n.{i % 3}"} for i in range(30)]


_FIT = """
import sys
from himecat import Default, HiMeCat, Taxonomy
kind, count = sys.argv[1], int(sys.argv[2])
paths = {
    "wide": [(f"g{i // 100}", f"leaf {i}") for i in range(count)],
    "flat": [("top", f"leaf {i}") for i in range(count)] + [("other",)],
    "deep": [(*(f"n{level}.{i}" for level in range(count // 500 - 1)), f"leaf {i}") for i in range(500)],
}[kind]
words = ["fox wolf den", "car wheel road", "song choir tune"]
documents = [
    {"text": f"{words[i % 3]} {words[i % 3]} n{i % 5}", "labels": list(paths[(i * 37) % len(paths)])} for i in range(30)
]
model = HiMeCat(
    taxonomy=Taxonomy.from_paths(paths), method=Default(min_count=1, dimension=20), allow_empty_leaves=True, threads=1
)
placed = model.fit(documents).assign(documents)
assert len(model.explain(documents[0]["labels"]).words) > 0
assert len(model.explain(documents=documents[:2])) == 2
assert len(model.synthesize(documents[0]["labels"], 1)) == 1
# What getrusage says counts the process that started this one.
(peak,) = (line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:"))
print(len(placed), int(peak) // 1024)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak is in /proc")
@pytest.mark.parametrize(
    ("kind", "count", "megabytes"),
    [
        ("wide", 20_000, 600),
        ("flat", 20_000, 600),
        ("deep", 20_000, 600),
        *(pytest.param(kind, 100_000, 2000, marks=pytest.mark.slow) for kind in ("wide", "flat", "deep")),
    ],
)
def test_very_many_leaves_fit_in_little_memory(kind: str, count: int, megabytes: int) -> None:
    """A matrix of leaves x leaves would take 1.6 GB for 20,000 of them."""
    done = subprocess.run(
        [sys.executable, "-c", _FIT, kind, str(count)],
        capture_output=True,
        text=True,
        env=os.environ,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    documents, used = map(int, done.stdout.split())
    assert documents == 30
    assert used < megabytes


def test_a_fit_beyond_the_memory_is_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "memory=1MB")
    model = HiMeCat(taxonomy=tree(3), method=Default(min_count=1), threads=1)
    model.fit(few_documents())
    wide = HiMeCat(taxonomy=tree(3000), method=Default(min_count=1), allow_empty_leaves=True, threads=1)
    with pytest.raises(DataError) as caught:
        wide.fit(few_documents())
    said = str(caught.value)
    assert said.startswith(
        "30 documents x 3,000 leaves, with 14 different words and metadata values, need about "
    )
    assert "the bound is 1 MB (himecat.set_bounds(memory=" in said
    paper = Paper(min_count=1, samples=1, beta=50_000)
    with pytest.raises(
        DataError, match=r"50,000 synthetic documents of 7 words for each of 3 leaves need about"
    ):
        HiMeCat(taxonomy=tree(3), method=paper, threads=1).fit(few_documents())
    monkeypatch.setenv(VARIABLE, "memory=1GB")
    wide.fit(few_documents())


def test_memory_grows_with_documents_leaves_words_and_threads() -> None:
    sizes = {"dimension": 300, "n_features": 1000, "threads": 2, "n_fits": 4}
    base = memory_of_fit(1000, 100, 500, **sizes)
    assert memory_of_fit(2000, 100, 500, **sizes) > base
    assert memory_of_fit(1000, 100, 1000, **sizes) == 2 * base
    assert memory_of_fit(1000, 100, 500, **{**sizes, "threads": 4}) > base
    assert memory_of_fit(1000, 100, 500, **{**sizes, "n_features": 2000}) > base


def test_smaller_batches_place_documents_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    documents = few_documents()
    model = HiMeCat(taxonomy=tree(3), method=Default(min_count=1), threads=1).fit(documents)
    whole = model.assign(documents)
    seen: list[int] = []

    def few_at_once(n_columns: int, most: int = 1 << 20, values: int = 0) -> int:
        seen.append(values)
        return 7

    monkeypatch.setattr(predictor, "rows_at_once", few_at_once)
    monkeypatch.setattr(assignments, "rows_at_once", lambda *_, **__: 4)
    parts = [placed for _, _, placed in model.iter_assignments(documents, Problems())]
    assert [len(part) for part in parts] == [7, 7, 7, 7, 2]
    assert seen == [1 << 25]
    assert np.concatenate([part.nodes for part in parts]).tolist() == whole.nodes.tolist()
    assert np.concatenate([part.rounded for part in parts]) == pytest.approx(whole.rounded, abs=2e-6)
    assert (
        assignments.assign(model.taxonomy_, model.predict_proba(documents)).nodes.tolist()
        == whole.nodes.tolist()
    )

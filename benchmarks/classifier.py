"""Speed of the Kim-CNN against the same network built from `nn.Embedding` and `nn.Conv1d`.

    python benchmarks/classifier.py --json classifier.json
    python benchmarks/classifier.py --short        # only whether both agree, on the sample corpus

The work is that of `preset="paper"` on `arxiv`: one network per inner node, trained for one epoch on synthetic and
labelled documents, then the probabilities of all documents at all nodes. Only the word vectors are trained more
briefly than the preset does. Each side of each measurement runs in a process of its own, the sides in turn. The
textbook network may choose what suits it better: the two threads inside each operation, or one node on each.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from himecat.compare.protocol.worker import peak_mb
from himecat.input.builder import load_corpus
from himecat.input.corpus import Corpus, Ragged, Supervision
from himecat.input.dataset import draw, open_dataset, true_nodes
from himecat.input.documents import Fields
from himecat.input.taxonomy.tree import Taxonomy
from himecat.methods import Paper
from himecat.paper.flat_classifier import TrainingSet
from himecat.paper.kimcnn import Batches, KimCNN, KimNetwork, Weights
from himecat.paper.pairs import relate
from himecat.paper.sampled_space import learn_vectors, space_from
from himecat.paper.synthesis import synthesize
from himecat.paper.topdown import TopDownWalk, training_set
from himecat.runtime.softmax import softmax
from himecat.runtime.threads import run_parallel
from himecat.sample import METADATA, sample_documents, sample_split, sample_taxonomy

DATA = Path(__file__).resolve().parents[1] / ".." / "shared" / "data"
PAPER = Paper()
# The textbook form of the network is kept with the tests.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
THREADS = 2
SAMPLES = 20_000_000
Figures = dict[str, Any]


@dataclass(frozen=True)
class Work:
    """What both sides train on and place."""

    taxonomy: Taxonomy
    words: npt.NDArray[np.float32]
    documents: Ragged
    training: dict[int, TrainingSet]


def prepare(corpus: Corpus, taxonomy: Taxonomy, labelled: Supervision, samples: int, beta: int) -> Work:
    """Training sets for all nodes, as the paper's preset makes them."""
    relations = relate(corpus, taxonomy, labelled, hierarchy=True, metadata=list(corpus.metadata))
    trained = learn_vectors(
        relations,
        replace(PAPER, samples=samples),
        seed=0,
        threads=THREADS,
    )
    space = space_from(trained, relations, corpus, taxonomy)
    synthetic = synthesize(
        taxonomy,
        space.labels,
        space.words,
        beta=beta,
        length=round(corpus.tokens.lengths.mean()),
        concentration=PAPER.concentration,
        neighbours=PAPER.neighbours or 50,
        threads=THREADS,
    )
    real = corpus.tokens.take(labelled.rows)
    # The largest first, as in `fit_top_down`.
    nodes = sorted((node for node in taxonomy.inner if len(taxonomy.children[node]) > 1),
                   key=lambda node: -len(taxonomy.children[node]))  # fmt: skip
    sets = {node: training_set(taxonomy, node, real, labelled, synthetic, PAPER.real_share) for node in nodes}
    return Work(taxonomy, space.words, corpus.tokens, sets)


def arxiv(data: Path) -> Work:
    dataset = open_dataset(data / "arxiv")
    loaded = load_corpus(dataset.documents, Fields(metadata=dataset.metadata), min_count=PAPER.min_count)
    labelled = draw(dataset, true_nodes(dataset, loaded), 0)
    return prepare(loaded.corpus, dataset.taxonomy, labelled, SAMPLES, PAPER.beta)


def sample() -> Work:
    documents, taxonomy = sample_documents()[:400], sample_taxonomy()
    loaded = load_corpus(documents, Fields(metadata=METADATA), min_count=2)
    shown = [(row, path) for row, path in enumerate(sample_split(documents)) if path is not None]
    labelled = Supervision(
        np.array([row for row, _ in shown]), np.array([taxonomy.find(path) for _, path in shown])
    )
    return prepare(loaded.corpus, taxonomy, labelled, 200_000, 30)


# -- the two sides -------------------------------------------------------------------------------------


def new_network(work: Work, node: int) -> KimNetwork:
    n_classes = work.training[node].n_classes
    rng = np.random.default_rng(node)
    return KimNetwork(
        work.words.shape[1], n_classes, PAPER.filter_widths, PAPER.filter_maps, PAPER.hidden, rng
    )


def train_ours(work: Work, threads: int = THREADS) -> list[KimCNN]:
    def job(node: int) -> Callable[[], KimCNN]:
        def fit() -> KimCNN:
            cnn = KimCNN(epochs=1, batch_size=PAPER.batch_size)
            cnn.fit(work.training[node], work.words, seed=node)
            return cnn

        return fit

    return run_parallel([job(node) for node in work.training], threads)


def place_ours(work: Work) -> npt.NDArray[np.float32]:
    classifiers = {}
    for node, training in work.training.items():
        classifiers[node] = KimCNN()
        classifiers[node].n_classes = training.n_classes
        classifiers[node].network = new_network(work, node)
    walk = TopDownWalk(work.taxonomy, classifiers)
    return walk.leaf_probabilities(work.documents, work.words, threads=THREADS)


def plain_side(work: Work, task: Callable[[Work, int], Any], together: bool) -> None:
    """Run a task at every node: two nodes at a time, or two threads inside every operation."""
    import torch

    torch.set_num_threads(1 if together else THREADS)
    if together:
        run_parallel([lambda node=node: task(work, node) for node in work.training], THREADS)  # type: ignore[misc]
    else:
        for node in work.training:
            task(work, node)


def train_plain(work: Work, node: int, most: int | None = None) -> list[float]:
    """One epoch, or only the first steps of it; gives the losses."""
    import torch

    from oracles.kimcnn import plain_copy

    training, rng = work.training[node], np.random.default_rng(node)
    network = plain_copy(new_network(work, node), torch.from_numpy(work.words))
    learned = [weight for weight in network.parameters() if weight.requires_grad]
    optimiser = torch.optim.SGD(learned, lr=PAPER.learning_rate, momentum=PAPER.momentum)
    order = rng.permutation(len(training))
    losses = []
    for start in range(0, len(order), PAPER.batch_size)[:most]:
        chosen = order[start : start + PAPER.batch_size]
        batch = training.documents.take(chosen)
        targets = torch.from_numpy(training.targets[chosen])
        loss = torch.nn.functional.cross_entropy(network(batch.values, batch.offsets), targets)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    return losses


def place_plain(work: Work, node: int) -> npt.NDArray[np.float32]:
    import torch

    from oracles.kimcnn import plain_copy

    network = plain_copy(new_network(work, node), torch.from_numpy(work.words))
    found = []
    with torch.inference_mode():
        for start in range(0, len(work.documents), PAPER.batch_size):
            rows = np.arange(start, min(start + PAPER.batch_size, len(work.documents)))
            batch = work.documents.take(rows)
            found.append(torch.softmax(network(batch.values, batch.offsets), dim=1).numpy())
    return np.concatenate(found)


# -- whether they agree --------------------------------------------------------------------------------


def ties(responses: list[Any], lengths: npt.NDArray[np.int64], positions: npt.NDArray[np.int32]) -> int:
    """Count the maxima that rounding decides: two windows respond alike, and each network takes another one."""
    import torch

    own = torch.from_numpy(positions.astype(np.int64)).clamp(min=0).split(PAPER.filter_maps, dim=1)
    count = 0
    for width, at, response in zip(PAPER.filter_widths, own, responses, strict=True):
        last = torch.from_numpy(np.maximum(lengths - width, 0))
        outside = torch.arange(response.shape[2])[None, :] > last[:, None]
        largest, taken = response.masked_fill(outside[:, None, :], -torch.inf).max(dim=2)
        alike = largest - response.gather(2, at[:, :, None])[:, :, 0] < 1e-6
        count += int(((taken != at) & alike).sum())
    return count


def agree(work: Work, steps: int = 8) -> Figures:
    """Largest differences of losses, gradients and probabilities; raises where they are more than rounding.

    Where rounding decides which of two windows is the maximum, the gradient goes to other words. This happens
    about once in a million maxima; gradients are compared in the batches without it.
    """
    import torch

    from oracles.kimcnn import filters_by_width, plain_copy

    torch.set_num_threads(1)
    far = {"loss": 0.0, "gradient": 0.0, "probability": 0.0}
    compared, tied = 0, 0
    for node, training in work.training.items():
        network = new_network(work, node)
        gradient, velocity = Weights(*network.weights.sizes), np.zeros_like(network.weights.vector)
        batch_of = Batches(training.documents, work.words, network, PAPER.batch_size)
        order = np.random.default_rng(node).permutation(len(training))
        expected = train_plain(work, node, steps)
        for step, loss in enumerate(expected):
            chosen = order[step * PAPER.batch_size : (step + 1) * PAPER.batch_size]
            targets = training.targets[chosen]
            plain = plain_copy(network, torch.from_numpy(work.words))
            responses: list[Any] = []
            for convolution in plain.convolutions:
                convolution.register_forward_hook(
                    lambda _, __, out, kept=responses: kept.append(out.detach())
                )
            seen = network.forward(batch_of(chosen))
            slope = softmax(seen.scores)
            own = -np.log(slope[np.arange(len(chosen)), targets]).mean()
            far["loss"] = max(far["loss"], abs(float(own) - loss))
            slope[np.arange(len(chosen)), targets] -= 1.0
            slope /= len(chosen)
            network.backward(seen, slope, gradient)
            batch = training.documents.take(chosen)
            torch.nn.functional.cross_entropy(
                plain(batch.values, batch.offsets), torch.from_numpy(targets)
            ).backward()
            by_width = filters_by_width(
                torch.from_numpy(gradient.filters), PAPER.filter_widths, PAPER.filter_maps
            )
            compared += 1
            if ties(responses, batch.lengths, seen.positions):
                tied += 1
            else:
                for found, convolution in zip(by_width.values(), plain.convolutions, strict=True):
                    wanted = convolution.weight.grad
                    assert isinstance(wanted, torch.Tensor)
                    apart = float((found - wanted).abs().max() / wanted.abs().max())
                    far["gradient"] = max(far["gradient"], apart)
            velocity = PAPER.momentum * velocity + gradient.vector
            network.weights.vector -= PAPER.learning_rate * velocity
        few = Work(work.taxonomy, work.words, work.documents.take(np.arange(min(1024, len(work.documents)))),
                   {node: training})  # fmt: skip
        cnn = KimCNN()
        cnn.network, cnn.n_classes = new_network(work, node), training.n_classes
        # Documents without words are given equal probabilities by rule, not by the network.
        known = few.documents.lengths > 0
        apart_by = cnn.predict_proba(few.documents, few.words)[known] - place_plain(few, node)[known]
        far["probability"] = max(far["probability"], float(np.abs(apart_by).max()))
    if far["loss"] > 1e-5 or far["gradient"] > 1e-5 or far["probability"] > 1e-5 or tied > compared / 4:
        raise AssertionError(f"The two networks differ by more than rounding: {far}.")
    one, two = (
        [cnn.state()[1]["filters"].tobytes() for cnn in train_ours(work, threads)] for threads in (1, 2)
    )
    if one != two:
        raise AssertionError("One thread and two gave different weights.")
    return far


# -- measuring -----------------------------------------------------------------------------------------

SIDES: dict[str, dict[str, Callable[[Work], Any]]] = {
    "training": {
        "ours": train_ours,
        "plain, threads inside": lambda work: plain_side(work, train_plain, together=False),
        "plain, a node per thread": lambda work: plain_side(work, train_plain, together=True),
    },
    "inference": {
        "ours": place_ours,
        "plain, threads inside": lambda work: plain_side(work, place_plain, together=False),
        "plain, a node per thread": lambda work: plain_side(work, place_plain, together=True),
    },
}


def measure(work: Work, task: str, side: str) -> dict[str, float]:
    """Time one side of one task in this process; what is compiled or imported first is not counted."""
    tiny = {node: TrainingSet(one.documents.take([0, 1]), one.targets[:2], one.n_classes)
            for node, one in work.training.items()}  # fmt: skip
    run_side = SIDES[task][side]
    run_side(Work(work.taxonomy, work.words, work.documents.take([0, 1]), tiny))
    wall, cpu = time.perf_counter(), time.process_time()
    run_side(work)
    return {
        "cpu_seconds": time.process_time() - cpu,
        "wall_seconds": time.perf_counter() - wall,
        "peak_rss_mb": peak_mb(),
    }


def alone(task: Callable[..., Any], *arguments: Any) -> Any:
    """Run a task in a process of its own, so that its memory and CPU time are its own too."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(task, *arguments).result()


def run(short: bool, data: Path = DATA, repeats: int = 3) -> Figures:
    """Measure, or with `short` only compare. Ratios are those of the medians, to the faster plain form."""
    work = alone(sample) if short else alone(arxiv, data)
    figures: Figures = {
        "corpus": "sample" if short else "arxiv",
        "words": len(work.words),
        "documents": len(work.documents),
        "nodes": len(work.training),
        "training_documents": sum(len(one) for one in work.training.values()),
        "largest_difference": alone(agree, work),
    }
    for task, sides in {} if short else SIDES.items():
        runs: dict[str, list[dict[str, float]]] = {side: [] for side in sides}
        for _ in range(repeats):
            for side, done in runs.items():
                done.append(alone(measure, work, task, side))
        found: dict[str, Figures] = {
            side: {name: statistics.median(one[name] for one in done) for name in done[0]}
            for side, done in runs.items()
        }
        ours, plain = found["ours"], [one for side, one in found.items() if side != "ours"]
        ratios = {
            f"{name}_ratio": min(one[name] for one in plain) / ours[name]
            for name in ("cpu_seconds", "wall_seconds", "peak_rss_mb")
        }
        figures[task] = {"sides": found, **ratios}
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--short", action="store_true", help="compare the outputs only, on the sample corpus")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the dataset folders")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the figures here")
    given = parser.parse_args()
    figures = run(given.short, given.data, given.repeats)
    apart = ", ".join(f"{name} {value:.1e}" for name, value in figures["largest_difference"].items())
    print(
        f"{figures['corpus']}: {figures['documents']} documents, {figures['words']} words, {figures['nodes']} nodes"
    )
    print(f"largest differences between the two networks: {apart}")
    for task in (task for task in SIDES if task in figures):
        print(f"\n{task}, 2 cores{'':<14} CPU-seconds    wall    peak RSS")
        for side, one in figures[task]["sides"].items():
            print(
                f"  {side:<28} {one['cpu_seconds']:8.2f} s {one['wall_seconds']:7.2f} s {one['peak_rss_mb']:7.0f} MB"
            )
        ratios = [figures[task][f"{name}_seconds_ratio"] for name in ("cpu", "wall")]
        print(f"  plain / ours: {ratios[0]:.1f} x in CPU-seconds, {ratios[1]:.1f} x in wall time")
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()

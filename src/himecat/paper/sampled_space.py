"""Joint representation learning (section 3.2): one unit vector per label, metadata value, document and word.

J_L (Eq. 14) and J_MC (Eq. 18) are maximised together (Eq. 19) by steps along the Riemannian gradient (Eqs. 20 to 22).

Documents are shuffled into blocks small enough for the cache and dealt to a fixed number of shards. A shard
trains its blocks on its own copy of the anchors (labels, metadata values, words); after each round the
changes of all copies are added up. Threads only decide how many shards run at once, so the result depends on
the seed alone. The labelled documents form a block of their own: a label then sees all its documents in every
round, instead of being pulled to whichever one the current block holds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from himecat.classifier.protocol import Round
from himecat.input.corpus import Corpus
from himecat.input.taxonomy.tree import Taxonomy
from himecat.methods import Paper
from himecat.paper.pairs import Relations
from himecat.runtime.threads import Stopped, run_parallel, stop_requested
from himecat.views.space import JointSpace

FloatArray = npt.NDArray[np.float32]

# Rows are padded to a multiple of this many floats, so that every row starts on a SIMD boundary.
LANE = 8
# A kernel call handles at most this many steps; Ctrl-C is seen between calls.
_STEPS_PER_CALL = 100_000
# A round makes at least this many steps, in several passes over a small corpus: setting a round up takes time.
_STEPS_PER_ROUND = 5_000
# ... but passes are not gathered into fewer rounds than this: blocks should take turns.
_FEWEST_ROUNDS = 20
# Fewer labelled documents than this are joined by unlabelled ones: a block needs documents to tell apart.
_FEWEST = 8
# Entries of the table that negatives are drawn from, degree^0.75 of them per document.
_TABLE = 1 << 14

# Fewer numbers than this are merged before threads would have started.
_WORTH_THREADS = 1 << 20

# Streams of randomness, one per purpose.
_START, _SHUFFLE, _STEPS = 1, 2, 3


@dataclass(frozen=True)
class Trained:
    """The vectors of all anchors and documents, and the course of the training.

    Examples
    --------
    >>> Trained(np.eye(2, dtype=np.float32), np.eye(2, dtype=np.float32)).rounds
    []
    """

    anchors: FloatArray
    documents: FloatArray
    rounds: list[Round] = field(default_factory=list)


def _random_unit(n: int, p: int, rng: np.random.Generator) -> FloatArray:
    """Uniform directions, padded with zeros to whole lanes."""
    rows = np.zeros((n, -(-p // LANE) * LANE), dtype=np.float32)
    rows[:, :p] = rng.standard_normal((n, p), dtype=np.float32)
    return _normalise(rows)


def _normalise(rows: FloatArray) -> FloatArray:
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.float32(1e-12))
    return rows


class _Block:
    """A few documents with their pairs, renumbered from 0."""

    def __init__(
        self, rows: npt.NDArray[np.int64], relations: Relations, degrees: npt.NDArray[np.float64]
    ) -> None:
        parts = [pairs.take(rows) for pairs in relations.pairs]
        self.rows = rows
        self.anchors = np.concatenate([part.values for part in parts])
        self.documents = np.concatenate([part.row_of_value for part in parts])
        self.starts = np.cumsum([0, *(len(part.values) for part in parts)])
        self.n_words = len(parts[-1].values)
        shares = np.cumsum(degrees[rows])
        ticks = (np.arange(_TABLE) + 0.5) / _TABLE * shares[-1]
        self.negatives = np.searchsorted(shares, ticks).astype(np.int32)
        self.relations = relations

    def train(
        self,
        anchors: FloatArray,
        vectors: FloatArray,
        method: Paper,
        n_passes: int,
        rates: npt.NDArray[np.float64],
        seeds: np.random.SeedSequence,
        totals: npt.NDArray[np.float64],
        advance: Callable[[int], None] | None,
    ) -> None:
        """Run the kernel in portions short enough to be interrupted; the step size falls between two `rates`."""
        # Imported here: placing documents does not need the compiler, which takes long to import.
        from himecat.kernels.sampled_space import train_block

        relations, has_labels = self.relations, self.starts[1] > 0
        gamma = {"word": method.margin_words, "hierarchy": method.margin_hierarchy}
        kinds = [*relations.names, "hierarchy"]
        margins = np.array([gamma.get(kind, method.margin_metadata) for kind in kinds], dtype=np.float32)
        n_steps = self.n_words * n_passes
        portions = -(-n_steps // _STEPS_PER_CALL)
        drop = (rates[0] - rates[1]) / max(1, n_steps)
        states = seeds.generate_state(max(1, portions), np.uint64)
        for portion in range(portions):
            if stop_requested():
                raise Stopped
            done = portion * _STEPS_PER_CALL
            steps = min(_STEPS_PER_CALL, n_steps - done)
            train_block(
                anchors, vectors, self.anchors, self.documents, self.starts, relations.children,
                relations.parents, relations.n_labels, has_labels, self.negatives, margins, method.negatives,
                rates[0] - drop * done, drop, steps, states[portion], method.scaled_steps, totals,
            )  # fmt: skip
            if advance is not None:
                advance(steps)


def _deal(
    relations: Relations, block_documents: int, n_shards: int, rng: np.random.Generator
) -> list[list[npt.NDArray[np.int64]]]:
    """Shuffle the documents into blocks and deal them to shards; the labelled ones come first, together."""
    order = rng.permutation(relations.n_documents)
    is_labelled = relations.pairs[0].lengths[order] > 0
    labelled, rest = order[is_labelled], order[~is_labelled]
    joining = _joining(len(labelled), len(rest))
    labelled, rest = np.concatenate([labelled, rest[:joining]]), rest[joining:]
    wanted = max(1, round(len(rest) / block_documents))
    n_blocks = min(-(-wanted // n_shards) * n_shards, max(1, len(rest) // 2))
    blocks = [block for block in np.array_split(rest, n_blocks) if len(block)]
    # Sorted rows are read from memory in order.
    shards = [[np.sort(block) for block in blocks[shard::n_shards]] for shard in range(n_shards)]
    if len(labelled):
        shards[0].insert(0, np.sort(labelled))
    return shards


def _joining(n_labelled: int, n_rest: int) -> int:
    """How many unlabelled documents are trained with the labelled ones, so that none is alone in its block."""
    if n_labelled == 0:
        return 0
    joining = min(max(0, _FEWEST - n_labelled), n_rest)
    return n_rest if n_rest - joining < 2 else joining


def pairs_per_pass(relations: Relations) -> int:
    """Positive pairs drawn in one pass over the words.

    Every step draws a word and a value of each metadata type, so that values are seen as often as words. Labels and
    the hierarchy take part in the steps of the labelled documents' block alone, a small share of all.
    """
    words = relations.pairs[-1]
    is_labelled = relations.pairs[0].lengths > 0
    n_labelled = int(is_labelled.sum())
    n_rest = len(is_labelled) - n_labelled
    with_labels = int(words.lengths[is_labelled].sum())
    with_labels += round((len(words.values) - with_labels) * _joining(n_labelled, n_rest) / max(1, n_rest))
    metadata = sum(1 for pairs in relations.pairs[1:-1] if len(pairs.values))
    return len(words.values) * (1 + metadata) + with_labels * (1 + bool(len(relations.children)))


def default_samples(relations: Relations) -> int:
    """Pairs to draw when nothing is said: 50 passes over the words, at most 400 million pairs.

    A small corpus gets 30 million, unless these are more than 2,000 passes.
    """
    drawn = pairs_per_pass(relations)
    return max(1, min(max(50 * drawn, 30_000_000), 2_000 * drawn, 400_000_000))


def count_passes(relations: Relations, samples: int | None) -> int:
    """Number of passes over the words that draws about `samples` pairs."""
    wanted = default_samples(relations) if samples is None else samples
    drawn = pairs_per_pass(relations)
    return max(1, round(wanted / drawn)) if drawn else 1


def _passes_before(n_passes: int, n_words: int) -> npt.NDArray[np.int64]:
    """How many passes are done before each round, and after the last one."""
    per_round = min(-(-_STEPS_PER_ROUND // max(1, n_words)), n_passes // _FEWEST_ROUNDS)
    n_rounds = -(-n_passes // max(1, per_round))
    return np.arange(n_rounds + 1) * n_passes // n_rounds


def count_steps(relations: Relations, samples: int | None) -> int:
    """Number of steps, one per word occurrence and pass."""
    return count_passes(relations, samples) * len(relations.pairs[-1].values)


def learn_vectors(
    relations: Relations,
    method: Paper,
    *,
    shards: int = 4,
    block_documents: int = 1500,
    seed: int = 0,
    threads: int = 1,
    advance: Callable[[int], None] | None = None,
    report: Callable[[Round], None] | None = None,
) -> Trained:
    """Maximise the margin objective J = J_L + J_MC by Riemannian gradient steps.

    Parameters
    ----------
    relations : Relations
        The pairs to learn from.
    method : Paper
        Its hyperparameters of joint representation learning. `samples` is rounded to whole passes over the words;
        the step size `rate` falls linearly to a ten-thousandth.
    shards, block_documents : int
        How the work is cut; both change the result, unlike `threads`.
    seed, threads : int
        Source of randomness; shards run at once.
    advance : callable, optional
        Called from the worker threads with the number of steps done since the last call; they add up to
        what :func:`count_steps` says.
    report : callable, optional
        Called with each round when it ends.

    Examples
    --------
    >>> from himecat import Taxonomy, read_corpus
    >>> from himecat.input.corpus import Supervision
    >>> from himecat.paper.pairs import relate
    >>> corpus = read_corpus([{"text": "red fox"}, {"text": "blue car"}])
    >>> tree = Taxonomy.from_paths([("animals",), ("things",)])
    >>> pairs = relate(corpus, tree, Supervision(np.array([0, 1]), np.array([1, 2])))
    >>> found = learn_vectors(pairs, Paper(dimension=8, samples=5000))
    >>> fox = found.anchors[pairs.anchor_start["word"] + corpus.words.index["fox"]]
    >>> bool(fox @ found.documents[0] > fox @ found.documents[1])
    True
    """
    passes = _passes_before(count_passes(relations, method.samples), len(relations.pairs[-1].values))
    n_shards = int(np.clip(relations.n_documents // 256, 1, shards))
    rng = np.random.default_rng([seed, _START])
    anchors = _random_unit(relations.n_anchors, method.dimension, rng)
    documents = _random_unit(relations.n_documents, method.dimension, rng)
    degrees = np.maximum(1, sum(pairs.lengths for pairs in relations.pairs)).astype(np.float64) ** 0.75
    copies = np.empty((n_shards, *anchors.shape), np.float32) if n_shards > 1 else anchors[None]

    def train_shard(shard: int, blocks: list[npt.NDArray[np.int64]], number: int) -> npt.NDArray[np.float64]:
        own = copies[shard]
        if n_shards > 1:
            own[:] = anchors
        totals = np.zeros((len(relations.names) + 1, 2))
        first, last = method.rate * (1.0 - (1.0 - 1e-4) * passes[number : number + 2] / passes[-1])
        rates = np.linspace(first, last, len(blocks) + 1)
        for turn, rows in enumerate(blocks):
            block = _Block(rows, relations, degrees)
            vectors = _normalise(documents[rows])
            seeds = np.random.SeedSequence([seed, _STEPS, number, shard, turn])
            n_passes = int(passes[number + 1] - passes[number])
            block.train(own, vectors, method, n_passes, rates[turn : turn + 2], seeds, totals, advance)
            documents[rows] = vectors
        return totals

    rounds: list[Round] = []
    for number in range(len(passes) - 1):
        began = time.perf_counter()
        dealt = _deal(relations, block_documents, n_shards, np.random.default_rng([seed, _SHUFFLE, number]))
        jobs = [partial(train_shard, shard, blocks, number) for shard, blocks in enumerate(dealt)]
        totals = np.sum(run_parallel(jobs, threads), axis=0)
        if n_shards > 1:
            _merge(anchors, copies, threads)
        names = (*relations.names, "hierarchy")
        objective = {
            name: float(total / drawn) for name, (total, drawn) in zip(names, totals, strict=True) if drawn
        }
        rounds.append(Round(int(totals[:, 1].sum()), objective, time.perf_counter() - began))
        if report is not None:
            report(rounds[-1])
    _normalise(documents)
    return Trained(
        np.ascontiguousarray(_normalise(anchors)[:, : method.dimension]),
        np.ascontiguousarray(documents[:, : method.dimension]),
        rounds,
    )


def _merge(anchors: FloatArray, copies: FloatArray, threads: int) -> None:
    """Add up what the shards changed, as if their steps had been taken one after the other."""
    from himecat.kernels.sampled_space import merge_rows

    n_parts = len(copies) if anchors.size > _WORTH_THREADS else 1
    bounds = np.linspace(0, len(anchors), n_parts + 1).astype(np.int64).tolist()
    jobs = [partial(merge_rows, anchors, copies, first, last) for first, last in pairwise(bounds)]
    if n_parts == 1:
        jobs[0]()
    else:
        run_parallel(jobs, threads)


def space_from(trained: Trained, relations: Relations, corpus: Corpus, taxonomy: Taxonomy) -> JointSpace:
    """Give the trained vectors their names."""
    starts = relations.anchor_start
    used = [name.removeprefix("metadata:") for name in relations.names if name.startswith("metadata:")]
    columns = {kind: corpus.metadata[kind].vocabulary for kind in used}

    def part(name: str, count: int) -> FloatArray:
        return np.ascontiguousarray(trained.anchors[starts[name] : starts[name] + count])

    return JointSpace(
        taxonomy=taxonomy,
        labels=part("label", len(taxonomy)),
        words=part("word", len(corpus.words)),
        documents=trained.documents,
        metadata={kind: part(f"metadata:{kind}", len(names)) for kind, names in columns.items()},
        vocabulary=corpus.words,
        values=columns,
    )

"""HiGitClass: a heterogeneous network of words and metadata, enriched keywords, topic-based pseudo documents."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from himecat.compare.systems._higit_documents import disjoint, pseudo_documents
from himecat.compare.systems._higit_network import star_network
from himecat.compare.systems._hin import default_samples, embed_network, own_seed
from himecat.compare.systems._topics import keywords_of_leaves
from himecat.compare.systems.system import NodeArray, System, Task, parameter, with_metadata_words
from himecat.input.corpus import Supervision
from himecat.paper.kimcnn import KimCNN
from himecat.paper.topdown import fit_top_down

# Streams of randomness, one per step.
_SPACE, _DOCUMENTS, _CLASSIFIER = 1, 2, 3


@dataclass(frozen=True)
class HiGitClass(System):
    """HiGitClass (Zhang et al., ICDM 2019), with keywords from the labelled documents.

    Attributes
    ----------
    keywords : int
        Words with the largest TF-IDF in a leaf's labelled documents that it begins with, at most.
    dimension, negatives, rate
        Of the embedding: length of the vectors, negatives per pair, first step size.
    samples : int, optional
        Pairs of nodes to draw; by default from the size of the corpus.
    beta : int
        Pseudo documents per category.
    alpha : float
        Share of background words in a pseudo document.
    neighbours : int
        Words nearest to its topic that a pseudo document is made of.
    real_share : float
        The labelled documents are repeated until they are this share of the pseudo documents.
    epochs : int
        Passes of each CNN over its training documents.

    Examples
    --------
    >>> HiGitClass().alpha
    0.2
    >>> HiGitClass(keywords=0)
    Traceback (most recent call last):
    ...
    himecat.errors.UsageError: keywords must be at least 1, not 0.
    """

    name = "higitclass"
    title = "HiGitClass"
    about = "Top-down: embeds a network of words, documents and metadata, and trains CNNs on documents about keywords."
    min_count = 5
    max_tokens = 300

    keywords: int = parameter(10, least=1)
    dimension: int = parameter(100, least=2)
    samples: int | None = parameter(None, least=1)
    negatives: int = parameter(5, least=1)
    rate: float = parameter(0.025, least=0)
    beta: int = parameter(500, least=0)
    alpha: float = parameter(0.2, least=0)
    neighbours: int = parameter(50, least=1)
    real_share: float = parameter(0.2, least=0)
    epochs: int = parameter(30, least=1)

    def fit_predict(self, task: Task) -> NodeArray:
        """The leaf of every document."""
        corpus, taxonomy = task.corpus, task.taxonomy
        rows, leaves = task.leaf_rows, task.leaf_nodes
        if taxonomy.n_leaves == 1 or not len(corpus.words):
            return np.full(len(corpus), np.bincount(leaves).argmax(), dtype=np.int64)
        found = keywords_of_leaves(corpus.tokens, corpus.words.names, rows, leaves, self.keywords)
        keywords = disjoint(found)
        network = star_network(corpus, taxonomy, keywords)
        samples = self.samples or default_samples(len(corpus.tokens.values))
        with task.progress.stage("Embedding the network", total=samples) as stage:
            vectors = embed_network(
                network.draw,
                network.degrees,
                samples=samples,
                dimension=self.dimension,
                negatives=self.negatives,
                rate=self.rate,
                seed=own_seed(task.seed, _SPACE),
                advance=stage.advance,
            )
        # Metadata values stand behind the text, each with the vector of its node.
        documents = with_metadata_words(corpus)
        known = np.concatenate(
            [
                vectors[: len(corpus.words)],
                vectors[network.first_centre(1) : network.first_centre(len(network.stars) - 1)],
            ]
        )
        with task.progress.stage("Writing pseudo documents", total=len(taxonomy) - 1) as stage:
            synthetic = pseudo_documents(
                taxonomy,
                keywords,
                known[: len(corpus.words)],
                documents.words.counts.astype(np.float64),
                beta=self.beta,
                length=round(len(documents.tokens.values) / max(1, len(corpus))),
                neighbours=self.neighbours,
                alpha=self.alpha,
                seed=own_seed(task.seed, _DOCUMENTS),
                threads=task.threads,
                advance=stage.advance,
            )
        choosing = sum(1 for node in taxonomy.inner if len(taxonomy.children[node]) > 1)
        with task.progress.stage("Training the classifiers", total=choosing * self.epochs) as stage:
            fitted = fit_top_down(
                taxonomy,
                documents.tokens.take(rows),
                Supervision(rows, leaves),
                synthetic,
                known,
                lambda: KimCNN(epochs=self.epochs),
                real_share=self.real_share,
                seed=own_seed(task.seed, _CLASSIFIER),
                threads=task.threads,
                advance=stage.advance,
            )
        with task.progress.stage("Placing the documents", total=len(corpus)) as stage:
            likely = fitted.leaf_probabilities(
                documents.tokens, known, threads=task.threads, advance=stage.advance
            )
        return task.likeliest_leaves(likely)

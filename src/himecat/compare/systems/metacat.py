"""MetaCat: a generative process of text and metadata, its embedding, and training documents drawn from it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from himecat.compare.systems._hin import default_samples, embed_network, own_seed
from himecat.compare.systems._metacat_network import generative_network
from himecat.compare.systems.system import NodeArray, System, Task, parameter, with_metadata_words
from himecat.errors import UsageError
from himecat.input.corpus import Supervision
from himecat.input.taxonomy.tree import Taxonomy
from himecat.paper.kimcnn import KimCNN
from himecat.paper.synthesis import synthesize
from himecat.paper.topdown import fit_top_down

# Streams of randomness, one per step.
_SPACE, _SYNTHESIS, _CLASSIFIER = 1, 2, 3


@dataclass(frozen=True)
class MetaCat(System):
    """MetaCat (Zhang et al., SIGIR 2020), flat over the leaves.

    Attributes
    ----------
    local : tuple of str
        Metadata types that describe what is in a document and so are generated from it, as words are. All
        other types (authors, products) generate the document.
    dimension, negatives, rate
        Of the embedding: length of the vectors, negatives per edge, first step size.
    samples : int, optional
        Edges to draw; by default from the size of the corpus.
    beta, concentration, neighbours
        Synthetic documents per leaf, kappa of their vectors, words nearest to such a vector that they are
        made of.
    real_share : float
        The labelled documents are repeated until they are this share of the synthetic ones.
    epochs : int
        Passes of the CNN over its training documents.

    Examples
    --------
    >>> MetaCat().beta, MetaCat(local=("venue",)).local
    (100, ('venue',))
    >>> MetaCat(epochs=0)
    Traceback (most recent call last):
    ...
    himecat.errors.UsageError: epochs must be at least 1, not 0.
    """

    name = "metacat"
    title = "MetaCat"
    about = (
        "Flat: embeds a generative process of metadata and text, and trains a CNN on documents drawn from it."
    )
    min_count = 10
    max_tokens = 300

    local: tuple[str, ...] = ("tags", "hashtags", "keywords")
    dimension: int = parameter(100, least=2)
    samples: int | None = parameter(None, least=1)
    negatives: int = parameter(5, least=1)
    rate: float = parameter(0.025, least=0)
    beta: int = parameter(100, least=0)
    concentration: float = parameter(120.0, least=1e-3)
    neighbours: int = parameter(50, least=1)
    real_share: float = parameter(0.55, least=0)
    epochs: int = parameter(30, least=1)

    def __post_init__(self) -> None:
        if isinstance(self.local, str):
            raise UsageError(f"local must be a list of metadata types, not the text {self.local!r}.")
        super().__post_init__()

    def fit_predict(self, task: Task) -> NodeArray:
        """The leaf of every document; its ancestors follow from the tree."""
        rows, leaves = task.leaf_rows, task.leaf_nodes
        classes, class_of = np.unique(leaves, return_inverse=True)
        flat = Taxonomy.from_paths([(str(leaf),) for leaf in classes.tolist()])
        if len(classes) == 1:
            return np.full(len(task.corpus), classes[0], dtype=np.int64)
        network = generative_network(task.corpus, rows, class_of, len(classes), local=self.local)
        samples = self.samples or default_samples(len(task.corpus.tokens.values))
        with task.progress.stage("Embedding the generative process", total=samples) as stage:
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
        # A document's local metadata is part of what the classifier reads, and of what is synthesised.
        kept = {kind: column for kind, column in task.corpus.metadata.items() if kind in self.local}
        documents = with_metadata_words(replace(task.corpus, metadata=kept)).tokens
        words = np.concatenate([vectors[network.nodes("word")], vectors[network.nodes("local")]])
        labels = np.concatenate([np.zeros((1, self.dimension), np.float32), vectors[network.nodes("class")]])
        with task.progress.stage("Synthesising documents", total=len(classes)) as stage:
            synthetic = synthesize(
                flat,
                labels,
                words,
                beta=self.beta,
                length=round(len(documents.values) / max(1, len(documents))),
                concentration=self.concentration,
                neighbours=self.neighbours,
                seed=own_seed(task.seed, _SYNTHESIS),
                threads=task.threads,
                advance=stage.advance,
            )
        with task.progress.stage("Training the classifier", total=self.epochs) as stage:
            fitted = fit_top_down(
                flat,
                documents.take(rows),
                Supervision(rows, class_of.astype(np.int64) + 1),
                synthetic,
                words,
                lambda: KimCNN(epochs=self.epochs),
                real_share=self.real_share,
                seed=own_seed(task.seed, _CLASSIFIER),
                threads=task.threads,
                advance=stage.advance,
            )
        with task.progress.stage("Placing the documents", total=len(documents)) as stage:
            found = fitted.leaf_probabilities(documents, words, threads=task.threads, advance=stage.advance)
        return np.asarray(classes[found.argmax(axis=1)], dtype=np.int64)

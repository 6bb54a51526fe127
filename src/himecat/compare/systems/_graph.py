"""The paper's graph of labels, documents, metadata values and words, for systems that embed its nodes.

Its edges are those of the generative story: (parent label, child label), (label, document), (metadata value,
document) and (document, word).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from himecat.input.corpus import Corpus, Ragged, Supervision
from himecat.input.taxonomy.tree import Taxonomy
from himecat.paper.pairs import relate

NodeIds = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Graph:
    """Nodes in one numbering: labels, metadata values, words, then documents.

    Attributes
    ----------
    n_nodes, n_documents : int
        How many nodes there are in all, and how many of them, the last ones, are documents.
    edges : mapping
        For each kind of edge (`hierarchy`, `label`, `metadata:<type>`, `word`) two arrays: the nodes that are
        generated, and those they are generated from. A word that occurs twice in a document has two edges.
    word_nodes : array
        For every word of `with_metadata_words(corpus)`, its node here.

    Examples
    --------
    >>> from himecat import read_corpus
    >>> corpus = read_corpus([{"text": "red fox", "by": "ann"}, {"text": "red car"}], metadata=["by"])
    >>> tree = Taxonomy.from_paths([("animals",), ("things",)])
    >>> graph = build_graph(corpus, tree, Supervision(np.array([0]), np.array([1])))
    >>> graph.n_nodes, {kind: len(ends[0]) for kind, ends in graph.edges.items()}
    (9, {'hierarchy': 2, 'label': 1, 'metadata:by': 1, 'word': 4})
    """

    n_nodes: int
    n_documents: int
    edges: Mapping[str, tuple[NodeIds, NodeIds]]
    word_nodes: NodeIds

    def neighbours(self, kind: str) -> Ragged:
        """For every node, the nodes at the other end of its edges of one kind.

        Examples
        --------
        >>> graph = Graph(3, 1, {"word": (np.array([0, 0]), np.array([2, 2]))}, np.array([0]))
        >>> [graph.neighbours("word")[node].tolist() for node in range(3)]
        [[2, 2], [], [0, 0]]
        """
        one, other = self.edges[kind]
        return Ragged.grouped(np.concatenate([one, other]), np.concatenate([other, one]), self.n_nodes)

    def distinct_edges(self) -> tuple[NodeIds, NodeIds]:
        """Every edge once: the nodes that are generated, and those they are generated from.

        Examples
        --------
        >>> graph = Graph(3, 1, {"word": (np.array([0, 0]), np.array([2, 2]))}, np.array([0]))
        >>> [ends.tolist() for ends in graph.distinct_edges()]
        [[0], [2]]
        """
        kinds = list(self.edges.values())
        ends = [np.concatenate([pair[side] for pair in kinds]).astype(np.int64) for side in (0, 1)]
        codes = np.unique(ends[0] * self.n_nodes + ends[1])
        return (codes // self.n_nodes).astype(np.int32), (codes % self.n_nodes).astype(np.int32)

    def linked(self) -> Ragged:
        """For every node, the nodes that it has an edge with, in rising order.

        Examples
        --------
        >>> graph = Graph(3, 1, {"word": (np.array([1, 0]), np.array([2, 2]))}, np.array([0]))
        >>> [graph.linked()[node].tolist() for node in range(3)]
        [[2], [2], [0, 1]]
        """
        one, other = self.distinct_edges()
        starts, ends = np.concatenate([one, other]), np.concatenate([other, one])
        order = np.argsort(ends, kind="stable")
        return Ragged.grouped(starts[order], ends[order], self.n_nodes)


def build_graph(corpus: Corpus, taxonomy: Taxonomy, supervision: Supervision) -> Graph:
    """The graph of a corpus, its tree and its labelled documents.

    Examples
    --------
    >>> from himecat import read_corpus
    >>> tree = Taxonomy.from_paths([("animals",), ("things",)])
    >>> build_graph(read_corpus(["fox"]), tree, Supervision(np.array([0]), np.array([1]))).word_nodes.tolist()
    [3]
    """
    relations = relate(corpus, taxonomy, supervision)
    edges = {"hierarchy": (relations.children, relations.parents)}
    for kind, pairs in zip(relations.names, relations.pairs, strict=True):
        documents = pairs.row_of_value + np.int32(relations.n_anchors)
        # Words come from documents; documents come from their label and metadata values.
        edges[kind] = (pairs.values, documents) if kind == "word" else (documents, pairs.values)
    first_word = relations.anchor_start["word"]
    words = np.arange(first_word, relations.n_anchors, dtype=np.int32)
    # The values stand between the labels and the words here, but behind the words in the merged corpus.
    values = np.arange(relations.n_labels, first_word, dtype=np.int32)
    return Graph(
        n_nodes=relations.n_anchors + relations.n_documents,
        n_documents=relations.n_documents,
        edges=edges,
        word_nodes=np.concatenate([words, values]),
    )

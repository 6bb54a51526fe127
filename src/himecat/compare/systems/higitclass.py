"""HiGitClass: a heterogeneous network of words and metadata, enriched keywords, topic-based pseudo documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from himecat.compare.systems._higit_documents import disjoint, pseudo_documents
from himecat.compare.systems._hin import Edges, EmbeddedNetwork, own_seed
from himecat.compare.systems._topics import keywords_of_leaves
from himecat.compare.systems.system import NodeArray, Task, parameter, with_metadata_words
from himecat.input.corpus import Corpus, Ragged, Supervision
from himecat.input.taxonomy.tree import Taxonomy

_WORD = 0


@dataclass(frozen=True)
class HiGitClass(EmbeddedNetwork):
    """HiGitClass (Zhang et al., ICDM 2019), with keywords from the labelled documents.

    Attributes
    ----------
    keywords : int
        Initial keywords of a leaf, at most: the words with the largest TF-IDF in its labelled documents.
    alpha : float
        Share of background words in a pseudo document; for the others see `EmbeddedNetwork`.

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

    keywords: int = parameter(10, least=1)
    alpha: float = parameter(0.2, least=0)

    def fit_predict(self, task: Task) -> NodeArray:
        """The leaf of every document."""
        corpus, taxonomy = task.corpus, task.taxonomy
        rows, leaves = task.leaf_rows, task.leaf_nodes
        if taxonomy.n_leaves == 1 or not len(corpus.words):
            return task.most_labelled_leaf()
        found = keywords_of_leaves(corpus.tokens, corpus.words.names, rows, leaves, self.keywords)
        keywords = disjoint(found)
        network = star_network(corpus, taxonomy, keywords)
        vectors = self.embed(task, network.draw, network.degrees)
        # Metadata values come after the text, each with the vector of its node.
        documents = with_metadata_words(corpus)
        values = vectors[network.first_centre(1) : network.first_centre(len(network.stars) - 1)]
        known = np.concatenate([vectors[: len(corpus.words)], values])
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
                seed=own_seed(task.seed, 2),
                threads=task.threads,
                advance=stage.advance,
            )
        labelled = Supervision(rows, leaves)
        likely = self.train_and_predict(task, taxonomy, documents.tokens, labelled, synthetic, known)
        return task.likeliest_leaves(likely)


@dataclass(frozen=True)
class Star:
    """Centres of one kind with their words; a centre's words are those of its parts.

    A metadata value is a centre whose parts are the documents that carry it. Its links to words are drawn
    from the parts as they are, and never written out.

    Attributes
    ----------
    parts : Ragged
        The parts of every centre.
    words : Ragged
        The words of every part.

    Examples
    --------
    >>> star = Star(Ragged.from_lists([[0], [0, 1]]), Ragged.from_lists([[5, 5], [6]]))
    >>> star.degrees.tolist()
    [2, 3]
    """

    parts: Ragged
    words: Ragged

    @cached_property
    def _ends(self) -> npt.NDArray[np.int64]:
        """Where the links of every part end, in one numbering of all links."""
        return np.cumsum(self.words.lengths[self.parts.values])

    @cached_property
    def _bounds(self) -> npt.NDArray[np.int64]:
        """Where the links of every centre begin, and where the last ones end."""
        return np.concatenate([np.zeros(1, dtype=np.int64), self._ends])[self.parts.offsets]

    @property
    def degrees(self) -> npt.NDArray[np.int64]:
        """The number of links of every centre."""
        return np.diff(self._bounds)

    @property
    def n_links(self) -> int:
        """The number of links in all."""
        return int(self._bounds[-1])

    def draw_paths(
        self, count: int, rng: np.random.Generator
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Draw paths word - centre - word: a link, then another of the same centre. The centres come first.

        Examples
        --------
        >>> star = Star(Ragged.from_lists([[0], [1]]), Ragged.from_lists([[5], [6, 7]]))
        >>> centres, words, others = star.draw_paths(20, np.random.default_rng(0))
        >>> sorted(set(zip(centres.tolist(), words.tolist())))
        [(0, 5), (1, 6), (1, 7)]
        """
        links = rng.integers(self.n_links, size=count)
        centres = np.searchsorted(self._bounds, links, side="right") - 1
        first, beyond = self._bounds[centres], self._bounds[centres + 1]
        return centres, self._words_at(links), self._words_at(rng.integers(first, beyond))

    def _words_at(self, links: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        parts = np.searchsorted(self._ends, links, side="right")
        rows = self.parts.values[parts]
        # The place in a part, counted from its end.
        places = self.words.offsets[rows + 1] - (self._ends[parts] - links)
        return self.words.values[places]


@dataclass(frozen=True)
class StarNetwork:
    """Words in the middle, linked to centres of several kinds; one meta-path word - centre - word for each.

    Nodes are numbered through: the words first, then the centres of each star.

    Examples
    --------
    >>> star = Star(Ragged.from_lists([[0]]), Ragged.from_lists([[0, 1]]))
    >>> network = StarNetwork(2, (star,))
    >>> [part.tolist() for part in network.degrees]
    [[1, 1], [2]]
    """

    n_words: int
    stars: tuple[Star, ...]

    @cached_property
    def degrees(self) -> list[npt.NDArray[np.int64]]:
        """For each kind of node, words first, in how many links each takes part (words: within documents)."""
        words = np.bincount(self.stars[0].words.values, minlength=self.n_words)
        return [words, *(star.degrees for star in self.stars)]

    def first_centre(self, number: int) -> int:
        """The node of the first centre of a star."""
        return self.n_words + sum(len(star.parts) for star in self.stars[:number])

    def draw(self, count: int, rng: np.random.Generator) -> Edges:
        """Draw paths of all stars equally often; every pair of nodes on a path, in its order, is an edge."""
        usable = [number for number, star in enumerate(self.stars) if star.n_links]
        parts = [Edges.between(np.zeros(0, np.int32), np.zeros(0, np.int32), _WORD)]
        for place, number in enumerate(usable):
            share = (count + place) // len(usable) // 3 + 1
            centres, words, others = self.stars[number].draw_paths(share, rng)
            nodes = centres + self.first_centre(number)
            differ = words != others
            parts.append(Edges.between(words, nodes, number + 1))
            parts.append(Edges.between(nodes, others, _WORD))
            parts.append(Edges.between(words[differ], others[differ], _WORD))
        return Edges.mixed(parts, rng)


def star_network(
    corpus: Corpus, taxonomy: Taxonomy, keywords: Mapping[int, npt.NDArray[np.int64]]
) -> StarNetwork:
    """The network of a corpus: stars of the documents, of each metadata type and of the labels.

    Labels are linked to their own keywords and to those of all leaves below them.

    Examples
    --------
    >>> from himecat import read_corpus
    >>> corpus = read_corpus([{"text": "red fox", "by": "ann"}, {"text": "red car", "by": "ann"}], metadata="by")
    >>> tree = Taxonomy.from_paths([("animals",), ("things",)])
    >>> network = star_network(corpus, tree, {1: np.array([0])})
    >>> [star.degrees.tolist() for star in network.stars]
    [[2, 2], [4], [0, 1, 0]]
    """
    stars = [Star(_each(len(corpus)), corpus.tokens)]
    for column in corpus.metadata.values():
        documents = column.values.row_of_value
        carriers = Ragged.grouped(column.values.values, documents, len(column.vocabulary))
        stars.append(Star(carriers, corpus.tokens))
    below = [
        [word for leaf in taxonomy.leaves_under(node) for word in keywords.get(leaf, ())] if node else []
        for node in taxonomy
    ]
    stars.append(Star(_each(len(taxonomy)), Ragged.from_lists(below)))
    return StarNetwork(len(corpus.words), tuple(stars))


def _each(count: int) -> Ragged:
    """Centres that have one part each."""
    return Ragged(np.arange(count, dtype=np.int32), np.arange(count + 1))

"""Seed directions of the leaves, from the words of their names and from their keywords."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from himecat.input.corpus import Vocabulary
from himecat.input.taxonomy.tree import Taxonomy
from himecat.input.tokenizer import UNICODE, Tokenizer
from himecat.views.base import Phrase
from himecat.views.combined import Views

FloatArray = npt.NDArray[np.float32]

# How many labelled documents a name, and keywords, count as.
_NAME_MASS = 1.0
_KEYWORD_MASS = 2.0
# Characters of a path that an encoder is shown: long names above very many leaves would be gigabytes.
_LONGEST_PATH = 2_000


def name_seeds(
    taxonomy: Taxonomy,
    views: Views,
    vocabulary: Vocabulary,
    keywords: Mapping[int, Sequence[str]],
    *,
    use_names: bool,
) -> tuple[FloatArray, FloatArray]:
    """Directions of the leaves' names and keywords, summed, and how many documents they count as.

    A name is a document of its words, weighted by how few leaves share them; keywords count as two documents.

    Examples
    --------
    >>> from himecat import read_corpus
    >>> from himecat.views.combined import learn_views
    >>> from himecat.views.words import WordsView
    >>> corpus = read_corpus(["red fox den", "red fox", "old car wheel", "old car"])
    >>> views, _ = learn_views([WordsView(dimension=3)], corpus)
    >>> tree = Taxonomy.from_paths([("fox",), ("no such word",)])
    >>> name_seeds(tree, views, corpus.words, {}, use_names=True)[1].tolist()
    [1.0, 0.0]
    """
    sums = np.zeros((taxonomy.n_leaves, views.dimension), dtype=np.float32)
    mass = np.zeros(taxonomy.n_leaves, dtype=np.float32)
    if use_names:
        for leaf, direction in enumerate(
            views.see_phrases(name_phrases(taxonomy, taxonomy.leaves, vocabulary))
        ):
            if direction.any():
                sums[leaf] += np.float32(_NAME_MASS) * direction
                mass[leaf] += _NAME_MASS
    phrases = [
        _phrase(vocabulary, dict.fromkeys(words, 1.0), ", ".join(words)) for words in keywords.values()
    ]
    for node, direction in zip(keywords, views.see_phrases(phrases), strict=True):
        if direction.any():
            below = taxonomy.positions_under(node)
            sums[below] += np.float32(_KEYWORD_MASS) * direction
            mass[below] += _KEYWORD_MASS
    return sums, mass


def name_words(name: str, tokenizer: Tokenizer = UNICODE) -> list[str]:
    """The words of a category's name, however they are joined.

    Examples
    --------
    >>> name_words("baby_products.Bath-care")
    ['baby', 'products', 'bath', 'care']
    """
    # Vowel signs and accents are no letters of their own, and no word ends at them.
    parted = "".join(
        letter if letter.isalnum() or unicodedata.category(letter).startswith("M") else " " for letter in name
    )
    return tokenizer.words(parted)


def name_phrases(
    taxonomy: Taxonomy,
    nodes: Sequence[int],
    vocabulary: Vocabulary,
    keywords: Mapping[int, Sequence[str]] | None = None,
) -> list[Phrase]:
    """The words of the names of categories, weighted by how few of them share a word, and their keywords.

    Examples
    --------
    >>> from himecat import read_corpus
    >>> tree, words = Taxonomy.from_paths([("red fox",), ("red car",)]), read_corpus(["a red fox", "a car"]).words
    >>> [[words.names[word] for word in phrase.ids] for phrase in name_phrases(tree, tree.leaves, words)]
    [['fox'], ['car']]
    """
    names = [frozenset(name_words(taxonomy.names[node], vocabulary.tokenizer)) for node in nodes]
    shared = Counter(word for words in names for word in words)
    found = []
    for node, words in zip(nodes, names, strict=True):
        weights = {word: np.log(len(names) / shared[word]) / np.log(len(names)) for word in sorted(words)}
        path = " ".join(name_words(" ".join(taxonomy.path(node))[-_LONGEST_PATH:]))
        added = list((keywords or {}).get(node, ()))
        found.append(_phrase(vocabulary, weights | dict.fromkeys(added, 1.0), ", ".join([path, *added])))
    return found


def _phrase(vocabulary: Vocabulary, weights: Mapping[str, float], text: str) -> Phrase:
    found: dict[int, float] = {}
    for word, weight in weights.items():
        # Singular and plural are looked up as one word; other endings are left alone.
        for form in sorted({word, word + "s", word.removesuffix("s")}):
            position = vocabulary.index.get(form)
            if position is not None and weight > 0:
                found[position] = max(weight, found.get(position, 0.0))
    ids = np.array(sorted(found), dtype=np.int64)
    return Phrase(ids, np.array([found[i] for i in ids.tolist()], dtype=np.float32), text)

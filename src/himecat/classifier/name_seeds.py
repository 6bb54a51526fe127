"""What a category's own name and its keywords say, as directions in the space."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from himecat.input.corpus import Vocabulary
from himecat.input.taxonomy.tree import Taxonomy
from himecat.input.tokenizer import UNICODE, Tokenizer
from himecat.views.base import DocumentViews

FloatArray = npt.NDArray[np.float32]

_NAME_MASS = 1.0
_KEYWORD_MASS = 2.0


def sow(
    taxonomy: Taxonomy,
    views: DocumentViews,
    vocabulary: Vocabulary,
    keywords: Mapping[int, Sequence[str]],
    *,
    use_names: bool,
    encode: Callable[[Sequence[str]], FloatArray] | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Directions of the leaves' names and keywords, summed, and how many documents they count as.

    A name counts as one document that consists of its words, those alone that not every leaf shares; the
    keywords count as two.

    Parameters
    ----------
    encode : callable, optional
        An encoder, where the views have one: names and keywords are encoded as texts of their own.

    Examples
    --------
    >>> from himecat import read_corpus
    >>> from himecat.views.base import learn_views
    >>> corpus = read_corpus(["red fox den", "red fox", "old car wheel", "old car"])
    >>> views, _ = learn_views(corpus, [], dimension=3, contexts=9, weigh_words=True, learned_trust=True, seed=0)
    >>> tree = Taxonomy.from_paths([("fox",), ("no such word",)])
    >>> sow(tree, views, corpus.words, {}, use_names=True)[1].tolist()
    [1.0, 0.0]
    """
    tokenizer = vocabulary.tokenizer
    sums = np.zeros((taxonomy.n_leaves, views.dimension), dtype=np.float32)
    mass = np.zeros(taxonomy.n_leaves, dtype=np.float32)
    if use_names:
        names = [frozenset(name_words(taxonomy.names[leaf], tokenizer)) for leaf in taxonomy.leaves]
        shared = Counter(word for words in names for word in words)
        titles = [" ".join(name_words(" ".join(taxonomy.path(leaf)), UNICODE)) for leaf in taxonomy.leaves]
        vectors = None if encode is None else encode(titles)
        for position, words in enumerate(names):
            weights = {word: np.log(len(names) / shared[word]) / np.log(len(names)) for word in sorted(words)}
            direction = _direction(views, vocabulary, weights, None if vectors is None else vectors[position])
            if direction.any():
                sums[position] += np.float32(_NAME_MASS) * direction
                mass[position] += _NAME_MASS
    spoken = (
        None if encode is None or not keywords else encode([", ".join(words) for words in keywords.values()])
    )
    for row, (node, chosen) in enumerate(keywords.items()):
        encoded = None if spoken is None else spoken[row]
        direction = _direction(views, vocabulary, dict.fromkeys(chosen, 1.0), encoded)
        if direction.any():
            below = taxonomy.leaf_membership[node]
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


def _direction(
    views: DocumentViews,
    vocabulary: Vocabulary,
    weights: Mapping[str, float],
    encoded: FloatArray | None,
) -> FloatArray:
    found: dict[int, float] = {}
    for word, weight in weights.items():
        # Singular and plural are one to a reader; of other endings nothing is assumed.
        for form in sorted({word, word + "s", word.removesuffix("s")}):
            position = vocabulary.index.get(form)
            if position is not None and weight > 0:
                found[position] = max(weight, found.get(position, 0.0))
    ids = np.array(sorted(found), dtype=np.int64)
    return views.direction_of_words(
        ids, np.array([found[i] for i in ids.tolist()], dtype=np.float32), encoded
    )

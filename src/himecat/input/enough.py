"""Whether there is enough to learn from: labelled documents of every leaf, and words in them."""

from __future__ import annotations

from himecat.errors import spelled
from himecat.input.corpus import Corpus, Supervision
from himecat.input.labels import leaves_without_labels
from himecat.input.problems import Problems, shortened
from himecat.input.taxonomy.tree import Taxonomy


def check_leaves(
    tree: Taxonomy, labelled: Supervision, has_keywords: bool, allow_empty: bool, problems: Problems
) -> None:
    """Every leaf needs a labelled document or a keyword; with `allow_empty` those without are only told.

    Examples
    --------
    >>> import numpy as np
    >>> found = Problems()
    >>> tree = Taxonomy.from_paths([("a",), ("b",)])
    >>> check_leaves(tree, Supervision(np.array([0]), np.array([1])), False, False, found)
    >>> print(*found)
    One leaf has no labelled document: b. Label some, or allow it (allow_empty_leaves=True).
    """
    without = leaves_without_labels(tree, labelled)
    if not without:
        return
    names = shortened([tree.title(leaf) for leaf in without])
    count = f"{len(without)} of {tree.n_leaves} leaves have" if len(without) > 1 else "One leaf has"
    lack = "neither labelled documents nor keywords" if has_keywords else "no labelled document"
    if len(without) == tree.n_leaves:
        problems.error(
            "",
            "No leaf has a labelled document or a keyword that documents use: label about five documents of each.",
        )
    elif not allow_empty:
        problems.error(
            "",
            f"{count} {lack}: {names}. Label some, or allow it "
            f"({spelled('--allow-empty-leaves', 'allow_empty_leaves=True')}).",
        )
    else:
        from_name = "are learned from their names" if len(without) > 1 else "is learned from its name"
        problems.warning("", f"{count} {lack} and {from_name} and the tree alone: {names}.")


def _lowered(min_count: int) -> str:
    return spelled(f"--set min_count={min_count}", f"set_params(method__min_count={min_count})")


def check_words(corpus: Corpus, labelled: Supervision, min_count: int, problems: Problems) -> None:
    """Labelled documents teach with their words.

    Examples
    --------
    >>> import numpy as np
    >>> from himecat import read_corpus
    >>> found = Problems()
    >>> check_words(read_corpus(["a fox", "a hen"], min_count=3), Supervision(np.array([0]), np.array([1])), 3, found)
    >>> print(*found)
    No word occurs 3 times or more in the 2 documents: add documents, or lower min_count (...).
    """
    if len(corpus.words) == 0:
        problems.error(
            "",
            f"No word occurs {min_count} times or more in the {len(corpus)} documents: add documents, or lower "
            f"min_count ({_lowered(max(1, min_count // 2))}).",
        )
        return
    empty = int((corpus.tokens.lengths[labelled.rows] == 0).sum())
    if empty == len(labelled) and not labelled.keywords:
        problems.error(
            "",
            "No labelled document has a word that occurs often enough: label others, or lower min_count "
            f"({_lowered(1)}).",
        )
    elif empty:
        count = "One labelled document has" if empty == 1 else f"{empty} labelled documents have"
        problems.warning("", f"{count} no word that occurs often enough to learn from.")

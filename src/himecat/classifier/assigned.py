"""Where a fitted classifier places documents, whichever it is."""

from __future__ import annotations

from himecat.classifier.assignments import Assignments, assign
from himecat.classifier.protocol import Classifier
from himecat.classifier.several import SeveralClassifier
from himecat.classifier.staged import StagedClassifier
from himecat.input.corpus import Corpus, Supervision
from himecat.input.taxonomy.tree import Taxonomy


def assigned(
    classifier: Classifier,
    taxonomy: Taxonomy,
    corpus: Corpus,
    threads: int = 1,
    min_confidence: float = 0.0,
    *,
    best: int = 0,
    known: Supervision | None = None,
) -> Assignments:
    """Place documents; the parameters are those of `assign`.

    The probabilities of all leaves are computed for trees of few leaves only.

    Examples
    --------
    >>> from himecat import Default, HiMeCat
    >>> model = HiMeCat(method=Default(min_count=1), threads=1).fit(["red fox", "old car"], ["animals", "things"])
    >>> list(assigned(model.classifier_, model.taxonomy_, model.encode(["a fox"])))
    [('animals',)]
    """
    if isinstance(classifier, StagedClassifier):
        return classifier.place(corpus, threads, min_confidence, best=best, known=known)
    found, none = classifier.all_probabilities(corpus, threads)
    if isinstance(classifier, SeveralClassifier):
        return classifier.assign(found, min_confidence, best, known)
    return assign(taxonomy, found, min_confidence, best=best, known=known, none=none)

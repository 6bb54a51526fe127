"""What a fitted model does with documents: leaf probabilities, paths, and long files batch by batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from himecat.classifier.assignments import Assignments, assign
from himecat.classifier.fit import DefaultClassifier
from himecat.classifier.training import Classifier
from himecat.input.builder import Origin
from himecat.input.corpus import Corpus
from himecat.runtime.threads import prefetch
from himecat.views.space import JointSpace

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Placer:
    """Places documents that are given in the ids of the model's own vocabularies.

    Attributes
    ----------
    space, classifier
        What was fitted.
    min_confidence : float
        Where the leaf is less probable than this, the path ends at the deepest node that is not.

    Examples
    --------
    >>> from himecat import Default, HiMeCat
    >>> documents = [{"text": "red fox", "labels": "animals"}, {"text": "old car", "labels": "things"}]
    >>> model = HiMeCat(method=Default(min_count=1)).fit(documents)
    >>> placer = Placer(model.space_, model.classifier_)
    >>> list(placer.place(model.encode(["a fox", " x"]), np.array([True, False])))
    [('animals',), ()]
    """

    space: JointSpace
    classifier: Classifier
    min_confidence: float = 0.0

    def probabilities(self, corpus: Corpus, threads: int = 1) -> FloatArray:
        """Probability of every leaf, one row per document."""
        if isinstance(self.classifier, DefaultClassifier):
            return self.classifier.leaf_probabilities(corpus, threads=threads)
        return self.classifier.leaf_probabilities(corpus.tokens, self.space.words, threads=threads)

    def place(self, corpus: Corpus, usable: npt.NDArray[np.bool_], threads: int = 1) -> Assignments:
        """The path of every document; that of one that is not usable is empty."""
        found = self.probabilities(corpus, threads)
        return assign(self.space.taxonomy, found, self.min_confidence).without(~usable)

    def place_batches(
        self, batches: Iterable[tuple[list[Origin], Corpus]], threads: int = 1
    ) -> Iterator[tuple[list[Origin], Corpus, Assignments]]:
        """Place batch by batch; with more than one thread, while the next batch is read."""

        def job(batch: tuple[list[Origin], Corpus]) -> Assignments:
            origins, corpus = batch
            # One thread reads.
            return self.place(corpus, np.array([one.usable for one in origins], bool), max(1, threads - 1))

        for (origins, corpus), placed in prefetch(batches, job, background=threads > 1):
            yield origins, corpus, placed

    def directions(self, corpus: Corpus) -> FloatArray:
        """Unit vectors of documents among those of words and labels."""
        if isinstance(self.classifier, DefaultClassifier):
            return self.classifier.directions(corpus)
        return self.space.fold_in(corpus)

    @property
    def word_weights(self) -> FloatArray | None:
        """How much each word counts; None where all count the same."""
        return self.classifier.word_weights if isinstance(self.classifier, DefaultClassifier) else None

"""The joint space of the default method, from the directions that it has learned."""

from __future__ import annotations

import numpy as np

from himecat.input.validate import Material
from himecat.views.combined import DocumentVectors, Views
from himecat.views.matrices import FloatArray, unit, unit_in_place
from himecat.views.metadata import ValueStatistics
from himecat.views.space import JointSpace


def spectral_space(
    material: Material, views: Views, directions: FloatArray, vectors: DocumentVectors
) -> JointSpace:
    """The directions of labels, words, metadata values and documents as one space.

    Parameters
    ----------
    directions : array
        Those of the leaves, in all views.

    Examples
    --------
    >>> from himecat import read_corpus
    >>> from himecat.input.corpus import Supervision
    >>> from himecat.input.problems import Problems
    >>> from himecat.input.taxonomy.tree import Taxonomy
    >>> from himecat.views.combined import learn_views
    >>> from himecat.views.metadata import MetadataView
    >>> from himecat.views.words import WordsView
    >>> few = Supervision(np.array([0, 1]), np.array([1, 2]))
    >>> tree = Taxonomy.from_paths([("a",), ("b",)])
    >>> material = Material(read_corpus(["red fox", "old car"]), tree, few, Problems())
    >>> views, vectors = learn_views([WordsView(dimension=2), MetadataView()], material.corpus)
    >>> spectral_space(material, views, vectors.smoothed, vectors).labels.shape
    (3, 2)
    """
    taxonomy, corpus = material.taxonomy, material.corpus
    part = views.part("words")
    leaves = unit(directions[:, part])
    values = {}
    for kind in views["metadata"].types:
        column = corpus.metadata[kind]
        if material.pile is not None:
            values[kind] = _of_everyone(views["metadata"].types[kind], part)
            continue
        carried = column.values.counts(len(column.vocabulary))
        values[kind] = unit(np.asarray(carried.T @ vectors.text[:, part], dtype=np.float32))
    return JointSpace(
        taxonomy=taxonomy,
        labels=unit(taxonomy.sums_under(leaves, list(taxonomy))),
        words=views["words"].vectors,
        documents=unit(vectors.smoothed[:, part]),
        metadata=values,
        vocabulary=corpus.words,
        values={kind: corpus.metadata[kind].vocabulary for kind in values},
    )


def _of_everyone(known: ValueStatistics, part: slice) -> FloatArray:
    """The directions of values by all documents of a pile, which are summed already."""
    found = np.zeros((len(known.rows), part.stop - part.start), dtype=np.float32)
    shared = known.rows >= 0
    found[shared] = known.sums[known.rows[shared], part]
    return unit_in_place(found)

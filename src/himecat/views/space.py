"""The joint space: vectors with their names, and what lies near what."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from himecat.errors import UsageError
from himecat.input.corpus import Corpus, Vocabulary
from himecat.input.rules import rule_from_state
from himecat.input.taxonomy.earlier import changes_state, with_changes
from himecat.input.taxonomy.tree import Taxonomy
from himecat.input.tokenizer import Tokenizer
from himecat.views.matrices import FloatArray, check_shapes


class Neighbour(NamedTuple):
    """A named vector and its cosine to what was asked for.

    Examples
    --------
    >>> Neighbour("word", "fox", 0.9).name
    'fox'
    """

    kind: str
    name: str
    cosine: float


def contrast(labels: FloatArray, place: int) -> FloatArray:
    """The direction of one of the children of a category less the mean direction of the others.

    Examples
    --------
    >>> contrast(np.eye(3, dtype=np.float32)[1:], 0).tolist()
    [0.0, 1.0, -1.0]
    """
    siblings = np.delete(np.arange(len(labels)), place)
    direction: FloatArray = labels[place] - labels[siblings].mean(axis=0) if len(siblings) else labels[place]
    return direction


@dataclass(frozen=True)
class JointSpace:
    """One unit vector per label, word, metadata value and training document.

    Attributes
    ----------
    taxonomy : Taxonomy
        The tree; row i of `labels` is node i, the root included.
    labels, words, documents : arrays
        Unit vectors. `documents` is empty in a space loaded from a folder.
    metadata : mapping of str to array
        Unit vectors of the values of each metadata type.
    vocabulary : Vocabulary
        Names of the words.
    values : mapping of str to Vocabulary
        Names of the metadata values.

    Examples
    --------
    >>> tree = Taxonomy.from_paths([("animals",), ("things",)])
    >>> words = Vocabulary(("fox", "car"), np.array([1, 1]))
    >>> axes = np.eye(3, dtype=np.float32)
    >>> space = JointSpace(tree, axes, axes[1:], axes[:0], {}, words, {})
    >>> space.nearest(axes[1], "word", 1)
    [Neighbour(kind='word', name='fox', cosine=1.0)]
    """

    taxonomy: Taxonomy
    labels: FloatArray
    words: FloatArray
    documents: FloatArray
    metadata: Mapping[str, FloatArray]
    vocabulary: Vocabulary
    values: Mapping[str, Vocabulary]

    @property
    def dimension(self) -> int:
        """Length of every vector."""
        return int(self.words.shape[1])

    @property
    def kinds(self) -> tuple[str, ...]:
        """What can be asked for: `label`, `word` and `metadata:<type>`."""
        return ("label", "word", *(f"metadata:{kind}" for kind in self.metadata))

    def _rows_and_names(self, kind: str) -> tuple[FloatArray, Callable[[int], str]]:
        if kind == "word":
            return self.words, self.vocabulary.names.__getitem__
        if kind == "label":
            return self.labels, self.taxonomy.title
        value_kind = kind.removeprefix("metadata:")
        if value_kind in self.metadata and kind != value_kind:
            return self.metadata[value_kind], self.values[value_kind].names.__getitem__
        raise UsageError(f"There is no kind {kind!r} in the space; it has {', '.join(self.kinds)}.")

    def nearest(self, vector: npt.NDArray[np.floating], kind: str, count: int = 10) -> list[Neighbour]:
        """The names of one kind whose vectors are nearest to a vector, nearest first."""
        rows, name_of = self._rows_and_names(kind)
        cosines = rows @ np.asarray(vector, dtype=np.float32)
        order = np.argsort(-cosines, kind="stable")[:count]
        return [Neighbour(kind, name_of(i), float(cosines[i])) for i in order.tolist()]

    def fold_in(self, corpus: Corpus) -> FloatArray:
        """Vectors for documents encoded with this space's vocabularies, seen in training or not.

        In the generative model the maximum likelihood direction of a document given its words and metadata values
        is that of the sum of their vectors. A document with nothing known gets the zero vector.
        """
        total = corpus.tokens.sums_of(self.words)
        for kind, vectors in self.metadata.items():
            column = corpus.metadata.get(kind)
            if column is not None:
                total += column.values.sums_of(vectors)
        lengths = np.linalg.norm(total, axis=1, keepdims=True)
        return (total / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)

    def state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """What a model folder keeps: the tree and the names for JSON, and the arrays; not the documents."""
        arrays: dict[str, npt.NDArray[Any]] = {
            "labels": self.labels,
            "words": self.words,
            "word_counts": self.vocabulary.counts,
        }
        for kind, vectors in self.metadata.items():
            arrays[f"metadata/{kind}"] = vectors
            arrays[f"metadata_counts/{kind}"] = self.values[kind].counts
        rules = {kind: values.rule.state() for kind, values in self.values.items() if values.rule is not None}
        changes = changes_state(self.taxonomy)
        return {
            **({"tree_changes": changes} if changes else {}),
            **({"metadata_rules": rules} if rules else {}),
            "taxonomy": {"names": list(self.taxonomy.names), "parents": list(self.taxonomy.parents)},
            "metadata": {kind: list(values.names) for kind, values in self.values.items()},
            "vocabulary": list(self.vocabulary.names),
        }, arrays

    @classmethod
    def from_state(
        cls, settings: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]], tokenizer: Tokenizer
    ) -> Self:
        """The space again from what `state` gave; the tokenizer is that of the vocabulary.

        Raises
        ------
        ValueError
            The parts do not fit each other.
        """
        dimension = arrays["words"].shape[1]

        def vectors(array: str, count: int) -> FloatArray:
            found = arrays[array]
            if found.shape != (count, dimension) or found.dtype != np.float32:
                raise ValueError(
                    f"{array!r} should hold {count} x {dimension} float32, not "
                    f"{' x '.join(map(str, found.shape))} {found.dtype}"
                )
            return found

        def vocabulary(names: Sequence[str], counts: str, **more: Any) -> Vocabulary:
            check_shapes({counts: (arrays[counts], (len(names),))})
            return Vocabulary(tuple(names), arrays[counts], **more)

        taxonomy = Taxonomy(settings["taxonomy"]["names"], settings["taxonomy"]["parents"])
        taxonomy = with_changes(taxonomy, settings.get("tree_changes", ()))
        metadata: Mapping[str, Sequence[str]] = settings["metadata"]
        # Older models take all values as they are.
        rules = {kind: rule_from_state(state) for kind, state in settings.get("metadata_rules", {}).items()}
        return cls(
            taxonomy=taxonomy,
            labels=vectors("labels", len(taxonomy)),
            words=vectors("words", len(settings["vocabulary"])),
            documents=np.zeros((0, dimension), dtype=np.float32),
            metadata={kind: vectors(f"metadata/{kind}", len(names)) for kind, names in metadata.items()},
            vocabulary=vocabulary(settings["vocabulary"], "word_counts", tokenizer=tokenizer),
            values={
                kind: vocabulary(names, f"metadata_counts/{kind}", rule=rules.get(kind))
                for kind, names in metadata.items()
            },
        )

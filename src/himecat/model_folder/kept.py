"""The documents and labels that a model was fitted on, kept beside it as ids, so that it can be fitted again."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from himecat.input.corpus import Corpus, MetadataColumn, Ragged, Supervision, Vocabulary
from himecat.model_folder.files import damaged, read_arrays
from himecat.runtime.files import CORPUS_FILE
from himecat.views.matrices import unit_in_place

_Arrays = dict[str, npt.NDArray[Any]]
_METADATA, _COLUMNS = "metadata/", "columns/"
# Folders of earlier versions have neither.
_UNKNOWN, _NOWHERE = "tokens/unknown", "labels/nowhere"


class LearnedFrom(NamedTuple):
    """What a model was fitted on, beside its tree and its keywords."""

    corpus: Corpus
    supervision: Supervision

    def read(self) -> LearnedFrom:
        """Itself: it is in memory."""
        return self


@dataclass(frozen=True)
class KeptCorpus:
    """The same in a model folder; it is read and verified when a refit asks for it, and a prediction never does.

    Attributes
    ----------
    folder : str
        The model folder.
    described : mapping
        The file's name, size and digest, as `model.json` has them.
    words, values
        The model's vocabularies.
    n_nodes : int
        Nodes of the model's tree.
    """

    folder: str
    described: Mapping[str, Any]
    words: Vocabulary
    values: Mapping[str, Vocabulary]
    n_nodes: int

    def read(self) -> LearnedFrom:
        """The documents and labels.

        Raises
        ------
        ModelFolderError
            The file is missing, or not as it was written.
        """
        arrays = read_arrays(Path(self.folder), self.described)
        try:
            return unpacked(arrays, self.words, self.values, self.n_nodes)
        except (LookupError, ValueError, TypeError) as error:
            raise damaged(self.folder, CORPUS_FILE, str(error) or type(error).__name__) from error


def kept_in(
    folder: str | os.PathLike[str], described: Mapping[str, Any], words: Vocabulary, *more: Any
) -> KeptCorpus:
    """The corpus of a model folder; the place holds wherever the program goes afterwards."""
    return KeptCorpus(os.path.abspath(os.fspath(folder)), described, words, *more)


def packed(learned: LearnedFrom, kinds: Sequence[str]) -> _Arrays:
    """The arrays to keep: every number in as few bytes as it needs, nothing rounded.

    Parameters
    ----------
    kinds : sequence of str
        The metadata types that the model uses.

    Examples
    --------
    >>> from himecat import read_corpus
    >>> corpus = read_corpus(["a red fox", "a hen"])
    >>> arrays = packed(LearnedFrom(corpus, Supervision(np.array([1]), np.array([2]))), [])
    >>> arrays["tokens"].dtype, arrays["tokens/lengths"].tolist(), bytes(arrays["ids"])
    (dtype('uint8'), [3, 2], b'01')
    >>> unpacked(arrays, corpus.words, {}, 3).corpus.tokens[1].tolist()
    [0, 2]
    """
    corpus, supervision = learned
    ids = [str(one).encode("utf-8", "surrogatepass") for one in corpus.ids]
    found: _Arrays = {
        "ids": np.frombuffer(b"".join(ids), dtype=np.uint8),
        "ids/lengths": _small(np.array([len(one) for one in ids], dtype=np.int64)),
        "labels/rows": _small(supervision.rows),
        "labels/nodes": _small(supervision.nodes),
    }
    if len(supervision.nowhere):
        found[_NOWHERE] = _small(supervision.nowhere)
    ragged = {"tokens": corpus.tokens}
    ragged |= {f"{_METADATA}{kind}": corpus.metadata[kind].values for kind in kinds}
    for name, rows in ragged.items():
        found[name], found[f"{name}/lengths"] = _small(rows.values), _small(rows.lengths)
    if corpus.unknown is not None:
        found[_UNKNOWN] = _small(corpus.unknown)
    for name, column in corpus.columns.items():
        # An encoder's unit vectors come from half precision: where they can be had from it again, that is kept.
        with np.errstate(over="ignore"):
            half = column.astype(np.float16)
        exact = column.dtype == np.float32 and np.array_equal(_from_half(half), column)
        found[f"{_COLUMNS}{name}"] = half if exact else column
    return found


def unpacked(
    arrays: Mapping[str, npt.NDArray[Any]],
    words: Vocabulary,
    values: Mapping[str, Vocabulary],
    n_nodes: int,
) -> LearnedFrom:
    """What `packed` was given, in the ids of the model's vocabularies; raises ValueError where parts do not fit."""
    raw, n_documents = arrays["ids"].tobytes(), len(arrays["ids/lengths"])
    ends = _ends(arrays, "ids").tolist()
    ids = [raw[start:end].decode("utf-8", "surrogatepass") for start, end in pairwise(ends)]
    ragged = {}
    for name, vocabulary in {"tokens": words, **{f"{_METADATA}{k}": v for k, v in values.items()}}.items():
        _check_ids(arrays, name, len(vocabulary))
        ragged[name] = Ragged(arrays[name].astype(np.int32), _ends(arrays, name))
    columns = {}
    for name, array in arrays.items():
        if name.startswith(_COLUMNS):
            half = array.dtype == np.float16
            columns[name.removeprefix(_COLUMNS)] = _from_half(array) if half else array
    unknown = arrays[_UNKNOWN].astype(np.int64) if _UNKNOWN in arrays else None
    counted = () if unknown is None else (unknown,)
    if any(len(one) != n_documents for one in (*ragged.values(), *columns.values(), *counted)):
        raise ValueError("its columns are not equally long")
    _check_ids(arrays, "labels/rows", n_documents)
    _check_ids(arrays, "labels/nodes", n_nodes)
    rows, nodes = (arrays[f"labels/{part}"].astype(np.int64) for part in ("rows", "nodes"))
    if len(rows) != len(nodes):
        raise ValueError("not every label has a document")
    metadata = {kind: MetadataColumn(one, ragged[f"{_METADATA}{kind}"]) for kind, one in values.items()}
    corpus = Corpus(ids, words, ragged["tokens"], metadata, columns, unknown)
    nowhere = np.zeros(0, dtype=np.int64)
    if _NOWHERE in arrays:
        _check_ids(arrays, _NOWHERE, n_documents)
        nowhere = arrays[_NOWHERE].astype(np.int64)
    return LearnedFrom(corpus, Supervision(rows, nodes, nowhere=nowhere))


def _small(numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Whole numbers of at least 0 in the smallest type that holds them."""
    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))


def _ends(arrays: Mapping[str, npt.NDArray[Any]], name: str) -> npt.NDArray[np.int64]:
    found = np.concatenate([[0], np.cumsum(arrays[f"{name}/lengths"], dtype=np.int64)])
    if found[-1] != len(arrays[name]):
        raise ValueError(f"the lengths of {name!r} do not fit")
    return found


def _check_ids(arrays: Mapping[str, npt.NDArray[Any]], name: str, end: int) -> None:
    found = arrays[name]
    if found.ndim != 1 or found.dtype.kind != "u" or int(found.max(initial=0)) >= max(end, 1):
        raise ValueError(f"{name!r} holds other numbers than ids")


def _from_half(half: npt.NDArray[np.float16]) -> npt.NDArray[np.float32]:
    return unit_in_place(half.astype(np.float32)) if half.ndim == 2 else half.astype(np.float32)

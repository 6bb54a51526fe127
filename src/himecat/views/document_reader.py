"""What a model reads of documents: their fields, in the ids of its own vocabularies."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from himecat.errors import UsageError
from himecat.input.builder import Origin, iter_encoded
from himecat.input.columns import ColumnReader
from himecat.input.corpus import Corpus
from himecat.input.fields import Fields
from himecat.input.folders import documents_of
from himecat.input.kinds import Kind, Named, named
from himecat.input.problems import Problems
from himecat.input.reading import Reading
from himecat.methods import Method
from himecat.sklearn_compat import Estimator
from himecat.views.base import View, readers_of
from himecat.views.encoder import EncoderView
from himecat.views.space import JointSpace
from himecat.views.text_encoder import open_encoder


class DocumentReader(Estimator):
    """The part of an estimator that reads documents; :class:`himecat.HiMeCat` says what its parameters are."""

    metadata: Sequence[str] | Mapping[str, str | None]
    ignore_metadata: Collection[str]
    decides: Collection[str]
    encoder: str | os.PathLike[str] | None
    views: Sequence[View]
    text: str | Sequence[str]
    label_field: str | Sequence[str]
    id_field: str
    sheet: str | None
    delimiter: str | None
    labels_from_folders: bool
    metadata_: tuple[str, ...]
    metadata_kinds_: dict[str, Kind]
    label_field_: str | tuple[str, ...]
    skip_bad: bool
    online: bool
    threads: int | None
    space_: JointSpace
    method_: Method

    def _views(self) -> list[View]:
        """The encoder, if there is one, and the views that were given."""
        if self.encoder is None:
            return list(self.views)
        return [
            EncoderView(open_encoder(self.encoder, threads=self.threads, online=self.online)),
            *self.views,
        ]

    def readers(self) -> list[ColumnReader]:
        """What has to be computed from documents while they are read, such as the encoder's vectors."""
        return readers_of(self._views())

    def fields(self, *, fitted: bool = True) -> Fields:
        """Which fields are read; those that a fit found for itself are read again."""
        text = (self.text,) if isinstance(self.text, str) else tuple(self.text)
        if isinstance(self.metadata, str):
            raise UsageError(f"metadata must be a list of field names: [{self.metadata!r}].")
        for name in ("ignore_metadata", "decides"):
            if isinstance(given := getattr(self, name), str):
                raise UsageError(f"{name} must be a list of field names: [{given!r}].")
        reading = Reading.given(self.sheet, self.delimiter, folders=self.labels_from_folders)
        metadata = Named(self.metadata_, self.metadata_kinds_) if fitted else named(self.metadata)
        labels = self.label_field_ if fitted else self.label_field
        labels = labels if isinstance(labels, str) else tuple(labels)
        return Fields(text, metadata.names, labels, self.id_field, reading=reading, kinds=metadata.kinds)

    def encode(self, X: Any) -> Corpus:
        """Documents as the word and metadata ids of this model; what the model does not know is left out."""
        return self._encoded(X)[0]

    def _encoded(self, X: Any) -> tuple[Corpus, npt.NDArray[np.bool_]]:
        """Documents as `encode` gives them, and which of them can be used."""
        self._check_fitted()
        space = self.space_
        if isinstance(X, Corpus):
            return X.aligned(space.vocabulary, space.values), np.ones(len(X), dtype=bool)
        return self._encoded_with(X, ())

    def _encoded_with(self, X: Any, readers: Sequence[ColumnReader]) -> tuple[Corpus, npt.NDArray[np.bool_]]:
        problems = Problems()
        origins, corpus = self._encode_new(X, problems, readers)
        if not self.skip_bad or problems.has_fatal:
            problems.raise_errors()
        return corpus, usable_rows(origins)

    def _encode_new(
        self, X: Any, problems: Problems, readers: Sequence[ColumnReader]
    ) -> tuple[list[Origin], Corpus]:
        ((origins, corpus),) = self._read_new(X, problems, None, readers)
        return origins, corpus

    def _read_new(
        self,
        X: Any,
        problems: Problems,
        batch_size: int | None,
        readers: Sequence[ColumnReader] = (),
        keep_records: bool = False,
    ) -> Iterator[tuple[list[Origin], Corpus]]:
        """Documents in the ids of this model; further `readers` note what is asked of them."""
        return iter_encoded(
            documents_of(X),
            self.fields(),
            self.space_.vocabulary,
            self.space_.values,
            self.method_.max_tokens,
            problems,
            batch_size,
            [*self.readers(), *readers],
            threads=self.threads,
            keep_records=keep_records,
        )


def usable_rows(origins: Sequence[Origin]) -> npt.NDArray[np.bool_]:
    """Which of the documents can be used.

    Examples
    --------
    >>> usable_rows([]).tolist()
    []
    """
    return np.array([origin.usable for origin in origins], dtype=bool)

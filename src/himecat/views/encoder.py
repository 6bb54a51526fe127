"""The vectors of a pretrained text encoder beside the words of a document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from himecat.errors import UsageError
from himecat.input.columns import ColumnReader
from himecat.views.base import Batch, Phrase, View, register_view
from himecat.views.matrices import FloatArray
from himecat.views.text_encoder import TextEncoder


@register_view
@dataclass(frozen=True)
class EncoderView(View):
    """The encoder's unit vectors, which are computed while documents are read.

    Attributes
    ----------
    encoder : TextEncoder, optional
        What `open_encoder` gives; names and keywords of categories are encoded with it. Not kept with a model:
        the estimator knows the encoder's name.
    """

    encoder: TextEncoder | None = None

    name = "encoder"
    weight = 2.0

    @property
    def reader(self) -> ColumnReader | None:
        """Computes the vectors while documents are read."""
        # SQLite is loaded only where there is an encoder.
        from himecat.views.encoder_cache import EncoderReader

        return None if self.encoder is None else EncoderReader(self.encoder)

    def see(self, batch: Batch) -> FloatArray:
        """The vectors of the documents."""
        if self.name not in batch.corpus.columns:
            raise UsageError(
                "This model was fitted with an encoder: its vectors are needed for these documents."
            )
        return batch.corpus.columns[self.name]

    def see_phrases(self, phrases: Sequence[Phrase]) -> FloatArray | None:
        """The texts of names and keywords, encoded."""
        if self.encoder is None or not phrases:
            return None
        return self.encoder.encode([phrase.text for phrase in phrases])

"""Encoders that are a table of vectors: model2vec, and the StaticEmbedding of sentence-transformers."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from himecat.errors import UsageError
from himecat.runtime.threads import run_parallel, usable_threads
from himecat.views.encoder_files import (
    EncoderFiles,
    is_installed,
    open_tokenizer,
    read_config,
    reason,
    token_ids,
)
from himecat.views.matrices import unit_in_place

FloatArray = npt.NDArray[np.float32]
_MODEL2VEC_TOKENS = 512
_TENSORS = {"embeddings", "embedding.weight", "mapping", "weights"}


class StaticModel:
    """A vector for every token, and their mean for a text; needs tokenizers alone.

    Parameters
    ----------
    name : str
        The encoder as it was asked for.
    files : EncoderFiles
        What `find_encoder` gives.

    Examples
    --------
    >>> files = EncoderFiles("static", Path("m"), Path("m/model.safetensors"), Path("m/tokenizer.json"))
    >>> StaticModel("m", files).name
    'm'
    """

    def __init__(self, name: str, files: EncoderFiles) -> None:
        """Remember where it is."""
        self.name = name
        self._files = files
        self._table: FloatArray | None = None
        self._tokenizer: Any = None
        self._unknown: int | None = None
        self._most_characters: int | None = None

    def check_installed(self) -> None:
        """Raise a `UsageError` where tokenizers is missing, without importing it."""
        if not is_installed("tokenizers"):
            raise UsageError('This encoder needs tokenizers: pip install "himecat[onnx]".')

    def vectors(self, texts: list[str], threads: int | None) -> FloatArray:
        """A unit vector for every text; one without a known token has a row of zeros."""
        table = self._load() if self._table is None else self._table
        rows = np.zeros((len(texts), table.shape[1]), dtype=np.float32)
        count = min(usable_threads(threads), len(texts))
        parts = [slice(start, None, count) for start in range(count)]
        jobs = [partial(self._fill, table, rows[part], texts[part]) for part in parts]
        run_parallel(jobs, count) if count > 1 else jobs[0]()
        return unit_in_place(rows)

    def _fill(self, table: FloatArray, rows: FloatArray, texts: list[str]) -> None:
        for row, text in zip(rows, texts, strict=True):
            found = token_ids(self._tokenizer, text[: self._most_characters], special=False)
            ids = [token for token in found if token != self._unknown]
            if ids and max(ids) >= len(table):
                raise self._error(f"has {len(table)} vectors, too few for its tokenizer")
            if ids:
                row[:] = table[ids].mean(axis=0)

    def _load(self) -> FloatArray:
        self.check_installed()
        from safetensors import safe_open

        path, tokenizer = self._files.model, open_tokenizer(self._files.tokenizer)
        try:
            with safe_open(path, framework="numpy") as file:
                tensors = {name: file.get_tensor(name) for name in set(file.keys()) & _TENSORS}
        except Exception as error:  # a damaged file, or numbers that NumPy does not have
            raise self._error(f"cannot be loaded from {path} ({reason(error)})") from error
        if {"embeddings", "embedding.weight"}.isdisjoint(tensors):
            raise self._error(f"has no table of vectors in {path}")
        if "embeddings" in tensors:  # as model2vec reads its own files
            self._unknown = _unknown_token(self._files.tokenizer, tokenizer)
            most = read_config(path.parent / "config.json").get("max_length", _MODEL2VEC_TOKENS)
            if isinstance(most, int) and most >= 1:
                tokenizer.enable_truncation(most)
                self._most_characters = most * _median_length(tokenizer)
        self._tokenizer = tokenizer
        self._table = self._folded(tensors)
        return self._table

    def _folded(self, tensors: dict[str, Any]) -> FloatArray:
        """One row per token: tokens may share rows (`mapping`), and be weighted (`weights`)."""
        table = tensors["embeddings" if "embeddings" in tensors else "embedding.weight"]
        mapping, weights = tensors.get("mapping"), tensors.get("weights")
        try:
            if mapping is not None:
                if mapping.min(initial=0) < 0:
                    raise IndexError("a negative row")
                table = table[mapping.astype(np.int64, casting="same_kind")]
            found: FloatArray = table.astype(np.float32)
            if weights is not None:
                found *= weights.astype(np.float32)[:, None]
            if found.ndim != 2 or not found.size:
                raise ValueError(f"a table of shape {found.shape}")
        except (IndexError, TypeError, ValueError) as error:
            raise self._error(f"has tensors that do not fit together ({reason(error)})") from error
        return found

    def _error(self, said: str) -> UsageError:
        return UsageError(
            f"The encoder {self.name} {said}: name a folder that model2vec or SentenceTransformer.save wrote."
        )


def _unknown_token(path: Path, tokenizer: Any) -> int | None:
    """What a tokenizer gives for words that it does not know: their vectors say nothing."""
    model = read_config(path).get("model")
    if not isinstance(model, dict):
        return None
    if isinstance(name := model.get("unk_token"), str):
        found: int | None = tokenizer.token_to_id(name)
        return found
    return number if isinstance(number := model.get("unk_id"), int) else None


def _median_length(tokenizer: Any) -> int:
    return int(np.median([len(token) for token in tokenizer.get_vocab()] or [1]))

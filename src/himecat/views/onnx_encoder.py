"""Encoders in ONNX files, run by onnxruntime and tokenizers without PyTorch."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from himecat.errors import UsageError
from himecat.runtime.threads import run_parallel, usable_threads
from himecat.views.encoder_files import (
    MAX_TOKENS,
    EncoderFiles,
    is_installed,
    modules_of,
    open_tokenizer,
    read_config,
    reason,
    token_ids,
)
from himecat.views.matrices import unit_in_place
from himecat.views.onnx_graph import external_files, with_int8_products

FloatArray = npt.NDArray[np.float32]
_INPUTS = ("input_ids", "attention_mask", "token_type_ids", "position_ids")
_INTEGERS: dict[str, Any] = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
# What exporters call the vector of a text, and those of its tokens.
_OUTPUTS = ("sentence_embedding", "last_hidden_state", "token_embeddings")
# Modules of sentence-transformers whose work is done here; vectors are scaled to unit length in any case.
_MODULES = {"Transformer", "Pooling", "Normalize", "Dropout"}
_OLD_POOLING = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
# At unit length, the sum over the root of the length is the mean.
_POOLING: dict[str, Callable[[FloatArray], FloatArray]] = {
    "cls": lambda tokens: tokens[0],
    "max": lambda tokens: tokens.max(axis=0),
    "mean": lambda tokens: tokens.mean(axis=0),
    "mean_sqrt_len_tokens": lambda tokens: tokens.mean(axis=0),
    "lasttoken": lambda tokens: tokens[-1],
}


class OnnxModel:
    """A model in an ONNX file with its `tokenizer.json`; onnxruntime is imported with the first text.

    Every text is run by itself, and texts are spread over threads. So none is padded, and a vector depends on its
    text alone: in models of 8 bits the numbers of a batch share their scale, and texts would change each other.

    Parameters
    ----------
    name : str
        The encoder as it was asked for.
    files : EncoderFiles
        What `find_encoder` gives.

    Examples
    --------
    >>> files = EncoderFiles("onnx", Path("m"), Path("m/model.onnx"), Path("m/tokenizer.json"))
    >>> OnnxModel("m", files).name
    'm'
    """

    def __init__(self, name: str, files: EncoderFiles) -> None:
        """Remember where it is."""
        self.name = name
        self._files = files
        self._session: Any = None

    def check_installed(self) -> None:
        """Raise a `UsageError` where onnxruntime or tokenizers is missing, without importing them."""
        if not is_installed("onnxruntime", "tokenizers"):
            raise UsageError('An ONNX encoder needs onnxruntime and tokenizers: pip install "himecat[onnx]".')

    def vectors(self, texts: list[str], threads: int | None) -> FloatArray:
        """A unit vector for every text; one without a token has a row of zeros."""
        if self._session is None:
            self._load()
        count = min(usable_threads(threads), len(texts))
        if count == 1:
            rows = [self._vector(text) for text in texts]
        else:
            rows = run_parallel([partial(self._vector, text) for text in texts], count)
        width = max(map(len, rows))
        if any(len(row) not in (0, width) for row in rows):
            raise self._error("gives vectors of different lengths")
        filled = np.zeros((len(rows), width), dtype=np.float32)
        for row, vector in enumerate(rows):
            filled[row, : len(vector)] = vector
        return unit_in_place(filled)

    def _vector(self, text: str) -> FloatArray:
        ids = token_ids(self._tokenizer, self._prompt + text)
        return self._run(ids) if ids else np.zeros(0, dtype=np.float32)

    def _run(self, ids: Sequence[int]) -> FloatArray:
        made = {
            "input_ids": ids,
            "attention_mask": np.ones(len(ids)),
            "token_type_ids": np.zeros(len(ids)),
            "position_ids": np.arange(len(ids)),
        }
        given = {name: np.array([made[name]], dtype=integers) for name, integers in self._inputs.items()}
        try:
            (found,) = self._session.run([self._output], given)
        except Exception as error:  # those of onnxruntime have no common class
            raise self._error(f"cannot be run ({reason(error)})") from error
        shape = np.shape(found)
        if len(shape) == 3 and shape[:2] == (1, len(ids)):
            return np.asarray(self._pool(np.asarray(found[0], dtype=np.float32)))
        if len(shape) == 2 and shape[0] == 1:
            return np.asarray(found[0], dtype=np.float32)
        raise self._error(
            f"gives an array of shape {shape} for {len(ids)} tokens, and neither a vector nor one for each token"
        )

    def _load(self) -> None:
        self.check_installed()
        tokenizer = open_tokenizer(self._files.tokenizer)
        self._pool, self._prompt = _POOLING[self._pooling()], self._default_prompt()
        if read_config(self._files.folder / "sentence_bert_config.json").get("do_lower_case") is True:
            _lowercase(tokenizer)
        tokenizer.enable_truncation(self._max_tokens())
        self._tokenizer = tokenizer
        session = self._open()
        self._inputs = {one.name: _INTEGERS.get(one.type) for one in session.get_inputs()}
        for name, integers in self._inputs.items():
            if name not in _INPUTS or integers is None:
                raise self._error(f"wants an input {name!r} that is no list of token numbers")
        if "input_ids" not in self._inputs:
            raise self._error("has no input 'input_ids'")
        outputs = [one.name for one in session.get_outputs()]
        self._output = next((name for name in _OUTPUTS if name in outputs), outputs[0])
        self._session = session
        if self._files.borrowed:
            self._check_vocabulary()

    def _open(self) -> Any:
        try:
            import onnxruntime
        except (ImportError, OSError) as error:
            raise UsageError(
                f"onnxruntime is installed but cannot be imported ({reason(error)}): install it again with "
                'pip install "himecat[onnx]".'
            ) from error
        path = self._files.model
        try:
            content = path.read_bytes()
            outside = external_files(content)
            _check_beside(path, outside)
            # Tensors in other files are found from the path of the model.
            model = str(path) if outside else with_int8_products(content)
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 4
            options.intra_op_num_threads = options.inter_op_num_threads = 1
            if _cuts_sums_off():
                options.add_session_config_entry("session.x64quantprecision", "1")
            return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        except UsageError:
            raise
        except Exception as error:  # a damaged file; those of onnxruntime have no common class
            raise self._error(f"cannot be loaded from {path} ({reason(error)})") from error

    def _pooling(self) -> str:
        """How the vectors of tokens become one: the mean, unless the folder says otherwise."""
        place = self._files.folder / "1_Pooling"
        for kind, folder in modules_of(self._files.folder):
            if kind not in _MODULES:
                raise self._error(f"has a module {kind}, which is run by PyTorch alone")
            if kind == "Pooling":
                place = folder
        config = read_config(place / "config.json")
        said = config.get("pooling_mode") or [name for key, name in _OLD_POOLING.items() if config.get(key)]
        modes = said if isinstance(said, list) else [said]
        mode = modes[0] if len(modes) == 1 else modes or "mean"
        if not isinstance(mode, str) or mode not in _POOLING:
            raise self._error(f"pools its tokens in a way that PyTorch alone knows ({mode})")
        if config.get("include_prompt") is False and self._default_prompt():
            raise self._error("leaves its prompt out of the pooling, as PyTorch alone does")
        return mode

    def _default_prompt(self) -> str:
        config = read_config(self._files.folder / "config_sentence_transformers.json")
        prompts, name = config.get("prompts"), config.get("default_prompt_name")
        found = prompts.get(name) if isinstance(prompts, dict) and isinstance(name, str) else None
        return found if isinstance(found, str) else ""

    def _max_tokens(self) -> int:
        """At most `MAX_TOKENS`, and no more than the model says it reads."""
        beside = self._files.tokenizer.parent
        said = [
            read_config(self._files.folder / "sentence_bert_config.json").get("max_seq_length"),
            read_config(self._files.folder / "config.json").get("max_position_embeddings"),
            read_config(beside / "tokenizer_config.json").get("model_max_length"),
        ]
        return min([MAX_TOKENS, *(int(one) for one in said if isinstance(one, int | float) and one >= 1)])

    def _check_vocabulary(self) -> None:
        """A tokenizer that another package lends has exactly the tokens that the model knows."""
        size = self._tokenizer.get_vocab_size()
        fits = self._accepts(size - 1) and not self._accepts(size)
        if not fits:
            self._session = None
            raise self._error(
                f"has no tokenizer.json, and that of another package ({self._files.tokenizer}) does not fit"
            )

    def _accepts(self, token: int) -> bool:
        try:
            self._run([token])
        except UsageError:
            return False
        return True

    def _error(self, said: str) -> UsageError:
        return UsageError(
            f"The encoder {self.name} {said}: name a folder with an ONNX model of a sentence encoder and its "
            "tokenizer.json."
        )


def _cuts_sums_off() -> bool:
    """Whether this is an x86 processor whose products of int8 numbers overflow: there is a slower, exact way then."""
    from llvmlite import binding

    features = binding.get_host_cpu_features()
    return bool(features.get("avx2")) and not (features.get("avx512vnni") or features.get("avxvnni"))


def _check_beside(model: Path, outside: Sequence[str]) -> None:
    """Tensors may be in files beside the model, and nowhere else."""
    home = model.parent.resolve()
    for place in outside:
        target = (home / place).resolve()
        if os.path.isabs(place) or not target.is_relative_to(home):
            raise UsageError(
                f"The encoder {model} reads a file outside of its folder ({place!r}), which is refused: put the "
                "weights beside the model."
            )


def _lowercase(tokenizer: Any) -> None:
    from tokenizers import normalizers

    own = [] if tokenizer.normalizer is None else [tokenizer.normalizer]
    tokenizer.normalizer = normalizers.Sequence([normalizers.Lowercase(), *own])

"""The compiled loop over all co-occurrences of words."""

from __future__ import annotations

from typing import Any

import numpy as np

from himecat.kernels.compiled import compiled


@compiled()
def cooccurrence_rows(
    chosen: Any,
    word_indptr: Any,
    word_documents: Any,
    word_data: Any,
    context_indptr: Any,
    contexts: Any,
    context_data: Any,
    log_word: Any,
    log_context: Any,
    room: int,
) -> Any:  # pragma: no cover
    """CSR rows of positive pointwise mutual information of the chosen words; `room` entries are enough for them."""
    n_contexts = len(log_context)
    sums = np.zeros(n_contexts, dtype=np.float32)
    touched = np.empty(n_contexts, dtype=np.int32)
    indptr = np.zeros(len(chosen) + 1, dtype=np.int64)
    indices = np.empty(room, dtype=np.int32)
    values = np.empty(room, dtype=np.float32)
    end = 0
    for row in range(len(chosen)):
        word = chosen[row]
        n_touched = 0
        for entry in range(word_indptr[word], word_indptr[word + 1]):
            document, weight = word_documents[entry], word_data[entry]
            for other in range(context_indptr[document], context_indptr[document + 1]):
                context = contexts[other]
                if sums[context] == 0.0:
                    touched[n_touched] = context
                    n_touched += 1
                sums[context] += weight * context_data[other]
        for position in range(n_touched):
            context = touched[position]
            value = np.log(sums[context]) - log_word[word] - log_context[context]
            sums[context] = 0.0
            if value > 0:
                indices[end] = context
                values[end] = value
                end += 1
        indptr[row + 1] = end
    return indptr, indices[:end].copy(), values[:end].copy()

"""The hot loops of the convolutional classifier, on raw arrays only.

Word vectors are frozen, so a convolution over a document is a sum of rows of a table that holds, for each
distinct word, its product with every slice of every filter. `_plain.py` has the same network built from
`nn.Embedding` and `nn.Conv1d`, and the tests compare both.

Columns of `table` are ordered by the offset inside the window, then by filter width: with widths 2, 3 and 5
they are [offset 0: 2 3 5][offset 1: 2 3 5][offset 2: 3 5][offset 3: 5][offset 4: 5]. The features of a
document are ordered by width, so the filters still growing at an offset are always the last ones.
"""

from __future__ import annotations

import numpy as np

from himecat.compiled import compiled

FAST = {"reassoc", "contract", "nsz", "arcp"}


@compiled(fastmath=FAST)
def max_over_time(words, offsets, table, widths, maps, features, positions):  # type: ignore[no-untyped-def]
    """For every document and filter, the largest window sum and where it starts.

    A window may run past the end of a document only where the document is shorter than the filter (the
    missing words add nothing); a document without words gets 0 and position -1.
    """
    n_documents = offsets.shape[0] - 1
    n_widths = widths.shape[0]
    n_features = n_widths * maps
    longest = widths[n_widths - 1]
    first_filter = np.empty(longest, np.int64)
    first_column = np.empty(longest, np.int64)
    column = 0
    for j in range(longest):
        growing = 0
        while widths[growing] <= j:
            growing += 1
        first_filter[j] = growing * maps
        first_column[j] = column
        column += n_features - growing * maps
    window = np.empty(n_features, np.float32)
    best = np.empty(n_features, np.float32)
    where = np.empty(n_features, np.int32)
    for d in range(n_documents):
        start = offsets[d]
        length = offsets[d + 1] - start
        if length == 0:
            for m in range(n_features):
                features[d, m] = np.float32(0.0)
                positions[d, m] = -1
            continue
        for m in range(n_features):
            best[m] = np.float32(-np.inf)
            where[m] = 0
        for t in range(length):
            left = length - t
            fitting = n_widths
            if left < longest:
                fitting = 0
                for w in range(n_widths):
                    if widths[w] <= left or t == 0:
                        fitting += 1
                if fitting == 0:
                    break
            end = fitting * maps
            # Rows are taken as views of their own: the loops over them then vectorise.
            row = table[words[start + t]]
            if left > 1 and widths[fitting - 1] > 1:
                # Filters of width 1, which come first, do not reach the second word.
                low = first_filter[1]
                second = table[words[start + t + 1]][first_column[1] :]
                for m in range(low):
                    window[m] = row[m]
                first = row[low:end]
                growing_windows = window[low:end]
                for m in range(end - low):
                    growing_windows[m] = first[m] + second[m]
            else:
                for m in range(end):
                    window[m] = row[m]
            for j in range(2, min(left, widths[fitting - 1])):
                low = first_filter[j]
                row = table[words[start + t + j]][first_column[j] :]
                growing_windows = window[low:end]
                for m in range(end - low):
                    growing_windows[m] += row[m]
            here = np.int32(t)
            for m in range(end):
                if window[m] > best[m]:
                    best[m] = window[m]
                    where[m] = here
        for m in range(n_features):
            features[d, m] = best[m]
            positions[d, m] = where[m]


@compiled()
def scatter_gradient(words, offsets, positions, gradient, widths, maps, table_gradient):  # type: ignore[no-untyped-def]
    """Add the gradient of every feature to the table entries its winning window was summed from."""
    n_documents = offsets.shape[0] - 1
    n_widths = widths.shape[0]
    n_features = n_widths * maps
    for d in range(n_documents):
        start = offsets[d]
        length = offsets[d + 1] - start
        if length == 0:
            continue
        for w in range(n_widths):
            for m in range(w * maps, (w + 1) * maps):
                g = gradient[d, m]
                if g == np.float32(0.0):
                    continue
                t = positions[d, m]
                column = 0
                for j in range(min(widths[w], length - t)):
                    growing = 0
                    while widths[growing] <= j:
                        growing += 1
                    low = growing * maps
                    table_gradient[words[start + t + j], column + m - low] += g
                    column += n_features - low

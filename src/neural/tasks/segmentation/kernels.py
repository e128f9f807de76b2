# ruff: noqa: ANN001, ANN201 (numba reads no annotations)
"""Kernels: loops over the words of a document, compiled by numba at their first call.

The machine code is cached on disk. Without numba, or with `NEURAL_KERNELS=off`, the loops run as
plain Python: slower, with equal results. Importing this module imports numba, so callers import it
inside functions.

Words of a document are arrays: `ids[starts[i] : starts[i + 1]]` are the word ids of element i (a
sentence or line). A token is an index into `ids`. A stem is a word without its suffix; for stems,
`ids` are stem ids. A gap is the place between an element and the one before it; it has the index of
the element. Results are written into `out` if it is an argument.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from neural.nn.kernel_dispatch import kernels_available

LOG_ZERO = -1e30
"""Finite stand-in for log(0), because infinities would give NaN."""


def _skip_jit(function: Any) -> Any:
    """Decorator that leaves a function as it is."""
    return function


if kernels_available():
    import numba

    jit: Any = numba.njit(cache=True)
else:
    jit = _skip_jit


@jit
def count_element_frequency(ids, starts, last):
    """Number of elements that contain each word, (words,).

    `last` is scratch memory, (words,): the last element that contained each word. The caller fills
    it with −1.
    """
    frequency = np.zeros(len(last), dtype=np.int64)
    for element in range(len(starts) - 1):
        for token in range(starts[element], starts[element + 1]):
            if last[ids[token]] != element:
                last[ids[token]] = element
                frequency[ids[token]] += 1
    return frequency


@jit
def compute_sliding_cosine(ids, starts, weights, scale, out):
    """Cosine between the `scale` elements before each gap and those after it, into out[1:].

    Each side is a vector with the count c of each stem; `weights` are the weights of the stems in
    the dot product. `left_squared` and `right_squared` are the squared norms of the two vectors.
    When the gap moves on by one element, the dot product and the squared norms are updated word by
    word: (c ± 1)² = c² ± 2c + 1. So every word is read at most four times, at any scale.
    """
    count = len(starts) - 1
    left, right = np.zeros(len(weights)), np.zeros(len(weights))
    product, left_squared, right_squared = 0.0, 0.0, 0.0
    left_words, right_words = 0, 0
    for element in range(min(scale, count)):
        for token in range(starts[element], starts[element + 1]):
            stem = ids[token]
            right_squared += weights[stem] * (2 * right[stem] + 1)
            right[stem] += 1
            right_words += 1
    for gap in range(1, count):
        # Element gap − 1 moves from the right to the left side.
        for token in range(starts[gap - 1], starts[gap]):
            stem = ids[token]
            weight = weights[stem]
            product -= weight * left[stem]
            right_squared -= weight * (2 * right[stem] - 1)
            right[stem] -= 1
            product += weight * right[stem]
            left_squared += weight * (2 * left[stem] + 1)
            left[stem] += 1
        left_words += starts[gap] - starts[gap - 1]
        right_words -= starts[gap] - starts[gap - 1]
        if gap - 1 - scale >= 0:
            leaving = gap - 1 - scale
            for token in range(starts[leaving], starts[leaving + 1]):
                stem = ids[token]
                product -= weights[stem] * right[stem]
                left_squared -= weights[stem] * (2 * left[stem] - 1)
                left[stem] -= 1
            left_words -= starts[leaving + 1] - starts[leaving]
        if gap - 1 + scale < count:
            entering = gap - 1 + scale
            for token in range(starts[entering], starts[entering + 1]):
                stem = ids[token]
                product += weights[stem] * left[stem]
                right_squared += weights[stem] * (2 * right[stem] + 1)
                right[stem] += 1
            right_words += starts[entering + 1] - starts[entering]
        if left_words == 0 or right_words == 0:
            out[gap] = 0.0
            product = 0.0  # drop accumulated rounding errors
            if left_words == 0:
                left_squared = 0.0
            if right_words == 0:
                right_squared = 0.0
        else:
            out[gap] = min(1.0, max(0.0, product / np.sqrt(left_squared * right_squared)))


@jit
def compute_depths(values, out):
    """Depth of each value: how far it is below the nearest peaks on its left and right, added.

    values[0] is ignored: the first element has no gap before it.
    """
    count = len(values)
    peak = 0.0
    for i in range(1, count):
        peak = values[i] if i == 1 or values[i - 1] < values[i] else peak
        out[i] = peak - values[i]
    for i in range(count - 1, 0, -1):
        peak = values[i] if i == count - 1 or values[i + 1] < values[i] else peak
        out[i] += peak - values[i]


@jit
def count_shared_words(ids, starts, holders, holder_starts, first, low, high, out):
    """Number of words that each pair of elements shares.

    `out` has one row per element from `first` on, and one column per element of the range(low,
    high). `holders[holder_starts[w] : holder_starts[w + 1]]` are the elements that contain word w,
    in increasing order. `ids` has each word of an element once.
    """
    for row in range(out.shape[0]):
        for token in range(starts[first + row], starts[first + row + 1]):
            word = ids[token]
            begin, end = holder_starts[word], holder_starts[word + 1]
            while begin < end:  # binary search for the first holder at or after `low`
                middle = (begin + end) // 2
                if holders[middle] < low:
                    begin = middle + 1
                else:
                    end = middle
            while begin < holder_starts[word + 1] and holders[begin] < high:
                out[row, holders[begin] - low] += 1
                begin += 1


@jit
def select_kth_largest(values, rank):
    """The `rank`-th largest value (1: the largest), by quickselect. Reorders `values`."""
    left, right, target = 0, len(values) - 1, rank - 1
    while left < right:
        pivot = values[(left + right) // 2]
        i, j = left, right
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if target <= j:
            right = j
        elif target >= i:
            left = i
        else:
            break
    return values[target]


@jit
def summarize_similarities(block, first, threshold, radius, out):
    """Statistics of an element's similarities to all others; their names are feature.STATISTICS.

    `block` holds rows of a similarity matrix with a column for each element of the document; its
    first row is that of element `first`. Row i of `out` gets the statistics of element i. Elements
    are similar from `threshold` on, and neighbours up to a distance of `radius`. The similarity of
    an element to itself is excluded.
    """
    count = block.shape[1]
    others = count - 1
    values = np.empty(others)
    for row in range(block.shape[0]):
        i = first + row
        total, largest, match, similar_count = 0.0, 0.0, i, 0
        before, after = 0.0, 0.0  # sums over the neighbours
        for j in range(count):
            if j == i:
                continue
            value = block[row, j]
            values[j - (j > i)] = value
            total += value
            similar_count += value >= threshold
            if value > largest:
                largest, match = value, j
            if j < i and i - j <= radius:
                before += value
            if j > i and j - i <= radius:
                after += value
        mean = total / others
        squares = 0.0
        for j in range(others):
            squares += (values[j] - mean) ** 2
        out[i, 0], out[i, 1], out[i, 2] = mean, largest, np.sqrt(squares / others)
        # The last of the most similar quarter, and of the most similar tenth, rounded up.
        out[i, 3] = select_kth_largest(values, (others + 3) // 4)
        out[i, 4] = select_kth_largest(values, (others + 9) // 10)
        out[i, 5] = similar_count / others
        out[i, 6] = block[row, i - 1] if i > 0 else 0.0
        out[i, 7] = block[row, i + 1] if i < others else 0.0
        out[i, 8] = block[row, 0] if i > 0 else 1.0
        out[i, 9] = block[row, others] if i < others else 1.0
        out[i, 10] = after / max(1, min(radius, others - i)) - before / max(1, min(radius, i))
        out[i, 11] = match / others


@jit
def sum_segmentations(
    ids, starts, log_counts, log_totals, log_continue, log_end, max_elements, counts
):
    """Log-likelihood of the first i elements, summed over all segmentations, for every i: (n + 1,).

    Forward algorithm: the sum for the first `end` elements runs over all starts of the last
    segment. The likelihood of a segment is that of a Pólya urn: the probability of a stem that
    occurred c times among the w words of the segment so far is exp(log_counts[c] − log_totals[w]).
    `log_continue` and `log_end` are the log prior probabilities that a segment continues or ends
    after an element; segments have at most `max_elements` elements. `counts` is scratch memory, a
    zero for every stem.
    """
    count = len(starts) - 1
    log_sums = np.full(count + 1, LOG_ZERO)
    log_sums[0] = 0.0
    for end in range(1, count + 1):
        log_likelihood, words, largest, total = 0.0, 0, LOG_ZERO, 0.0
        first = max(0, end - max_elements)
        for start in range(end - 1, first - 1, -1):
            for token in range(starts[start], starts[start + 1]):
                stem = ids[token]
                log_likelihood += log_counts[counts[stem]] - log_totals[words]
                counts[stem] += 1
                words += 1
            value = log_sums[start] + log_likelihood + log_end + log_continue * (end - start - 1)
            # Running log-sum-exp: the sum so far is total · exp(largest).
            if value > largest:
                total = total * np.exp(largest - value) + 1.0
                largest = value
            else:
                total += np.exp(value - largest)
        log_sums[end] = largest + np.log(total)
        for token in range(starts[first], starts[end]):
            counts[ids[token]] = 0
    return log_sums

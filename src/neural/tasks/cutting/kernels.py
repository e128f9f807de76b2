"""The loops that must be fast: numba compiles them at their first use and keeps the result on disk.

Without numba, or with `NEURAL_KERNELS=off`, they run as they are written, slowly and with the same numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from neural.modules.compiled import numba_is_there


def _as_written(function: Any) -> Any:
    return function


if numba_is_there():
    import numba

    fast: Any = numba.njit(cache=True)
else:
    fast = _as_written


@fast
def spread(ids, starts, last):  # noqa: ANN001, ANN201 (numba reads no annotations)
    """How many elements have each word; `last` holds −1 for every one of them."""
    found = np.zeros(len(last), dtype=np.int64)
    for at in range(len(starts) - 1):
        for place in range(starts[at], starts[at + 1]):
            if last[ids[place]] != at:
                last[ids[place]] = at
                found[ids[place]] += 1
    return found


@fast
def slide(ids, starts, weights, scale, out):  # noqa: ANN001, ANN201
    """The cosine between the `scale` elements before each gap and those after it, into out[1:].

    Both sides are counts per stem. An element that passes from one side to the other changes the product and both
    lengths by what its own words add, so the time is that of reading the words four times, at any scale.
    """
    count = len(starts) - 1
    left, right = np.zeros(len(weights)), np.zeros(len(weights))
    product, left_size, right_size = 0.0, 0.0, 0.0
    left_words, right_words = 0, 0
    for at in range(min(scale, count)):
        for place in range(starts[at], starts[at + 1]):
            stem = ids[place]
            right_size += weights[stem] * (2 * right[stem] + 1)
            right[stem] += 1
            right_words += 1
    for gap in range(1, count):
        for place in range(starts[gap - 1], starts[gap]):   # from right to left
            stem = ids[place]
            weight = weights[stem]
            product -= weight * left[stem]
            right_size -= weight * (2 * right[stem] - 1)
            right[stem] -= 1
            product += weight * right[stem]
            left_size += weight * (2 * left[stem] + 1)
            left[stem] += 1
        left_words += starts[gap] - starts[gap - 1]
        right_words -= starts[gap] - starts[gap - 1]
        if gap - 1 - scale >= 0:
            gone = gap - 1 - scale
            for place in range(starts[gone], starts[gone + 1]):
                stem = ids[place]
                product -= weights[stem] * right[stem]
                left_size -= weights[stem] * (2 * left[stem] - 1)
                left[stem] -= 1
            left_words -= starts[gone + 1] - starts[gone]
        if gap - 1 + scale < count:
            new = gap - 1 + scale
            for place in range(starts[new], starts[new + 1]):
                stem = ids[place]
                product += weights[stem] * left[stem]
                right_size += weights[stem] * (2 * right[stem] + 1)
                right[stem] += 1
            right_words += starts[new + 1] - starts[new]
        if left_words == 0 or right_words == 0:
            out[gap] = 0.0
            product = 0.0   # what rounding left is dropped with the words
            if left_words == 0:
                left_size = 0.0
            if right_words == 0:
                right_size = 0.0
        else:
            out[gap] = min(1.0, max(0.0, product / np.sqrt(left_size * right_size)))


@fast
def deepen(values, out):  # noqa: ANN001, ANN201
    """How far each value lies below the peaks that one reaches by climbing to its left and to its right, summed."""
    count = len(values)
    peak = 0.0
    for at in range(1, count):
        peak = values[at] if at == 1 or values[at - 1] < values[at] else peak
        out[at] = peak - values[at]
    for at in range(count - 1, 0, -1):
        peak = values[at] if at == count - 1 or values[at + 1] < values[at] else peak
        out[at] += peak - values[at]


@fast
def share(ids, starts, holders, lists, first, low, high, out):  # noqa: ANN001, ANN201
    """How many words elements `first`, `first` + 1, … share with each of the elements from `low` to `high`, into `out`.

    `holders[lists[w] : lists[w + 1]]` are the elements that have word w, in order.
    """
    for row in range(out.shape[0]):
        for place in range(starts[first + row], starts[first + row + 1]):
            word = ids[place]
            begin, end = lists[word], lists[word + 1]
            while begin < end:   # the first of them that is not before `low`
                middle = (begin + end) // 2
                if holders[middle] < low:
                    begin = middle + 1
                else:
                    end = middle
            while begin < lists[word + 1] and holders[begin] < high:
                out[row, holders[begin] - low] += 1
                begin += 1


@fast
def largest_at(values, rank):  # noqa: ANN001, ANN201
    """The value at that rank from the top, by quickselect; `values` is put in another order."""
    left, right, place = 0, len(values) - 1, rank - 1
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
        if place <= j:
            right = j
        elif place >= i:
            left = i
        else:
            break
    return values[place]


@fast
def summarise(block, first, alike, near, out):  # noqa: ANN001, ANN201
    """Sum up rows `first`, `first` + 1, … into `out`."""
    count = block.shape[1]
    others = count - 1
    left = np.empty(others)
    for row in range(block.shape[0]):
        at = first + row
        total, largest, match, many = 0.0, 0.0, at, 0
        before, after = 0.0, 0.0
        for j in range(count):
            if j == at:
                continue
            value = block[row, j]
            left[j - (j > at)] = value
            total += value
            many += value >= alike
            if value > largest:
                largest, match = value, j
            if j < at and at - j <= near:
                before += value
            if j > at and j - at <= near:
                after += value
        mean = total / others
        spread = 0.0
        for j in range(others):
            spread += (left[j] - mean) ** 2
        out[at, 0], out[at, 1], out[at, 2] = mean, largest, np.sqrt(spread / others)
        out[at, 3] = largest_at(left, (others + 3) // 4)
        out[at, 4] = largest_at(left, (others + 9) // 10)
        out[at, 5] = many / others
        out[at, 6] = block[row, at - 1] if at > 0 else 0.0
        out[at, 7] = block[row, at + 1] if at < others else 0.0
        out[at, 8] = block[row, 0] if at > 0 else 1.0
        out[at, 9] = block[row, others] if at < others else 1.0
        out[at, 10] = after / max(1, min(near, others - at)) - before / max(1, min(near, at))
        out[at, 11] = match / others

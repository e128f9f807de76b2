"""Loops over the vectors of a document: native kernels, or NumPy without the native library.

An element is a sentence or line of a document, n of them; each has a vector, (n, width). A gap is
the place between an element and the one before it; it has the index of the element. The kernels are
in native/kernels/word_vectors.cpp; the functions whose names begin with `_plain` define the results.
"""

from __future__ import annotations

import numpy as np

from neural.native.library import NativeFunction, native_available

WIDTH_MULTIPLE = 16
"""The kernels need vectors whose width is a multiple of this number."""
LOG_ZERO = -1e30
"""Stands for log(0): infinities would give NaN."""
_sum_word_vectors = NativeFunction("sum_word_vectors", "ppi pp i p")
_compare_sides = NativeFunction("compare_sides", "piii ppp")
_compare_with_context = NativeFunction("compare_with_context", "piii ppp")
_square_run_sums = NativeFunction("square_run_sums", "piii p")
_sum_change_points = NativeFunction("sum_change_points", "pii pp pp pp")


def sum_word_vectors(
    ids: np.ndarray, starts: np.ndarray, rows: np.ndarray, scales: np.ndarray
) -> np.ndarray:
    """Sum of the vectors of each element's words, (n, width), float32.

    `ids[starts[i] : starts[i + 1]]` are the row numbers of the words of element i, int32; −1 is a
    word without a vector. The vector of word w is scales[w] · rows[w], int8 times float32.
    """
    if not native_available() or rows.shape[1] % WIDTH_MULTIPLE:
        return _plain_sum_word_vectors(ids, starts, rows, scales)
    ids = np.ascontiguousarray(ids, np.int32)
    out = np.empty((len(starts) - 1, rows.shape[1]), np.float32)
    _sum_word_vectors(
        ids.ctypes.data,
        starts.ctypes.data,
        len(out),
        rows.ctypes.data,
        scales.ctypes.data,
        rows.shape[1],
        out.ctypes.data,
    )
    return out


def _plain_sum_word_vectors(
    ids: np.ndarray, starts: np.ndarray, rows: np.ndarray, scales: np.ndarray
) -> np.ndarray:
    known = ids >= 0
    elements = np.repeat(np.arange(len(starts) - 1), np.diff(starts))[known]
    out = np.zeros((len(starts) - 1, rows.shape[1]), np.float32)
    np.add.at(out, elements, rows[ids[known]] * scales[ids[known], None])
    return out


def compare_sides(vectors: np.ndarray, scale: int) -> tuple[np.ndarray, np.ndarray]:
    """Cosine and gain of a split of the `scale` vectors before and after each gap, (n,) each.

    L and R are the sums of the vectors on the left and on the right, l and r their numbers. The
    gain is |L|²/l + |R|²/r − |L + R|²/(l + r): by how much the squared error decreases if each side
    is described by its own mean. At the first element the cosine is 1 and the gain 0.
    """
    if not native_available() or vectors.shape[1] % WIDTH_MULTIPLE:
        return _plain_compare_sides(vectors, scale)
    count, width = vectors.shape
    vectors = np.ascontiguousarray(vectors, np.float32)
    cosine, gain = np.ones(count), np.zeros(count)
    sums = np.empty(2 * width)
    _compare_sides(
        vectors.ctypes.data,
        count,
        width,
        scale,
        sums.ctypes.data,
        cosine.ctypes.data,
        gain.ctypes.data,
    )
    return cosine, gain


def _plain_compare_sides(vectors: np.ndarray, scale: int) -> tuple[np.ndarray, np.ndarray]:
    count = len(vectors)
    sums = cumulative_sums(vectors)
    gap = np.arange(count)
    low, high = np.maximum(gap - scale, 0), np.minimum(gap + scale, count)
    left, right = sums[gap] - sums[low], sums[high] - sums[gap]
    left_squared, right_squared = (left * left).sum(axis=1), (right * right).sum(axis=1)
    product = (left * right).sum(axis=1)
    cosine = product / np.sqrt(np.maximum(left_squared * right_squared, 1e-12))
    gain = (
        left_squared / np.maximum(gap - low, 1)
        + right_squared / (high - gap)
        - (left_squared + right_squared + 2 * product) / (high - low)
    )
    cosine[0], gain[0] = 1, 0
    return cosine, gain


def compare_with_context(vectors: np.ndarray, scale: int) -> tuple[np.ndarray, np.ndarray]:
    """Cosine of each vector with the sum of the `scale` vectors before, and after it, (n,) each."""
    if not native_available() or vectors.shape[1] % WIDTH_MULTIPLE:
        return _plain_compare_with_context(vectors, scale)
    count, width = vectors.shape
    vectors = np.ascontiguousarray(vectors, np.float32)
    before, after = np.empty((2, count))
    sums = np.empty(2 * width)
    _compare_with_context(
        vectors.ctypes.data,
        count,
        width,
        scale,
        sums.ctypes.data,
        before.ctypes.data,
        after.ctypes.data,
    )
    return before, after


def _plain_compare_with_context(vectors: np.ndarray, scale: int) -> tuple[np.ndarray, np.ndarray]:
    count = len(vectors)
    sums, index = cumulative_sums(vectors), np.arange(count)
    before = sums[index] - sums[np.maximum(index - scale, 0)]
    after = sums[np.minimum(index + 1 + scale, count)] - sums[index + 1]
    squared = np.einsum("nw,nw->n", vectors, vectors, dtype=np.float64)
    cosines = []
    for side in (before, after):
        norms = squared * np.einsum("nw,nw->n", side, side)
        products = np.einsum("nw,nw->n", vectors, side)
        cosines.append(products / np.sqrt(np.maximum(norms, 1e-12)))
    return cosines[0], cosines[1]


def cumulative_sums(vectors: np.ndarray) -> np.ndarray:
    """Sums of the first 0 … n vectors, (n + 1, width), float64."""
    sums = np.zeros((len(vectors) + 1, vectors.shape[1]))
    np.cumsum(vectors, axis=0, dtype=np.float64, out=sums[1:])
    return sums


def square_run_sums(vectors: np.ndarray, longest: int) -> np.ndarray:
    """Squared norms of the sums of runs of vectors, (n + 1, longest).

    Entry [e, L − 1] is that of the L vectors that end before element e; 0 if there are fewer.
    """
    sums = cumulative_sums(vectors)
    out = np.zeros((len(sums), longest))
    if native_available() and vectors.shape[1] % WIDTH_MULTIPLE == 0:
        _square_run_sums(sums.ctypes.data, len(vectors), vectors.shape[1], longest, out.ctypes.data)
        return out
    for length in range(1, min(longest, len(vectors)) + 1):
        difference = sums[length:] - sums[:-length]
        out[length:, length - 1] = (difference * difference).sum(axis=1)
    return out


def sum_change_points(
    squares: np.ndarray, constants: np.ndarray, slopes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Sums over all segmentations in logarithms, forward and backward, (n + 1,) each.

    `squares` are those of `square_run_sums`. The log weight of a segment of L elements is
    constants[L − 1] + slopes[L − 1] · its squared norm. Entry e of the first result is the sum over
    the segmentations of the first e elements; entry s of the second is that of the elements from s
    on.
    """
    count, longest = len(squares) - 1, squares.shape[1]
    if not native_available():
        return _plain_sum_change_points(squares, constants, slopes)
    forward, backward = np.empty((2, count + 1))
    terms, values = np.empty(longest + WIDTH_MULTIPLE, np.float32), np.empty(longest)
    constants, slopes = np.ascontiguousarray(constants), np.ascontiguousarray(slopes)
    _sum_change_points(
        squares.ctypes.data,
        count,
        longest,
        constants.ctypes.data,
        slopes.ctypes.data,
        terms.ctypes.data,
        values.ctypes.data,
        forward.ctypes.data,
        backward.ctypes.data,
    )
    return forward, backward


def _plain_sum_change_points(
    squares: np.ndarray, constants: np.ndarray, slopes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    count, longest = len(squares) - 1, squares.shape[1]
    weights = constants + slopes * squares  # of the segment that ends at each element
    forward, backward = np.zeros((2, count + 1))
    for end in range(1, count + 1):
        size = min(end, longest)
        forward[end] = _log_sum_exp(forward[end - size : end][::-1] + weights[end, :size])
    lengths = np.arange(longest)
    for start in range(count - 1, -1, -1):
        size = min(count - start, longest)
        ends = start + 1 + lengths[:size]
        backward[start] = _log_sum_exp(backward[ends] + weights[ends, lengths[:size]])
    return forward, backward


def _log_sum_exp(values: np.ndarray) -> float:
    maximum = values.max(initial=LOG_ZERO)
    return float(maximum + np.log(np.exp(values - maximum).sum()))

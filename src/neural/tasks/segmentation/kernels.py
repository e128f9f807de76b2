"""Loops over the words of a document: native kernels, or plain code without the native library.

Words of a document are arrays: `ids[starts[i] : starts[i + 1]]` are the word ids of element i (a
sentence or line), int32 and int64. A token is an index into `ids`. A stem is a word without its
suffix; for stems, `ids` are stem ids. A gap is the place between an element and the one before it;
it has the index of the element. n is the number of elements.

The kernels are in native/kernels/segmentation_features.cpp; plain_kernels.py has the same functions
in NumPy and Python, which define the results.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neural.native.library import NativeFunction, native_available
from neural.tasks.segmentation import plain_kernels

MODELS_PER_CALL = 4
"""Models that `sum_segmentations` computes together; the same in segmentation_features.cpp."""
_find_distinct_words = NativeFunction("find_distinct_words", "ppi p ppp")
_replace_words = NativeFunction("replace_words", "ppi p pp")
_find_word_distances = NativeFunction("find_word_distances", "ppi i p pp")
_count_far_words = NativeFunction("count_far_words", "ppi pi p")
_count_chain_links = NativeFunction("count_chain_links", "pppi i ppp")
_mark_word_kinds = NativeFunction("mark_word_kinds", "ppi pi pi p")
_compute_sliding_cosine = NativeFunction("compute_sliding_cosine", "ppi pi pp pi")
_compute_depths = NativeFunction("compute_depths", "pii pi")
_count_shared_words = NativeFunction("count_shared_words", "pppp iiii p")
_summarize_similarities = NativeFunction("summarize_similarities", "piii pi pp")
_sum_segmentations = NativeFunction("sum_segmentations", "pppp i ppp i pppp p")


def find_distinct_words(
    ids: np.ndarray, starts: np.ndarray, vocabulary_size: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each word of an element once, in order of first use: their ids, counts and starts.

    Counts say how often the element uses the word.
    """
    if not native_available():
        return plain_kernels.find_distinct_words(ids, starts, vocabulary_size)
    slots = np.full(vocabulary_size, -1, np.int32)
    out_ids, out_counts = np.empty((2, len(ids)), np.int32)
    out_starts = np.empty(len(starts), np.int64)
    _find_distinct_words(
        _address(ids, np.int32),
        _address(starts, np.int64),
        len(starts) - 1,
        slots.ctypes.data,
        out_ids.ctypes.data,
        out_counts.ctypes.data,
        out_starts.ctypes.data,
    )
    size = out_starts[-1]
    return out_ids[:size].copy(), out_counts[:size].copy(), out_starts


def replace_words(
    ids: np.ndarray, starts: np.ndarray, new_ids: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Ids and starts of words with new ids, without those whose new id is below 0.

    `new_ids` has a new id for every word of the vocabulary, int32.
    """
    if not native_available():
        return plain_kernels.replace_words(ids, starts, new_ids)
    out_ids, out_starts = np.empty(len(ids), np.int32), np.empty(len(starts), np.int64)
    _replace_words(
        _address(ids, np.int32),
        _address(starts, np.int64),
        len(starts) - 1,
        _address(new_ids, np.int32),
        out_ids.ctypes.data,
        out_starts.ctypes.data,
    )
    return out_ids[: out_starts[-1]].copy(), out_starts


def find_word_distances(
    ids: np.ndarray, starts: np.ndarray, vocabulary_size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Distances of every token to the previous and to the next use of its word, (tokens,) each.

    Distances are in elements, int32: 0 for a repetition within one element. If the word is not used
    before (or after), the distance is twice the number of elements, more than any real distance.
    """
    if not native_available():
        return plain_kernels.find_word_distances(ids, starts, vocabulary_size)
    last = np.full(vocabulary_size, -1, np.int32)
    back, ahead = np.empty((2, len(ids)), np.int32)
    elements = len(starts) - 1
    _find_word_distances(
        _address(ids, np.int32),
        _address(starts, np.int64),
        elements,
        2 * elements,
        last.ctypes.data,
        back.ctypes.data,
        ahead.ctypes.data,
    )
    return back, ahead


def count_far_words(distances: np.ndarray, starts: np.ndarray, limits: Sequence[int]) -> np.ndarray:
    """Number of tokens of each element whose distance is above each limit, (n, limits).

    `distances` are those of `find_word_distances`.
    """
    if not native_available():
        return plain_kernels.count_far_words(distances, starts, limits)
    limit_array = np.array(limits, np.int64)
    out = np.empty((len(starts) - 1, len(limits)), np.int32)
    _count_far_words(
        _address(distances, np.int32),
        _address(starts, np.int64),
        len(out),
        limit_array.ctypes.data,
        len(limits),
        out.ctypes.data,
    )
    return out


def count_chain_links(
    back: np.ndarray, ahead: np.ndarray, starts: np.ndarray, distance: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Links across each gap, and chains that begin and that end at each element, (n,) each.

    `back` and `ahead` are the distances of `find_word_distances`. A link joins two consecutive uses
    of a word that are 1 to `distance` elements apart; a chain is a series of links.
    """
    if not native_available():
        return plain_kernels.count_chain_links(back, ahead, starts, distance)
    elements = len(starts) - 1
    bridging = np.zeros(elements + 1, np.int32)
    begins, ends = np.empty((2, elements), np.int32)
    _count_chain_links(
        _address(back, np.int32),
        _address(ahead, np.int32),
        _address(starts, np.int64),
        elements,
        distance,
        bridging.ctypes.data,
        begins.ctypes.data,
        ends.ctypes.data,
    )
    return bridging[:-1], begins, ends


def mark_word_kinds(
    ids: np.ndarray, starts: np.ndarray, kinds: np.ndarray, kind_count: int, limits: Sequence[int]
) -> np.ndarray:
    """Whether a word of each kind is among the first words of each element: (n, limits, kinds).

    `kinds` is the kind of every word of the vocabulary, −1 for none, int8. `limits` are numbers of
    words.
    """
    if not native_available():
        return plain_kernels.mark_word_kinds(ids, starts, kinds, kind_count, limits)
    limit_array = np.array(limits, np.int64)
    marks = np.zeros((len(starts) - 1, len(limits), kind_count), bool)
    _mark_word_kinds(
        _address(ids, np.int32),
        _address(starts, np.int64),
        len(marks),
        _address(kinds, np.int8),
        kind_count,
        limit_array.ctypes.data,
        len(limits),
        marks.ctypes.data,
    )
    return marks


def compute_sliding_cosine(
    ids: np.ndarray, starts: np.ndarray, weights: np.ndarray, scale: int, out: np.ndarray
) -> None:
    """Cosine between the `scale` elements before each gap and those after it, into out[1:].

    Each side is a vector with the count of each stem; `weights` are the weights of the stems in the
    dot product. `out` is a column of a table, (n,).
    """
    if not native_available():
        plain_kernels.compute_sliding_cosine(ids, starts, weights, scale, out)
        return
    counts = np.zeros((2, len(weights)))
    _compute_sliding_cosine(
        _address(ids, np.int32),
        _address(starts, np.int64),
        len(starts) - 1,
        _address(weights, np.float64),
        scale,
        counts[0].ctypes.data,
        counts[1].ctypes.data,
        out.ctypes.data,
        _item_stride(out),
    )


def compute_depths(values: np.ndarray, out: np.ndarray) -> None:
    """Depth of each value: how far it is below the nearest peaks on its left and right, added.

    values[0] is ignored: the first element has no gap before it. Both are columns of tables, (n,).
    """
    if not native_available():
        plain_kernels.compute_depths(values, out)
        return
    _compute_depths(
        values.ctypes.data, len(values), _item_stride(values), out.ctypes.data, _item_stride(out)
    )


def count_shared_words(
    ids: np.ndarray,
    starts: np.ndarray,
    holders: np.ndarray,
    holder_starts: np.ndarray,
    rows: slice,
    columns: slice,
) -> np.ndarray:
    """Number of words that each pair of elements shares, (rows, columns), float64.

    `holders[holder_starts[w] : holder_starts[w + 1]]` are the elements that contain word w, in
    increasing order, int32. `ids` has each word of an element once.
    """
    if not native_available():
        return plain_kernels.count_shared_words(ids, starts, holders, holder_starts, rows, columns)
    out = np.zeros((rows.stop - rows.start, columns.stop - columns.start))
    _count_shared_words(
        _address(ids, np.int32),
        _address(starts, np.int64),
        _address(holders, np.int32),
        _address(holder_starts, np.int64),
        rows.start,
        len(out),
        columns.start,
        columns.stop,
        out.ctypes.data,
    )
    return out


def summarize_similarities(
    block: np.ndarray, first: int, threshold: float, radius: int, out: np.ndarray
) -> None:
    """Statistics of an element's similarities to all others; their names are feature.STATISTICS.

    `block` holds rows of a similarity matrix with a column for each element of the document; its
    first row is that of element `first`. Row i of `out` gets the statistics of element i. Elements
    are similar from `threshold` on, and neighbours up to a distance of `radius`. The similarity of
    an element to itself is excluded.
    """
    if not native_available():
        plain_kernels.summarize_similarities(block, first, threshold, radius, out)
        return
    block, limit = np.ascontiguousarray(block, np.float64), np.array([threshold])
    rows, count = block.shape
    values = np.empty(count)
    _summarize_similarities(
        block.ctypes.data,
        rows,
        count,
        first,
        limit.ctypes.data,
        radius,
        values.ctypes.data,
        _address(out, np.float64),
    )


def sum_segmentations(
    ids: np.ndarray,
    counts: np.ndarray,
    starts: np.ndarray,
    vocabulary_size: int,
    log_counts: np.ndarray,
    log_totals: np.ndarray,
    log_continue: np.ndarray,
    log_end: np.ndarray,
    max_elements: int,
) -> np.ndarray:
    """Log-likelihood of the first i elements, summed over all segmentations, for i = 0 … n.

    The result is (n + 1, models). `ids`, `counts` and `starts` are those of `find_distinct_words`.
    The likelihood of a segment is that of a Pólya urn: the probability of a stem that occurred c
    times among the w words of the segment so far is exp(log_counts[c] − log_totals[w]); both tables
    are (words, models). `log_continue` and `log_end`, (models,), are the log prior probabilities
    that a segment continues or ends after an element; segments have at most `max_elements`.
    """
    if not native_available():
        return plain_kernels.sum_segmentations(
            ids,
            counts,
            starts,
            vocabulary_size,
            log_counts,
            log_totals,
            log_continue,
            log_end,
            max_elements,
        )
    elements, models = len(starts) - 1, len(log_end)
    padding = -models % MODELS_PER_CALL
    count_sums, total_sums = (
        np.pad(np.cumsum(table, axis=0), ((1, 0), (0, padding)))
        for table in (log_counts, log_totals)
    )
    priors = np.pad(np.stack([log_continue, log_end]), ((0, 0), (0, padding)))
    word_starts = np.concatenate([[0], np.cumsum(counts)])[starts]
    max_elements = min(max_elements, max(elements, 1))
    previous, element_ids = np.empty((2, len(ids)), np.int32)
    scratch = np.empty(12 * (max_elements + 1))
    log_sums = np.empty((elements + 1, models + padding))
    for first in range(0, models, MODELS_PER_CALL):
        group = slice(first, first + MODELS_PER_CALL)
        group_sums = np.empty((elements + 1, MODELS_PER_CALL))
        last = np.full(vocabulary_size, -1, np.int32)
        tables = [
            np.ascontiguousarray(table[:, group]) for table in (count_sums, total_sums, priors)
        ]
        _sum_segmentations(
            _address(ids, np.int32),
            _address(counts, np.int32),
            _address(starts, np.int64),
            _address(word_starts, np.int64),
            elements,
            *(table.ctypes.data for table in tables),
            max_elements,
            last.ctypes.data,
            previous.ctypes.data,
            element_ids.ctypes.data,
            scratch.ctypes.data,
            group_sums.ctypes.data,
        )
        log_sums[:, group] = group_sums
    return log_sums[:, :models]


def _address(array: np.ndarray, dtype: type[np.generic]) -> int:
    """Address of a contiguous array; ValueError for another type or layout."""
    if array.dtype != dtype or not array.flags.c_contiguous:
        raise ValueError(
            f"a contiguous array of {dtype.__name__} is needed, got {array.dtype} "
            f"with strides {array.strides}"
        )
    return array.ctypes.data


def _item_stride(column: np.ndarray) -> int:
    """Distance between neighbouring numbers of a float64 column, in numbers."""
    if column.dtype != np.float64 or column.ndim != 1:
        raise ValueError(f"a column of float64 is needed, got {column.ndim}-d {column.dtype}")
    return column.strides[0] // column.itemsize

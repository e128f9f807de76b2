"""The kernels of kernels.py in plain NumPy and Python: their definition, and the fallback.

They run where the native library is missing or switched off. Arguments and results are those of
the functions of the same names in kernels.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

LOG_ZERO = -1e30
"""Finite stand-in for log(0), because infinities would give NaN."""


def find_distinct_words(
    ids: np.ndarray, starts: np.ndarray, vocabulary_size: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each word of an element once."""
    cells = _element_ids(starts) * vocabulary_size + ids
    _, first_tokens, counts = np.unique(cells, return_index=True, return_counts=True)
    order = np.argsort(first_tokens)  # order of first use
    return (
        ids[first_tokens[order]],
        counts[order].astype(np.int32),
        np.searchsorted(first_tokens[order], starts),
    )


def replace_words(
    ids: np.ndarray, starts: np.ndarray, new_ids: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Words with new ids, without those whose new id is below 0."""
    replaced = new_ids[ids]
    is_kept = replaced >= 0
    return replaced[is_kept], np.concatenate([[0], np.cumsum(is_kept)])[starts]


def find_word_distances(
    ids: np.ndarray, starts: np.ndarray, vocabulary_size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Distances of every token to the previous and to the next use of its word."""
    no_use_distance = 2 * (len(starts) - 1)
    order = np.argsort(ids, kind="stable")
    words, element_ids = ids[order], _element_ids(starts)[order]
    distances = np.where(words[1:] == words[:-1], np.diff(element_ids), no_use_distance)
    back = np.full(len(ids), no_use_distance, np.int32)
    ahead = back.copy()
    back[order[1:]] = distances
    ahead[order[:-1]] = distances
    return back, ahead


def count_far_words(distances: np.ndarray, starts: np.ndarray, limits: Sequence[int]) -> np.ndarray:
    """Number of tokens of each element whose distance is above each limit."""
    is_far = distances[:, None] > np.asarray(limits)
    return np.diff(np.concatenate([[[0] * len(limits)], np.cumsum(is_far, axis=0)])[starts], axis=0)


def count_chain_links(
    back: np.ndarray, ahead: np.ndarray, starts: np.ndarray, distance: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Links across each gap, and chains that begin and end at each element."""
    count, element_ids = len(starts) - 1, _element_ids(starts)
    is_linked = (ahead > 0) & (ahead <= distance)
    first_elements = element_ids[is_linked]
    # A difference array: +1 after the element where a link begins, −1 after the one where it ends.
    # In a document so short that "not used again" is a link, that is beyond the end.
    steps = (
        np.bincount(first_elements + 1, minlength=count + 1)
        - np.bincount(first_elements + ahead[is_linked] + 1, minlength=count + 1)[: count + 1]
    )
    is_first = (back > distance) & (ahead <= distance)
    is_last = (back <= distance) & (ahead > distance)
    return (
        np.cumsum(steps)[:count],
        np.bincount(element_ids[is_first], minlength=count),
        np.bincount(element_ids[is_last], minlength=count),
    )


def mark_word_kinds(
    ids: np.ndarray, starts: np.ndarray, kinds: np.ndarray, kind_count: int, limits: Sequence[int]
) -> np.ndarray:
    """Whether a word of each kind is among the first words of each element."""
    marks = np.zeros((len(starts) - 1, len(limits), kind_count), bool)
    element_ids, token_kinds = _element_ids(starts), kinds[ids]
    positions = np.arange(len(ids)) - starts[element_ids]
    for column, limit in enumerate(limits):
        selected = (token_kinds >= 0) & (positions < limit)
        marks[element_ids[selected], column, token_kinds[selected]] = True
    return marks


def compute_sliding_cosine(
    ids: np.ndarray, starts: np.ndarray, weights: np.ndarray, scale: int, out: np.ndarray
) -> None:
    """Cosine between the `scale` elements before each gap and those after it, into out[1:].

    `left_squared` and `right_squared` are the squared norms of the two vectors of counts c. When
    the gap moves on by one element, the dot product and the squared norms are updated word by word:
    (c ± 1)² = c² ± 2c + 1. So every word is read at most four times, at any scale.
    """
    count = len(starts) - 1
    left, right = np.zeros(len(weights)), np.zeros(len(weights))
    product, left_squared, right_squared = 0.0, 0.0, 0.0
    left_words, right_words = 0, 0
    for element in range(min(scale, count)):
        for stem in ids[starts[element] : starts[element + 1]]:
            right_squared += weights[stem] * (2 * right[stem] + 1)
            right[stem] += 1
            right_words += 1
    for gap in range(1, count):
        # Element gap − 1 moves from the right to the left side.
        for stem in ids[starts[gap - 1] : starts[gap]]:
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
            for stem in ids[starts[leaving] : starts[leaving + 1]]:
                product -= weights[stem] * right[stem]
                left_squared -= weights[stem] * (2 * left[stem] - 1)
                left[stem] -= 1
            left_words -= starts[leaving + 1] - starts[leaving]
        if gap - 1 + scale < count:
            entering = gap - 1 + scale
            for stem in ids[starts[entering] : starts[entering + 1]]:
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


def compute_depths(values: np.ndarray, out: np.ndarray) -> None:
    """Depth of each value: how far it is below the nearest peaks on its left and right, added."""
    count = len(values)
    peak = 0.0
    for i in range(1, count):
        peak = values[i] if i == 1 or values[i - 1] < values[i] else peak
        out[i] = peak - values[i]
    for i in range(count - 1, 0, -1):
        peak = values[i] if i == count - 1 or values[i + 1] < values[i] else peak
        out[i] += peak - values[i]


def count_shared_words(
    ids: np.ndarray,
    starts: np.ndarray,
    holders: np.ndarray,
    holder_starts: np.ndarray,
    rows: slice,
    columns: slice,
) -> np.ndarray:
    """Number of words that each pair of elements shares."""
    out = np.zeros((rows.stop - rows.start, columns.stop - columns.start))
    for row in range(len(out)):
        for word in ids[starts[rows.start + row] : starts[rows.start + row + 1]]:
            elements = holders[holder_starts[word] : holder_starts[word + 1]]
            first, last = np.searchsorted(elements, (columns.start, columns.stop))
            out[row, elements[first:last] - columns.start] += 1
    return out


def summarize_similarities(
    block: np.ndarray, first: int, threshold: float, radius: int, out: np.ndarray
) -> None:
    """Statistics of each element's similarities to all others, into the rows of `out`."""
    count = block.shape[1]
    others = count - 1
    for row, similarities in enumerate(block):
        i = first + row
        values = np.delete(similarities, i)
        descending = np.sort(values)[::-1]
        largest = descending[0]
        match = np.flatnonzero((similarities == largest) & (np.arange(count) != i))[0]
        before, after = similarities[max(0, i - radius) : i], similarities[i + 1 : i + 1 + radius]
        out[i] = (
            values.mean(),
            max(largest, 0.0),
            values.std(),
            # The last of the most similar quarter, and of the most similar tenth, rounded up.
            descending[(others + 3) // 4 - 1],
            descending[(others + 9) // 10 - 1],
            (values >= threshold).mean(),
            similarities[i - 1] if i > 0 else 0.0,
            similarities[i + 1] if i < others else 0.0,
            similarities[0] if i > 0 else 1.0,
            similarities[others] if i < others else 1.0,
            after.sum() / max(1, len(after)) - before.sum() / max(1, len(before)),
            (match if largest > 0 else i) / others,
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
    """Log-likelihood of the first i elements, summed over all segmentations, for every i.

    Forward algorithm: the sum for the first `end` elements runs over all starts of the last
    segment.
    """
    count = len(starts) - 1
    log_sums = np.full((count + 1, len(log_end)), LOG_ZERO)
    log_sums[0] = 0.0
    for end in range(1, count + 1):
        values = []
        stem_counts: dict[int, int] = {}
        log_likelihood, words = np.zeros(len(log_end)), 0
        for start in range(end - 1, max(0, end - max_elements) - 1, -1):
            for token in range(starts[start], starts[start + 1]):
                stem, uses = int(ids[token]), int(counts[token])
                used = stem_counts.get(stem, 0)
                log_likelihood = (
                    log_likelihood
                    + log_counts[used : used + uses].sum(axis=0)
                    - log_totals[words : words + uses].sum(axis=0)
                )
                stem_counts[stem] = used + uses
                words += uses
            values.append(
                log_sums[start] + log_likelihood + log_end + log_continue * (end - start - 1)
            )
        largest = np.max(values, axis=0)
        log_sums[end] = largest + np.log(np.exp(np.array(values) - largest).sum(axis=0))
    return log_sums


def _element_ids(starts: np.ndarray) -> np.ndarray:
    """Element index of each token."""
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts))

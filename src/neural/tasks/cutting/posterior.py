"""Where parts begin if every part draws its words from a vocabulary of its own: the probability of each gap.

A part's words are explained by what the part itself has said before (a Dirichlet over the document's stems, integrated
out), a part goes on with the same probability at every element, and all segmentations are summed over, forward and
backward (Utiyama and Isahara, 2001; Eisenstein and Barzilay, 2008). Nothing is trained; parts longer than `most` are
not thought of, so time and memory grow with the number of words.
"""

from __future__ import annotations

import numpy as np

from neural.tasks.cutting.kernels import fast
from neural.tasks.cutting.words import Words

NEVER = -1e30


def log_odds(stems: Words, *, usual: float, share: float, prior: float = 0.2, most: int = 48) -> np.ndarray:
    """Logarithms of the odds that a part begins at each element, (n,); those of the first mean nothing.

    `usual` is how long parts are thought to be, in elements; `prior` how often a stem has been said before it was said.
    Words come in bursts, so each counts as `share` of an independent one.
    """
    longest = int(stems.counts.max(initial=0)) * most + 1
    whole = max(1, len(stems.vocabulary))
    said = np.log(np.arange(longest) + prior) * share
    all_said = np.log(np.arange(longest) + prior * whole) * share
    goes_on, ends = np.log1p(-1 / usual), -np.log(usual)
    counts = np.zeros(whole, dtype=np.int64)
    ahead = sums(stems.ids, stems.starts, said, all_said, goes_on, ends, most, counts)
    turned, edges = stems.ids[::-1].copy(), (stems.starts[-1] - stems.starts[::-1]).copy()
    back = sums(turned, edges, said, all_said, goes_on, ends, most, counts)[::-1]
    cut = np.minimum(ahead + back - ahead[-1], -1e-9)[:-1]
    return cut - np.log(-np.expm1(cut))


@fast
def sums(ids, starts, said, all_said, goes_on, ends, most, counts):  # noqa: ANN001, ANN201 (numba reads none)
    """The logarithm of the sum over all segmentations that end before each element, and at the end, (n + 1,)."""
    count = len(starts) - 1
    found = np.full(count + 1, NEVER)
    found[0] = 0.0
    for end in range(1, count + 1):
        score, words, largest, total = 0.0, 0, NEVER, 0.0
        first = max(0, end - most)
        for start in range(end - 1, first - 1, -1):
            for place in range(starts[start], starts[start + 1]):
                stem = ids[place]
                score += said[counts[stem]] - all_said[words]
                counts[stem] += 1
                words += 1
            value = found[start] + score + ends + goes_on * (end - start - 1)
            if value > largest:
                total = total * np.exp(largest - value) + 1.0
                largest = value
            else:
                total += np.exp(value - largest)
        found[end] = largest + np.log(total)
        for place in range(starts[first], starts[end]):
            counts[ids[place]] = 0
    return found

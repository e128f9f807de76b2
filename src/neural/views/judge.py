"""All quality measures of some samples: the rows `generation/…` of a run.

    references = References(training=text[:split], held_out=text[split:])
    run.log(step, judge(samples, references))
    run.describe("generation/real", real_text(references, samples=10, length=500))
"""

from __future__ import annotations

from collections.abc import Sequence

from neural.views.quality import registry
from neural.views.quality_measure import References

PREFIX = "generation/"


def judge(samples: Sequence[str], references: References) -> dict[str, float]:
    """`generation/distinct_2`, `generation/bits`, …: averages over samples, which must be of one length.

    Bytes are decoded by the caller. NaN where the samples are too short for a measure.
    """
    lengths = {len(one) for one in samples}
    if len(lengths) != 1 or lengths == {0}:
        found = f"{min(lengths)} to {max(lengths)} characters" if lengths - {0} else "nothing to judge"
        raise ValueError(f"quality is measured on samples of one length, as all of it changes with the length: {found}")
    found = {}
    for name in registry.names():
        found |= registry.get(name)().scores(samples, references)
    return {PREFIX + name: value for name, value in found.items()}


def meanings() -> dict[str, str]:
    """What every measure says, in a sentence."""
    return {name: registry.get(name).summary() for name in registry.names()}


def real_text(references: References, *, samples: int, length: int) -> dict[str, float]:
    """The same numbers of real text, to read the others by: evenly spaced pieces of the training text.

    The n-gram model has not seen them. Their novelty is 0 by construction.
    """
    text = references.training
    if len(text) < length:
        raise ValueError(f"the training text has {len(text)} characters, fewer than a sample of {length}")
    last = len(text) - length
    starts = [round(number * last / max(1, samples - 1)) for number in range(samples)]
    return judge([text[at : at + length] for at in starts], references)

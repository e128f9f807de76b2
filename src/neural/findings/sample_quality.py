"""Quality of generated text: runs all quality measures (findings/quality/) on some samples.

A sample is a generated text. The results are logged in a run as metrics named `generation/…`:

    references = ReferenceTexts(training=text[:split], held_out=text[split:])
    run.log(step, measure_quality(samples, references))
    run.set_metadata(REAL_TEXT_KEY, measure_real_text(references, sample_count=10, length=500))
"""

from __future__ import annotations

from collections.abc import Sequence

from neural.findings.quality import registry
from neural.findings.quality_measure import ReferenceTexts

METRIC_PREFIX = "generation/"
"""Start of the names of all metrics."""
SAMPLES_KEY = "generation/samples"
"""Key in the metadata of a run: one sample per validation, by step."""
REAL_TEXT_KEY = "generation/real_text"
"""Key in the metadata of a run: the same metrics, measured on real text."""


def measure_quality(samples: Sequence[str], references: ReferenceTexts) -> dict[str, float]:
    """Metrics `generation/distinct_2`, `generation/bits`, …, averaged over samples of one length.

    NaN where the samples are too short for a measure. ValueError if their lengths differ.
    """
    lengths = {len(sample) for sample in samples}
    if len(lengths) != 1 or lengths == {0}:
        reason = (
            f"{min(lengths)} to {max(lengths)} characters" if lengths - {0} else "no characters"
        )
        raise ValueError(
            f"quality depends on the length, so all samples must have the same length, not {reason}"
        )
    scores = {}
    for name in registry.names():
        scores |= registry.get(name)().compute_scores(samples, references)
    return {METRIC_PREFIX + name: value for name, value in scores.items()}


def describe_measures() -> dict[str, str]:
    """Measure name → the first line of its docstring."""
    return {name: registry.get(name).summary() for name in registry.names()}


def measure_real_text(
    references: ReferenceTexts, *, sample_count: int, length: int
) -> dict[str, float]:
    """The metrics of real text, for comparison: `sample_count` chunks of the training text.

    The chunks have `length` characters and are evenly spaced. The n-gram model of the metric `bits`
    is fitted to held-out text, so they are new to it. Their `novelty` is 0 by construction.
    """
    text = references.training
    if len(text) < length:
        raise ValueError(
            f"the training text has {len(text)} characters, fewer than a sample of {length}"
        )
    last_start = len(text) - length
    starts = [round(index * last_start / max(1, sample_count - 1)) for index in range(sample_count)]
    return measure_quality([text[start : start + length] for start in starts], references)

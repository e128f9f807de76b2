"""Claim, docs/claims.md: "attention patterns become more focused (lower entropy) as training progresses"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from neural.tracking.run import Run
from neural.views.finding import Analysis, Finding, below
from neural.views.reading import mean, measure
from neural.views.seeds import number, over_seeds


class EntropyFalls(Analysis):
    """Change of the mean entropy of all heads from the first look to the last, in nats: negative is more focused."""

    code: ClassVar[str] = "EVO001"
    claim: ClassVar[str] = "entropy falls while the model learns"
    unit: ClassVar[str] = "nats"
    advice: ClassVar[str] = "look more often early on: what falls before the first look is not seen"

    def examine(self, runs: Sequence[Run]) -> Finding:
        """By the interval of the change."""
        changes, starts, ends, heads, first, last = [], [], [], [], set(), set()
        for run in runs:
            steps, entropy = measure(run, "entropy")
            if len(steps) < 2:
                continue
            start, end = entropy[0], entropy[-1]
            changes.append(float(mean(end) - mean(start)))
            starts.append(float(mean(start)))
            ends.append(float(mean(end)))
            heads.append(float(mean(np.where(np.isfinite(end - start), end < start, np.nan))))
            first.add(int(steps[0]))
            last.add(int(steps[-1]))
        change = over_seeds(changes)
        if not changes:
            return self.found("undecided", change, "no run has two looks at its attention")
        evidence = (
            f"from {number(over_seeds(starts).value)} nats at step {_span(first)} to {number(over_seeds(ends).value)} "
            f"at step {_span(last)}; lower in {over_seeds(heads).value:.0%} of the heads"
        )
        return self.found(below(change), change, evidence)


def _span(steps: set[int]) -> str:
    return f"{min(steps):,}" if len(steps) == 1 else f"{min(steps):,} to {max(steps):,}"

"""Claim (docs/claims.md): "attention patterns become more focused (lower entropy)" in training.

A snapshot is the attention of fixed validation examples, measured at one training step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from neural.findings.check import AnalysisCheck, Finding, decide_below
from neural.findings.record import Record
from neural.findings.run_loading import finite_mean, load_measure
from neural.stats.estimate import format_number
from neural.stats.means import estimate_mean


class EntropyFalls(AnalysisCheck):
    """Tests whether the entropy of the attention weights is lower at the end than at the start.

    The entropy is averaged over layers and heads. The number is its value at the last snapshot
    minus that at the first, in nats; it is negative if attention became more focused.
    """

    code: ClassVar[str] = "EVO001"
    claim: ClassVar[str] = "entropy falls while the model learns"
    unit: ClassVar[str] = "nats"
    advice: ClassVar[str] = (
        "track more often early on: a fall before the first snapshot is not recorded"
    )

    def check_runs(self, runs: Sequence[Record]) -> Finding:
        """Supported if the 95 % interval of the change, over seeds, lies below 0."""
        changes, first_means, last_means, falling_shares = [], [], [], []
        first_steps, last_steps = set(), set()
        for run in runs:
            steps, entropy = load_measure(run, "entropy")
            if len(steps) < 2:
                continue
            first_entropy, last_entropy = entropy[0], entropy[-1]
            changes.append(float(finite_mean(last_entropy) - finite_mean(first_entropy)))
            first_means.append(float(finite_mean(first_entropy)))
            last_means.append(float(finite_mean(last_entropy)))
            # [layer, head]; NaN where a layer has fewer heads
            has_fallen = np.where(
                np.isfinite(last_entropy - first_entropy), last_entropy < first_entropy, np.nan
            )
            falling_shares.append(float(finite_mean(has_fallen)))
            first_steps.add(int(steps[0]))
            last_steps.add(int(steps[-1]))
        change = estimate_mean(changes)
        if not changes:
            return self.create_finding(
                "undecided", change, "no run has two snapshots of its attention"
            )
        evidence = (
            f"from {format_number(estimate_mean(first_means).value)} nats "
            f"at step {_format_step_range(first_steps)} "
            f"to {format_number(estimate_mean(last_means).value)} "
            f"at step {_format_step_range(last_steps)}; "
            f"lower in {estimate_mean(falling_shares).value:.0%} of the heads"
        )
        return self.create_finding(decide_below(change), change, evidence)


def _format_step_range(steps: set[int]) -> str:
    return f"{min(steps):,}" if len(steps) == 1 else f"{min(steps):,} to {max(steps):,}"

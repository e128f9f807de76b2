"""Claim (docs/claims.md): "some heads specialize in very local (1-3 token) patterns".

The measure `span90` of a head is the distance from the query, in positions, within which 90 % of
its attention weight lies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from neural.findings.check import AnalysisCheck, Finding
from neural.findings.record import Record
from neural.findings.run_loading import has_learned, load_measure
from neural.stats.means import estimate_share

MAX_LOCAL_SPAN = 3.0
"""Largest `span90` of a local head."""


class LocalHeads(AnalysisCheck):
    """Tests whether some heads become local while others do not.

    A head is local if 90 % of its weight is within 3 positions of the query. The number is the
    share of heads that are local at the end of training but not at the start. The claim is
    supported if every seed has such a head and another one with a wider span, and refuted if no
    seed has both. Runs whose validation scores did not improve are ignored.
    """

    code: ClassVar[str] = "EVO003"
    has_sign: ClassVar[bool] = False
    claim: ClassVar[str] = "some heads become local (1–3 characters) while others look further back"
    unit: ClassVar[str] = "of the heads"

    def check_runs(self, runs: Sequence[Record]) -> Finding:
        """Supported if all seeds have both kinds of heads, refuted if none has."""
        local_counts, head_totals, has_both, count_texts, unlearned = [], [], [], [], 0
        for run in runs:
            steps, span = load_measure(run, "span90")
            if len(steps) < 2:
                continue
            if not has_learned(run):
                unlearned += 1
                continue
            is_measured = np.isfinite(span[-1])  # [layer, head]; NaN where a layer has fewer heads
            became_local = (span[-1] <= MAX_LOCAL_SPAN) & ~(span[0] <= MAX_LOCAL_SPAN) & is_measured
            local_counts.append(int(became_local.sum()))
            head_totals.append(int(is_measured.sum()))
            has_both.append(bool(became_local.any() and (span[-1] > MAX_LOCAL_SPAN).any()))
            count_texts.append(f"{became_local.sum()} of {is_measured.sum()}")
        share = estimate_share(local_counts, head_totals)
        if not has_both:
            reason = (
                "no run has learned" if unlearned else "no run has two snapshots of its attention"
            )
            return self.create_finding("undecided", share, reason)
        supported = "yes" if all(has_both) else "no" if not any(has_both) else "undecided"
        evidence = (
            f"heads that became local, by seed: {', '.join(count_texts)}; "
            f"with others that look further in {sum(has_both)} of {len(has_both)} seeds"
        )
        finding = self.create_finding(supported, share, evidence)
        if len(count_texts) == 1:
            return replace(finding, text=f"{count_texts[0]} heads")
        return finding

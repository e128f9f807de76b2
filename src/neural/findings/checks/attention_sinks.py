"""Attention sinks: heads with most of their mass on the first key (Xiao et al., 2024).

Mass is the sum of attention weights. Maps are stored attention weights, [head, query, key]. The
measure `sink_excess` of a head is its mass on the first key beyond that of a uniform head, which
attends equally to all keys: 0 like a uniform head, 1 all mass.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.findings.check import DiagnosticCheck, Importance, Symptom
from neural.findings.figure_data import build_head_grid, mark_head
from neural.findings.head_roles import (
    ROLE_THRESHOLDS,
    TOO_SHORT,
    RoleScores,
    assign_head_roles,
    find_head_roles,
    format_heads,
    load_last_maps,
)
from neural.findings.record import Record
from neural.findings.run_loading import (
    MissingDataError,
    finite_mean,
    is_capture,
    is_single_capture,
    load_measure,
)

MIN_IDLE_MASS = 0.95
"""`sink_excess` from which a head is idle on its input ("dormant" in Guo et al., 2024)."""


class AttentionSinks(DiagnosticCheck):
    """Reports attention sinks: heads whose `sink_excess` is at least 0.5 at the end of training.

    The number is their share of all heads. A head with a `sink_excess` of 0.95 or more is idle on
    the probe; it is not dead, and may work on other inputs. Too short inputs say nothing.
    """

    code: ClassVar[str] = "ATT002"
    claim: ClassVar[str] = "heads rest on the first key, an attention sink"
    unit: ClassVar[str] = "of the heads"
    importance: ClassVar[Importance] = "none"
    advice: ClassVar[str] = (
        "measure spans and entropies of these heads without the first key; they say little with it"
    )

    def find_symptom(self, run: Record) -> Symptom | None:
        """Find the sinks; if maps are stored, the evidence has their entropy without the sink."""
        role = RoleScores("sink", *load_measure(run, "sink_excess"))
        last_levels = role.last_levels  # [layer, head]: mean score since its last jump
        roles = find_head_roles(run)
        too_short = roles.get(TOO_SHORT)
        if too_short is not None and (too_short.last_levels == 1).any():
            return None
        is_sink = last_levels >= ROLE_THRESHOLDS["sink"]
        if not is_sink.any():
            return None
        onsets = {
            tuple(head): role.find_onset_step(*head) for head in np.argwhere(is_sink).tolist()
        }
        first_step = min(onsets.values())
        marks = [
            mark_head(
                layer,
                head,
                "sink",
                detail=f"{last_levels[layer, head]:.2f} beyond uniform",
                onset=onset,
            )
            for (layer, head), onset in onsets.items()
        ]
        head_count = int(np.isfinite(last_levels).sum())
        since = f"; the first of them since step {first_step:,}" * (len(role.steps) > 1)
        evidence = format_heads(is_sink, last_levels) + since
        evidence += _describe_entropy_without_sink(run, is_sink)
        names = assign_head_roles(roles)[: len(is_sink), : is_sink.shape[1]]
        if other_roles := int((is_sink & (names != "sink")).sum()):
            verb = "has" if other_roles == 1 else "have"
            evidence += f"; {other_roles} of them {verb} another role, further above its threshold"
        is_idle = last_levels >= MIN_IDLE_MASS
        if is_idle.any():
            example = "this input" if is_capture(run) else "the probe"
            evidence += f"; idle on {example}, which is not dead: {format_heads(is_idle)}"
        return Symptom(
            float(is_sink.sum() / head_count),
            evidence,
            text=f"{is_sink.sum()} of {head_count} heads",
            figure=build_head_grid(run, marks),
        )


def _describe_entropy_without_sink(run: Record, sinks: np.ndarray) -> str:
    """A clause about the entropy, in nats, of the sink heads with and without the first key.

    `sinks` is a mask [layer, head]. The clause is empty without maps. It names the step unless the
    run is a single capture, which has no other.
    """
    try:
        step, layers = load_last_maps(run)
    except MissingDataError:
        return ""
    entropies = []
    for layer, maps in enumerate(layers[: len(sinks)]):
        visible = maps.any(axis=0)  # [query, key]
        first_key = int(visible.any(axis=0).argmax())
        has_choice = visible.sum(axis=1) > 2  # queries that see two keys besides the first one
        for head in np.flatnonzero(sinks[layer, : len(maps)]):
            rows = maps[head][has_choice]
            entropies.append((_mean_entropy(rows), _mean_entropy(rows[:, first_key + 1 :])))
    with_sink, without_sink = (
        finite_mean(np.array(entropies), axis=0) if entropies else (np.nan, np.nan)
    )
    if not np.isfinite([with_sink, without_sink]).all():
        return ""
    when = "" if is_single_capture(run) else f"at step {step:,} "
    if len(run.metadata("probe/labels") or ()) > 1:  # maps are those of one example
        when = f"on example 0, {when}"
    return (
        # maps of 8 bits do not tell more digits of the little that is left without the sink
        f"; {when}their entropy is {with_sink:.1f} nats with the first key "
        f"and {without_sink:.1f} without"
    )


def _mean_entropy(rows: np.ndarray) -> float:
    """Mean entropy of rows [query, key] in nats, after scaling each to sum to 1."""
    total = rows.sum(axis=1, keepdims=True)
    weights = rows / np.where(total > 0, total, np.nan)
    entropy = -(weights * np.log(np.where(weights > 0, weights, 1))).sum(axis=1)
    return float(finite_mean(entropy))

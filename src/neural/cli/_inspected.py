"""What was measured of a network that is debugged, as tables."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import click
import numpy as np

from neural.cli import _text
from neural.inspection import DEAD, worth
from neural.inspection import anomalies as found_anomalies
from neural.inspection import gradients as found_gradients

if TYPE_CHECKING:
    from neural.debugging import Subject
    from neural.tracking.seen import Seen

FAINT = 1e-3
"""Of the median ratio of gradient to weights: a layer below it hardly learns."""


def gradients(subject: Subject) -> list[str]:
    """A row for each layer: weights, gradient, and the one over the other."""
    found = found_gradients(subject)
    ratios = [one.ratio for one in found if math.isfinite(one.ratio) and one.ratio > 0]
    usual = float(np.median(ratios)) if ratios else math.nan
    top = max(ratios, default=1.0)
    rows = [("", "parameters", "weights", "gradient", "ratio", "")]
    for one in found:
        bar = "█" * round(20 * one.ratio / top) if math.isfinite(one.ratio) else ""
        remark = "not finite" if not math.isfinite(one.gradient) else "none" if one.gradient == 0 else bar or "▏"
        if 0 < one.ratio < FAINT * usual:
            remark = "faint: it hardly learns"
        rows.append((one.layer, f"{one.parameters:,}", _text.number(one.weights), _text.number(one.gradient),
                     _text.number(one.ratio), remark))  # fmt: skip
    return ["", _text.heading("gradients") + f" of {subject.objective_name}", *_text.table(rows, right=(1, 2, 3, 4))]


def dead_heads(subject: Subject, seen: Seen) -> list[str]:
    """What the output loses without each head."""
    values = worth(subject, seen)
    title = _text.heading("heads") + ", how much the output changes without each"
    rows = [("", *(f"h{head}" for head in range(values.shape[1])))]
    for layer, row in enumerate(values):
        rows.append((f"L{layer}", *("" if math.isnan(one) else _share(one) for one in row)))
    dead = [f"L{layer} h{head}" for layer, head in np.argwhere(values < DEAD)]
    said = f"dead (less than {DEAD:.1%}): {', '.join(dead)}" if dead else f"no head is dead (less than {DEAD:.1%})"
    return ["", title, *_text.table(rows, right=range(1, len(rows[0]))), f"  {said}"]


def anomalies(subject: Subject, seen: Seen) -> list[str]:
    """All that were found, or what was looked at."""
    found = found_anomalies(subject, seen)
    modules, parameters = (sum(1 for _ in some) for some in (subject.model.modules(), subject.model.parameters()))
    lines = ["", _text.heading("anomalies")]
    if found:
        lines += _text.table([(click.style(one.kind, fg="red"), one.where, one.evidence) for one in found])
        usual = not subject.trained and any("uniform" in one.evidence for one in found)
        return lines + (["  the weights are random: heads that are close to uniform are usual then"] if usual else [])
    heads = sum(call.heads for call in seen)
    looked = f"{parameters:,} tensors of parameters, the outputs of {modules:,} modules, {heads:,} heads"
    return [*lines, f"  none: {looked} and all gradients were looked at"]


def _share(value: float) -> str:
    text = f"{value:.1%}" if value >= DEAD else f"{value:.0e}"
    return click.style(text, fg="red") if value < DEAD else text

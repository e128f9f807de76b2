"""How differently every two heads of a model look, whichever layers they are in.

The squared Hellinger distance of their weights, row by row: 1 − Σⱼ √(pⱼ qⱼ), 0 alike, 1 no key in common. Unlike
Jensen–Shannon it is a matrix product of square roots, so that all pairs of heads cost little more than writing the maps
out once. With it layers can be compared whatever the order of their heads, and against what heads of one layer differ
by among themselves (see views/layer_divergence.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from neural.modules.late import torch
from neural.tracking.look import Look, Part, exactly

if TYPE_CHECKING:
    from jaxtyping import Float

MAX_HEADS = 256
"""Of more, a matrix of all pairs says little and takes much room."""
ROWS_AT_ONCE = 64


def head_divergence(looks: Sequence[Look | None]) -> Float[np.ndarray, "N N"] | None:
    """Of all heads, layer after layer; None where layers cannot be compared: other lengths, too many heads, no values.

    The mean over rows that count and have a choice: those that see one key are the same in all heads.
    """
    known = [look for look in looks if look is not None]
    sizes = {(look.batch, look.queries, look.keys, look.extra_keys) for look in known}
    heads = sum(look.heads for look in known)
    if len(known) < len(looks) or len(sizes) != 1 or heads > MAX_HEADS:
        return None
    first = known[0]
    total, rows = torch.zeros(heads, heads, dtype=torch.float64), 0
    counted = first.counted()
    with exactly(first.q.device):
        for example in range(first.batch):
            for start in range(0, first.queries, ROWS_AT_ONCE):
                span = slice(start, min(start + ROWS_AT_ONCE, first.queries))
                part = Part(slice(example, example + 1), slice(0, 0), span)
                maps = [look.maps(part._replace(heads=slice(0, look.heads))) for look in known]
                choice = torch.stack([own.visible[0].amin(dim=0) for own in maps]).amin(dim=0) > 1
                if counted is not None:
                    choice = choice & counted[example, span]
                roots = torch.cat([own.weights[0] for own in maps])[:, choice].clamp(min=0).sqrt()   # (heads, rows, K)
                flat = roots.transpose(0, 1).float()
                total += torch.bmm(flat, flat.transpose(1, 2)).sum(dim=0).double().cpu()
                rows += int(choice.sum())
    if not rows:
        return None
    return (1 - total / rows).clamp(0, 1).float().numpy()

"""Many measures in one pass over the rows: exact, 32-bit whatever the input, O(n) memory.

    row_statistics(q, k, Mask(causal=True), wanted=("entropy", "span"))     each row
    head_statistics(q, k, Mask(causal=True), wanted=("entropy", "span"))    each head
    compare(q1, k1, q2, k2, Mask(causal=True))                              two layers, head by head

For attention that is a softmax of scaled products: other mechanisms write their weights out as `Maps` and take the
plain measures.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from neural.modules.compiled import compiled
from neural.modules.late import torch
from neural.modules.mask import Mask
from neural.tracking.look import Look, exactly
from neural.tracking.measure import HeadMeasure, LayerMeasure, Measure, PairMeasure
from neural.tracking.measures import registry
from neural.tracking.written import Written

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


def row_statistics(
    q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B G K D"], mask: Mask | None = None, *,
    wanted: Iterable[str] | None = None, **more: Any,
) -> dict[str, Tensor]:  # fmt: skip
    """Of each wanted measure the value of every row: (B, H, Q), or (B, Q) for measures of all heads together.

    All measures of one layer that apply unless `wanted` names some. `more` are the other fields of
    `Look`: scale, tokens, real, first, sink, extra_keys, axis.
    """
    look = Look(q, k, mask or Mask(), **more)
    return measured(_of_one_layer(look) if wanted is None else wanted, look)


def head_statistics(
    q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B G K D"], mask: Mask | None = None, *,
    wanted: Iterable[str] | None = None, **more: Any,
) -> dict[str, Tensor]:  # fmt: skip
    """The same averaged over the rows that count: (H,), or one number for measures of all heads together."""
    return averaged(row_statistics(q, k, mask, wanted=wanted, **more))


def compare(
    q1: Float[Tensor, "B H Q D"], k1: Float[Tensor, "B G K D"], q2: Float[Tensor, "B H Q D"],
    k2: Float[Tensor, "B G K D"], mask: Mask | None = None, *, wanted: Iterable[str] | None = None, **more: Any,
) -> dict[str, Float[Tensor, " H"]]:  # fmt: skip
    """How differently two layers look, head by head.

    Two heads of a layer are two layers of one head: `compare(q[:, :1], k[:, :1], q[:, 1:2], k[:, 1:2])`.
    """
    if q1.shape != q2.shape or k1.shape != k2.shape:
        raise ValueError(f"both layers must have the same shapes, got {tuple(q1.shape)} and {tuple(q2.shape)}")
    mask = mask or Mask()   # one for both: the compiled pass asks for it
    looks = [Look(q, k, mask, **more) for q, k in ((q1, k1), (q2, k2))]
    names = [name for name in registry.names() if issubclass(registry.get(name), PairMeasure)]
    return averaged(measured(names if wanted is None else wanted, *looks))


def averaged(rows: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Over the rows that count, measure by measure."""
    return {name: registry.get(name)().average(values) for name, values in rows.items()}


def measured(names: Iterable[str], *looks: Look) -> dict[str, Tensor]:
    """The value of every row; NaN where a row does not count."""
    measures = {name: registry.get(name)() for name in names}
    for name, one in measures.items():
        if one.layers != len(looks) or not isinstance(one, HeadMeasure | LayerMeasure | PairMeasure):
            raise ValueError(f"`{name}` is not a measure of the rows of {len(looks)} layer{'s' * (len(looks) > 1)}")
        if "induction" in one.needs and looks[0].tokens is None:
            raise ValueError(f"`{name}` needs to know the tokens: give tokens=(B, K)")
    found: dict[str, Tensor] = {}
    with exactly(looks[0].q.device):
        # those that the compiled loops know, and those that somebody added without
        for known in (True, False):
            group = {name: one for name, one in measures.items() if bool(one.needs) == known}
            found |= _values(group, *looks) if group else {}
        for real in filter(torch.is_tensor, (look.counted() for look in looks)):
            for values in found.values():
                values.masked_fill_(~(real if values.ndim == 2 else real.unsqueeze(1)), float("nan"))
    return {name: found[name] for name in measures}


@compiled("neural.tracking.fast")
def _values(measures: Mapping[str, Measure], *looks: Look) -> dict[str, Tensor]:
    """By the definitions, on some rows written out at a time; results go where they belong at once."""
    first, found = looks[0], {}
    for together in (False, True):
        group = {name: one for name, one in measures.items() if isinstance(one, LayerMeasure) == together}
        shape = (first.batch, first.queries) if together else first.q.shape[:3]
        found |= {name: torch.full(shape, float("nan"), device=first.q.device) for name in group}
        heads = first.heads if together else 1
        for part in first.parts(heads=heads) if group else ():
            maps = [look.maps(part) for look in looks]
            full = torch.stack([one.kept.any(dim=-1) for one in maps]).all(dim=0)
            place, full = (part[::2], full.all(dim=1)) if together else (part, full)
            for name, one in group.items():
                found[name][place] = one.plain(*maps).masked_fill(~full, float("nan"))
    return found


def applies(measure: type[Measure], look: Look) -> bool:
    """Whether a call has what a measure asks for: tokens, scores, extra keys, and positions."""
    absent = {
        "induction": look.tokens is None,
        "logit": isinstance(look, Written) or not look.has_logits,
        "extra": not look.extra_keys,
    }
    levels = ("unknown", "keys", "shared")
    is_placed = levels.index(measure.axis) <= levels.index(look.axis)
    return is_placed and not any(absent.get(need, False) for need in measure.needs)


def _of_one_layer(look: Look) -> list[str]:
    every = {name: registry.get(name) for name in registry.names()}
    rows = [name for name, one in every.items() if issubclass(one, HeadMeasure | LayerMeasure)]
    return [name for name in rows if applies(every[name], look)]

"""Are these all numbers? Asked of every input, so it must cost next to nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def finite(x: Tensor) -> bool:
    """Whether nothing in it is NaN or infinite: a sum over all of it tells, unless the sum itself is too large."""
    x = x.detach()
    return bool(x.sum().isfinite()) or bool(x.isfinite().all())

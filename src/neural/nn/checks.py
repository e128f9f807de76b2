"""Check for NaN and infinity, cheap enough to run on every input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.nn.kernel_dispatch import is_functorch_active

if TYPE_CHECKING:
    from torch import Tensor


def is_finite(x: Tensor) -> bool:
    """Whether a tensor has neither NaN nor infinity; True inside `torch.func`, which hides values."""
    if is_functorch_active():
        return True
    x = x.detach()
    # The sum of finite numbers is finite unless it overflows: one pass is enough for most inputs.
    return bool(x.sum().isfinite()) or bool(x.isfinite().all())

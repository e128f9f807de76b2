"""Whether a head is an induction head (Olsson et al., 2022): "… A B … A" looks at B."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.modules.late import torch
from neural.tracking.measure import HeadMeasure

if TYPE_CHECKING:
    from torch import Tensor

    from neural.tracking.maps import Axis, Maps


class InductionMass(HeadMeasure):
    """Share of the mass on what followed the current token the last time: 0 ignores it, 1 looks at nothing else.

    Needs the tokens. Rows whose token is new, or that may not see that position, do not count; nor rows whose token
    stands right before them too: what followed it is their own position.
    """

    unit: ClassVar[str] = "share"
    axis: ClassVar[Axis] = "shared"
    needs: ClassVar[tuple[str, ...]] = ("induction",)

    def plain(self, *maps: Maps) -> Tensor:
        """wⱼ of the position after the last earlier one with the same token."""
        (look,) = maps
        assert look.tokens is not None
        keys = torch.arange(look.tokens.shape[-1], device=look.at.device)
        own = look.tokens[:, look.at.clamp(0, len(keys) - 1)]
        same = (own.unsqueeze(-1) == look.tokens.unsqueeze(1)) & (keys < look.at.unsqueeze(-1))
        last = torch.where(same, keys, -1).amax(dim=-1)
        known = (last >= 0) & (look.at < len(keys)) & (last + 1 != look.at)
        return look.mass(torch.where(known, last + 1, -1).unsqueeze(1))

    def bounds(self, heads: int, keys: int) -> tuple[float, float]:
        """0 to 1: a share."""
        return 0, 1

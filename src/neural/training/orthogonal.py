"""Muon's step on a processor: matrices of one shape together, in 32-bit floats.

`torch.optim.Muon` orthogonalises one matrix after the other in bfloat16, which few processors can multiply: there it
takes longer than the gradients. The arithmetic here is the same, and so are state and settings; on other devices, and
where parameters are split among processes, it is torch's own step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from neural.modules.late import torch

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


def orthogonal(
    x: Float[Tensor, "N R C"], coefficients: tuple[float, float, float], steps: int, epsilon: float
) -> Float[Tensor, "N R C"]:
    """Near each matrix, one whose singular values are all about 1 (Newton–Schulz; Jordan et al., 2024)."""
    a, b, c = coefficients
    tall = x.shape[1] > x.shape[2]
    x = x.mT if tall else x
    x = x / x.flatten(1).norm(dim=1).clamp(min=epsilon)[:, None, None]
    for _ in range(steps):
        square = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x


@cache
def muon() -> type[torch.optim.Muon]:
    """`torch.optim.Muon`, fast on a processor; made when torch is there."""

    class Muon(torch.optim.Muon):
        """See the file."""

        @torch.no_grad()
        def step(self, closure: Callable[[], float] | None = None) -> float | None:
            """One step along the orthogonalised momentum."""
            held = [one for group in self.param_groups for one in group["params"]]
            usual = all(type(one.data) is torch.Tensor and one.device.type == "cpu" for one in held)
            if closure is not None or not usual:
                return super().step(closure)
            for group in self.param_groups:
                for same in _by_shape(group["params"]):
                    _step(self.state, same, group)
            return None

    return Muon


def _by_shape(parameters: list[Tensor]) -> list[list[Tensor]]:
    found: dict[tuple[int, ...], list[Tensor]] = {}
    for one in parameters:
        if one.grad is not None:
            found.setdefault(tuple(one.shape), []).append(one)
    return list(found.values())


def _step(state: Mapping[Tensor, Any], same: list[Tensor], group: dict[str, Any]) -> None:
    """Matrices of one shape."""
    gradients = [one.grad for one in same if one.grad is not None]
    for one, gradient in zip(same, gradients, strict=True):
        state[one].setdefault("momentum_buffer", torch.zeros_like(gradient))
    kept = [state[one]["momentum_buffer"] for one in same]
    torch._foreach_lerp_(kept, gradients, 1 - group["momentum"])
    ahead = torch._foreach_lerp(gradients, kept, group["momentum"]) if group["nesterov"] else kept
    stack = orthogonal(torch.stack(tuple(ahead)), group["ns_coefficients"], group["ns_steps"], group["eps"])
    rows, columns = same[0].shape
    rate = float(group["lr"]) * max(1.0, rows / columns) ** 0.5
    torch._foreach_mul_(same, 1 - float(group["lr"]) * group["weight_decay"])
    torch._foreach_add_(same, list(stack.unbind()), alpha=-rate)

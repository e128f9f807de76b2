"""Muon's step on a processor: matrices of one shape together, in 32-bit floats.

`torch.optim.Muon` orthogonalises one matrix after the other in bfloat16, which few processors can multiply: there it
takes longer than the gradients. The arithmetic here is the same, and so are state and settings; on
other devices it is torch's own step. Parameters that FSDP splits among processes step as whole ones
do: each process gathers the momentum, orthogonalises the whole matrix and takes its own rows.
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
            parameters = [param for group in self.param_groups for param in group["params"]]
            if closure is not None or any(param.device.type != "cpu" for param in parameters):
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
    for param in same:
        state[param].setdefault("momentum_buffer", torch.zeros_like(param))
    gradients = [local(param.grad) for param in same if param.grad is not None]
    momenta = [local(state[param]["momentum_buffer"]) for param in same]
    torch._foreach_lerp_(momenta, gradients, 1 - group["momentum"])
    ahead = momenta
    if group["nesterov"]:
        ahead = torch._foreach_lerp(gradients, momenta, group["momentum"])
    stack = torch.stack([gathered(param, part) for param, part in zip(same, ahead, strict=True)])
    stack = orthogonal(stack, group["ns_coefficients"], group["ns_steps"], group["eps"])
    steps = [scattered(param, matrix) for param, matrix in zip(same, stack.unbind(), strict=True)]
    rows, columns = same[0].shape
    rate = float(group["lr"]) * max(1.0, rows / columns) ** 0.5
    weights = [local(param) for param in same]
    torch._foreach_mul_(weights, 1 - float(group["lr"]) * group["weight_decay"])
    torch._foreach_add_(weights, steps, alpha=-rate)


def local(tensor: Tensor) -> Tensor:
    """This process's part of a tensor that FSDP has split; any other tensor as it is."""
    return tensor.to_local() if is_split(tensor) else tensor   # type: ignore[operator]


def is_split(tensor: Tensor) -> bool:
    """Whether it is a DTensor."""
    return hasattr(tensor, "placements")


def gathered(like: Tensor, part: Tensor) -> Tensor:
    """The whole tensor of which every process has a part, split as `like` is."""
    if not is_split(like):
        return part
    from torch.distributed.tensor import DTensor

    mesh, placements = like.device_mesh, like.placements   # type: ignore[attr-defined]
    split = DTensor.from_local(part, mesh, placements, shape=like.shape, stride=like.stride())
    return split.full_tensor()


def scattered(like: Tensor, whole: Tensor) -> Tensor:
    """This process's part of a whole tensor, split as `like` is. No communication."""
    if not is_split(like):
        return whole
    from torch.distributed.tensor import DTensor, Replicate

    mesh, placements = like.device_mesh, like.placements   # type: ignore[attr-defined]
    copies = DTensor.from_local(whole.contiguous(), mesh, [Replicate()] * mesh.ndim)
    return copies.redistribute(placements=placements).to_local()

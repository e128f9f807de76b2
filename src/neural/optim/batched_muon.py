"""Muon's update on a CPU: all matrices in one native kernel, or in batches of one shape.

`torch.optim.Muon` orthogonalizes one matrix after the other in bfloat16. Few CPUs multiply bfloat16
natively, so the update takes longer than forward and backward pass. Here the formulas, the state
and the options are the same, in float32; on other devices torch's own step runs. The kernel
(native/kernels/muon_step.cpp) computes one matrix per thread; without it, and for matrices that are
too large or too few for it, torch multiplies all matrices of one shape in one batch. With FSDP,
each process gathers the momentum, orthogonalizes the full matrix and keeps its own rows, so the
result equals that of one process.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from neural.native.library import NativeFunction
from neural.nn.kernel_dispatch import kernels_available
from neural.nn.lazy_torch import torch
from neural.optim.lean_optimizer import lean_class

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

_native_step = NativeFunction("muon_step", "pi f i ff fff i f ip")
MAX_KERNEL_SIDE = 512
"""Longest short side of a matrix that the kernel updates: larger ones do not fit in the caches of
one core, and torch's matrix product on all cores is faster."""


def orthogonalize(
    x: Float[Tensor, "N R C"], coefficients: tuple[float, float, float], steps: int, epsilon: float
) -> Float[Tensor, "N R C"]:
    """Replace each of N matrices by a nearby one whose singular values are all about 1.

    Newton–Schulz iteration with Muon's polynomial a·x + (b·s + c·s²)·x, s = x·xᵀ (Jordan et al.,
    2024), applied `steps` times; `coefficients` are a, b, c. Tall matrices are transposed, so that
    s has the shorter side.
    """
    a, b, c = coefficients
    is_tall = x.shape[1] > x.shape[2]
    x = x.mT if is_tall else x
    x = x / x.flatten(1).norm(dim=1).clamp(min=epsilon)[:, None, None]
    for _ in range(steps):
        square = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x.mT if is_tall else x


@cache
def muon_class() -> type[torch.optim.Muon]:
    """A subclass of `torch.optim.Muon` that is fast on a CPU.

    Created on first use, because torch is imported lazily.
    """

    base: Any = lean_class(torch.optim.Muon)

    class Muon(base):
        """`torch.optim.Muon` with a batched float32 step on the CPU."""

        @torch.no_grad()
        def step(self, closure: Callable[[], float] | None = None) -> float | None:
            """One step along the orthogonalized momentum."""
            parameters = [param for group in self.param_groups for param in group["params"]]
            if closure is not None or any(param.device.type != "cpu" for param in parameters):
                return super().step(closure)
            for group in self.param_groups:
                params = [param for param in group["params"] if param.grad is not None]
                for param in params:
                    if not self.state[param]:
                        self.state[param]["momentum_buffer"] = torch.zeros_like(param)
                if not _step_in_kernel(self.state, params, group):
                    for same_shape in _group_by_shape(params):
                        _step_same_shape(self.state, same_shape, group)
            return None

    return Muon


def _step_in_kernel(
    state: Mapping[Tensor, Any], params: list[Tensor], group: dict[str, Any]
) -> bool:
    """Muon's update in the native kernel, in place; False if it cannot compute it.

    `state` is the optimizer's state, `group` the options of a torch parameter group.
    """
    if not kernels_available() or len(params) < torch.get_num_threads():
        return False
    matrices = array("q")  # addresses and sizes, as muon_step.cpp describes them
    for param in params:
        assert param.grad is not None  # `params` has no others
        tensors = (param.data, param.grad, state[param]["momentum_buffer"])
        if min(param.shape) > MAX_KERNEL_SIDE or not all(map(_is_plain, tensors)):
            return False
        matrices.extend([tensor.data_ptr() for tensor in tensors])
        matrices.extend(param.shape)
    rate, failed = float(group["lr"]), ctypes.c_int64()
    _native_step(
        matrices.buffer_info()[0],
        len(params),
        group["momentum"],
        group["nesterov"],
        1 - rate * group["weight_decay"],
        rate,
        *group["ns_coefficients"],
        group["ns_steps"],
        group["eps"],
        torch.get_num_threads(),
        ctypes.addressof(failed),
    )
    return not failed.value


def _is_plain(tensor: Tensor | None) -> bool:
    """Whether the kernel reads a tensor: contiguous 32-bit floats, at least one."""
    return (
        type(tensor) is torch.Tensor
        and tensor.dtype == torch.float32
        and tensor.is_contiguous()
        and tensor.numel() > 0
    )


def _group_by_shape(params: list[Tensor]) -> list[list[Tensor]]:
    """Parameters in one list per shape."""
    groups: dict[tuple[int, ...], list[Tensor]] = {}
    for param in params:
        groups.setdefault(tuple(param.shape), []).append(param)
    return list(groups.values())


def _step_same_shape(
    state: Mapping[Tensor, Any], params: list[Tensor], group: dict[str, Any]
) -> None:
    """Muon's update of matrices of one shape, in place.

    `state` is the optimizer's state, `group` the options of a torch parameter group.
    """
    gradients = [local_shard(param.grad) for param in params if param.grad is not None]
    momenta = [local_shard(state[param]["momentum_buffer"]) for param in params]
    torch._foreach_lerp_(momenta, gradients, 1 - group["momentum"])
    directions = momenta
    if group["nesterov"]:
        directions = torch._foreach_lerp(gradients, momenta, group["momentum"])
    stack = torch.stack(
        [gather_full(param, shard) for param, shard in zip(params, directions, strict=True)]
    )
    stack = orthogonalize(stack, group["ns_coefficients"], group["ns_steps"], group["eps"])
    steps = [
        scatter_shard(param, matrix) for param, matrix in zip(params, stack.unbind(), strict=True)
    ]
    rows, columns = params[0].shape
    # As torch's adjust_lr_fn="original": matrices with more rows than columns take longer steps.
    rate = float(group["lr"]) * max(1.0, rows / columns) ** 0.5
    weights = [local_shard(param) for param in params]
    torch._foreach_mul_(weights, 1 - float(group["lr"]) * group["weight_decay"])
    torch._foreach_add_(weights, steps, alpha=-rate)


def local_shard(tensor: Tensor) -> Tensor:
    """This process's shard of an FSDP tensor; any other tensor unchanged."""
    return tensor.to_local() if is_sharded(tensor) else tensor  # type: ignore[operator]


def is_sharded(tensor: Tensor) -> bool:
    """Whether a tensor is a DTensor, torch's tensor distributed over processes (FSDP)."""
    return hasattr(tensor, "placements")


def gather_full(like: Tensor, shard: Tensor) -> Tensor:
    """All-gather the full tensor from the shards of all processes, laid out as `like`."""
    if not is_sharded(like):
        return shard
    from torch.distributed.tensor import DTensor

    mesh, placements = like.device_mesh, like.placements  # type: ignore[attr-defined]
    sharded = DTensor.from_local(shard, mesh, placements, shape=like.shape, stride=like.stride())
    return sharded.full_tensor()


def scatter_shard(like: Tensor, tensor: Tensor) -> Tensor:
    """This process's shard of a full tensor, laid out as `like`. No communication."""
    if not is_sharded(like):
        return tensor
    from torch.distributed.tensor import DTensor, Replicate

    mesh, placements = like.device_mesh, like.placements  # type: ignore[attr-defined]
    replicated = DTensor.from_local(tensor.contiguous(), mesh, [Replicate()] * mesh.ndim)
    return replicated.redistribute(placements=placements).to_local()

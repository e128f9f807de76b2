"""Dispatch to native kernels: a kernel replaces a function written in torch.

    def _load_kernel() -> ModuleType:
        from neural.nn.kernels import localized
        return localized

    @use_kernel(_load_kernel)
    def attend(self, q, k, v, mask, dropout=0.0, extra=None):
        …plain torch, exact, for any input…

The kernel module defines `supports(...)`, which decides whether it can compute a call, and
`run(...)`; both take the arguments of the decorated function. The plain body runs

- if the native library was not built, under `NEURAL_KERNELS=off` and `no_kernels()`;
- inside `torch.export`: an exported file must run without this package;
- inside the transforms of `torch.func`;
- inside `torch.compile`, unless the kernel module sets `TRACEABLE = True`: then its operator is part
  of the graph, and its `supports` must not read values of tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any, TypeVar

from neural.native.library import connect_torch_threads, native_available, no_kernels
from neural.nn.lazy_torch import torch

__all__ = ["is_functorch_active", "kernels_available", "no_kernels", "use_kernel"]

Function = TypeVar("Function", bound=Callable[..., Any])


def kernels_available() -> bool:
    """Whether kernels run: see `neural.native.library`. Connects them to torch's threads."""
    if not native_available():
        return False
    connect_torch_threads()
    return True


# `torch.compile` calls the function when it traces, and takes its result as a constant.
kernels_available._dynamo_marked_constant = True  # type: ignore[attr-defined]


def _is_exporting() -> bool:
    """Whether `torch.export` traces the caller."""
    return torch.compiler.is_exporting()


# torch 2.9 takes `is_exporting()` as True in everything that `torch.compile` traces; as a constant
# it is evaluated by Python.
_is_exporting._dynamo_marked_constant = True  # type: ignore[attr-defined]


def is_functorch_active() -> bool:
    """Whether a transform of `torch.func` (vmap, grad, jvp …) is active."""
    return torch._C._are_functorch_transforms_active()


def use_kernel(load_kernel: Callable[[], ModuleType]) -> Callable[[Function], Function]:
    """Replace calls of a function by the kernel module's `run` where the kernel supports them.

    `load_kernel` imports and returns the kernel module.
    """

    def wrap(plain: Function) -> Function:  # `plain` is the function in torch operations
        @wraps(plain)
        def dispatch(*args: Any, **kwargs: Any) -> Any:
            if kernels_available() and _is_kernel_allowed(load_kernel):
                kernel = load_kernel()
                if kernel.supports(*args, **kwargs):
                    return kernel.run(*args, **kwargs)
            return plain(*args, **kwargs)

        return dispatch  # type: ignore[return-value]  # the same signature as `plain`

    return wrap


def _is_kernel_allowed(load_kernel: Callable[[], ModuleType]) -> bool:
    """Whether a kernel may run in this context: see the list above."""
    if torch.compiler.is_compiling():  # also True inside `torch.export`
        return not _is_exporting() and getattr(load_kernel(), "TRACEABLE", False)
    return not is_functorch_active()

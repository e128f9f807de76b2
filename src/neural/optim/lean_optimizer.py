"""torch's optimizers without the import of torch's compiler.

The first `torch.optim` optimizer of a process imports `torch._dynamo`: 820 modules in more than a
second, only to exclude methods of optimizers from compilation. The subclasses here have the same
names, state and steps, and call these methods directly. Once something else has imported the
compiler, they are called as torch does it.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import cache, wraps
from typing import TYPE_CHECKING, Any

from neural.nn.lazy_torch import torch

if TYPE_CHECKING:
    from torch.optim import Optimizer

EXCLUDED_METHODS = ("add_param_group", "load_state_dict", "state_dict", "zero_grad")
"""Methods that torch excludes from compilation; `step` switches gradients off in addition."""


@cache
def lean_class(optimizer_class: type[Optimizer]) -> type[Any]:
    """A subclass of a torch optimizer that does not import `torch._dynamo`."""
    methods: dict[str, Any] = {
        name: _call_directly(getattr(optimizer_class, name)) for name in EXCLUDED_METHODS
    }
    methods["step"] = _call_directly(optimizer_class.step, without_gradients=True)
    return type(optimizer_class.__name__, (optimizer_class,), methods)


def _call_directly(
    method: Callable[..., Any], *, without_gradients: bool = False
) -> Callable[..., Any]:
    """A method without the decorators of torch, as long as the compiler is not imported."""
    undecorated = inspect.unwrap(method)

    @wraps(undecorated)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if "torch._dynamo" in sys.modules:
            return method(self, *args, **kwargs)
        if not without_gradients:
            return undecorated(self, *args, **kwargs)
        with torch.set_grad_enabled(self.defaults.get("differentiable", False)):
            return undecorated(self, *args, **kwargs)

    return call

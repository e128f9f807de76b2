"""A registered operator (torch.library) with a short path for eager mode.

A call of a `torch.library.custom_op` and its backward pass take 90 µs, most of it in Python; a
plain `torch.autograd.Function` takes 36 µs. In the step of a small network that is a difference of
3 %. So plain eager calls use an autograd function, and everything that watches or transforms
operators (torch.compile, torch.func, dispatch modes such as fake tensors) sees the registered
operator. Both have the same forward and backward functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from neural.nn.kernel_dispatch import is_functorch_active
from neural.nn.lazy_torch import torch


class Operator:
    """The operator `neural::<name>` with its gradient.

    `forward` and `backward` compute from tensors; `fake_forward` and `fake_backward` return empty
    tensors of the same shapes. The arguments of `backward` are those of `forward` followed by the
    gradients of its results. It returns one gradient for each of the first arguments of `forward`;
    the other arguments have none.
    """

    def __init__(
        self,
        name: str,
        forward: Callable[..., Any],
        fake_forward: Callable[..., Any],
        backward: Callable[..., Any],
        fake_backward: Callable[..., Any],
    ) -> None:
        options: Any = {"mutates_args": (), "device_types": "cpu"}
        self.registered = torch.library.custom_op(f"neural::{name}", forward, **options)
        self.registered.register_fake(fake_forward)
        self.registered_backward = torch.library.custom_op(
            f"neural::{name}_backward", backward, **options
        )
        self.registered_backward.register_fake(fake_backward)
        self.registered.register_autograd(
            lambda ctx, *grads: _run_backward(ctx, self.registered_backward, grads),
            setup_context=_save_inputs,
        )
        self._apply = _create_function(name, forward, backward).apply

    def __call__(self, *arguments: Any) -> Any:
        """The results of `forward`."""
        if (
            torch.compiler.is_compiling()
            or is_functorch_active()
            or torch._C._len_torch_dispatch_stack()
        ):
            return self.registered(*arguments)
        return self._apply(*arguments)


def _save_inputs(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.save_for_backward(*(value for value in inputs if isinstance(value, torch.Tensor)))
    # None stands for a tensor
    ctx.inputs = [None if isinstance(value, torch.Tensor) else value for value in inputs]


def _run_backward(ctx: Any, backward: Callable[..., Any], grads: tuple[Any, ...]) -> Any:
    tensors = iter(ctx.saved_tensors)
    inputs = [next(tensors) if value is None else value for value in ctx.inputs]
    results = backward(*inputs, *grads)
    results = results if isinstance(results, tuple) else (results,)
    return *results, *[None] * (len(inputs) - len(results))


def _create_function(
    name: str, forward: Callable[..., Any], backward: Callable[..., Any]
) -> type[torch.autograd.Function]:
    """The operator as a `torch.autograd.Function`."""

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *arguments: Any) -> Any:
            _save_inputs(ctx, arguments, None)
            return forward(*arguments)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, *grads: Any) -> Any:  # type: ignore[bad-override]  # the decorator hides the signature
            return _run_backward(ctx, backward, grads)

    Function.__name__ = Function.__qualname__ = name
    return Function

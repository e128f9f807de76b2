"""Attention of models that know nothing of us: seen through the functions of torch that they call.

A function mode hears every call of `scaled_dot_product_attention` and of its kin, whatever name it was imported under.
Two things need more. torch's own encoder takes a faster path, with other last digits, unless it thinks that somebody
listens: while one of its modules runs, the mode is deaf, and the functions that these modules call are wrapped
instead. And where a module stands is known by the hooks that torch calls for all modules alike: hooks on a module
itself would end that fast path too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from importlib import import_module
from typing import Any

from neural.modules import attend as attending
from neural.modules.late import functional, late, nn, torch
from neural.tracking import calls
from neural.tracking.recorder import Recorder

modules = late("torch.nn.modules.module")
FLEX = "torch._higher_order_ops.flex_attention"
"""Where torch keeps the operator behind `flex_attention`."""


@contextmanager
def listening(recorder: Recorder, *, softmax: bool | None) -> Iterator[None]:
    """Hear the functions that models call; `softmax` as in `watch`."""
    heard = {
        functional.scaled_dot_product_attention: calls.fused,
        functional.multi_head_attention_forward: calls.multi_head,
        attending.attended: calls.ours,
    }
    if FLEX in sys.modules:   # else nobody can call it, and importing it takes seconds
        heard[sys.modules[FLEX].flex_attention] = calls.flex
    named_so = bool(attention_modules(recorder.model))
    soft = {functional.softmax, torch.softmax, torch.Tensor.softmax}

    def hear(function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        see = heard.get(function)
        if see is None and function in soft:
            if _writes_out(recorder, softmax, named_so):
                see = calls.softmax
            elif softmax is None and recorder.running and _like_attention(*args, **named):
                recorder.suspected.append(recorder.path)
        return function(*args, **named) if see is None else _taken_down(recorder, see, function, *args, **named)

    with ExitStack() as until_then:
        until_then.enter_context(_following(recorder))
        for home, name, see in (
            (functional, "multi_head_attention_forward", calls.multi_head),
            (torch, "_native_multi_head_attention", calls.native),
            (torch, "_transformer_encoder_layer_fwd", calls.encoder_layer),
        ):
            until_then.enter_context(_wrapped(home.__name__, name, recorder, see))
        with _mode(hear):
            yield


def attention_modules(model: nn.Module) -> list[str]:
    """Paths of the modules that are attention by their names, without those that contain another one."""
    named = [path for path, one in model.named_modules() if _is_attention(path, one)]
    return [path for path in named if not any(other.startswith(f"{path}.") for other in named)]


def _is_attention(path: str, module: nn.Module) -> bool:
    words = (path.rpartition(".")[2] + " " + type(module).__name__).lower()
    return isinstance(module, nn.MultiheadAttention) or "attention" in words or "attn" in words


def _mode(hear: Callable[..., Any]) -> AbstractContextManager[Any]:
    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return hear(func, args, kwargs or {})

    return Mode()


@contextmanager
def _following(recorder: Recorder) -> Iterator[None]:
    """Keep the stack of modules that run; deaf in torch's own, if nobody else listens to them."""
    own = {nn.MultiheadAttention.forward, nn.TransformerEncoderLayer.forward, nn.TransformerEncoder.forward}
    guards: list[AbstractContextManager[Any] | None] = []

    def enter(module: nn.Module, _: Any) -> None:
        if id(module) not in recorder.modules:
            return
        deaf = type(module).forward in own
        guard: AbstractContextManager[Any] | None = None
        if deaf and torch._C._len_torch_function_stack() == 1:
            guard = torch._C.DisableTorchFunction()
        elif not deaf and recorder.running and type(recorder.running[-1]).forward in own:
            guard = torch._C._EnableTorchFunction()
        if guard is not None:
            guard.__enter__()
        guards.append(guard)
        recorder.enter(module)

    def leave(module: nn.Module, _: Any, __: Any) -> None:
        if id(module) in recorder.modules and recorder.running:
            recorder.running.pop()
            guard = guards.pop()
            if guard is not None:
                guard.__exit__(None, None, None)

    handles = (
        modules.register_module_forward_pre_hook(enter), modules.register_module_forward_hook(leave, always_call=True)
    )  # fmt: skip
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def _wrapped(home: str, name: str, recorder: Recorder, see: Callable[..., Any]) -> Iterator[None]:
    """A function of torch with a witness around it."""
    module = import_module(home)
    own = getattr(module, name)
    setattr(module, name, partial(_taken_down, recorder, see, own))
    try:
        yield
    finally:
        setattr(module, name, own)


def _taken_down(
    recorder: Recorder, see: Callable[..., Any], function: Callable[..., Any], *args: Any, **named: Any
) -> Any:
    """Call the function; what it was given goes on record if it worked."""
    if recorder.silent:
        return function(*args, **named)
    with recorder.inside():
        result = function(*args, **named)
    with torch._C.DisableTorchFunction(), torch.no_grad():
        see(recorder, *args, **named)
    return result


def _writes_out(recorder: Recorder, softmax: bool | None, named_so: bool) -> bool:
    """Whether a softmax here is attention: where modules are `named_so`, in one of those alone."""
    if not recorder.running or softmax is False:
        return False
    module = recorder.running[-1]
    of_hugging_face = type(module).__module__.startswith("transformers.")
    return (softmax or of_hugging_face) and (not named_so or _is_attention(recorder.path, module))


def _like_attention(scores: Any, dim: int | None = None, *rest: Any, **named: Any) -> bool:
    """Whether a softmax looks like that of queries over keys: (B, H, Q, K), or (B, T, T)."""
    if dim not in (-1, scores.ndim - 1) or min(scores.shape[-2:], default=0) < 2:
        return False
    return scores.ndim == 4 or (scores.ndim == 3 and scores.shape[1] == scores.shape[2])

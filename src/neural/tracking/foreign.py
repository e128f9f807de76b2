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
from neural.tracking.placement import CacheUpdate
from neural.tracking.recorder import Forward, Recorder, is_attention
from neural.tracking.softmax_calls import SoftmaxCall

modules = late("torch.nn.modules.module")
FLEX = "torch._higher_order_ops.flex_attention"
"""Where torch keeps the operator behind `flex_attention`."""
CACHES = "transformers.cache_utils"


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
        if see is not None:
            return _taken_down(recorder, see, function, *args, **named)
        result = function(*args, **named)
        if function in soft and not recorder.silent:
            scores = args[0] if args else named["input"]
            dim = args[1] if args[1:] else named.get("dim")
            home = _home_of_softmax(recorder, softmax, named_so)
            if home is not None and scores.ndim > 2 and dim in (-1, scores.ndim - 1):
                _follow(recorder, home, scores, result)
            is_silent = softmax is not None or home is not None or not recorder.running
            if not is_silent and _like_attention(scores, dim):
                recorder.suspected.append(recorder.path)
        elif recorder.weights.derived and not recorder.silent:
            with torch._C.DisableTorchFunction(), torch.no_grad():
                call = recorder.weights.follow(function, args, result)
                if call is not None:
                    calls.softmax(recorder, call)
        return result

    with ExitStack() as until_then:
        until_then.enter_context(_following(recorder))
        if CACHES in sys.modules:   # else no model can use one
            until_then.enter_context(_following_caches(recorder))
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
    modules = model.named_modules()
    named = [path for path, module in modules if is_attention(path.rpartition(".")[2], module)]
    return [path for path in named if not any(other.startswith(f"{path}.") for other in named)]


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

    def enter(module: nn.Module, args: Any) -> None:
        if id(module) not in recorder.modules:
            return
        deaf = type(module).forward in own
        guard: AbstractContextManager[Any] | None = None
        if deaf and torch._C._len_torch_function_stack() == 1:
            guard = torch._C.DisableTorchFunction()
        elif not deaf and recorder.running and type(recorder.running[-1].module).forward in own:
            guard = torch._C._EnableTorchFunction()
        if guard is not None:
            guard.__enter__()
        guards.append(guard)
        recorder.enter(module, args)

    def leave(module: nn.Module, _: Any, __: Any) -> None:
        if id(module) in recorder.modules and recorder.running:
            forward = recorder.running[-1]
            if not forward.is_hugging_face:   # `softmax=True` says that these are attention
                with torch._C.DisableTorchFunction(), torch.no_grad():
                    for call in list(forward.softmax_calls):
                        calls.softmax(recorder, call)
            recorder.leave()
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


@contextmanager
def _following_caches(recorder: Recorder) -> Iterator[None]:
    """Note what the caches of transformers return: which slots hold keys, and which are new."""
    cache = import_module(CACHES).Cache
    own = cache.update

    def update(
        self: Any, key_states: Any, value_states: Any, layer_idx: int, *args: Any, **named: Any
    ) -> Any:
        keys, values = own(self, key_states, value_states, layer_idx, *args, **named)
        if recorder.running and not recorder.silent:
            length = int(self.layers[layer_idx].get_seq_length())
            added, returned = key_states.shape[-2], keys.shape[-2]
            recorder.note_cache_update(CacheUpdate(added, returned, min(length, returned)))
        return keys, values

    cache.update = update
    try:
        yield
    finally:
        cache.update = own


def _home_of_softmax(recorder: Recorder, softmax: bool | None, named_so: bool) -> Forward | None:
    """The module whose attention a softmax here computes; only one that is `named_so`, if any is."""
    if not recorder.running or softmax is False:
        return None
    home = recorder.running[-1]
    is_function = "softmax" in f"{home.name} {type(home.module).__name__}".lower()
    if is_function and recorder.running[1:]:   # nn.Softmax as a part of the module
        home = recorder.running[-2]
    wanted = softmax or home.is_hugging_face
    return home if wanted and (not named_so or home.is_attention) else None


def _follow(recorder: Recorder, home: Forward, scores: Any, weights: Any) -> None:
    with torch._C.DisableTorchFunction(), torch.no_grad():
        call = SoftmaxCall(home.path, scores.detach().float().clone())
    home.softmax_calls.append(call)
    recorder.weights.start(call, weights)


def _like_attention(scores: Any, dim: int | None) -> bool:
    """Whether a softmax looks like that of queries over keys: (B, H, Q, K), or (B, T, T)."""
    if dim not in (-1, scores.ndim - 1) or min(scores.shape[-2:], default=0) < 2:
        return False
    return scores.ndim == 4 or (scores.ndim == 3 and scores.shape[1] == scores.shape[2])

"""Intercept the attention of any torch model, through the torch functions that it calls.

A `TorchFunctionMode` intercepts `scaled_dot_product_attention` and similar functions, whatever name
they were imported under. Two cases need more:

- torch's own encoder layers take a fast path, with slightly different results, unless a function
  mode is active. So the mode is disabled while one of these modules runs, and the functions that
  they call are replaced by wrappers.
- The running module is tracked by global module hooks: hooks on a module itself would disable its
  fast path too.

The recorder (recorder.py) collects the calls; it is silent inside calls that are recorded already.
Calls outside of the model, and in other threads (threads.py), are not recorded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from importlib import import_module
from typing import Any

from neural.capture import attention_functions
from neural.capture.attention_interface import track_attention_interface
from neural.capture.output_editing import EDIT_FUNCTIONS, edit_product
from neural.capture.placement import CacheUpdate
from neural.capture.recorder import ModuleForward, Recorder, is_attention
from neural.capture.softmax_calls import SoftmaxCall
from neural.capture.threads import substitute
from neural.nn import attend as attending
from neural.nn.lazy_torch import functional, lazy_import, nn, torch

modules = lazy_import("torch.nn.modules.module")
FLEX_MODULE = "torch._higher_order_ops.flex_attention"
"""Module of the operator behind `flex_attention`."""
CACHE_MODULE = "transformers.cache_utils"
"""Module of the key/value caches of transformers."""


@contextmanager
def intercept_attention(recorder: Recorder, *, softmax: bool | None) -> Iterator[None]:
    """Record attention calls of the recorder's model inside the block.

    `softmax`: whether a softmax counts as attention. If None, it counts in modules of transformers
    only; any other softmax that looks like attention is noted in `recorder.suspected_paths`.
    """
    record_functions = {
        functional.scaled_dot_product_attention: attention_functions.record_sdpa,
        functional.multi_head_attention_forward: attention_functions.record_multi_head_attention,
        attending.apply_mechanism: attention_functions.record_attend,
        # programs of torch.export call the operator itself
        torch.ops.aten.scaled_dot_product_attention.default: attention_functions.record_sdpa,
    }
    if FLEX_MODULE in sys.modules:  # else it cannot be called, and importing it takes seconds
        flex_attention = sys.modules[FLEX_MODULE].flex_attention
        record_functions[flex_attention] = attention_functions.record_flex_attention
    has_named_attention = bool(find_attention_modules(recorder.model))
    softmax_functions = {functional.softmax, torch.softmax, torch.Tensor.softmax}

    def intercept(
        function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        record = record_functions.get(function)
        if record is not None:
            return _call_and_record(recorder, record, function, *args, **kwargs)
        result = function(*args, **kwargs)
        if function in softmax_functions and not recorder.is_silent:
            scores = args[0] if args else kwargs["input"]
            dim = args[1] if args[1:] else kwargs.get("dim")
            forward = _find_softmax_module(recorder, softmax, has_named_attention)
            if forward is not None and scores.ndim > 2 and dim in (-1, scores.ndim - 1):
                _track_softmax(recorder, forward, scores, result)
            # decided: it is attention, the caller said which softmax is, or no module is running
            is_decided = softmax is not None or forward is not None or not recorder.running
            if not is_decided and _looks_like_attention(scores, dim):
                recorder.suspected_paths.append(recorder.path)
        # another function may use the result of an earlier softmax
        elif recorder.weight_tracker.derived and not recorder.is_silent:
            with torch._C.DisableTorchFunction(), torch.no_grad():
                call = recorder.weight_tracker.follow(function, args, result)
                heads = 0 if call is None else attention_functions.record_softmax(recorder, call)
            if call is not None and heads:
                return edit_product(recorder, call, result, heads)
        return result

    with ExitStack() as stack:
        stack.enter_context(_track_running_modules(recorder, intercept))
        stack.enter_context(track_attention_interface(recorder))
        if CACHE_MODULE in sys.modules:  # else no model can use a cache
            stack.enter_context(_track_cache_updates(recorder))
        for module, name, record in (
            (
                functional,
                "multi_head_attention_forward",
                attention_functions.record_multi_head_attention,
            ),
            (
                torch,
                "_native_multi_head_attention",
                attention_functions.record_native_multi_head_attention,
            ),
            (torch, "_transformer_encoder_layer_fwd", attention_functions.record_encoder_layer),
        ):
            wrapper = partial(_call_and_record, recorder, record)
            stack.enter_context(substitute(import_module(module.__name__), name, wrapper))
        with _make_function_mode(intercept):
            yield


def find_attention_modules(model: nn.Module) -> list[str]:
    """Paths of modules that are attention by name, without those that contain another one."""
    named_modules = model.named_modules()
    attention_paths = [
        path for path, module in named_modules if is_attention(path.rpartition(".")[2], module)
    ]
    return [
        path
        for path in attention_paths
        if not any(other.startswith(f"{path}.") for other in attention_paths)
    ]


def _is_repeated_by_backward() -> bool:
    """Whether activation checkpointing repeats a forward pass, with no function mode active."""
    is_backward = torch._C._current_graph_task_id() != -1
    return is_backward and torch._C._len_torch_function_stack() == 0


def _make_function_mode(intercept: Callable[..., Any]) -> AbstractContextManager[Any]:
    """Block in which `intercept(function, args, kwargs)` handles every call of a torch function."""

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return intercept(func, args, kwargs or {})

    return Mode()


@contextmanager
def _track_running_modules(recorder: Recorder, intercept: Callable[..., Any]) -> Iterator[None]:
    """Maintain the stack of running modules, `recorder.running`.

    Also disables the function mode inside torch's own attention modules, as explained above. If
    another function mode is active, torch does not take the fast path anyway, and ours stays on.
    """
    fast_path_forwards = {
        nn.MultiheadAttention.forward,
        nn.TransformerEncoderLayer.forward,
        nn.TransformerEncoder.forward,
    }
    # one per running module: what `enter` changed about the function mode, undone by `leave`
    guards: list[AbstractContextManager[Any] | None] = []

    def enter(module: nn.Module, args: Any) -> None:
        if id(module) not in recorder.modules:
            return
        if not recorder.is_here():
            recorder.has_run_elsewhere = True
            return
        has_fast_path = type(module).forward in fast_path_forwards
        is_inside_fast_path = (
            bool(recorder.running)
            and type(recorder.running[-1].module).forward in fast_path_forwards
        )
        guard: AbstractContextManager[Any] | None = None
        if has_fast_path and torch._C._len_torch_function_stack() == 1:
            guard = torch._C.DisableTorchFunction()
        elif not has_fast_path and is_inside_fast_path:
            guard = torch._C._EnableTorchFunction()
        elif recorder.has_edits and not recorder.running and _is_repeated_by_backward():
            # the mode is off inside `backward`, itself a torch function
            guard = _make_function_mode(intercept)
        if guard is not None:
            guard.__enter__()
        guards.append(guard)
        recorder.enter_module(module, args)

    def leave(module: nn.Module, _: Any, __: Any) -> None:
        if id(module) in recorder.modules and recorder.is_here() and recorder.running:
            forward = recorder.running[-1]
            # Outside of transformers, softmax calls are tracked only if the caller declared them to
            # be attention (`softmax=True`). So they are recorded even if no product of the result
            # with values was found.
            if not forward.is_hugging_face:
                with torch._C.DisableTorchFunction(), torch.no_grad():
                    for call in list(forward.softmax_calls):
                        attention_functions.record_softmax(recorder, call)
            recorder.leave_module()
            guard = guards.pop()
            if guard is not None:
                guard.__exit__(None, None, None)

    handles = (
        modules.register_module_forward_pre_hook(enter),
        modules.register_module_forward_hook(leave, always_call=True),
    )
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _call_and_record(
    recorder: Recorder,
    record: Callable[..., Any],
    function: Callable[..., Any],
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Call the function, then record its arguments by `record(recorder, …)`."""
    if recorder.is_silent or not recorder.running:
        return function(*args, **kwargs)
    if recorder.has_edits:  # an edit may need what is recorded, such as the weights
        if recorder.needs_record(recorder.path):
            with torch._C.DisableTorchFunction(), torch.no_grad():
                record(recorder, *args, **kwargs)
        with recorder.nested():
            return EDIT_FUNCTIONS[record](recorder, function, *args, **kwargs)
    with recorder.nested():
        result = function(*args, **kwargs)
    with torch._C.DisableTorchFunction(), torch.no_grad():
        record(recorder, *args, **kwargs)
    return result


@contextmanager
def _track_cache_updates(recorder: Recorder) -> Iterator[None]:
    """Record updates of transformers caches: which slots hold keys, and which are new."""

    def update(
        original: Callable[..., Any],
        self: Any,
        key_states: Any,
        value_states: Any,
        layer_idx: int,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        keys, values = original(self, key_states, value_states, layer_idx, *args, **kwargs)
        if recorder.running and not recorder.is_silent:
            length = int(self.layers[layer_idx].get_seq_length())
            added, returned = key_states.shape[-2], keys.shape[-2]
            recorder.note_cache_update(CacheUpdate(added, returned, min(length, returned)))
        return keys, values

    with substitute(import_module(CACHE_MODULE).Cache, "update", update):
        yield


def _find_softmax_module(
    recorder: Recorder, softmax: bool | None, has_named_attention: bool
) -> ModuleForward | None:
    """The running module to which a softmax belongs if it counts as attention; else None.

    If the model has modules that are attention by name, only those count.
    """
    if not recorder.running or softmax is False:
        return None
    forward = recorder.running[-1]
    is_softmax_module = "softmax" in f"{forward.name} {type(forward.module).__name__}".lower()
    if is_softmax_module and recorder.running[1:]:  # nn.Softmax as a child of the module
        forward = recorder.running[-2]
    is_candidate = softmax or forward.is_hugging_face
    is_named = not has_named_attention or forward.is_attention
    return forward if is_candidate and is_named else None


def _track_softmax(recorder: Recorder, forward: ModuleForward, scores: Any, weights: Any) -> None:
    """Follow the result of a softmax until it is multiplied with values (softmax_calls.py)."""
    with torch._C.DisableTorchFunction(), torch.no_grad():
        call = SoftmaxCall(forward.path, scores.detach().float().clone())
    forward.softmax_calls.append(call)
    recorder.weight_tracker.start(call, weights)


def _looks_like_attention(scores: Any, dim: int | None) -> bool:
    """Whether the shape suggests attention: (B, H, Q, K), or (B, T, T)."""
    if dim not in (-1, scores.ndim - 1) or min(scores.shape[-2:], default=0) < 2:
        return False
    return scores.ndim == 4 or (scores.ndim == 3 and scores.shape[1] == scores.shape[2])

"""Capture the attention of any torch model; its outputs stay bit-identical.

    with watch(model, tokens=ids) as capture:
        model(ids)
    capture[0].path, capture[0].measures["entropy"]

    capture = watch(model, ids)       the same for one batch, without gradients

In networks of `neural`, the mechanism of every attention module (neural.nn.mechanism: the function
from queries, keys and values to outputs) is wrapped inside the `with` block; there is no overhead
outside. Other models are captured through the functions that they call (hooks.py). The recorder
(recorder.py) collects the calls. A module is refused if its attention cannot be measured correctly:
`capture.refusals` has the reason. The model's mode is not changed: in training mode, the measured
weights are those before dropout.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

from neural.capture.capture_result import Capture
from neural.capture.hooks import find_attention_modules, intercept_attention
from neural.capture.labels import check_labels
from neural.capture.patching import MechanismPatch, patch_mechanism
from neural.capture.recorder import Recorder
from neural.capture.threads import EAGER_MODE, in_this_thread
from neural.core.errors import NeuralError
from neural.nn.kv_cache import CachedMechanism
from neural.nn.lazy_torch import torch  # the real torch, imported at the first use
from neural.nn.multi_head_attention import MultiHeadAttentionModule

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from jaxtyping import Bool, Int
    from torch import Tensor, nn

    from neural.nn.mask import Mask
    from neural.nn.mechanism import Mechanism

SUPPORTED_HINT = (
    "Recognised are torch.nn.functional.scaled_dot_product_attention and "
    "multi_head_attention_forward, nn.MultiheadAttention, flex_attention, neural.attend, and "
    "networks of `neural`. Solutions: load a Hugging Face model with "
    'attn_implementation="sdpa" or "eager"; if the model computes its weights with a softmax, '
    "watch(..., softmax=True); otherwise call one of these functions in the model"
)

MAX_SHOWN_PATHS = 4
"""Module paths that a message lists; it only counts further ones."""
INTERNAL_FILES = (str(Path(__file__).parents[1]), contextlib.__file__)
"""Prefixes of the files to which a warning does not point: this package, and `with` blocks."""
CaptureType = TypeVar("CaptureType", bound=Capture)
_DEFAULT_SOFTMAX: ContextVar[bool | None] = ContextVar("softmax", default=None)


class NoAttentionError(NeuralError, LookupError):
    """A model that seems to have attention ran, and no attention call was recognised."""


class AttentionWarning(UserWarning):
    """Some or all of the attention of a watched model is not measured."""


def warn_at_caller(message: str) -> None:
    """Emit an `AttentionWarning` that points at the line that uses `watch`, outside the package."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_code.co_filename.startswith(INTERNAL_FILES):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, AttentionWarning, stacklevel=level + 1)


@overload
def watch(
    model: nn.Module,
    probe: None = None,
    *,
    tokens: Int[Tensor, "B T"] | None = ...,
    measures: Iterable[str] | None = ...,
    real: Bool[Tensor, "B T"] | None = ...,
    softmax: bool | None = ...,
    on_warning: Callable[[str], None] = ...,
) -> AbstractContextManager[Capture]: ...
@overload
def watch(
    model: nn.Module,
    probe: Any,
    *,
    tokens: Int[Tensor, "B T"] | None = ...,
    measures: Iterable[str] | None = ...,
    real: Bool[Tensor, "B T"] | None = ...,
    softmax: bool | None = ...,
    on_warning: Callable[[str], None] = ...,
) -> Capture: ...
def watch(
    model: nn.Module,
    probe: Any = None,
    *,
    tokens: Int[Tensor, "B T"] | None = None,
    measures: Iterable[str] | None = None,
    real: Bool[Tensor, "B T"] | None = None,
    softmax: bool | None = None,
    on_warning: Callable[[str], None] = warn_at_caller,
) -> AbstractContextManager[Capture] | Capture:
    """Capture the model's attention, in a `with` block or on one batch.

    `probe`: one batch (an input, a tuple or a mapping of inputs), run without gradients.
    Other models, and forward passes in other threads, are not captured.
    `tokens` (B, T): token ids, for measures that need them.
    `measures`: names of measures; all that apply if None.
    `real` (B, T): True for positions that are not padding, if the model's masks do not show it.
    `softmax`: whether a softmax over the last axis of (B, H, Q, K) or (B, Q, K) is attention: in
    modules with "attention" in their names, or in all if none has. If None, only in Hugging Face
    models.
    `on_warning`: receives a message if some attention is not measured, or if there is none; by
    default an `AttentionWarning` is emitted.
    """
    block = capture_calls(
        model,
        Capture(measures),
        tokens=tokens,
        real=real,
        softmax=softmax,
        on_warning=on_warning,
    )
    return block if probe is None else run_probe(model, probe, block)


def run_probe(
    model: nn.Module, probe: Any, block: AbstractContextManager[CaptureType]
) -> CaptureType:
    """Run the model on one batch inside the block, without gradients; returns the capture.

    `probe`: an input, a tuple or list of inputs, or a mapping of named inputs.
    """
    with block as capture, torch.no_grad():
        run_model(model, probe)
    return capture


def run_model(model: nn.Module, probe: Any) -> Any:
    """The model's output for an input, a tuple or list of inputs, or a mapping of named inputs."""
    if isinstance(probe, Mapping):
        return model(**probe)
    if isinstance(probe, tuple | list):
        return model(*probe)
    return model(probe)


@contextmanager
def capture_calls(
    model: nn.Module,
    capture: CaptureType,
    *,
    labels: Any = None,
    tokens: Tensor | None = None,
    real: Tensor | None = None,
    softmax: bool | None = None,
    on_warning: Callable[[str], None] = warn_at_caller,
) -> Iterator[CaptureType]:
    """Fill `capture` inside the block; then warn about attention that is not measured.

    The arguments are those of `watch`. `labels` are texts of the positions (labels.py); ValueError
    at the end of the block if they do not match the captured attention.
    """
    recorder = Recorder(model, capture, tokens, real)
    with intercept_calls(recorder, softmax=softmax):
        yield capture
    # `capture.refusals`: module path → why its attention is not measured.
    for path, class_name in recorder.unrecognised.items():
        if not any(call.path == path or call.path.startswith(f"{path}.") for call in capture):
            reason = f"it is named attention, and nothing in it ({class_name}) was recognised"
            capture.refusals.setdefault(path, reason)
    if not recorder.has_run:
        where = (
            "in the thread that opened the block"
            if recorder.has_run_elsewhere
            else "inside the block"
        )
        on_warning(f"watch: the model did not run {where}, so nothing was measured")
    elif not capture:
        _report_empty_capture(recorder, on_warning)
    elif capture.refusals:
        on_warning(f"watch: attention that is not measured: {_format_reasons(capture.refusals)}")
    if labels is not None:
        capture.labels = check_labels(labels, capture)


@contextmanager
def assume_softmax(softmax: bool | None) -> Iterator[None]:
    """Inside the block, `softmax` is what `watch` and `intervene` of this thread have by default."""
    token = _DEFAULT_SOFTMAX.set(softmax)
    try:
        yield
    finally:
        _DEFAULT_SOFTMAX.reset(token)


@contextmanager
def intercept_calls(recorder: Recorder, *, softmax: bool | None = None) -> Iterator[None]:
    """Call the recorder for every attention call of its model inside the block."""
    softmax = _DEFAULT_SOFTMAX.get() if softmax is None else softmax
    with ExitStack() as stack:
        # A compiled graph would not call the hooks, so the model runs in eager mode. If these
        # modules are not imported, nothing is compiled; importing them takes more than a second.
        compiling_modules = ("torch._dynamo", "torch.nn.attention.flex_attention")
        if not sys.modules.keys().isdisjoint(compiling_modules):
            stack.enter_context(EAGER_MODE.hold())
            stack.enter_context(_silence_hook_warnings(recorder.model))
        for path, module in recorder.modules.values():
            if isinstance(module, MultiHeadAttentionModule):
                stack.enter_context(_record_mechanism(module, path, recorder))
        stack.enter_context(intercept_attention(recorder, softmax=softmax))
        yield


def _report_empty_capture(recorder: Recorder, on_warning: Callable[[str], None]) -> None:
    """Explain why nothing was captured.

    Raises NoAttentionError if a module looks like attention; otherwise it is only a warning.
    """
    attention_named_paths = find_attention_modules(recorder.model)
    if any(path not in recorder.unrecognised for path in recorder.capture.refusals):
        reasons = _format_reasons(recorder.capture.refusals)
        raise NoAttentionError(
            f"the attention of this model is not measured: {reasons}. {SUPPORTED_HINT}"
        )
    if attention_named_paths:
        raise NoAttentionError(
            "no attention was recognised, although modules are named so: "
            f"{_format_paths(attention_named_paths)}. {SUPPORTED_HINT}"
        )
    if recorder.suspected_paths:
        raise NoAttentionError(
            "no attention was recognised, but a softmax that looks like one: "
            f"{_format_paths(recorder.suspected_paths)}. "
            "If it is, watch(..., softmax=True); if it is not, softmax=False"
        )
    message = "watch: no attention was recognised in this model, so nothing was measured"
    on_warning(f"{message}. {SUPPORTED_HINT}")


@contextmanager
def _silence_hook_warnings(model: nn.Module) -> Iterator[None]:
    """Silence torch's warning that global hooks run twice in compiled modules: it is harmless."""
    if not any(type(module).__name__ == "OptimizedModule" for module in model.modules()):
        yield
        return
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", r"Using `torch\.compile\(module\)` when there are global hooks", UserWarning
        )
        yield


@contextmanager
def _record_mechanism(
    module: MultiHeadAttentionModule, path: str, recorder: Recorder
) -> Iterator[None]:
    """Record the calls of an attention module of `neural` inside the block."""
    # inside a cache (nn/kv_cache.py) the mechanism gets the keys of earlier steps as well
    is_cached = isinstance(module.mechanism, CachedMechanism)
    owner: Any = module.mechanism if recorder.has_edits and is_cached else module
    patch = RecordingPatch(owner.mechanism, path, recorder)

    def detect_cross_attention(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        # `memory`, the third argument of `forward`, is the sequence of the keys in cross-attention
        patch.is_cross = (args[2] if len(args) > 2 else kwargs.get("memory")) is not None

    hook = in_this_thread(detect_cross_attention)
    handle = module.register_forward_pre_hook(hook, with_kwargs=True)
    try:
        with patch_mechanism(owner, patch):
            yield
    finally:
        handle.remove()


class RecordingPatch(MechanismPatch):
    """Replaces a mechanism: records the arguments of each call, then calls the original."""

    is_cross = False
    """Whether queries and keys come from two sequences in the present call."""

    def __init__(self, mechanism: Mechanism, path: str, recorder: Recorder) -> None:
        super().__init__(mechanism)
        self.path, self.recorder = path, recorder

    def attend(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Mask,
        dropout: float = 0.0,
        extra: Tensor | None = None,
    ) -> Tensor:
        """Record the call, then compute it. `extra` is a tensor that some mechanisms need."""
        if not self.recorder.is_here():
            return self.mechanism.attend(q, k, v, mask, dropout, extra)
        if not self.recorder.is_silent and self.recorder.needs_record(self.path):
            self.recorder.record_mechanism(
                self.path, self.mechanism, q, k, mask, extra, is_cross=self.is_cross
            )
        # the mechanism may call torch functions that are intercepted: not recorded a second time
        with self.recorder.nested():
            output = self.mechanism.attend(q, k, v, mask, dropout, extra)
        if self.recorder.is_silent:
            return output
        return self.recorder.edit_output(output, lambda: v, self.path)


def _format_reasons(refusals: Mapping[str, str]) -> str:
    """Every reason once, with the paths of its modules. `refusals`: path → reason."""
    paths_by_reason: dict[str, list[str]] = {}
    for path, reason in refusals.items():
        paths_by_reason.setdefault(reason, []).append(path)
    return "; ".join(
        f"{_format_paths(paths)}: {reason}" for reason, paths in paths_by_reason.items()
    )


def _format_paths(paths: list[str]) -> str:
    paths = list(dict.fromkeys(paths))
    hidden_count = len(paths) - MAX_SHOWN_PATHS
    shown = ", ".join(f"`{path}`" for path in paths[:MAX_SHOWN_PATHS])
    return shown + (f" and {hidden_count} more" if hidden_count > 0 else "")

"""Watch the attention of any torch model, without changing one bit of what it computes.

    with watch(model, tokens=ids) as seen:
        model(ids)
    seen[0].path, seen[0].measures["entropy"]

    seen = watch(model, ids)          the same for one batch, without gradients

Networks of ours tell what they do: the mechanism of every `Heads` is wrapped while somebody watches, so that nothing
is there when nobody does. Other models are seen through the functions that they call, see foreign.py. The model's mode
is left as it is: a model that is training drops weights, and what is measured are the weights before that.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, overload

from neural.modules.heads import Heads
from neural.modules.late import torch
from neural.tracking.foreign import FLEX, attention_modules, listening
from neural.tracking.recorder import Recorder
from neural.tracking.seen import Seen
from neural.tracking.stand_in import StandIn, standing_in

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from jaxtyping import Bool, Int
    from torch import Tensor, nn

    from neural.modules.mask import Mask
    from neural.modules.mechanism import Mechanism

WAYS_OUT = (
    "What is recognised: torch.nn.functional.scaled_dot_product_attention and multi_head_attention_forward, "
    "nn.MultiheadAttention, flex_attention, neural.attend, and networks of `neural`. Ways out: load a Hugging Face "
    'model with attn_implementation="sdpa" or "eager"; if the model writes its weights out with a softmax, '
    "watch(..., softmax=True); otherwise call one of these functions in it"
)


class NothingSeen(LookupError):
    """A model that has attention, by its names or by what it does, ran, and no call of attention was recognised."""


class AttentionWarning(UserWarning):
    """A model ran under a watch, and some of its attention, or all, is not measured."""


def warn(message: str) -> None:
    """Show an `AttentionWarning` at the line that watches."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_code.co_filename in (__file__, contextlib.__file__):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, AttentionWarning, stacklevel=level + 1)


@overload
def watch(
    model: nn.Module, probe: None = None, *, tokens: Int[Tensor, "B T"] | None = ...,
    measures: Iterable[str] | None = ..., real: Bool[Tensor, "B T"] | None = ..., softmax: bool | None = ...,
    on_warning: Callable[[str], None] = ...,
) -> AbstractContextManager[Seen]: ...  # fmt: skip
@overload
def watch(
    model: nn.Module, probe: Any, *, tokens: Int[Tensor, "B T"] | None = ..., measures: Iterable[str] | None = ...,
    real: Bool[Tensor, "B T"] | None = ..., softmax: bool | None = ..., on_warning: Callable[[str], None] = ...,
) -> Seen: ...  # fmt: skip
def watch(
    model: nn.Module, probe: Any = None, *, tokens: Int[Tensor, "B T"] | None = None,
    measures: Iterable[str] | None = None, real: Bool[Tensor, "B T"] | None = None, softmax: bool | None = None,
    on_warning: Callable[[str], None] = warn,
) -> AbstractContextManager[Seen] | Seen:  # fmt: skip
    """What the model's attention does, inside a `with`, or on a `probe`: its input, a tuple or a mapping of inputs.

    `tokens` (B, T): which token stands where, for measures that ask. `real` (B, T): positions that are not padding,
    where the model's masks do not tell. `measures`: all that apply unless given. `softmax`: whether a softmax over the
    last axis of (B, H, Q, K) or (B, Q, K), in a module with attention in its name (in any, where none has), is
    attention that is written out; unless given, in models of Hugging Face only. `on_warning`: takes
    the message if some attention is not measured or there is none; by default an `AttentionWarning`.
    """
    block = _watching(model, Seen(measures), tokens, real, softmax, on_warning)
    if probe is None:
        return block
    with block as seen, torch.no_grad():
        if isinstance(probe, Mapping):
            model(**probe)
        elif isinstance(probe, tuple | list):
            model(*probe)
        else:
            model(probe)
    return seen


@contextmanager
def _watching(
    model: nn.Module, seen: Seen, tokens: Tensor | None, real: Tensor | None, softmax: bool | None,
    on_warning: Callable[[str], None],
) -> Iterator[Seen]:  # fmt: skip
    recorder = Recorder(model, seen, tokens, real)
    with ExitStack() as until_then:
        if not sys.modules.keys().isdisjoint(("torch._dynamo", FLEX)):   # else nothing can be compiled yet
            until_then.enter_context(torch.compiler.set_stance("force_eager"))
            until_then.enter_context(_quiet_about_hooks(model))
        for path, module in recorder.modules.values():
            if isinstance(module, Heads):
                until_then.enter_context(_told_by(module, path, recorder))
        until_then.enter_context(listening(recorder, softmax=softmax))
        yield seen
    for path, name in recorder.unrecognised.items():
        if not any(call.path == path or call.path.startswith(f"{path}.") for call in seen):
            reason = f"it is called attention, and nothing in it ({name}) was recognised"
            seen.refused.setdefault(path, reason)
    if not recorder.ran:
        on_warning("watch: the model did not run inside the block, so nothing was measured")
    elif not seen:
        _explain_nothing(recorder, on_warning)
    elif seen.refused:
        on_warning(f"watch: attention that is not measured: {_reasons(seen.refused)}")


def _explain_nothing(recorder: Recorder, on_warning: Callable[[str], None]) -> None:
    """Explain an empty result: an error if the model should have attention, else a warning."""
    suspects = attention_modules(recorder.model)
    if any(path not in recorder.unrecognised for path in recorder.seen.refused):
        reasons = _reasons(recorder.seen.refused)
        raise NothingSeen(f"the attention of this model is not measured: {reasons}. {WAYS_OUT}")
    if suspects:
        named = f"no attention was recognised, though the names say that there is some: {_few(suspects)}"
        raise NothingSeen(f"{named}. {WAYS_OUT}")
    if recorder.suspected:
        raise NothingSeen(
            f"no attention was recognised, but a softmax that looks like one: {_few(recorder.suspected)}. "
            "If it is, watch(..., softmax=True); if it is not, softmax=False"
        )
    nothing = "watch: no attention was recognised in this model, so nothing was measured"
    on_warning(f"{nothing}. {WAYS_OUT}")


@contextmanager
def _quiet_about_hooks(model: nn.Module) -> Iterator[None]:
    """A compiled module warns that hooks for all modules see it twice; ours do not mind."""
    if not any(type(module).__name__ == "OptimizedModule" for module in model.modules()):
        yield
        return
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Using `torch\.compile\(module\)` when there are global hooks", UserWarning)
        yield


@contextmanager
def _told_by(heads: Heads, path: str, recorder: Recorder) -> Iterator[None]:
    """Put a witness in the place of the mechanism."""
    witness = Witness(heads.mechanism, path, recorder)

    def before(_: nn.Module, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        witness.cross = (args[2] if len(args) > 2 else named.get("memory")) is not None

    handle = heads.register_forward_pre_hook(before, with_kwargs=True)
    try:
        with standing_in(heads, witness):
            yield
    finally:
        handle.remove()


class Witness(StandIn):
    """A mechanism that tells the recorder what it is given, and then does the same."""

    cross = False
    """Whether queries and keys are of two sequences in this call."""

    def __init__(self, mechanism: Mechanism, path: str, recorder: Recorder) -> None:
        super().__init__(mechanism)
        self.path, self.recorder = path, recorder

    def mix(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Mask, dropout: float = 0.0, extra: Tensor | None = None
    ) -> Tensor:
        """As the mechanism does it, and on record."""
        if not self.recorder.silent:
            self.recorder.by_mechanism(self.path, self.mechanism, q, k, mask, extra, cross=self.cross)
        with self.recorder.inside():
            return self.mechanism.mix(q, k, v, mask, dropout, extra)


def _reasons(refused: Mapping[str, str]) -> str:
    """Every reason once, with the modules that it holds for."""
    paths: dict[str, list[str]] = {}
    for path, reason in refused.items():
        paths.setdefault(reason, []).append(path)
    return "; ".join(f"{_few(those)}: {reason}" for reason, those in paths.items())


def _few(paths: list[str]) -> str:
    paths = list(dict.fromkeys(paths))
    return ", ".join(f"`{path}`" for path in paths[:4]) + (f" and {len(paths) - 4} more" if paths[4:] else "")

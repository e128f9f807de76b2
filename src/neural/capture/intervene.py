"""Change what attention heads write, in any model that `watch` can capture.

    with intervene(model, zero("L1 h3")):
        logits = model(ids)

    clean = record_head_outputs(model, clean_ids)
    with intervene(model, patch("L1 h3", clean)):      activation patching
        logits = model(corrupted_ids)

Attention calls are intercepted as for capturing (watch.py, hooks.py); interventions.py has the
changes. Outside the block, the model is as before: no weight is touched. Inside, compiled models run
in eager mode, and torch's fast path for its own encoder layers is off, because it computes several
layers in one function.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from neural.capture.capture_result import Capture, CapturedCall
from neural.capture.interventions import (
    HeadCall,
    HeadOutputs,
    Intervention,
    InterventionError,
    LayerOutputs,
)
from neural.capture.recorder import Recorder, is_same_call
from neural.capture.threads import substitute
from neural.capture.watch import NoAttentionError, intercept_calls, run_model
from neural.nn.lazy_torch import torch

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor, nn

    from neural.capture.attention_call import AttentionCall


@contextmanager
def intervene(
    model: nn.Module, *interventions: Intervention, softmax: bool | None = None
) -> Iterator[None]:
    """Apply interventions to every forward pass of the model inside the block, in their order.

        with neural.intervene(model, neural.interventions.zero("L1 h3")):
            logits = model(ids)

    Blocks may be nested: the outer one is applied first. Gradients flow through all changes. Other
    models, and forward passes in other threads, are not changed.
    `softmax`: as in `neural.watch`. InterventionError if a head does not exist, or if the attention
    of its module is not recognised.
    """
    for intervention in interventions:
        if not isinstance(intervention, Intervention):
            raise InterventionError(
                f"{intervention!r} is not an intervention: use those of neural.interventions, "
                'such as zero("L1 h3")'
            )
    recorder = InterventionRecorder(model, interventions)
    with ExitStack() as stack:
        # torch's encoder layers call their attention function then, as other modules do
        fast_path = import_module("torch.backends.mha")
        stack.enter_context(substitute(fast_path, "get_fastpath_enabled", lambda _: False))
        for intervention in interventions:
            stack.enter_context(intervention.attach(model))
        stack.enter_context(intercept_calls(recorder, softmax=softmax))
        yield
    if recorder.has_run_elsewhere and not recorder.has_run:
        raise InterventionError(
            "the model ran in other threads only, where it is not changed: open the block in the "
            "thread that calls the model"
        )
    if not recorder.has_run:
        return
    for intervention in interventions:
        problem = intervention.describe_unmatched(recorder.layer_paths)
        if problem is not None:
            reasons = [f"`{path}`: {reason}" for path, reason in recorder.refusals.items()]
            reasons += [
                f"`{path}`: nothing in it ({class_name}) was recognised"
                for path, class_name in recorder.unrecognised.items()
            ]
            hints = [
                f"a softmax in `{path}` looks like attention: softmax=True of `ablate`, `attribute`, "
                "`intervene`, `patch`, `record_head_outputs` and `watch` in Python takes it for that"
                for path in recorder.suspected_paths[:1]
            ]
            raise intervention.unmatched_error("; ".join([problem, *reasons[:3], *hints]))


def record_head_outputs(
    model: nn.Module,
    probe: Any,
    *interventions: Intervention,
    keep_weights: bool = False,
    softmax: bool | None = None,
) -> HeadOutputs:
    """Run the model on one batch, without gradients, and return what its heads write.

        clean = neural.record_head_outputs(model, ids)
        with neural.intervene(model, neural.interventions.patch("L1 h3", clean)):
            logits = model(other_ids)

    `probe`: an input, a tuple or a mapping of inputs. `keep_weights` also returns the attention
    weights, (B, H, Q, K). With `interventions`, outputs are those after the changes.
    """
    outputs = HeadOutputs()
    block = intervene(model, *interventions, _RecordOutputs(outputs, keep_weights), softmax=softmax)
    with block, torch.no_grad():
        run_model(model, probe)
    return outputs


class _RecordOutputs(Intervention):
    """Stores the outputs of all heads, and changes nothing."""

    unmatched_error = NoAttentionError

    def __init__(self, outputs: HeadOutputs, keep_weights: bool) -> None:
        self.outputs, self.needs_weights = outputs, keep_weights

    def targets(self, layer: int, path: str) -> bool:
        """Every layer."""
        return True

    def describe_unmatched(self, layers: Sequence[str]) -> str | None:
        """Say that nothing was recorded. Calls that were refused afterwards are dropped."""
        del self.outputs.layers[len(layers) :]
        if self.outputs.layers:
            return None
        return "the model made no attention call whose head outputs are known"

    def apply(self, call: HeadCall) -> Float[Tensor, "B H Q D"]:
        """Store copies: the model may change its tensors in place after the call."""
        with torch.no_grad():
            attention = call.attention
            layer = LayerOutputs(
                call.path,
                call.output.detach().clone(),
                call.expand_values().detach().clone(),
                call.compute_weights() if self.needs_weights else None,
                None if attention is None else attention.valid_queries(),
            )
        if call.part:  # the same weights applied to other values are one layer
            self.outputs.layers[call.layer].further_parts.append(layer)
        else:
            del self.outputs.layers[call.layer :]
            self.outputs.layers.append(layer)
        return call.output


class InterventionRecorder(Recorder):
    """Numbers the attention calls of each forward pass, and applies interventions to them.

    The first forward pass shows the order of the calls; later ones look a call up by the path of
    its module. So layers have the same numbers in passes that leave some out, such as a step of
    generation that does not run the encoder again.
    """

    def __init__(self, model: nn.Module, interventions: tuple[Intervention, ...]) -> None:
        super().__init__(model, Capture(()))
        self.interventions = interventions
        self.layer_paths: list[str] = []
        """Path of the module of each layer."""
        self._layers_by_path: dict[str, list[int]] = defaultdict(list)
        """Layers of the calls of each module, in the order of one forward pass."""
        self._call_counts: dict[str, int] = defaultdict(int)
        """Calls of each module in the present forward pass."""
        self._recorded: CapturedCall | None = None
        """The call that was recorded last and not edited yet."""
        self._edited_paths: set[str] = set()

    @property
    def refusals(self) -> dict[str, str]:
        """Modules whose attention is not recognised: path → reason."""
        return self.capture.refusals

    @property
    def has_edits(self) -> bool:
        """True."""
        return True

    @property
    def is_silent(self) -> bool:
        """Whether calls are part of a call that is edited already.

        Unlike captures, activation checkpointing is not silent: when it repeats a forward pass, the
        heads must be changed again.
        """
        return self._nesting > 0

    @property
    def recognised_count(self) -> int:
        """Number of calls so far, and of refusals."""
        return sum(self._call_counts.values()) + len(self.capture.refusals)

    def needs_record(self, path: str) -> bool:
        """Whether the call is new, or an intervention needs its weights."""
        layers = self._layers_by_path.get(path, ())
        is_known = self._call_counts[path] < len(layers)
        return not is_known or any(
            intervention.needs_weights and intervention.targets(layer, path)
            for intervention in self.interventions
            for layer in layers
        )

    def record_call(self, path: str, *args: Any, **kwargs: Any) -> None:
        """Check the call as for capturing; only the newest one is stored."""
        super().record_call(path, *args, **kwargs)
        self._recorded = self.capture.calls.pop() if self.capture.calls else None

    def edit_output(
        self,
        output: Float[Tensor, "B H Q D"],
        get_values: Callable[[], Tensor],
        path: str | None = None,
    ) -> Float[Tensor, "B H Q D"]:
        """Apply the interventions to the outputs of the heads of one call."""
        path = self.path if path is None else path
        recorded, self._recorded = self._recorded, None
        layers, count = self._layers_by_path[path], self._call_counts[path]
        if count < len(layers):
            layer = layers[count]
        elif recorded is None or recorded.heads != output.shape[1]:
            return output  # refused: `leave_module` says why
        else:
            layer = self._number_call(recorded)
            layers.append(layer)
        part = layers[:count].count(layer)
        self._call_counts[path] += 1
        attention: AttentionCall | None = None if recorded is None else recorded.attention
        for intervention in self.interventions:
            if intervention.targets(layer, path):
                call = HeadCall(layer, path, output, get_values, attention, part)
                edited = intervention.apply(call)
                if edited is not output:
                    self._edited_paths.add(path)
                output = edited
        return output

    def _number_call(self, recorded: CapturedCall) -> int:
        """The layer of a new call; that of an earlier call of the module if their weights agree."""
        forward = self.running[-1] if self.running else None
        if forward is not None and forward.is_hugging_face:
            earlier = [call for call in forward.calls if call is not recorded]
            if any(is_same_call(recorded, call) for call in earlier):
                return self._layers_by_path[recorded.path][-1]
        self.layer_paths.append(recorded.path)
        return len(self.layer_paths) - 1

    def leave_module(self) -> None:
        """Check what was recorded; start counting again after the outermost module."""
        path = self.running[-1].path
        super().leave_module()
        if path in self.refusals and self._call_counts[path]:
            if path in self._edited_paths:
                raise InterventionError(
                    f"the heads of `{path}` cannot be changed: {self.refusals[path]}. Heads of "
                    "other modules can be addressed by the path of their module, (path, head)"
                )
            self._forget_calls(path)
        if not self.running:
            self._call_counts.clear()

    def _forget_calls(self, path: str) -> None:
        """Give the numbers of a module's calls to later ones, because `watch` does not list them.

        That a module is refused may be known only at its end: its first call seemed complete.
        """
        del self._call_counts[path]
        removed = set(self._layers_by_path.pop(path, ()))
        self.layer_paths = [
            other for layer, other in enumerate(self.layer_paths) if layer not in removed
        ]
        for layers in self._layers_by_path.values():
            layers[:] = [layer - sum(other < layer for other in removed) for layer in layers]

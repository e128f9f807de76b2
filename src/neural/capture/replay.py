"""Repeat a forward pass from one attention layer on, with the outputs of some heads replaced.

    replay = Replay(model, objective, batch)          studies the model on a small batch
    clean = replay.run_clean(batch)                   losses, head outputs, outputs of blocks
    losses = replay.run_without(clean, [[(2, 0)], [(2, 3)]], replacements)      (2, B, T)

Removing a head of layer l changes nothing before layer l. So one unchanged pass stores the outputs
of all blocks; a repeated pass returns these instead of running the blocks before layer l, and in
layer l it applies the output projection to the stored head outputs with the replaced ones, instead
of running attention. Several removals run in one batch: the examples are repeated for each.

Blocks are the modules in a list (`ModuleList`, `Sequential`) that contain attention, or else
children of the model; how they call each other is not assumed, but observed: a module is skipped
only if it runs once, and before the layer. The projection is the module whose input is the head
outputs and whose output is that of the attention module. Where it is not found, heads are replaced
by `intervene`, which is slower. A model for which repeated passes do not reproduce the losses of an
unchanged pass, and those of `intervene`, runs completely each time.

Nothing in the model changes: `forward` of the skipped modules is replaced inside a block only, in
the thread that opened it.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from neural.capture.intervene import intervene
from neural.capture.interventions import HeadCall, Intervention, InterventionError
from neural.capture.recorder import strip_wrappers
from neural.capture.threads import EAGER_MODE, in_this_thread, substitute
from neural.nn.lazy_torch import nn, torch

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor

    Batch = Mapping[str, Any]
    """Inputs and targets by name; tensors have examples along the first axis."""
    Objective = Callable[[nn.Module, Batch], Tensor]
    """Losses (B, T) per token or (B,) per example; NaN where there is no target."""

LayerHead = tuple[int, int]
"""Layer and head, from 0."""
MAX_CHECK_EXAMPLES = 1
"""Examples on which repeated passes are compared with complete ones."""
TOLERANCES = {"float32": 1e-4, "float64": 1e-8}
"""Largest difference of losses, relative to 1 + the loss, by dtype of the losses; else the next."""
COARSE_TOLERANCE = 0.05
NO_CALLS = "the model made no attention call whose heads can be changed in this objective"
ACTIVATION_FACTOR = 6
"""Memory of a pass without gradients, in multiples of the largest output of a module."""
GRADIENT_FACTOR = 1.5
"""Memory of a pass with gradients, in multiples of the outputs of all modules. Linear maps save
nothing for the backward pass, because no gradients of weights are computed."""


@dataclass(frozen=True)
class LayerState:
    """Head outputs of one attention call in an unchanged pass."""

    path: str
    output: Float[Tensor, "B H Q D"]
    real: Bool[Tensor, "B Q"] | None = None
    """True for queries that are not padding; None if none is, or if it is unknown."""
    pattern_output: Float[Tensor, "B H Q D"] | None = None
    """Head outputs with the replaced pattern, if one was asked for."""
    gradient: Float[Tensor, "B H Q D"] | None = None
    """Derivative of the sum of all losses, if it was asked for and the model has one."""


@dataclass(frozen=True)
class CleanPass:
    """One unchanged forward pass."""

    batch: Batch
    examples: int
    losses: Tensor
    layers: list[LayerState]
    units: dict[str, Any]
    """Stored outputs of the modules that later passes skip, by path."""
    projected: dict[int, Tensor] = field(default_factory=dict)
    """Unchanged output of the attention of one layer, by layer."""

    @property
    def memory_bytes(self) -> int:
        """Memory of the stored tensors."""
        tensors = [layer.output for layer in self.layers]
        for output in self.units.values():
            tensors += _list_tensors(output)
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


@dataclass(frozen=True)
class _Layer:
    """How the heads of one layer are replaced."""

    path: str
    heads: int
    head_width: int
    skipped: tuple[str, ...]
    """Units that have run before the layer."""
    projection: str | None
    """Path of the output projection; None: `intervene` replaces the heads."""
    returns_tuple: int = 0
    """Length of the tuple that the attention module returns; 0 for a tensor."""


@dataclass
class _Trace:
    """What ran in one pass, in its order."""

    starts: dict[str, int] = field(default_factory=dict)
    ends: dict[str, int] = field(default_factory=dict)
    calls: Counter[str] = field(default_factory=Counter)
    inputs: dict[str, Any] = field(default_factory=dict)
    outputs: dict[str, Any] = field(default_factory=dict)
    largest_bytes: int = 0
    total_bytes: int = 0
    clock: int = 0


class Replay:
    """Repeats forward passes of one model on one objective."""

    def __init__(
        self, model: nn.Module, objective: Objective, batch: Batch, *, use_blocks: bool = True
    ) -> None:
        """Study the model on the first example of a batch.

        `use_blocks=False` runs the complete model each time, with `intervene`. InterventionError
        if the model has no attention whose heads can be changed.
        """
        self.model, self.objective = model, objective
        self._modules = {strip_wrappers(path): module for path, module in model.named_modules()}
        small = take_rows(batch, slice(0, MAX_CHECK_EXAMPLES))
        self._layers: list[_Layer] = []
        self._unit_paths: list[str] = []
        self._study(small, use_blocks)
        clean = self.run_clean(small)
        self.can_repeat = self._check_repetition(clean)
        """Whether several removals can run in one batch."""
        if use_blocks and not self._check_replay(clean):
            self._layers = [
                _Layer(layer.path, layer.heads, layer.head_width, (), None)
                for layer in self._layers
            ]
            self._unit_paths = []

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths of the attention modules, by layer."""
        return tuple(layer.path for layer in self._layers)

    @property
    def heads(self) -> tuple[int, ...]:
        """Number of heads of each layer."""
        return tuple(layer.heads for layer in self._layers)

    @property
    def head_widths(self) -> tuple[int, ...]:
        """Width of the outputs of the heads of each layer."""
        return tuple(layer.head_width for layer in self._layers)

    def get_projection_weight(self, layer: int) -> Float[Tensor, "I E"] | None:
        """Weight of the output projection, from head outputs to the block; None if unknown."""
        path = self._layers[layer].projection
        module = None if path is None else self._modules[path]
        if type(module) is nn.Linear:
            return module.weight.detach().T
        # of transformers: its weight is (I, E)
        is_transposed = type(module).__name__ == "Conv1D" and hasattr(module, "nf")
        weight = getattr(module, "weight", None)
        return weight.detach() if is_transposed and isinstance(weight, torch.Tensor) else None

    @property
    def is_fast(self) -> bool:
        """Whether repeated passes leave blocks out."""
        return bool(self._unit_paths)

    def choose_rows(self, memory_bytes: int) -> tuple[int, int]:
        """Largest numbers of examples: of a pass with gradients, and of a pass without."""
        with_gradients = memory_bytes // max(1.0, GRADIENT_FACTOR * self._total_bytes)
        without = memory_bytes // max(1, ACTIVATION_FACTOR * self.largest_bytes)
        return max(2, int(with_gradients)), max(2, int(without))

    def run_clean(
        self, batch: Batch, *, pattern: Intervention | None = None, with_gradients: bool = False
    ) -> CleanPass:
        """Run the unchanged model; store what later passes need.

        `pattern`: an intervention on "all" heads; what they would write is stored, and not used.
        `with_gradients` also stores the derivatives of the sum of all losses.
        """
        recorder = _CleanRecorder(pattern, with_gradients)
        units: dict[str, Any] = {}
        with ExitStack() as stack:
            for path in self._unit_paths:
                stack.enter_context(_store_output(self._modules[path], path, units))
            stack.enter_context(intervene(self.model, recorder))
            if with_gradients:
                stack.enter_context(_freeze_parameters(self.model))
                stack.enter_context(torch.enable_grad())
            else:
                stack.enter_context(torch.no_grad())
            losses = self.objective(self.model, batch)
            gradients: list[Tensor | None] = [None] * len(recorder.calls)
            if with_gradients:
                total = torch.where(losses.isnan(), 0.0, losses).sum()
                outputs = [call.output for call in recorder.calls]
                if total.requires_grad:
                    gradients = list(torch.autograd.grad(total, outputs, allow_unused=True))
        layers = [
            LayerState(
                call.path,
                call.output.detach(),
                call.real,
                call.pattern_output,
                gradient,
            )
            for call, gradient in zip(recorder.calls, gradients, strict=True)
        ]
        return CleanPass(batch, count_examples(batch), losses.detach(), layers, units)

    def run_without(
        self,
        clean: CleanPass,
        removals: Sequence[Sequence[LayerHead]],
        replacements: Sequence[Tensor | Intervention],
        *,
        start: int | None = None,
    ) -> Tensor:
        """Losses without some heads: a row of losses (n, B, …) for each set of heads in `removals`.

        `replacements`: what the removed heads write, by layer: a tensor broadcastable to
        (B, H, Q, D), or an intervention on all heads that computes it in the pass. All sets run in
        one batch. `start`: the first layer with a removed head, if there is none in `removals`.
        """
        first = min((head[0] for heads in removals for head in heads), default=start)
        if first is None:
            raise ValueError("no head to remove and no start")
        copies = len(removals)
        plan = self._layers[first]
        by_layer: dict[int, list[tuple[int, int]]] = {}  # layer → (copy, head)
        for copy, heads in enumerate(removals):
            for layer, head in heads:
                by_layer.setdefault(layer, []).append((copy, head))
        batch = repeat_batch(clean.batch, copies)
        with ExitStack() as stack:
            stack.enter_context(torch.no_grad())
            if "torch._dynamo" in sys.modules:  # a compiled graph would not see replaced modules
                stack.enter_context(EAGER_MODE.hold())
            for path in plan.skipped:
                output = _repeat_output(clean.units[path], clean.examples, copies)
                stack.enter_context(_replace_forward(self._modules[path], output))
            slow: list[Intervention] = []
            for layer in sorted({first, *by_layer}):
                replacement, edits = replacements[layer], by_layer.get(layer, [])
                projection = self._layers[layer].projection
                is_computed = isinstance(replacement, Intervention) and layer > first
                if projection is None or is_computed:
                    if edits:
                        target = self._find_target(layer)
                        slow.append(_ReplaceHeads(layer, target, edits, replacement, copies))
                elif layer == first:
                    output = self._project_edited(clean, layer, replacement, edits, copies)
                    size = self._layers[layer].returns_tuple
                    output = (output, *[None] * (size - 1)) if size else output
                    module = self._modules[self._layers[layer].path]
                    stack.enter_context(_replace_forward(module, output))
                else:
                    width = self._layers[layer].head_width
                    hook = _edit_projection_input(edits, replacement, copies, width)
                    module = self._modules[projection]
                    handle = module.register_forward_pre_hook(in_this_thread(hook))
                    stack.callback(handle.remove)
            if slow:
                stack.enter_context(intervene(self.model, *slow))
            losses = self.objective(self.model, batch)
        return losses.unflatten(0, (copies, -1))

    def _find_target(self, layer: int) -> int | str:
        """How `intervene` finds a layer: by its path, or by its number if paths are not unique."""
        paths = self.paths
        return layer if paths.count(paths[layer]) > 1 else paths[layer]

    def _project_edited(
        self,
        clean: CleanPass,
        layer: int,
        replacement: Tensor | Intervention,
        edits: Sequence[tuple[int, int]],
        copies: int,
    ) -> Float[Tensor, "N Q E"]:
        """Output of attention in all copies: the projection of stored and replaced head outputs.

        In 32 and 64 bits, only the differences of the replaced heads are multiplied and added to
        the unchanged output. Narrower types would round these sums.
        """
        state = clean.layers[layer]
        new = state.pattern_output if isinstance(replacement, Intervention) else replacement
        assert new is not None
        new = new.to(state.output.dtype).expand(state.output.shape)
        projection = self._modules[str(self._layers[layer].projection)]
        weight = self.get_projection_weight(layer)
        is_exact = state.output.dtype in (torch.float32, torch.float64)
        if weight is None or not is_exact:
            edited = state.output.expand(copies, *state.output.shape).clone()
            for copy, head in edits:
                edited[copy, :, head] = new[:, head]
            return projection(edited.flatten(0, 1).transpose(1, 2).flatten(2))
        if layer not in clean.projected:
            clean.projected.clear()  # removals come layer by layer
            clean.projected[layer] = projection(state.output.transpose(1, 2).flatten(2))
        unchanged = clean.projected[layer]
        output = unchanged.expand(copies, *unchanged.shape).clone()
        width = self._layers[layer].head_width
        for copy, head in edits:
            difference = new[:, head] - state.output[:, head]
            output[copy] += difference @ weight[head * width : (head + 1) * width]
        return output.flatten(0, 1)

    def _study(self, batch: Batch, use_blocks: bool) -> None:
        """Find layers, projections and units in one pass."""
        trace, recorder = _Trace(), _CleanRecorder(None, False)
        with ExitStack() as stack:
            for path, module in self._modules.items():
                _trace_module(stack, module, path, trace)
            stack.enter_context(torch.no_grad())
            stack.enter_context(intervene(self.model, recorder))
            self.objective(self.model, batch)
        if not recorder.calls:
            raise InterventionError(NO_CALLS)
        examples = count_examples(batch)
        self.largest_bytes = trace.largest_bytes // examples
        """Size of the largest output of a module, per example."""
        self._total_bytes = trace.total_bytes // examples
        paths = [call.path for call in recorder.calls]
        is_unique = len(set(paths)) == len(paths)
        if use_blocks and is_unique:
            self._unit_paths = self._find_units(paths, trace, examples)
        for call in recorder.calls:
            _, heads, _, width = call.output.shape
            skipped: tuple[str, ...] = ()
            projection, size = None, 0
            if use_blocks and is_unique and call.path in trace.starts:
                begin = trace.starts[call.path]
                skipped = tuple(path for path in self._unit_paths if trace.ends[path] < begin)
                projection, size = self._find_projection(call, trace)
            self._layers.append(_Layer(call.path, heads, width, skipped, projection, size))

    def _find_units(self, paths: Sequence[str], trace: _Trace, examples: int) -> list[str]:
        """Modules that can be skipped, in their order: blocks, and costly modules before them."""
        blocks = {self._find_block(path) for path in paths}
        others = [
            name
            for name, module in self.model.named_children()
            if _has_matrices(module)
            and not any(block.split(".")[0] == strip_wrappers(name) for block in blocks)
        ]
        candidates = [*blocks, *map(strip_wrappers, others)]
        last_start = max(trace.starts.get(path, 0) for path in paths)
        units = [
            path
            for path in candidates
            if path
            and trace.calls[path] == 1
            and trace.ends[path] < last_start
            and _is_batch_output(trace.outputs[path], examples)
        ]
        return sorted(units, key=trace.ends.__getitem__)

    def _find_block(self, path: str) -> str:
        """The outermost module of a list that contains a module; else the child of the model."""
        names = path.split(".")
        for length in range(1, len(names) + 1):
            parent = self._modules.get(".".join(names[: length - 1]))
            if isinstance(parent, nn.ModuleList | nn.Sequential | nn.ModuleDict):
                return ".".join(names[:length])
        return names[0]

    def _find_projection(self, call: _CleanCall, trace: _Trace) -> tuple[str | None, int]:
        """Path of the output projection, and the length of the tuple that attention returns."""
        attention_output = trace.outputs.get(call.path)
        first, size = attention_output, 0
        if isinstance(attention_output, tuple) and attention_output:
            first, *rest = attention_output
            size = len(attention_output)
            if any(value is not None for value in rest):
                return None, 0  # another output would have to be computed, too
        if not isinstance(first, torch.Tensor) or trace.calls[call.path] != 1:
            return None, 0
        flat = call.output.transpose(1, 2).flatten(2)
        for path in trace.outputs:
            if not path.startswith(f"{call.path}.") or trace.calls[path] != 1:
                continue
            given, returned = trace.inputs.get(path), trace.outputs[path]
            is_match = _is_equal(given, flat) and _is_equal(returned, first)
            if is_match and _has_matrices(self._modules[path]):
                return path, size
        return None, 0

    def _check_repetition(self, clean: CleanPass) -> bool:
        """Whether a batch with every example twice gives every loss and head output twice."""
        try:
            twice = self.run_clean(repeat_batch(clean.batch, 2))
            losses = torch.cat([clean.losses] * 2)
        except (RuntimeError, ValueError, IndexError, TypeError):
            return False
        outputs = zip(clean.layers, twice.layers, strict=False)
        return (
            is_close(twice.losses, losses)
            and len(clean.layers) == len(twice.layers)
            and all(
                2 * len(alone.output) == len(doubled.output)
                and alone.output.shape[1:] == doubled.output.shape[1:]
                for alone, doubled in outputs
            )
        )

    def _check_replay(self, clean: CleanPass) -> bool:
        """Whether repeated passes give the losses of complete ones, with and without a head."""
        zeros = [layer.output.new_zeros(()) for layer in clean.layers]
        copies = 2 if self.can_repeat else 1
        try:
            for layer in sorted({0, len(zeros) - 1}):
                same = self.run_without(clean, [[]] * copies, zeros, start=layer)
                removed = self.run_without(clean, [[(layer, 0)]], zeros)[0]
                complete = _ReplaceHeads(layer, self._find_target(layer), [(0, 0)], zeros[layer], 1)
                with torch.no_grad(), intervene(self.model, complete):
                    expected = self.objective(self.model, clean.batch)
                if not is_close(same, clean.losses.expand_as(same)):
                    return False
                if not is_close(removed, expected):
                    return False
        except (RuntimeError, ValueError, IndexError, TypeError, AttributeError, KeyError):
            return False
        return True


@dataclass
class _CleanCall:
    path: str
    output: Tensor
    real: Tensor | None
    pattern_output: Tensor | None


class _CleanRecorder(Intervention):
    """Stores the outputs of all heads; the model goes on with unchanged ones."""

    needs_weights = True  # the mask shows which queries are padding

    def __init__(self, pattern: Intervention | None, with_gradients: bool) -> None:
        self.pattern, self.with_gradients = pattern, with_gradients
        self.calls: list[_CleanCall] = []

    def targets(self, layer: int, path: str) -> bool:
        """Every layer."""
        return True

    def describe_unmatched(self, layers: Sequence[str]) -> str | None:
        """Say that nothing was stored."""
        return None if self.calls else NO_CALLS

    def apply(self, call: HeadCall) -> Float[Tensor, "B H Q D"]:
        """Store the output, and what the heads would write with the replaced pattern."""
        output = call.output
        if self.with_gradients:
            # The model must go on with the stored tensor itself. What it has may be another view
            # of it; and the first call has no history, because parameters are frozen.
            is_tracked = output.requires_grad
            output = output.view_as(output) if is_tracked else output.detach().requires_grad_()
        with torch.no_grad():
            new = None if self.pattern is None else self.pattern.apply(call).detach()
            real = None if call.attention is None else call.attention.valid_queries()
        del self.calls[call.layer :]  # the same weights applied to other values: the last count
        stored = output if self.with_gradients else output.detach().clone()
        self.calls.append(_CleanCall(call.path, stored, real, new))
        return output


class _ReplaceHeads(Intervention):
    """Replaces the outputs of heads of one layer, each in one copy of the examples."""

    def __init__(
        self,
        layer: int,
        target: int | str,
        edits: Sequence[tuple[int, int]],
        replacement: Tensor | Intervention,
        copies: int,
    ) -> None:
        """`target`: the layer's number or path, by which the pass finds it."""
        self.layer, self.target, self.edits = layer, target, edits
        self.replacement, self.copies = replacement, copies
        self.needs_weights = isinstance(replacement, Intervention) and replacement.needs_weights

    def targets(self, layer: int, path: str) -> bool:
        """Whether the layer is the one of the heads."""
        return self.target in (layer, path)

    def apply(self, call: HeadCall) -> Float[Tensor, "B H Q D"]:
        """Outputs with the replaced ones."""
        shape = (self.copies, -1, *call.output.shape[1:])
        output = call.output.reshape(shape).clone()
        if isinstance(self.replacement, Intervention):
            # a pass that leaves blocks out counts its layers differently
            new = self.replacement.apply(replace(call, layer=self.layer)).reshape(shape)
        else:
            new = self.replacement.to(output.dtype).expand(output.shape)
        for copy, head in self.edits:
            output[copy, :, head] = new[copy, :, head]
        return output.flatten(0, 1)


def _edit_projection_input(
    edits: Sequence[tuple[int, int]],
    replacement: Tensor | Intervention,
    copies: int,
    head_width: int,
) -> Callable[[nn.Module, tuple[Any, ...]], tuple[Any, ...]]:
    """A hook that replaces heads in the input of an output projection, (N, Q, H·D)."""
    assert isinstance(replacement, torch.Tensor)

    def edit(_: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
        heads = args[0].unflatten(-1, (-1, head_width)).transpose(1, 2)
        output = heads.unflatten(0, (copies, -1)).clone()
        new = replacement.to(output.dtype).expand(output.shape[1:])
        for copy, head in edits:
            output[copy, :, head] = new[:, head]
        return (output.flatten(0, 1).transpose(1, 2).flatten(2), *args[1:])

    return edit


def take_rows(batch: Batch, rows: slice) -> dict[str, Any]:
    """Some examples of a batch."""
    count = count_examples(batch)
    return {
        name: value[rows] if _is_per_example(value, count) else value
        for name, value in batch.items()
    }


def repeat_batch(batch: Batch, copies: int) -> dict[str, Any]:
    """All examples `copies` times, one copy after the other."""
    count = count_examples(batch)
    return {
        name: torch.cat([value] * copies) if _is_per_example(value, count) else value
        for name, value in batch.items()
    }


def count_examples(batch: Batch) -> int:
    """Number of examples: the length of the first tensor."""
    for value in batch.values():
        if isinstance(value, torch.Tensor) and value.ndim:
            return len(value)
    raise ValueError("the batch has no tensor with examples")


def is_close(losses: Tensor, expected: Tensor) -> bool:
    """Whether losses agree up to rounding; NaN stands for no target."""
    if losses.shape != expected.shape:
        return False
    name = str(losses.dtype).removeprefix("torch.")
    tolerance = TOLERANCES.get(name, COARSE_TOLERANCE)
    return bool(torch.allclose(losses, expected, rtol=tolerance, atol=tolerance, equal_nan=True))


def _is_per_example(value: Any, count: int) -> bool:
    return isinstance(value, torch.Tensor) and value.ndim > 0 and len(value) == count


def _has_matrices(module: nn.Module) -> bool:
    """Whether a module multiplies by matrices; looking up embeddings costs little."""
    return any(
        param.ndim > 1
        for child in module.modules()
        if not isinstance(child, nn.Embedding)
        for param in child.parameters(recurse=False)
    )


def _list_tensors(output: Any) -> list[Tensor]:
    if isinstance(output, torch.Tensor):
        return [output]
    if isinstance(output, tuple | list):
        return [tensor for value in output for tensor in _list_tensors(value)]
    return []


def _is_batch_output(output: Any, examples: int) -> bool:
    """Whether an output is a tensor, or a tuple of tensors and None, with examples first."""
    values = output if type(output) is tuple else (output,)
    is_known = all(value is None or isinstance(value, torch.Tensor) for value in values)
    first = values[0] if values else None
    return is_known and isinstance(first, torch.Tensor) and len(first) == examples


def _repeat_output(output: Any, examples: int, copies: int) -> Any:
    if isinstance(output, tuple):
        return tuple(_repeat_output(value, examples, copies) for value in output)
    if copies > 1 and _is_per_example(output, examples):
        return torch.cat([output] * copies)
    return output


def _is_equal(first: Any, second: Tensor) -> bool:
    return (
        isinstance(first, torch.Tensor)
        and first.shape == second.shape
        and first.dtype == second.dtype
        and bool(torch.equal(first, second))
    )


def _trace_module(stack: ExitStack, module: nn.Module, path: str, trace: _Trace) -> None:
    """Record when a module runs, and its first input and its output."""

    def start(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        trace.clock += 1
        trace.starts.setdefault(path, trace.clock)
        trace.calls[path] += 1
        trace.inputs[path] = args[0] if args else next(iter(kwargs.values()), None)

    def end(_: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        trace.clock += 1
        trace.ends[path], trace.outputs[path] = trace.clock, output
        size = sum(tensor.numel() * tensor.element_size() for tensor in _list_tensors(output))
        trace.largest_bytes = max(trace.largest_bytes, size)
        # dropout returns its input in evaluation mode
        is_new = not (args and output is args[0]) and not isinstance(module, nn.Dropout)
        trace.total_bytes += size if is_new and next(module.children(), None) is None else 0

    handles = (
        module.register_forward_pre_hook(in_this_thread(start), with_kwargs=True),
        module.register_forward_hook(in_this_thread(end)),
    )
    for handle in handles:
        stack.callback(handle.remove)


@contextmanager
def _store_output(module: nn.Module, path: str, outputs: dict[str, Any]) -> Iterator[None]:
    """Store what a module returns inside the block."""

    def store(_: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        if isinstance(output, tuple):
            outputs[path] = tuple(
                value.detach() if isinstance(value, torch.Tensor) else value for value in output
            )
        else:
            outputs[path] = output.detach()

    handle = module.register_forward_hook(in_this_thread(store))
    try:
        yield
    finally:
        handle.remove()


def _replace_forward(module: nn.Module, output: Any) -> AbstractContextManager[None]:
    """Make a module return `output` inside the block, whatever its arguments."""
    return substitute(module, "forward", lambda *args, **kwargs: output)


@contextmanager
def _freeze_parameters(model: nn.Module) -> Iterator[None]:
    """Compute no gradients of parameters inside the block, which saves a third of the time."""
    params = [param for param in model.parameters() if param.requires_grad]
    for param in params:
        param.requires_grad_(False)
    try:
        yield
    finally:
        for param in params:
            param.requires_grad_(True)

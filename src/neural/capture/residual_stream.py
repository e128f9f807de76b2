"""The final residual stream of a model as a sum, and how logits are read from it.

    stream = trace_residual_stream(model, ids)
    [term.path for term in stream.terms]       embedding, attention and MLP of each block …
    stream.readout.directions(positions, answers)   logit = Σ terms · direction + constant

In a pre-norm transformer every sublayer adds its output to the residual stream. The additions are
not guessed from names: one forward pass runs under a function mode that notes which tensors the
model adds, and the sum before the final norm is expanded into its terms. So the terms are those of
the model's own code, whatever its class. A post-norm network has no such sum, because every block
normalises it: a message says so.

Axes: B examples, T positions, E model width, V vocabulary (or classes).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from neural.capture.threads import EAGER_MODE, in_this_thread
from neural.capture.watch import run_model
from neural.core.errors import TaskError
from neural.nn.lazy_torch import functional, nn, torch

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

ADD_FUNCTIONS = {"add", "__add__", "__radd__", "add_", "__iadd__"}
IN_PLACE_FUNCTIONS = {"add_", "__iadd__"}
SOFTMAX_FUNCTIONS = {"softmax", "log_softmax"}
SAME_VALUE_FUNCTIONS = {
    "dropout",
    "contiguous",
    "float",
    "to",
    "__getitem__",
    "clone",
    "type_as",
    "view",
    "reshape",
}
"""Functions whose result may be their first argument, unchanged; values are compared."""
NORM_TOLERANCE = 1e-4
"""Largest deviation of a final norm from `gain · (x − mean) / scale + bias`, relative to its
largest output."""
SUM_TOLERANCE = 1e-4
"""Largest deviation of the sum of all terms from the residual stream, relative to its largest
value."""


class AttributionError(TaskError):
    """A model or an input cannot be attributed; the message says why and what to do."""


@dataclass(frozen=True)
class Term:
    """One summand of the final residual stream."""

    path: str
    """Path of the module that wrote it; of an outer module if that returns the same tensor. Of a
    parameter that is added, its own name."""
    value: Float[Tensor, "B T E"]
    source: Tensor = field(repr=False)
    """The tensor itself, by whose identity an attention's output is recognised."""


@dataclass(frozen=True)
class FinalNorm:
    """The norm between residual stream and unembedding, with the scale of this run frozen.

    output = gain · (x − mean(x)) / scale + bias; without the mean in an RMS norm.
    """

    module: nn.Module
    is_centered: bool
    gain: Float[Tensor, " E"]
    bias: Float[Tensor, " E"]
    scale: Float[Tensor, "B T 1"]
    """Standard deviation (layer norm) or root mean square of each position, epsilon included."""


@dataclass(frozen=True)
class Readout:
    """How logits are computed from the residual stream: norm, mean over time, unembedding."""

    norm: FinalNorm | None
    is_pooled: bool
    """Whether the positions are averaged before the unembedding, as in a classifier."""
    weight: Float[Tensor, "V E"]
    """Unembedding matrix."""
    bias: Float[Tensor, " V"] | None
    logits: Float[Tensor, "B T V"]
    """Logits of the traced run; (B, V) if pooled."""

    @property
    def is_sequence(self) -> bool:
        """Whether there are logits at every position."""
        return self.logits.ndim == 3

    @property
    def has_constant(self) -> bool:
        """Whether the final norm or the unembedding has a bias."""
        return any(
            bias is not None
            for bias in (self.bias, self.norm and getattr(self.norm.module, "bias", None))
        )

    def directions(
        self, positions: Int[Tensor, " B"], answers: Int[Tensor, " B"], against: Tensor | None
    ) -> tuple[Float[Tensor, "B T E"], Float[Tensor, " B"]]:
        """Direction d and constant c with: logit of the answer = Σ_t residual[t] · d[t] + c.

        With `against` (B,), the difference of the logits of `answers` and `against`. The direction
        is 0 except at the position that is read, or spread over all positions if pooled. The scale
        of the final norm is that of the traced run.
        """
        unembedding = self.weight.double()[answers]
        constant = self._bias(answers)
        if against is not None:
            unembedding = unembedding - self.weight.double()[against]
            constant = constant - self._bias(against)
        batch, length = self._stream_shape()
        share = torch.zeros(batch, length, dtype=torch.double)
        if self.is_pooled:
            share[:] = 1 / length
        else:
            share[torch.arange(batch), positions] = 1
        direction = unembedding[:, None, :] * share[:, :, None]
        if self.norm is not None:
            constant = constant + (unembedding * self.norm.bias.double()).sum(-1)
            direction = direction * self.norm.gain.double() / self.norm.scale.double()
            if self.norm.is_centered:  # (x − mean(x)) · d = x · (d − mean(d))
                direction = direction - direction.mean(-1, keepdim=True)
        return direction, constant

    def apply(self, residual: Float[Tensor, "B T E"]) -> Tensor:
        """Logits of any residual stream, by the model's own norm: the logit lens."""
        hidden = residual if self.norm is None else self.norm.module(residual)
        hidden = hidden.mean(dim=1) if self.is_pooled else hidden
        return functional.linear(hidden, self.weight, self.bias)

    def _bias(self, answers: Tensor) -> Tensor:
        if self.bias is None:
            return torch.zeros(len(answers), dtype=torch.double)
        return self.bias.double()[answers]

    def _stream_shape(self) -> tuple[int, int]:
        if self.norm is not None:
            return self.norm.scale.shape[0], self.norm.scale.shape[1]
        return self.logits.shape[0], self._length

    _length: int = 0
    """Positions of the residual stream."""


@dataclass(frozen=True)
class ResidualStream:
    """The final residual stream, as the sum of its terms in the order of their computation."""

    terms: list[Term]
    total: Float[Tensor, "B T E"]
    readout: Readout
    calls: list[ModuleCall]
    """Every call of a module in this run, in order, with its input and output."""


@dataclass(frozen=True, eq=False)
class ModuleCall:
    """One call of a module: first input and output, if both are tensors."""

    path: str
    module: nn.Module
    input: Tensor
    output: Tensor
    other_inputs: tuple[Tensor, ...] = ()
    """Further tensors among the arguments, such as the residual stream that Bloom passes on."""


@dataclass(eq=False)
class _Sum:
    addends: tuple[Tensor, Tensor]
    result: Tensor
    path: str
    """Path of the module in which the addition happened."""
    order: int


@dataclass
class _Trace:
    """What one forward pass did. All tensors stay alive, so ids are unique."""

    sums: dict[int, _Sum] = field(default_factory=dict)
    linears: dict[int, tuple[Tensor, Tensor, Tensor | None]] = field(default_factory=dict)
    """Result → input, weight (V, E), bias."""
    inputs: dict[int, Tensor] = field(default_factory=dict)
    """Result of a softmax, or of a function that changed no value → its argument."""
    means: dict[int, Tensor] = field(default_factory=dict)
    """Result of a mean over axis 1 → its argument."""
    calls: list[ModuleCall] = field(default_factory=list)
    orders: dict[int, int] = field(default_factory=dict)
    """Tensor → when it was first computed."""
    results: list[Tensor] = field(default_factory=list)
    running: list[str] = field(default_factory=list)

    def note_order(self, tensor: Tensor) -> None:
        self.orders.setdefault(id(tensor), len(self.orders))
        self.results.append(tensor)

    def find_sum(self, tensor: Tensor) -> Tensor:
        """The sum behind a tensor that views, casts or dropout left unchanged; else the tensor."""
        source = tensor
        while id(source) not in self.sums:
            if id(source) not in self.inputs:
                return tensor
            source = self.inputs[id(source)]
        return source


def find_logits(output: Any) -> Tensor:
    """The tensor of logits (or probabilities) in a model's output."""
    logits = getattr(output, "logits", None)
    if logits is None:
        logits = output[0] if isinstance(output, tuple | list) and output else output
    if not torch.is_tensor(logits) or logits.ndim not in (2, 3):
        raise AttributionError(
            "the model returns no logits (B, T, V) or (B, C): a model with an output layer is "
            "needed, such as GPT2LMHeadModel instead of GPT2Model; or name what is explained: "
            "--objective cosine, norm"
        )
    return logits


def trace_residual_stream(model: nn.Module, probe: Any) -> ResidualStream:
    """Run the model once without gradients and expand its final residual stream.

    AttributionError if the logits are not read from a sum of terms.
    """
    trace = _Trace()
    with torch.no_grad(), _trace_calls(model, trace):
        output = find_logits(run_model(model, probe))
        logits = output
        while id(logits) in trace.inputs:
            logits = trace.inputs[id(logits)]
    if id(logits) not in trace.linears:
        raise AttributionError(
            "the answer is not the output of a linear map of the residual stream (as with a soft "
            "cap, or a score such as a cosine), so it is no sum of parts"
        )
    hidden, weight, bias = trace.linears[id(logits)]
    norm_call, is_pooled = None, False
    while True:
        norm_call = _find_norm(trace, hidden)
        if norm_call is not None:
            hidden = norm_call.input
            break
        source = trace.inputs.get(id(hidden))
        if id(hidden) in trace.means and not is_pooled:
            hidden, is_pooled = trace.means[id(hidden)], True
        elif source is not None and source.ndim == hidden.ndim:
            hidden = source
        else:
            break
    if hidden.ndim != 3:
        raise AttributionError(
            "the logits are not read from a sequence (B, T, E), so there is no residual stream"
        )
    norm = None if norm_call is None else _fit_norm(norm_call)
    readout = Readout(
        norm,
        is_pooled,
        weight.detach(),
        None if bias is None else bias.detach(),
        logits,
        hidden.shape[1],
    )
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    terms = _expand_sum(trace, hidden, names)
    total = sum(term.value.double() for term in terms)
    error = float((total - hidden.double()).abs().max())
    if error > SUM_TOLERANCE * max(1.0, float(hidden.abs().max())):
        raise AttributionError(
            f"the terms of the residual stream do not add up to it (off by {error:.2g}): the model "
            "changes it in place, or computes in less than 32 bits; convert it with model.float()"
        )
    return ResidualStream(terms, hidden, readout, trace.calls)


@contextmanager
def _trace_calls(model: nn.Module, trace: _Trace) -> Iterator[None]:
    """Note additions, linear maps and module calls of the model inside the block."""

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return _call_function(trace, func, args, kwargs or {})

    def create_hooks(path: str) -> tuple[Callable[..., None], Callable[..., None]]:
        def enter(_: nn.Module, __: Any) -> None:
            trace.running.append(path)

        def leave(module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
            trace.running.pop()
            result = output[0] if isinstance(output, tuple | list) and output else output
            tensors = [arg for arg in (*args, *kwargs.values()) if torch.is_tensor(arg)]
            if torch.is_tensor(result) and tensors and result.ndim in (2, 3):
                trace.note_order(result)
                first, *others = tensors
                trace.calls.append(ModuleCall(path, module, first, result, tuple(others)))

        return enter, leave

    handles = []
    with ExitStack() as stack:
        # a compiled graph would not call the hooks
        if "torch._dynamo" in sys.modules:
            stack.enter_context(EAGER_MODE.hold())
        try:
            for path, module in model.named_modules():
                enter, leave = create_hooks(path)
                handles.append(module.register_forward_pre_hook(in_this_thread(enter)))
                hook = in_this_thread(leave)
                handles.append(module.register_forward_hook(hook, with_kwargs=True))
            with Mode():
                yield
        finally:
            for handle in handles:
                handle.remove()


def _call_function(
    trace: _Trace, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Call a torch function and note it if it is part of a sum or of the readout."""
    name = getattr(function, "__name__", "")
    if name in IN_PLACE_FUNCTIONS and torch.is_tensor(args[0]):
        before = _keep_before_change(trace, args[0])
        operands = tuple(before if arg is args[0] else arg for arg in args)
        result = function(*args, **kwargs)
        _note_sum(trace, operands, kwargs, result)
        return result
    result = function(*args, **kwargs)
    if not torch.is_tensor(result):
        return result
    if name in ADD_FUNCTIONS:
        _note_sum(trace, args, kwargs, result)
    elif name == "linear":
        trace.linears[id(result)] = (
            args[0] if args else kwargs["input"],
            args[1] if len(args) > 1 else kwargs["weight"],
            args[2] if len(args) > 2 else kwargs.get("bias"),
        )
        trace.note_order(result)
    elif name in SOFTMAX_FUNCTIONS and args:
        trace.inputs[id(result)] = args[0]
        trace.note_order(result)
    elif name == "mean" and args and torch.is_tensor(args[0]) and args[0].ndim == 3:
        if (args[1] if len(args) > 1 else kwargs.get("dim")) in (1, -2, (1,), [1]):
            trace.means[id(result)] = args[0]
            trace.note_order(result)
    elif name in SAME_VALUE_FUNCTIONS and args and _has_same_values(args[0], result):
        trace.inputs[id(result)] = args[0]
        trace.note_order(result)
    return result


def _has_same_values(before: Any, after: Tensor) -> bool:
    """Whether a new tensor has the old values; (B, T, E) and (B · T, E) count as the same."""
    if before is after or not torch.is_tensor(before) or not after.is_floating_point():
        return False
    if before.shape[-1:] != after.shape[-1:]:
        return False
    if before.numel() != after.numel() or after.ndim not in (2, 3):
        return False
    return torch.equal(after.reshape(-1), before.reshape(-1).to(after.dtype))


def _keep_before_change(trace: _Trace, tensor: Tensor) -> Tensor:
    """A copy of a tensor that is changed in place; what is known of the tensor moves to it."""
    copy = tensor.clone()
    for records in (trace.sums, trace.linears, trace.inputs, trace.means, trace.orders):
        if id(tensor) in records:
            records[id(copy)] = records.pop(id(tensor))  # type: ignore[index]
    trace.calls[:] = [
        ModuleCall(
            call.path,
            call.module,
            copy if call.input is tensor else call.input,
            copy if call.output is tensor else call.output,
            tuple(copy if other is tensor else other for other in call.other_inputs),
        )
        for call in trace.calls
    ]
    trace.results.append(copy)
    return copy


def _note_sum(trace: _Trace, args: tuple[Any, ...], kwargs: dict[str, Any], result: Tensor) -> None:
    """Note an addition of two tensors whose larger one has the shape of the result."""
    other = args[1] if len(args) > 1 else kwargs.get("other")
    if not torch.is_tensor(other) or not torch.is_tensor(args[0]):
        return
    if kwargs.get("alpha", 1) != 1 or result.ndim not in (2, 3):
        return
    if not result.is_floating_point():
        return
    path = trace.running[-1] if trace.running else ""
    trace.note_order(result)
    trace.sums[id(result)] = _Sum((args[0], other), result, path, trace.orders[id(result)])


def _find_norm(trace: _Trace, tensor: Tensor) -> ModuleCall | None:
    """The call of a norm that returned this tensor."""
    for call in trace.calls:
        is_norm = "norm" in type(call.module).__name__.lower()
        if call.output is tensor and is_norm and next(call.module.children(), None) is None:
            return call
    return None


def _fit_norm(call: ModuleCall) -> FinalNorm:
    """Gain, bias and scale of a norm from one of its calls; verified on its output.

    Layer norms and RMS norms of any class are recognised by what they compute.
    """
    x, y = call.input.double(), call.output.double()
    width = x.shape[-1]
    weight = getattr(call.module, "weight", None)
    bias = getattr(call.module, "bias", None)
    gain = torch.ones(width, dtype=torch.double) if weight is None else weight.detach().double()
    shift = torch.zeros(width, dtype=torch.double) if bias is None else bias.detach().double()
    tolerance = NORM_TOLERANCE * max(1.0, float(y.abs().max()))
    for is_centered in (True, False):
        centered = x - x.mean(-1, keepdim=True) if is_centered else x
        for factor in (gain, 1 + gain):  # Gemma stores the gain minus 1
            expected = factor * centered
            # the scale is that for which the norm's own output results (least squares)
            target = y - shift
            power = (target * target).sum(-1, keepdim=True)
            product = (expected * target).sum(-1, keepdim=True)
            scale = torch.where(
                power > 0, product / power.clamp(min=1e-300), torch.ones_like(power)
            )
            if bool((scale <= 0).any()):
                continue
            if float((expected / scale - target).abs().max()) <= tolerance:
                return FinalNorm(call.module, is_centered, factor, shift, scale)
    raise AttributionError(
        f"the final norm `{call.path}` ({type(call.module).__name__}) is neither a layer norm nor "
        "an RMS norm, so its scale cannot be frozen"
    )


def _expand_sum(trace: _Trace, total: Tensor, parameters: dict[int, str]) -> list[Term]:
    """Terms of a sum in the order of their computation; `parameters`: names by id."""
    calls_by_output: dict[int, list[ModuleCall]] = {}
    for call in trace.calls:
        calls_by_output.setdefault(id(call.output), []).append(call)
    terms: list[tuple[int, Term]] = []
    # stack of tensors to expand, with the path of the addition that has them as an operand
    pending = [(total, "", 0)]
    while pending:
        tensor, path, order = pending.pop()
        tensor = trace.find_sum(tensor)
        addition = trace.sums.get(id(tensor))
        calls = calls_by_output.get(id(tensor), [])
        if addition is not None and _is_residual(trace, calls, tensor):
            pending += [(addend, addition.path, addition.order) for addend in addition.addends]
            continue
        # dropout returns the tensor of the sublayer before it
        writers = [call.path for call in calls if "Dropout" not in type(call.module).__name__]
        own = parameters.get(id(tensor), parameters.get(id(tensor._base)))  # or a view of one
        name = writers[-1] if writers else own or path
        order = trace.orders.get(id(tensor), order)
        is_flat = tensor.ndim == 2 and tensor.numel() == total.numel()  # (B · T, E)
        value = tensor.reshape(total.shape) if is_flat else tensor.expand(total.shape)
        terms.append((order, Term(name, value.detach(), tensor)))
    terms.sort(key=lambda term: term[0])
    return [term for _, term in terms]


def _is_residual(trace: _Trace, calls: list[ModuleCall], tensor: Tensor) -> bool:
    """Whether a sum is part of the residual stream.

    A sum inside a sublayer, such as that of experts, is not: the sublayer returns it, and its own
    input is no term of it.
    """
    if not calls or id(tensor) not in trace.sums:
        return True
    addends: set[int] = set()
    pending = [tensor]
    while pending:
        current = pending.pop()
        addends.add(id(current))
        current = trace.find_sum(current)
        addends.add(id(current))
        addition = trace.sums.get(id(current))
        pending += addition.addends if addition is not None else ()
    return any(
        not call.input.is_floating_point()
        or any(id(argument) in addends for argument in (call.input, *call.other_inputs))
        for call in calls
    )

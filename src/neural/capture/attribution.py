"""What attention carried: value-weighted maps, direct logit attribution, gradients of weights.

    tracing = trace_attention(model, ids)
    tracing.value_weighted_maps()                   ‖w · v · O‖ by layer: (B, H, Q, K)
    tracing.attribute_logits(positions, answers)    parts that sum to the logit
    compute_weight_gradients(tracing, objective)     ∂ objective / ∂ weights by layer

A head writes z = weights @ values; the output projection maps the heads' outputs, side by side, to
the width of the model. Which module that is, is found in the run: the linear map whose input equals
the concatenated head outputs. Its matrix is what it computes, module(identity) − module(0), so
linear layers of any class are read: `nn.Linear`, `Conv1D` of GPT-2, quantized ones, adapters.

Axes: B examples, H heads, Q queries, K keys, D head width, E model width, T positions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from neural.capture.intervene import record_head_outputs
from neural.capture.interventions import HeadOutputs, InterventionError, LayerOutputs
from neural.capture.residual_stream import (
    AttributionError,
    ModuleCall,
    ResidualStream,
    Term,
    trace_residual_stream,
)
from neural.capture.threads import in_this_thread
from neural.capture.watch import NoAttentionError, run_model
from neural.nn.lazy_torch import nn, torch

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

MATCH_TOLERANCE = 1e-4
"""Largest difference of head outputs and the input of their projection, relative to the largest
value; also of a projection and its matrix."""


@dataclass(frozen=True)
class OutputProjection:
    """The linear map after the heads of one attention call."""

    path: str
    module: nn.Module
    weight: Float[Tensor, "H D E"]
    """Rows of the matrix by head."""
    bias: Float[Tensor, " E"] | None
    written: Tensor
    """The tensor that the projection returned in the traced run: the bias and all heads."""
    is_called: bool = True
    """Whether the module itself is called, so that its input can be changed by a hook."""


@dataclass(frozen=True)
class LogitPart:
    """One part of a logit."""

    name: str
    """`L0 h1`, `L0 bias`, `L0 MLP`, the path of another module or parameter (embedding …), or
    `constant`. Names are unique: a second tensor of the same module is `embedding (2)`."""
    kind: str
    """head, attention bias, embedding, mlp, or constant."""
    values: Float[np.ndarray, " B"]


@dataclass(frozen=True)
class LogitAttribution:
    """A logit, or a difference of two, as the sum of its parts.

    The parts are: each term that the model adds to its residual stream before the first attention
    (embedding, positions); each head through the output projection; the bias of each output
    projection; each other term (MLP, with its bias); and a constant: bias of the final norm and of
    the unembedding. A model without these biases has no such parts. The final norm is linear
    because its scale is that of this run.
    """

    parts: list[LogitPart]
    heads: list[Float[np.ndarray, "B H K"]]
    """By layer: the part of each head, by the position that it read from (source position)."""
    logits: Float[np.ndarray, " B"]
    """The logit, or the difference, that the model computed."""

    @property
    def total(self) -> Float[np.ndarray, " B"]:
        """Sum of all parts."""
        return np.sum([part.values for part in self.parts], axis=0)

    @property
    def error(self) -> float:
        """Largest difference of the sum of the parts and the model's own logit."""
        return float(np.abs(self.total - self.logits).max())


@dataclass(frozen=True)
class AttentionTracing:
    """Head outputs of one run and their projections; the residual stream if it is a sum."""

    outputs: HeadOutputs
    projections: list[OutputProjection | None]
    """By layer; None if the linear map after the heads was not recognised."""
    calls: list[ModuleCall]
    stream: ResidualStream | None
    stream_error: str
    """Why there is no residual stream."""

    def weights(self, layer: int) -> Float[Tensor, "B H Q K"]:
        """Attention weights of a layer; AttributionError if they are not known."""
        weights = self.outputs[layer].weights
        if weights is None:
            raise AttributionError(
                f"the attention weights of `{self.outputs[layer].path}` are not known"
            )
        return weights

    def projection(self, layer: int) -> OutputProjection:
        """The output projection of a layer; AttributionError if it was not recognised."""
        projection = self.projections[layer]
        if projection is None:
            raise AttributionError(
                f"the output projection of `{self.outputs[layer].path}` was not recognised: no "
                "linear module has the heads' outputs, side by side, as its input"
            )
        return projection

    def value_weighted_maps(self) -> list[Float[np.ndarray, "B H Q K"]]:
        """‖w·v·O‖ by layer: norm of the vector that key k adds to query q through a head."""
        maps = []
        for layer in range(len(self.outputs)):
            vectors = self._project_values(layer)
            norms = vectors.norm(dim=-1)  # (B, H, K)
            maps.append((self.weights(layer).double().abs() * norms[:, :, None, :]).cpu().numpy())
        return maps

    def _project_values(self, layer: int) -> Float[Tensor, "B H K E"]:
        values = self.outputs[layer].values.double()
        return torch.einsum("bhkd,hde->bhke", values, self.projection(layer).weight)

    def attribute_logits(
        self,
        positions: Int[Tensor, " B"],
        answers: Int[Tensor, " B"],
        against: Int[Tensor, " B"] | None = None,
    ) -> LogitAttribution:
        """Direct logit attribution of the answers at the positions, one per example.

        With `against`, of the difference of the two logits. AttributionError for networks whose
        residual stream is no sum, such as post-norm ones.
        """
        stream = self._require_stream()
        direction, constant = stream.readout.directions(positions, answers, against)
        layers = {id(self.projection(layer).written): layer for layer in range(len(self.outputs))}
        parts: list[LogitPart] = []
        heads: dict[int, np.ndarray] = {}
        # a tensor that the model adds twice is one part
        counts = Counter(id(term.source) for term in stream.terms)
        terms = list({id(term.source): term for term in stream.terms}.values())
        first_attention = min(
            (index for index, term in enumerate(terms) if id(term.source) in layers),
            default=len(terms),
        )
        for index, (name, term) in enumerate(zip(_name_terms(terms, layers), terms, strict=True)):
            layer, count = layers.get(id(term.source)), counts[id(term.source)]
            if layer is None:
                values = count * (term.value.double() * direction).sum((1, 2)).cpu().numpy()
                kind = "embedding" if index < first_attention else "mlp"
                parts.append(LogitPart(name, kind, values))
                continue
            by_source = count * self._attribute_heads(layer, direction)
            heads[layer] = by_source
            parts += [
                LogitPart(f"L{layer} h{head}", "head", by_source[:, head].sum(-1))
                for head in range(by_source.shape[1])
            ]
            if (bias := self.projection(layer).bias) is not None:
                values = count * (bias * direction).sum((1, 2)).cpu().numpy()
                parts.append(LogitPart(f"L{layer} bias", "attention bias", values))
        if stream.readout.has_constant:
            parts.append(LogitPart("constant", "constant", constant.cpu().numpy()))
        missing = [layer for layer in range(len(self.outputs)) if layer not in heads]
        if missing:
            raise AttributionError(
                f"what L{missing[0]} (`{self.outputs[missing[0]].path}`) writes is not added to "
                "the final residual stream as it is: the network is post-norm or scales its "
                "sublayers, so its logits are no sum over heads; patching and ablation still work"
            )
        rows = torch.arange(len(answers))
        logits = stream.readout.logits.double()
        logits = logits[rows, positions] if stream.readout.is_sequence else logits
        chosen = logits[rows, answers]
        chosen = chosen if against is None else chosen - logits[rows, against]
        ordered = [heads[layer] for layer in range(len(self.outputs))]
        return LogitAttribution(parts, ordered, chosen.cpu().numpy())

    def _attribute_heads(
        self, layer: int, direction: Float[Tensor, "B T E"]
    ) -> Float[np.ndarray, "B H K"]:
        """Σ_q w[q, k] · (v[k] O) · d[q] of each head and source position."""
        weight = self.projection(layer).weight
        # values against directions first: (B, H, K, T), never (B, H, Q, K, E)
        read = torch.einsum("hde,bte->bhtd", weight, direction)
        scores = torch.einsum("bhkd,bhtd->bhtk", self.outputs[layer].values.double(), read)
        by_source = (self.weights(layer).double() * scores).sum(2).cpu().numpy()
        recomputed = (self.outputs[layer].output.double() * read).sum((2, 3)).cpu().numpy()
        # keys that are no positions, such as learned sinks, have no column: their share is missing
        gap = np.abs(by_source.sum(-1) - recomputed).max()
        if gap > MATCH_TOLERANCE * max(1.0, float(np.abs(recomputed).max())):
            raise AttributionError(
                f"the heads of `{self.outputs[layer].path}` write more than weights · values of "
                "the positions (keys that are no positions, or dropout), so what they read from "
                "each position does not add up"
            )
        return by_source

    def _require_stream(self) -> ResidualStream:
        if self.stream is None:
            raise AttributionError(self.stream_error)
        return self.stream

    @cached_property
    def layer_ends(self) -> list[int]:
        """Number of terms of the residual stream before each attention, and of all.

        [embedding, after layer 0, …, after the last layer].
        """
        stream = self._require_stream()
        written = {id(projection.written) for projection in self.projections if projection}
        starts = [index for index, term in enumerate(stream.terms) if id(term.source) in written]
        if len(starts) != len(self.outputs):
            raise AttributionError(
                "the residual stream is not the sum of what the layers write (post-norm, or "
                "scaled sublayers), so it cannot be read after each layer"
            )
        return [*starts, len(stream.terms)]


def _name_terms(terms: Sequence[Term], layers: dict[int, int]) -> list[str]:
    """`L0 MLP` for the only other term after an attention; else its path, numbered if it recurs."""
    owners: list[int] = []  # the last attention before each term; −1 before the first
    for term in terms:
        previous = owners[-1] if owners else -1
        owners.append(layers.get(id(term.source), previous))
    names: list[str] = []
    occurrences: Counter[str] = Counter()
    for owner, term in zip(owners, terms, strict=True):
        is_mlp = owner >= 0 and owners.count(owner) == 2
        name = f"L{owner} MLP" if is_mlp else term.path or "added"
        if id(term.source) not in layers:  # parts of an attention are named by its heads
            occurrences[name] += 1
        names.append(f"{name} ({occurrences[name]})" if occurrences[name] > 1 else name)
    return names


def trace_attention(model: nn.Module, probe: Any) -> AttentionTracing:
    """Run the model twice: head outputs with weights, and the terms of its residual stream."""
    try:
        outputs = record_head_outputs(model, probe, keep_weights=True)
    except (InterventionError, NoAttentionError) as error:
        raise AttributionError(f"nothing can be attributed to attention: {error}") from None
    stream, reason = None, ""
    try:
        stream = trace_residual_stream(model, probe)
        calls = stream.calls
    except AttributionError as error:
        reason = str(error)
        calls = _record_calls(model, probe)
    projections = find_output_projections(outputs, calls)
    return AttentionTracing(outputs, projections, calls, stream, reason)


def find_output_projections(
    outputs: HeadOutputs, calls: Sequence[ModuleCall]
) -> list[OutputProjection | None]:
    """The linear module after the heads of each layer, by comparing its input with their outputs.

    A module that is used by several layers is found once per call.
    """
    projections: list[OutputProjection | None] = []
    used: set[int] = set()
    for layer in outputs.layers:
        concatenated = layer.output.transpose(1, 2).flatten(2)
        call = next(
            (
                call
                for call in calls
                if id(call) not in used and _is_projection_of(call, layer, concatenated)
            ),
            None,
        )
        if call is None:
            projections.append(None)
            continue
        used.add(id(call))
        projections.append(_read_projection(call, layer))
    return projections


def _is_projection_of(call: ModuleCall, layer: LayerOutputs, concatenated: Tensor) -> bool:
    """Whether a module call has the heads' outputs as its input, or contains the projection."""
    if isinstance(call.module, nn.MultiheadAttention):  # projects inside a function
        return call.path == layer.path
    if next(call.module.children(), None) is not None and not _is_wrapped_linear(call.module):
        return False
    if call.input.numel() != concatenated.numel() or not call.input.is_floating_point():
        return False
    if call.input.shape[-1] != concatenated.shape[-1]:
        return False
    difference = (call.input.reshape(concatenated.shape) - concatenated).abs().max()
    return float(difference) <= MATCH_TOLERANCE * max(1.0, float(concatenated.abs().max()))


def _is_wrapped_linear(module: nn.Module) -> bool:
    """A linear layer with children of its own, such as an adapter around another one."""
    return "linear" in type(module).__name__.lower() or hasattr(module, "base_layer")


def _read_projection(call: ModuleCall, layer: LayerOutputs) -> OutputProjection | None:
    """Matrix and bias of a projection, by what it computes; None if it is not linear."""
    heads, width = layer.output.shape[1], layer.output.shape[3]
    if isinstance(call.module, nn.MultiheadAttention):
        inner = call.module.out_proj
        matrix, bias = inner.weight.detach().double().T, inner.bias
        bias = None if bias is None else bias.detach().double()
        weight = matrix.unflatten(0, (heads, width))
        return OutputProjection(call.path, inner, weight, bias, call.output, is_called=False)
    parameter = next(call.module.parameters(), call.input)
    with torch.no_grad():
        identity = torch.eye(heads * width, dtype=call.input.dtype, device=parameter.device)
        zero_output = call.module(torch.zeros_like(identity[:1]))
        matrix = (call.module(identity) - zero_output).double()
        bias = zero_output[0].double()
    expected = call.input.double().flatten(0, -2) @ matrix + bias
    if getattr(call.module, "bias", None) is None and not bool(bias.any()):
        bias = None
    error = float((expected - call.output.double().flatten(0, -2)).abs().max())
    if error > MATCH_TOLERANCE * max(1.0, float(expected.abs().max())):
        return None
    weight = matrix.unflatten(0, (heads, width))
    return OutputProjection(call.path, call.module, weight, bias, call.output)


def _record_calls(model: nn.Module, probe: Any) -> list[ModuleCall]:
    """Input and output of every module call of one run, without a trace of sums."""
    calls: list[ModuleCall] = []

    def create_hook(path: str) -> Callable[..., None]:
        def hook(module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
            result = output[0] if isinstance(output, tuple | list) and output else output
            first = next((arg for arg in (*args, *kwargs.values()) if torch.is_tensor(arg)), None)
            if torch.is_tensor(result) and first is not None:
                calls.append(ModuleCall(path, module, first, result))

        return hook

    handles = [
        module.register_forward_hook(in_this_thread(create_hook(path)), with_kwargs=True)
        for path, module in model.named_modules()
    ]
    try:
        with torch.no_grad():
            run_model(model, probe)
    finally:
        for handle in handles:
            handle.remove()
    return calls


def compute_weight_gradients(
    tracing: AttentionTracing, objective: Callable[[], Tensor]
) -> list[Float[np.ndarray, "B H Q K"]]:
    """Gradient of a scalar with respect to the attention weights of each layer.

    `objective` runs the traced model on the traced input and returns a scalar. Since z is
    weights @ values, the gradient of weight [q, k] is ∂objective/∂z[q] · v[k]: only the gradient of
    the heads' outputs is needed, and any implementation of attention may run. It is the total
    gradient: it includes what later layers do with the change. Parameters keep their `.grad`.
    """
    shifts: list[Tensor] = []
    order: list[nn.Module] = []

    def add_shift(module: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
        # a zero that requires gradients: frozen models have gradients here, too
        shift = torch.zeros_like(args[0], requires_grad=True)
        shifts.append(shift)
        order.append(module)
        return (args[0] + shift, *args[1:])

    modules: dict[int, nn.Module] = {}
    for layer in range(len(tracing.outputs)):
        projection = tracing.projection(layer)
        if not projection.is_called:
            raise AttributionError(
                f"`{projection.path}` projects inside torch's own function, where gradients of "
                "heads cannot be read"
            )
        modules[id(projection.module)] = projection.module
    hook = in_this_thread(add_shift)
    handles = [module.register_forward_pre_hook(hook) for module in modules.values()]
    try:
        with torch.enable_grad():
            gradients = torch.autograd.grad(objective(), shifts, allow_unused=True)
    finally:
        for handle in handles:
            handle.remove()
    expected = [tracing.projection(layer).module for layer in range(len(tracing.outputs))]
    if [id(module) for module in order] != [id(module) for module in expected]:
        raise AttributionError("the model calls its attention in another order with gradients")
    maps = []
    for layer, gradient in enumerate(gradients):
        outputs = tracing.outputs[layer]
        if gradient is None:
            maps.append(np.zeros(tuple(tracing.weights(layer).shape)))
            continue
        batch, heads, queries, width = outputs.output.shape
        by_head = gradient.double().reshape(batch, queries, heads, width).transpose(1, 2)
        maps.append((by_head @ outputs.values.double().transpose(-1, -2)).cpu().numpy())
    return maps

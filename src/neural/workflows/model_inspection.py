"""Measurements of `neural debug`; each one runs the network.

The objective is the scalar to differentiate, such as the loss. A capture holds the attention calls
of one forward pass, with measures of each head: entropy (relative: divided by that of uniform
weights), largest weight, largest score before the softmax (logit), and first-key mass, the mean
weight on the first key.

compare_fused_attention(subject, inputs)     largest difference of fused and explicit attention
measure_gradients(subject, inputs)           norms of weights and gradient, per layer
head_importance(subject, inputs, capture)    change of the output without each head
find_anomalies(subject, inputs, capture)     NaN, infinities, saturation, collapse, no gradient
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neural.capture.capture_result import Capture
from neural.capture.intervene import intervene
from neural.capture.interventions import zero
from neural.capture.patching import use_dense_weights
from neural.capture.tracker import preserve_model_state
from neural.interpret.inputs import Inputs
from neural.interpret.subject import Subject
from neural.nn.lazy_torch import functional, torch

if TYPE_CHECKING:
    from torch import Tensor, nn

DEAD_HEAD_THRESHOLD = 1e-3
"""A head is dead if the output without it changes by less than this share of its norm."""
UNIFORM_ENTROPY_THRESHOLD = 0.95
"""Relative entropy from which a head counts as uniform."""
FIRST_KEY_MASS_THRESHOLD = 0.95
"""First-key mass from which a head counts as an attention sink."""
LARGEST_WEIGHT_THRESHOLD = 0.99
"""Mean largest weight above which a head counts as saturated."""
LARGEST_LOGIT_THRESHOLD = 50.0
"""Largest logit, in nats, above which a head counts as saturated."""
COLLAPSED_COSINE_THRESHOLD = 0.99
"""Mean cosine, over pairs of positions of a module's output, from which it is collapsed."""


class LayerGradient(NamedTuple):
    """Norms over all parameters of one layer."""

    layer: str
    parameters: int
    weight_norm: float
    """Euclidean norm of the weights."""
    gradient_norm: float
    """Euclidean norm of the gradient."""

    @property
    def ratio(self) -> float:
        """Gradient norm over weight norm; NaN for weights of 0."""
        return self.gradient_norm / self.weight_norm if self.weight_norm else math.nan


class Anomaly(NamedTuple):
    """A defect of the network, with its location and the measured evidence."""

    kind: str
    """not finite, saturation, collapse, gradient."""
    location: str
    """Path of a module or parameter, or a layer with its head: `decoder.0 h3`."""
    evidence: str


def compute_objective(subject: Subject, inputs: Inputs) -> Tensor:
    """The scalar whose gradients are measured."""
    if inputs.task is not None:
        return inputs.task.loss(subject.model, inputs.task.batch(0))[0]
    # without targets there is no loss; any scalar of all logits shows which layers get gradient
    compute_logits: Any = subject.model.logits
    return compute_logits(*inputs.batch).square().mean() / 2


def describe_objective(inputs: Inputs) -> str:
    """What the objective is, for people."""
    if inputs.task is not None:
        return "the loss of the first training batch"
    return "half the mean square of the logits (there are no targets)"


def compare_fused_attention(subject: Subject, inputs: Inputs) -> float:
    """Largest absolute difference of the model's outputs with fused attention and without.

    Without, the attention weights are computed as a dense matrix.
    """
    with preserve_model_state(subject.model):
        fused = subject.forward(inputs)
        with use_dense_weights(subject.model):
            dense = subject.forward(inputs)
    return float((fused.float() - dense.float()).abs().max())


def measure_gradients(subject: Subject, inputs: Inputs) -> list[LayerGradient]:
    """Gradient norms of the subject's objective, layer by layer. `.grad` is not touched."""
    gradients = _compute_gradients(subject, inputs)
    layers: dict[str, list[tuple[Tensor, Tensor]]] = {}
    for name, param in subject.model.named_parameters():
        if name in gradients:
            pair = (param.detach(), gradients[name])
            layers.setdefault(parse_layer_name(name), []).append(pair)
    return [
        LayerGradient(
            layer,
            sum(weight.numel() for weight, _ in pairs),
            _total_norm(weight for weight, _ in pairs),
            _total_norm(gradient for _, gradient in pairs),
        )
        for layer, pairs in layers.items()
    ]


def parse_layer_name(name: str) -> str:
    """The layer of a parameter: `transformer_decoder.0.attention` for `….attention.query.weight`.

    The result is the layer, the index of its copy if there are several, and the sublayer if that
    has modules of its own.
    """
    layer, *modules = name.split(".")[:-1]
    prefix = [layer]
    if modules and modules[0].isdigit():
        prefix.append(modules.pop(0))
    return ".".join([*prefix, modules[0]] if len(modules) > 1 else prefix)


def head_importance(subject: Subject, inputs: Inputs, capture: Capture) -> np.ndarray:
    """Norm of the output's change without each head, divided by the output's norm: (layer, head).

    "layer" is the index of an attention call in the capture. In a module that is called several
    times a head is ablated in all calls; its value is at the first call, NaN at the others.
    `neural ablate` measures the change of the loss instead, with standard errors.
    """
    importance = np.full((len(capture), max((call.heads for call in capture), default=0)), np.nan)
    with preserve_model_state(subject.model):
        output = subject.forward(inputs).float()
        output_norm = max(float(output.norm()), 1e-30)
        measured: set[str] = set()
        for index, call in enumerate(capture):
            if call.path in measured:
                continue
            measured.add(call.path)
            for head in range(call.heads):
                with intervene(subject.model, zero((call.path, head))):
                    change = subject.forward(inputs).float() - output
                importance[index, head] = float(change.norm()) / output_norm
    return importance


def find_anomalies(subject: Subject, inputs: Inputs, capture: Capture) -> list[Anomaly]:
    """All anomalies, the worst kind first."""
    non_finite = list(_find_non_finite(subject, inputs))
    if non_finite:  # measures of NaN and infinities mean nothing
        return non_finite
    return [
        *_find_saturation(capture),
        *_find_collapse(subject, inputs, capture),
        *_find_gradient_anomalies(subject, inputs),
    ]


def _find_non_finite(subject: Subject, inputs: Inputs) -> Iterator[Anomaly]:
    names = subject.list_non_finite_weights()
    if names:
        evidence = f"NaN or infinite values, in {len(names)} parameter tensors"
        yield Anomaly("not finite", names[0], evidence)
    paths: list[str] = []
    _visit_outputs(
        subject,
        inputs,
        lambda path, output: None if output.isfinite().all() else paths.append(path),
    )
    if paths:
        evidence = f"the first of {len(paths)} modules whose output is not finite"
        yield Anomaly("not finite", paths[0], evidence)


def _find_saturation(capture: Capture) -> Iterator[Anomaly]:
    arrays = capture.measure_arrays()
    for measure, threshold, evidence in (
        ("largest_logit", LARGEST_LOGIT_THRESHOLD, "largest logit {:.1f} nats"),
        ("largest_weight", LARGEST_WEIGHT_THRESHOLD, "mean largest weight {:.3f}"),
    ):
        values = arrays.get(measure, np.empty((0, 0)))
        for layer, head in np.argwhere(values > threshold):
            location = f"{capture.layer_names()[layer]} h{head}"
            yield Anomaly("saturation", location, evidence.format(values[layer, head]))


def _find_collapse(subject: Subject, inputs: Inputs, capture: Capture) -> Iterator[Anomaly]:
    """Layers whose heads are all uniform or all sinks; modules with equal output vectors."""
    arrays = capture.measure_arrays()
    for measure, threshold, evidence in (
        (
            "relative_entropy",
            UNIFORM_ENTROPY_THRESHOLD,
            "all {} heads are uniform: relative entropy {:.3f} or more",
        ),
        (
            "first_key_mass",
            FIRST_KEY_MASS_THRESHOLD,
            "all {} heads rest on the first key: mass {:.3f} or more",
        ),
    ):
        for layer, row in zip(capture.layer_names(), arrays.get(measure, ()), strict=False):
            values = row[np.isfinite(row)]
            if len(values) and values.min() >= threshold:
                yield Anomaly("collapse", layer, evidence.format(len(values), values.min()))
    cosines: dict[str, float] = {}

    def measure_cosine(path: str, output: Tensor) -> None:
        if output.ndim == 3 and output.is_floating_point() and output.shape[1] > 1:
            rows = functional.normalize(output[0].float(), dim=-1)
            # |Σ rows|² is the sum of all pairs' cosines; each row's pair with itself adds 1
            total, count = float(rows.sum(dim=0).square().sum()), len(rows)
            cosines[path] = (total - count) / (count * (count - 1))

    _visit_outputs(subject, inputs, measure_cosine)
    collapsed = [
        (path, cosine) for path, cosine in cosines.items() if cosine >= COLLAPSED_COSINE_THRESHOLD
    ]
    if collapsed:
        path, cosine = collapsed[0]
        yield Anomaly(
            "collapse",
            path,
            f"all positions have nearly the same vector: mean cosine {cosine:.4f}; "
            f"the same holds for {len(collapsed) - 1} modules after it",
        )


def _find_gradient_anomalies(subject: Subject, inputs: Inputs) -> Iterator[Anomaly]:
    for gradient in measure_gradients(subject, inputs):
        if not math.isfinite(gradient.gradient_norm):
            yield Anomaly("gradient", gradient.layer, "its gradient is not finite")
        elif gradient.gradient_norm == 0:
            evidence = f"the gradient of {describe_objective(inputs)} is 0"
            yield Anomaly("gradient", gradient.layer, evidence)


def _visit_outputs(
    subject: Subject, inputs: Inputs, on_output: Callable[[str, Tensor], None]
) -> None:
    """Run one forward pass and call `on_output` with each module's output, inner modules first."""

    def create_hook(path: str) -> Callable[..., None]:
        def hook(_: nn.Module, __: Any, output: Any) -> None:
            if torch.is_tensor(output):
                on_output(path, output.detach())

        return hook

    handles = [
        module.register_forward_hook(create_hook(path or subject.name))
        for path, module in subject.model.named_modules()
    ]
    try:
        with preserve_model_state(subject.model):
            subject.forward(inputs)
    finally:
        for handle in handles:
            handle.remove()


def _compute_gradients(subject: Subject, inputs: Inputs) -> dict[str, Tensor]:
    """Gradients by parameter name; zeros for parameters that the objective does not use."""
    params = {
        name: param for name, param in subject.model.named_parameters() if param.requires_grad
    }
    with torch.enable_grad():
        gradients = torch.autograd.grad(
            compute_objective(subject, inputs), list(params.values()), allow_unused=True
        )
    return {
        name: torch.zeros_like(param) if gradient is None else gradient
        for (name, param), gradient in zip(params.items(), gradients, strict=True)
    }


def _total_norm(tensors: Iterable[Tensor]) -> float:
    """Euclidean norm of all tensors together."""
    return math.sqrt(sum(float(tensor.double().square().sum()) for tensor in tensors))

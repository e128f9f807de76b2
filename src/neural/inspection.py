"""What is measured of a network that is being debugged: all of it by running it.

    largest_difference(subject)      of the outputs, attention fused and written out
    gradients(subject)               per layer: how large, beside the weights
    worth(subject, seen)             what the output loses without each head
    anomalies(subject, seen)         numbers that are not finite, saturation, collapse, gradients that vanish
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neural.debugging import Subject
from neural.modules.heads import Heads
from neural.modules.late import functional, torch
from neural.tracking.seen import Seen
from neural.tracking.stand_in import without_head, written_out
from neural.tracking.tracker import undisturbed

if TYPE_CHECKING:
    from torch import Tensor, nn

DEAD = 1e-3
"""A head is dead if the output without it changes by less than this share."""
FLAT, RESTS, SHARP, HIGH = 0.95, 0.95, 0.99, 50.0
"""Relative entropy, mass on the first key, mean largest weight, largest logit in nats: worth a word from here on."""
ONE_VECTOR = 0.99
"""Mean cosine of the positions of a layer's output, from which they are all but the same."""


class Gradient(NamedTuple):
    """Of the parameters of one layer together."""

    layer: str
    parameters: int
    weights: float
    """Euclidean norm."""
    gradient: float
    """The same of the gradient."""

    @property
    def ratio(self) -> float:
        """Gradient over weights."""
        return self.gradient / self.weights if self.weights else math.nan


class Anomaly(NamedTuple):
    """Something that should not be."""

    kind: str
    """not finite, saturation, collapse, gradient."""
    where: str
    evidence: str


def largest_difference(subject: Subject) -> float:
    """Between the outputs with attention computed the fast way and with weights that are written out."""
    with undisturbed(subject.model):
        fused = subject.forward()
        with written_out(subject.model):
            plain = subject.forward()
    return float((fused.float() - plain.float()).abs().max())


def gradients(subject: Subject) -> list[Gradient]:
    """Of the subject's objective, layer by layer in their order; the model's own gradients stay as they were."""
    found = _gradients(subject)
    layers: dict[str, list[tuple[Tensor, Tensor]]] = {}
    for name, one in subject.model.named_parameters():
        if name in found:
            layers.setdefault(layer_of(name), []).append((one.detach(), found[name]))
    return [
        Gradient(layer, sum(one.numel() for one, _ in parts), _norm(one for one, _ in parts),
                 _norm(slope for _, slope in parts))
        for layer, parts in layers.items()
    ]  # fmt: skip


def layer_of(name: str) -> str:
    """The layer that a parameter belongs to: `transformer_decoder.0.attention`."""
    first, *rest = name.split(".")[:-1]
    kept = [first]
    if rest and rest[0].isdigit():
        kept.append(rest.pop(0))
    return ".".join([*kept, *rest[:1]] if len(rest) > 1 else kept)


def worth(subject: Subject, seen: Seen) -> np.ndarray:
    """How much the output changes without each head, as a share of its size: [layer, head]; NaN for others' attention.

    A module that is called several times counts at its first call: the head is missing in all of them.
    """
    found = np.full((len(seen), max((call.heads for call in seen), default=0)), np.nan)
    with undisturbed(subject.model):
        whole = subject.forward().float()
        size = max(float(whole.norm()), 1e-30)
        told: set[str] = set()
        for number, call in enumerate(seen):
            if call.path in told or not isinstance(subject.model.get_submodule(call.path), Heads):
                continue
            told.add(call.path)
            for head in range(call.heads):
                with without_head(subject.model, call.path, head):
                    found[number, head] = float((subject.forward().float() - whole).norm()) / size
    return found


def anomalies(subject: Subject, seen: Seen) -> list[Anomaly]:
    """All that were found, the worst kind first."""
    found = list(_not_finite(subject))
    if found:   # nothing behind it means anything
        return found
    return [*_saturation(seen), *_collapse(subject, seen), *_slopes(subject)]


def _not_finite(subject: Subject) -> Iterator[Anomaly]:
    bad = [name for name, one in subject.model.named_parameters() if not one.isfinite().all()]
    if bad:
        yield Anomaly("not finite", bad[0], f"{len(bad)} parameters have NaN or infinite numbers")
    first: list[str] = []
    _tell_outputs(subject, lambda path, out: None if out.isfinite().all() else first.append(path))
    if first:
        yield Anomaly("not finite", first[0], f"the first output that is not finite, of {len(first)} modules")


def _saturation(seen: Seen) -> Iterator[Anomaly]:
    arrays = seen.arrays()
    for name, border, words in (
        ("largest_logit", HIGH, "largest logit {:.1f} nats"), ("largest_weight", SHARP, "mean largest weight {:.3f}")
    ):  # fmt: skip
        values = arrays.get(name, np.empty((0, 0)))
        for layer, head in np.argwhere(values > border):
            yield Anomaly("saturation", f"{seen.layers()[layer]} h{head}", words.format(values[layer, head]))


def _collapse(subject: Subject, seen: Seen) -> Iterator[Anomaly]:
    arrays = seen.arrays()
    for name, border, words in (
        ("relative_entropy", FLAT, "all {} heads are uniform: relative entropy {:.3f} or more"),
        ("first_key_mass", RESTS, "all {} heads rest on the first key: mass {:.3f} or more"),
    ):
        for layer, values in zip(seen.layers(), arrays.get(name, ()), strict=False):
            there = values[np.isfinite(values)]
            if len(there) and there.min() >= border:
                yield Anomaly("collapse", layer, words.format(len(there), there.min()))
    alike: dict[str, float] = {}

    def compare(path: str, out: Tensor) -> None:
        if out.ndim == 3 and out.is_floating_point() and out.shape[1] > 1:
            rows = functional.normalize(out[0].float(), dim=-1)
            total, count = float(rows.sum(dim=0).square().sum()), len(rows)
            alike[path] = (total - count) / (count * (count - 1))   # the mean of all pairs but each with itself

    _tell_outputs(subject, compare)
    worst = [(path, value) for path, value in alike.items() if value >= ONE_VECTOR]
    if worst:
        path, value = worst[0]
        yield Anomaly("collapse", path, f"all positions have become one vector: mean cosine {value:.4f}, and in "
                      f"{len(worst) - 1} modules after it")  # fmt: skip


def _slopes(subject: Subject) -> Iterator[Anomaly]:
    for one in gradients(subject):
        if not math.isfinite(one.gradient):
            yield Anomaly("gradient", one.layer, "its gradient is not finite")
        elif one.gradient == 0:
            yield Anomaly("gradient", one.layer, f"its gradient is 0, of {subject.objective_name}")


def _tell_outputs(subject: Subject, tell: Callable[[str, Tensor], None]) -> None:
    """One pass in which every module's output is told, inner ones first."""

    def heard(path: str) -> Callable[..., None]:
        def hook(_: nn.Module, __: Any, out: Any) -> None:
            if torch.is_tensor(out):
                tell(path, out.detach())

        return hook

    modules = subject.model.named_modules()
    handles = [module.register_forward_hook(heard(path or subject.name)) for path, module in modules]
    try:
        with undisturbed(subject.model):
            subject.forward()
    finally:
        for handle in handles:
            handle.remove()


def _gradients(subject: Subject) -> dict[str, Tensor]:
    named = {name: one for name, one in subject.model.named_parameters() if one.requires_grad}
    with torch.enable_grad():
        found = torch.autograd.grad(subject.objective(), list(named.values()), allow_unused=True)
    return {name: torch.zeros_like(named[name]) if one is None else one
            for name, one in zip(named, found, strict=True)}  # fmt: skip


def _norm(tensors: Iterable[Tensor]) -> float:
    return math.sqrt(sum(float(one.double().square().sum()) for one in tensors))

"""The linear orthogonal dataset, and gradient descent on the linear model, to check the theory.

An example has m segments: the foreground, a unit vector that decides the class, and a background of
zeros (setting.py). The losses are soft and hard attention, lvml (latent variable marginal
likelihood) and renyi:τ (a family with order τ: 0 is hard, 1 is lvml). The theory is not used here:
the model has a weight for every feature, and the gradients are those of its loss. One exception:
`steepest` is the Rényi loss with the order that the theory gives for the present focus and margin.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from neural.core.errors import TaskError
from neural.tasks.focus.theory.annealed import compute_steepest_order
from neural.tasks.focus.theory.laws import HardLaw
from neural.tasks.focus.theory.setting import LinearSetting

SWITCH_CHECKS = 3
"""The next loss replaces the present one after this number of consecutive steps at which it has the
larger gradient with respect to the focus weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearMosaics:
    """Examples of m segments with C features each."""

    segments: np.ndarray
    """(example, segment, feature)"""
    labels: np.ndarray
    """Class of each example, from 0."""
    foreground: np.ndarray
    """Index of the foreground segment of each example."""
    counts: np.ndarray | None = None
    """Number of equal segments that each one represents, (example, segment); None: one each."""

    def merge_background(self) -> LinearMosaics:
        """Merge equal background segments of each example into one with a count.

        Equal segments have equal scores, so loss and gradients do not change. Returns `self` if
        background segments differ.
        """
        rows = np.arange(len(self.labels))
        foreground = self.segments[rows, self.foreground][:, None]
        background = self.segments[rows, (self.foreground + 1) % self.segments.shape[1]][:, None]
        is_background = np.arange(self.segments.shape[1]) != self.foreground[:, None]
        if self.counts is not None or not (self.segments == background)[is_background].all():
            return self
        pair = np.concatenate([foreground, background], axis=1)
        counts = np.broadcast_to([1.0, self.segments.shape[1] - 1.0], pair.shape[:2])
        return LinearMosaics(
            segments=pair,
            labels=self.labels,
            foreground=np.zeros_like(self.foreground),
            counts=counts,
        )

    def focus_weights(self, focus: np.ndarray) -> np.ndarray:
        """Focus weight of each segment, summed over the segments it represents.

        `focus` are the weights of the linear focus model, one per feature.
        """
        scores = self.segments @ focus
        return _softmax(scores if self.counts is None else scores + np.log(self.counts))


def create_linear_mosaics(
    classes: int, segments: int, *, examples: int | None = None, seed: int = 0
) -> LinearMosaics:
    """Create examples with the unit vector of their class at a random position, else zeros.

    One example per class, or `examples` examples with classes 0, 1, …, C − 1, 0, 1, …
    """
    LinearSetting(classes, segments)  # raises TaskError for invalid numbers
    random = np.random.default_rng(seed)
    labels = np.arange(classes if examples is None else examples) % classes
    foreground = random.integers(segments, size=len(labels))
    features = np.zeros((len(labels), segments, classes))
    features[np.arange(len(labels)), foreground, labels] = 1
    return LinearMosaics(segments=features, labels=labels, foreground=foreground)


@dataclass(frozen=True, slots=True, kw_only=True)
class DescentResult:
    """Quantities of gradient descent, one value per step.

    `switches` are the times at which the next loss replaced the present one.
    """

    time: np.ndarray
    focus: np.ndarray
    margin: np.ndarray
    loss: np.ndarray
    switches: tuple[float, ...]

    def time_to(self, focus: float) -> float:
        """Time at which the focus reached a level; infinite if it did not."""
        reached = np.flatnonzero(self.focus >= focus)
        if not len(reached):
            return math.inf
        step = reached[0]
        if step == 0:
            return 0.0
        return float(
            np.interp(focus, self.focus[step - 1 : step + 1], self.time[step - 1 : step + 1])
        )


def run_gradient_descent(
    setting: LinearSetting,
    stages: Sequence[str],
    until: float,
    *,
    step: float = 0.05,
    stride: float | None = None,
    data: LinearMosaics | None = None,
) -> DescentResult:
    """Gradient descent from zero with the losses named in `stages`, one after the other.

    Ends at the time `until`; time is the sum of learning rates. SWITCH_CHECKS says when the next
    loss replaces the present one. The learning rate is `step`. With a `stride` it grows when
    gradients are small: up to 1 % of the elapsed time, as long as no weight changes by more than
    `stride`.
    """
    data = (
        create_linear_mosaics(setting.classes, setting.segments) if data is None else data
    ).merge_background()
    focus, classifier = np.zeros(setting.classes), np.zeros((setting.classes, setting.classes))
    orders = [_parse_order(name, setting.classes) for name in stages]
    rows: list[tuple[float, float, float, float]] = []
    switches: list[float] = []
    time, checks_in_row = 0.0, 0
    while True:  # `orders[0]` is the present loss
        state = _measure_state(data, focus, classifier)
        loss, focus_gradient, classifier_gradient = compute_gradients(
            data, focus, classifier, orders[0](*state)
        )
        rows.append((time, *state, loss))
        if time >= until:
            break
        if len(orders) > 1:
            next_gradients = compute_gradients(data, focus, classifier, orders[1](*state))
            checks_in_row = (
                checks_in_row + 1
                if np.linalg.norm(next_gradients[1]) > np.linalg.norm(focus_gradient)
                else 0
            )
            if checks_in_row == SWITCH_CHECKS:
                orders, checks_in_row = orders[1:], 0
                switches.append(time)
                loss, focus_gradient, classifier_gradient = next_gradients
        focus_gradient = setting.rate * focus_gradient
        max_gradient = max(np.abs(focus_gradient).max(), np.abs(classifier_gradient).max())
        learning_rate = min(
            step if stride is None else max(step, min(stride / max_gradient, time / 100)),
            until - time,
        )
        focus, classifier, time = (
            focus - learning_rate * focus_gradient,
            classifier - learning_rate * classifier_gradient,
            time + learning_rate,
        )
    times, focus_values, margin, losses = np.array(rows).T
    return DescentResult(
        time=times, focus=focus_values, margin=margin, loss=losses, switches=tuple(switches)
    )


def compute_gradients(
    data: LinearMosaics, focus: np.ndarray, classifier: np.ndarray, order: float | None
) -> tuple[float, np.ndarray, np.ndarray]:
    """Mean loss, and its gradients with respect to `focus` (C,) and `classifier` (C, C).

    `order` is the Rényi order of the loss: 0 is hard, 1 is LVML; None is soft.
    """
    x, count = data.segments, len(data.labels)
    weights = data.focus_weights(focus)
    one_hot = np.eye(classifier.shape[0])[data.labels]
    if order is None:
        mean_segment = np.einsum("nm,nmc->nc", weights, x)
        probs = _softmax(mean_segment @ classifier.T)
        loss = -np.log((probs * one_hot).sum(-1))
        error = probs - one_hot
        classifier_gradient = error.T @ mean_segment
        segment_gradient = np.einsum("nmc,nc->nm", x, error @ classifier)
        score_gradient = weights * (
            segment_gradient - (weights * segment_gradient).sum(-1, keepdims=True)
        )
    else:
        probs = _softmax(x @ classifier.T)
        log_likelihood = np.log((probs * one_hot[:, None]).sum(-1))
        # posterior of the segments, given the label
        responsibility = _softmax(np.log(weights) + order * log_likelihood)
        if order == 0:
            mean = (weights * log_likelihood).sum(-1)
            loss, score_gradient = -mean, -weights * (log_likelihood - mean[:, None])
        else:
            loss = -logsumexp(np.log(weights) + order * log_likelihood, axis=-1) / order
            score_gradient = (weights - responsibility) / order
        error = responsibility[..., None] * (probs - one_hot[:, None])
        classifier_gradient = error.reshape(-1, x.shape[-1]).T @ x.reshape(-1, x.shape[-1])
    focus_gradient = np.einsum("nm,nmc->c", score_gradient, x)
    return float(loss.mean()), focus_gradient / count, classifier_gradient / count


def _measure_state(
    data: LinearMosaics, focus: np.ndarray, classifier: np.ndarray
) -> tuple[float, float]:
    """(mean focus on the foreground, mean margin on the foreground).

    The margin is the logit of the label minus the mean logit of the other classes.
    """
    rows = np.arange(len(data.labels))
    focus_value = data.focus_weights(focus)[rows, data.foreground].mean()
    logits = data.segments[rows, data.foreground] @ classifier.T
    label_logit = logits[rows, data.labels]
    mean_other = (logits.sum(-1) - label_logit) / (logits.shape[1] - 1)
    return float(focus_value), float((label_logit - mean_other).mean())


def _softmax(scores: np.ndarray) -> np.ndarray:
    exponentials = np.exp(scores - scores.max(-1, keepdims=True))
    return exponentials / exponentials.sum(-1, keepdims=True)


def _parse_order(name: str, classes: int) -> Callable[[float, float], float | None]:
    """Create a function from (focus, margin) to the argument `order` of `compute_gradients`."""
    orders = {"soft": None, "hard": 0.0, "lvml": 1.0}
    if name in orders:
        return lambda *_: orders[name]
    if name == "steepest":
        hard = HardLaw(classes)
        return lambda focus, margin: float(
            compute_steepest_order(focus, max(float(hard.log_gain(margin)), 1e-9))
        )
    kind, _, order = name.partition(":")
    if kind != "renyi":
        raise TaskError(
            f"gradient descent supports soft, hard, lvml, renyi:τ and steepest, not `{name}`"
        )
    return lambda *_: float(order)

"""The linear orthogonal data set, and plain gradient descent on the real linear model: what the theory predicts.

Nothing here knows the theory: the model has a weight for every feature, the gradients are those of its loss. (But
`steepest` asks it which Rényi order pulls hardest, given the focus and the margin that were measured.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from neural.tasks.focusing.theory.annealed import steepest_order
from neural.tasks.focusing.theory.renyi import Hard
from neural.tasks.focusing.theory.setting import Setting
from neural.tasks.task import TaskError

CHECKS = 3
"""The next loss must pull harder at so many steps in a row before it takes over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mosaics:
    """Examples of m segments with C features each."""

    segments: np.ndarray
    """(example, segment, feature)"""
    labels: np.ndarray
    foreground: np.ndarray
    """Which segment decides."""
    counts: np.ndarray | None = None
    """How many equal segments each one stands for, (example, segment); None: every one for itself."""

    def merged(self) -> Mosaics:
        """The same examples, the background of each as one segment with its count, where its segments are all equal.

        Equal segments have equal scores, so sums over them are products: the loss and its gradients stay the same.
        """
        rows = np.arange(len(self.labels))
        front = self.segments[rows, self.foreground][:, None]
        behind = self.segments[rows, (self.foreground + 1) % self.segments.shape[1]][:, None]
        is_background = np.arange(self.segments.shape[1]) != self.foreground[:, None]
        if self.counts is not None or not (self.segments == behind)[is_background].all():
            return self
        pair = np.concatenate([front, behind], axis=1)
        counts = np.broadcast_to([1.0, self.segments.shape[1] - 1.0], pair.shape[:2])
        return Mosaics(segments=pair, labels=self.labels, foreground=np.zeros_like(self.foreground), counts=counts)

    def weights(self, focus: np.ndarray) -> np.ndarray:
        """The share of the attention that each segment gets, those it stands for included."""
        scores = self.segments @ focus
        return _softmax(scores if self.counts is None else scores + np.log(self.counts))


def linear_orthogonal(classes: int, segments: int, *, examples: int | None = None, seed: int = 0) -> Mosaics:
    """Foreground e_y at a place drawn at random, background 0. Every class once; or `examples`, classes in turn."""
    Setting(classes, segments)   # refuses what is no setting
    draw = np.random.default_rng(seed)
    labels = np.arange(classes if examples is None else examples) % classes
    foreground = draw.integers(segments, size=len(labels))
    made = np.zeros((len(labels), segments, classes))
    made[np.arange(len(labels)), foreground, labels] = 1
    return Mosaics(segments=made, labels=labels, foreground=foreground)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What the descent went through, step by step."""

    time: np.ndarray
    focus: np.ndarray
    margin: np.ndarray
    loss: np.ndarray
    switches: tuple[float, ...]

    def time_to(self, focus: float) -> float:
        """When the focus was so large; infinite if it never was."""
        over = np.flatnonzero(self.focus >= focus)
        if not len(over):
            return math.inf
        step = over[0]
        if step == 0:
            return 0.0
        return float(np.interp(focus, self.focus[step - 1 : step + 1], self.time[step - 1 : step + 1]))


def descend(
    setting: Setting, stages: Sequence[str], until: float, *, step: float = 0.05, stride: float | None = None,
    data: Mosaics | None = None,
) -> Measured:  # fmt: skip
    """Gradient descent from zero by the losses named, up to a time (the sum of the learning rates).

    The next loss takes over once its gradient for the focus is the longer one, three steps in a row. The learning rate
    is `step`; with a `stride`, it is as much more as moves no weight further than that (late, gradients are small), but
    at most a hundredth of the time passed.
    """
    data = (linear_orthogonal(setting.classes, setting.segments) if data is None else data).merged()
    focus, classifier = np.zeros(setting.classes), np.zeros((setting.classes, setting.classes))
    orders = [_order(name, setting.classes) for name in stages]
    rows: list[tuple[float, float, float, float]] = []
    switches: list[float] = []
    now, longer = 0.0, 0
    while True:
        state = _state(data, focus, classifier)
        loss, for_focus, for_classifier = gradients(data, focus, classifier, orders[0](*state))
        rows.append((now, *state, loss))
        if now >= until:
            break
        if len(orders) > 1:
            other = gradients(data, focus, classifier, orders[1](*state))
            longer = longer + 1 if np.linalg.norm(other[1]) > np.linalg.norm(for_focus) else 0
            if longer == CHECKS:
                orders, longer = orders[1:], 0
                switches.append(now)
                loss, for_focus, for_classifier = other
        for_focus = setting.rate * for_focus
        steepest = max(np.abs(for_focus).max(), np.abs(for_classifier).max())
        rate = min(step if stride is None else max(step, min(stride / steepest, now / 100)), until - now)
        focus, classifier, now = focus - rate * for_focus, classifier - rate * for_classifier, now + rate
    time, weight, margin, losses = np.array(rows).T
    return Measured(time=time, focus=weight, margin=margin, loss=losses, switches=tuple(switches))


def gradients(
    data: Mosaics, focus: np.ndarray, classifier: np.ndarray, order: float | None
) -> tuple[float, np.ndarray, np.ndarray]:
    """Loss and its gradients for the focus (C) and the classifier (C × C); order None is soft, 0 hard, 1 LVML."""
    x, count = data.segments, len(data.labels)
    weights = data.weights(focus)
    wanted = np.eye(classifier.shape[0])[data.labels]
    if order is None:
        mixed = np.einsum("nm,nmc->nc", weights, x)
        said = _softmax(mixed @ classifier.T)
        loss = -np.log((said * wanted).sum(-1))
        wrong = said - wanted
        for_classifier = wrong.T @ mixed
        towards = np.einsum("nmc,nc->nm", x, wrong @ classifier)
        for_scores = weights * (towards - (weights * towards).sum(-1, keepdims=True))
    else:
        said = _softmax(x @ classifier.T)
        likely = np.log((said * wanted[:, None]).sum(-1))
        share = _softmax(np.log(weights) + order * likely)   # who is held responsible
        if order == 0:
            mean = (weights * likely).sum(-1)
            loss, for_scores = -mean, -weights * (likely - mean[:, None])
        else:
            loss = -logsumexp(np.log(weights) + order * likely, axis=-1) / order
            for_scores = (weights - share) / order
        wrong = share[..., None] * (said - wanted[:, None])
        for_classifier = wrong.reshape(-1, x.shape[-1]).T @ x.reshape(-1, x.shape[-1])
    for_focus = np.einsum("nm,nmc->c", for_scores, x)
    return float(loss.mean()), for_focus / count, for_classifier / count


def _state(data: Mosaics, focus: np.ndarray, classifier: np.ndarray) -> tuple[float, float]:
    """Mean focus on the foreground, mean margin there."""
    rows = np.arange(len(data.labels))
    weight = data.weights(focus)[rows, data.foreground].mean()
    logits = data.segments[rows, data.foreground] @ classifier.T
    right = logits[rows, data.labels]
    others = (logits.sum(-1) - right) / (logits.shape[1] - 1)
    return float(weight), float((right - others).mean())


def _softmax(scores: np.ndarray) -> np.ndarray:
    raised = np.exp(scores - scores.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)


def _order(name: str, classes: int) -> Callable[[float, float], float | None]:
    """Focus and margin → what `gradients` takes as the order."""
    known = {"soft": None, "hard": 0.0, "lvml": 1.0}
    if name in known:
        return lambda *_: known[name]
    if name == "steepest":
        hard = Hard(classes)
        return lambda focus, margin: float(steepest_order(focus, max(float(hard.gain(margin)), 1e-9)))
    kind, _, order = name.partition(":")
    if kind != "renyi":
        raise TaskError(f"gradient descent is written for soft, hard, lvml, renyi:τ and steepest, not `{name}`")
    return lambda *_: float(order)

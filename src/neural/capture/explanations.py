"""Explanations of one prediction: a score for every source position, by several methods.

    subject = Predictor(model)
    scores = explain(subject, tokens, position=-1, answer=17, methods=["rollout", "ablation"])

A prediction is a token at a position, or a class. Its source positions are the positions of the
input. Higher scores mean more important for the answer; scores of different methods have different
units, and only their order is comparable (faithfulness.py).

    attention            weights of the last layer at the position, mean over heads
    attention_mean       the same, mean over all layers
    value_weighted       ‖w·v·O‖, summed over heads, as a share of its layer; mean over layers
    rollout              attention rollout to the last layer (Abnar & Zuidema, 2020)
    gradient_attention   gradient of the answer's log-odds × weight, sum over layers, heads and
                         queries
    gradient_rollout     rollout of the positive part of gradient × weight (Chefer et al., 2021)
    direct               direct logit attribution: what all heads carry from there to the logit
    ablation             drop of the answer's log-probability when the token is replaced
                         (leave-one-out); runs the model once per position

If a classifier averages its positions, "at the position" means the mean over all positions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from neural.capture.attribution import (
    AttentionTracing,
    compute_weight_gradients,
    trace_attention,
)
from neural.capture.residual_stream import AttributionError, find_logits
from neural.capture.rollout import iter_rollouts, rollout_gradients
from neural.capture.watch import run_model
from neural.core.names import find_closest
from neural.nn.build import NetworkModule
from neural.nn.lazy_torch import torch

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor, nn

METHODS = {
    "attention": "attention, last layer",
    "attention_mean": "attention, all layers",
    "value_weighted": "value-weighted attention",
    "rollout": "attention rollout",
    "gradient_attention": "gradient × attention",
    "gradient_rollout": "gradient rollout",
    "direct": "direct logit attribution",
    "ablation": "ablation (leave-one-out)",
}
"""Names of the methods, and what people read."""
MAX_BATCH_TOKENS = 16384
"""Tokens that are in one batch when many variants of an input run."""


@dataclass(frozen=True)
class Predictor:
    """A model in evaluation mode that reads token ids (B, T)."""

    model: nn.Module
    build_probe: Callable[[Tensor], Any] = lambda ids: ids
    """Inputs of the model from token ids: a tensor, a tuple or a mapping."""

    def compute_logits(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B *T V"]:
        """Logits (B, T, V), or (B, C) of a classifier."""
        probe = self.build_probe(ids)
        if isinstance(self.model, NetworkModule):
            activation = self.model.network.output_activation
            if activation not in ("softmax", "linear"):
                raise AttributionError(
                    f"the output layer of {self.model.network.name} has the activation "
                    f"{activation}; answers need softmax or logits"
                )
            compute: Any = self.model.logits
            return find_logits(compute(*(probe if isinstance(probe, tuple) else (probe,))))
        return find_logits(run_model(self.model, probe))

    def compute_log_probabilities(
        self, ids: Int[Tensor, "B T"], position: int
    ) -> Float[Tensor, "B V"]:
        """Log-probabilities at a position, or of the classes."""
        logits = self.compute_logits(ids)
        logits = logits[:, position] if logits.ndim == 3 else logits
        return logits.float().log_softmax(-1)

    def score_variants(
        self, variants: Int[Tensor, "N T"], position: int, answer: int
    ) -> Float[np.ndarray, " N"]:
        """Log-probability of the answer for many variants of an input, in batches."""
        size = max(1, MAX_BATCH_TOKENS // variants.shape[1])
        with torch.no_grad():
            chunks = [
                self.compute_log_probabilities(chunk, position)[:, answer]
                for chunk in variants.split(size)
            ]
        return torch.cat(chunks).double().cpu().numpy()


def check_methods(names: Sequence[str]) -> list[str]:
    """The names; AttributionError for an unknown one."""
    for name in names:
        if name not in METHODS:
            guess = find_closest(name, list(METHODS))
            hint = f", did you mean `{guess}`?" if guess else "."
            raise AttributionError(f"`{name}` is not a method{hint} There are {', '.join(METHODS)}")
    return list(dict.fromkeys(names))


def explain(
    subject: Predictor,
    tokens: Int[Tensor, " T"],
    *,
    position: int,
    answer: int,
    methods: Sequence[str] = tuple(METHODS),
    replacements: Int[Tensor, "R T"] | None = None,
    tracing: AttentionTracing | None = None,
    on_failure: Callable[[str, AttributionError], None] | None = None,
) -> dict[str, Float[np.ndarray, " T"]]:
    """Scores of the source positions of one prediction, by method.

    `replacements` are tokens that replace those of the input, for "ablation"; the drop is the mean
    over their R rows. A method that the model does not support raises AttributionError, or is left
    out and given to `on_failure(method, error)`.
    """
    names = check_methods(methods)
    ids = tokens.unsqueeze(0)
    if tracing is None:
        tracing = trace_attention(subject.model, subject.build_probe(ids))
    scores: dict[str, np.ndarray] = {}
    gradients: list[np.ndarray] | None = None
    for name in names:
        try:
            if name in ("gradient_attention", "gradient_rollout"):
                if gradients is None:
                    gradients = compute_answer_gradients(subject, tokens, position, answer, tracing)
                scores[name] = _score_gradients(name, tracing, gradients, position, len(tokens))
            elif name == "ablation":
                if replacements is None:
                    raise AttributionError("ablation needs tokens that replace those of the input")
                scores[name] = score_ablation(subject, tokens, position, answer, replacements)
            elif name == "direct":
                rows = torch.tensor([position]), torch.tensor([answer])
                attribution = tracing.attribute_logits(*rows)
                scores[name] = np.sum([heads[0].sum(0) for heads in attribution.heads], axis=0)
            else:
                scores[name] = _score_attention(name, tracing, position, len(tokens))
        except AttributionError as error:
            if on_failure is None:
                raise
            on_failure(name, error)
    return scores


def compute_answer_gradients(
    subject: Predictor,
    tokens: Int[Tensor, " T"],
    position: int,
    answer: int,
    tracing: AttentionTracing,
) -> list[Float[np.ndarray, "B H Q K"]]:
    """Gradient of the answer's log-odds with respect to the weights of each layer.

    Log-odds are log(p / (1 − p)). The gradient of log p vanishes where p is nearly 1, which says
    nothing about importance; that of the log-odds does not.
    """
    ids = tokens.unsqueeze(0)

    def compute_log_odds() -> Tensor:
        logits = subject.compute_logits(ids)[0]
        values = (logits[position] if logits.ndim == 2 else logits).float()
        is_other = torch.arange(len(values), device=values.device) != answer
        return values[answer] - values[is_other].logsumexp(0)

    return compute_weight_gradients(tracing, compute_log_odds)


def score_ablation(
    subject: Predictor,
    tokens: Int[Tensor, " T"],
    position: int,
    answer: int,
    replacements: Int[Tensor, "R T"],
) -> Float[np.ndarray, " T"]:
    """Drop of the answer's log-probability when one token is replaced, mean over R tokens."""
    length = len(tokens)
    variants = tokens.repeat(len(replacements), length, 1)  # (R, T, T): row t replaces token t
    rows = torch.arange(length)
    variants[:, rows, rows] = replacements
    values = subject.score_variants(variants.flatten(0, 1), position, answer)
    reference = subject.score_variants(tokens.unsqueeze(0), position, answer)[0]
    return reference - values.reshape(len(replacements), length).mean(axis=0)


def _collect_maps(tracing: AttentionTracing, length: int) -> list[Float[np.ndarray, "H T T"]]:
    """Self-attention weights by layer; AttributionError if the model attends to something else."""
    maps = []
    for layer in range(len(tracing.outputs)):
        weights = tracing.weights(layer)[0].double().cpu().numpy()
        _check_self_attention(tracing, layer, weights.shape[1:], length)
        maps.append(weights)
    return maps


def _check_self_attention(
    tracing: AttentionTracing, layer: int, shape: tuple[int, ...], length: int
) -> None:
    if shape != (length, length):
        raise AttributionError(
            f"`{tracing.outputs[layer].path}` has maps of {shape[0]} × {shape[1]} cells, and the "
            f"input has {length} tokens: scores of tokens need self-attention over the input"
        )


def _take_row(
    tracing: AttentionTracing, maps: Float[np.ndarray, "... T T"], position: int
) -> Float[np.ndarray, "... T"]:
    """The row of the position that is read; the mean of all rows if positions are averaged."""
    stream = tracing.stream
    is_pooled = stream is not None and stream.readout.is_pooled
    row: np.ndarray = maps.mean(axis=-2) if is_pooled else maps[..., position, :]
    return row


def _score_attention(
    name: str, tracing: AttentionTracing, position: int, length: int
) -> Float[np.ndarray, " T"]:
    maps = _collect_maps(tracing, length)
    if name == "attention":
        return _take_row(tracing, maps[-1].mean(axis=0), position)
    if name == "attention_mean":
        return np.mean([_take_row(tracing, layer.mean(0), position) for layer in maps], axis=0)
    if name == "rollout":
        *_, rollout = iter_rollouts(maps)
        return _take_row(tracing, rollout, position)
    shares = []
    for layer in tracing.value_weighted_maps():
        row = _take_row(tracing, layer[0].sum(axis=0), position)
        shares.append(row / max(float(row.sum()), 1e-300))
    return np.mean(shares, axis=0)


def _score_gradients(
    name: str,
    tracing: AttentionTracing,
    gradients: list[np.ndarray],
    position: int,
    length: int,
) -> Float[np.ndarray, " T"]:
    maps = _collect_maps(tracing, length)
    if name == "gradient_rollout":
        relevance = rollout_gradients(maps, [gradient[0] for gradient in gradients])
        return _take_row(tracing, relevance, position)
    products = [layer * gradient[0] for layer, gradient in zip(maps, gradients, strict=True)]
    return np.sum([product.sum(axis=(0, 1)) for product in products], axis=0)

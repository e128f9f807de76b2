"""Explanations of one prediction: a score for every source position, by several methods.

    subject = load_subject(model)
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

"At the position" of a classifier means at the positions that its class is read from: the first
token, the last one, or all, weighted by `weigh_positions`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from neural.capture.attribution import (
    AttentionTracing,
    compute_weight_gradients,
    trace_attention,
)
from neural.capture.residual_stream import AttributionError
from neural.capture.rollout import iter_rollouts, rollout_gradients
from neural.capture.threads import in_this_thread
from neural.core.names import find_closest
from neural.interpret.subject import Subject
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
READING_METHODS = (
    "attention",
    "attention_mean",
    "value_weighted",
    "rollout",
    "gradient_rollout",
)
"""Methods that look at the rows of the positions that the answer is read from."""
MAX_BATCH_TOKENS = 16384
"""Tokens that are in one batch when many variants of an input run."""


def compute_log_probabilities(
    subject: Subject, ids: Int[Tensor, "B T"], position: int
) -> Float[Tensor, "B V"]:
    """Log-probabilities at a position, or of the classes; the scores, if they are none."""
    logits = subject.compute_logits(ids)
    logits = logits[:, position] if logits.ndim == 3 else logits
    return logits.float() if subject.is_score else logits.float().log_softmax(-1)


def weigh_positions(
    subject: Subject, tokens: Int[Tensor, " T"], position: int, answer: int
) -> Float[np.ndarray, " T"]:
    """How much the answer is read from each position; the sum is 1.

    A token is read from its position. A class is read from the positions at which its logit
    has a gradient after the last layer, by the norm of that gradient: [CLS], the last token
    that is not padding, all positions if they are averaged.
    """
    outputs: list[Tensor] = []

    def shift_output(_: nn.Module, args: Any, output: Any) -> Any:
        first = output[0] if type(output) is tuple and output else output
        is_sequence = torch.is_tensor(first) and first.shape[:2] == (1, len(tokens))
        if not is_sequence or first.ndim != 3 or not first.is_floating_point():
            return None
        # a zero that requires gradients: frozen models have gradients here, too
        outputs.append(torch.zeros_like(first, requires_grad=True))
        shifted = first + outputs[-1]
        return (shifted, *output[1:]) if type(output) is tuple else shifted

    hook = in_this_thread(shift_output)
    handles = [module.register_forward_hook(hook) for module in subject.model.modules()]
    try:
        with torch.enable_grad():
            logits = subject.compute_logits(tokens.unsqueeze(0))[0]
            if logits.ndim == 2:
                return np.eye(len(tokens))[position]
            gradients = torch.autograd.grad(logits[answer], outputs, allow_unused=True)
    finally:
        for handle in handles:
            handle.remove()
    for gradient in reversed(gradients):
        weights = None if gradient is None else gradient[0].double().norm(dim=-1)
        if weights is not None and bool(weights.any()):
            return (weights / weights.sum()).cpu().numpy()
    raise AttributionError(
        "the positions that the class is read from are unknown: its logit has no gradient"
    )


def score_variants(
    subject: Subject, variants: Int[Tensor, "N T"], position: int, answer: int
) -> Float[np.ndarray, " N"]:
    """Log-probability of the answer for many variants of an input, in batches."""
    size = max(1, MAX_BATCH_TOKENS // variants.shape[1])
    with torch.no_grad():
        chunks = [
            compute_log_probabilities(subject, chunk, position)[:, answer]
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
    subject: Subject,
    tokens: Int[Tensor, " T"],
    *,
    position: int,
    answer: int,
    methods: Sequence[str] = tuple(METHODS),
    replacements: Int[Tensor, "R T"] | None = None,
    tracing: AttentionTracing | None = None,
    read: Float[np.ndarray, " T"] | None = None,
    on_failure: Callable[[str, AttributionError], None] | None = None,
) -> dict[str, Float[np.ndarray, " T"]]:
    """Scores of the source positions of one prediction, by method.

    `replacements` are tokens that replace those of the input, for "ablation"; the drop is the mean
    over their R rows. `read`: weights of the positions that the answer is read from, if they are
    known (`weigh_positions`). A method that the model does not support raises AttributionError, or is left
    out and given to `on_failure(method, error)`.
    """
    names = check_methods(methods)
    ids = tokens.unsqueeze(0)
    if tracing is None:
        tracing = trace_attention(subject.model, subject.build_probe(ids, last=False))
    scores: dict[str, np.ndarray] = {}
    gradients: list[np.ndarray] | None = None
    for name in names:
        try:
            if name in READING_METHODS and read is None:
                read = weigh_positions(subject, tokens, position, answer)
            if name in ("gradient_attention", "gradient_rollout"):
                if gradients is None:
                    gradients = compute_answer_gradients(subject, tokens, position, answer, tracing)
                scores[name] = _score_gradients(name, tracing, gradients, read, len(tokens))
            elif name == "ablation":
                if replacements is None:
                    raise AttributionError("ablation needs tokens that replace those of the input")
                scores[name] = score_ablation(subject, tokens, position, answer, replacements)
            elif name == "direct":
                rows = torch.tensor([position]), torch.tensor([answer])
                attribution = tracing.attribute_logits(*rows)
                scores[name] = np.sum([heads[0].sum(0) for heads in attribution.heads], axis=0)
            else:
                assert read is not None
                scores[name] = _score_attention(name, tracing, read, len(tokens))
        except AttributionError as error:
            if on_failure is None:
                raise
            on_failure(name, error)
    return scores


def compute_answer_gradients(
    subject: Subject,
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
        if subject.is_score:
            return values[answer]
        is_other = torch.arange(len(values), device=values.device) != answer
        return values[answer] - values[is_other].logsumexp(0)

    return compute_weight_gradients(tracing, compute_log_odds)


def score_ablation(
    subject: Subject,
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
    values = score_variants(subject, variants.flatten(0, 1), position, answer)
    reference = score_variants(subject, tokens.unsqueeze(0), position, answer)[0]
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


def _score_attention(
    name: str, tracing: AttentionTracing, read: Float[np.ndarray, " T"], length: int
) -> Float[np.ndarray, " T"]:
    maps = _collect_maps(tracing, length)
    if name == "attention":
        return read @ maps[-1].mean(axis=0)
    if name == "attention_mean":
        return read @ np.mean([layer.mean(axis=0) for layer in maps], axis=0)
    if name == "rollout":
        *_, rollout = iter_rollouts(maps)
        return read @ rollout
    shares = []
    for layer in tracing.value_weighted_maps():
        row = read @ layer[0].sum(axis=0)
        shares.append(row / max(float(row.sum()), 1e-300))
    return np.mean(shares, axis=0)


def _score_gradients(
    name: str,
    tracing: AttentionTracing,
    gradients: list[np.ndarray],
    read: Float[np.ndarray, " T"] | None,
    length: int,
) -> Float[np.ndarray, " T"]:
    maps = _collect_maps(tracing, length)
    if name == "gradient_rollout":
        relevance = rollout_gradients(maps, [gradient[0] for gradient in gradients])
        assert read is not None
        # The rollout starts with the identity: a position has itself. Where one position is read,
        # that is the token whose own stream gives the answer. Where many are, it is the weight with
        # which each is read, which is about the same for all and much more than what they attend to.
        is_one = np.count_nonzero(read) == 1
        return read @ relevance - (0 if is_one else read)
    products = [layer * gradient[0] for layer, gradient in zip(maps, gradients, strict=True)]
    return np.sum([product.sum(axis=(0, 1)) for product in products], axis=0)

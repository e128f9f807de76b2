"""Losses of a subject on examples, for `neural ablate`: of a run, on a text, or any other.

    losses = prepare_losses(subject, text, "notes.txt", examples=64)
    losses.objective(model, losses.batches[0])           (B, T), NaN where there is no target

Of a run, that of its task on held-out data. Of a causal language model, the next token of windows of a
text; of a masked one, 15 % of the tokens, which are masked; of an encoder–decoder, the second half of
each window, with the first half as the encoder's input.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neural.capture.replay import count_examples, take_rows
from neural.capture.token_classes import find_token_classes
from neural.capture.tracker import preserve_model_state
from neural.core.errors import TaskError
from neural.interpret.foreign_models import TargetError
from neural.interpret.inputs import read_text
from neural.interpret.objectives import (
    OBJECTIVES,
    build_batch,
    create_objective,
    explain_failures,
    name_objective,
)
from neural.interpret.subject import Subject
from neural.interpret.tokens import describe_unknown_tokens, encode_text, label_ids
from neural.nn.build import NetworkModule
from neural.nn.lazy_torch import functional, torch
from neural.runs.run import Run

if TYPE_CHECKING:
    from torch import Tensor, nn

    from neural.capture.replay import Batch, Objective
    from neural.tasks.task import Task

DEFAULT_LENGTH = 256
"""Tokens of a window, unless the model takes fewer."""
MASKED_SHARE = 0.15
"""Share of the tokens that a masked language model predicts, as in its training."""
MASK_SEED = 0


@dataclass(frozen=True)
class Losses:
    """Examples, and what computes a loss of each or of its tokens."""

    objective: Objective
    batches: list[Batch]
    description: str
    """The examples, for people."""
    metric: str = "loss"
    """What the objective computes."""
    tokens: Tensor | None = None
    """Token ids of the examples of a single batch, for roles (N, T); an example may have several
    rows."""
    labels: list[list[str]] | None = None
    """Their texts."""
    classes: list[Mapping[str, Tensor]] | None = None
    """Kinds of targets: where they are, by name, of each batch."""
    chance_loss: float | None = None
    notes: tuple[str, ...] = ()
    """What a reader of the loss should know about the examples."""


def prepare_run_losses(run: Run, task: Task, data: str | Path | None, examples: int) -> Losses:
    """The loss of a run on its own held-out data, or on windows of a text."""
    batch, description = _select_examples(run, task, data, examples)
    tokens, targets, texts = task.token_ids(batch), task.target_classes(batch), task.token_texts()
    classes: list[Mapping[str, Tensor]] | None = None
    if tokens is not None and targets is not None and texts is not None:
        classes = [find_token_classes(tokens, targets, texts)]
    return Losses(
        task.example_losses,
        [batch],
        description,
        tokens=tokens,
        labels=task.position_labels(batch),
        classes=classes,
        chance_loss=None if targets is None else compute_chance_loss(targets),
    )


def _select_examples(
    run: Run, task: Task, data: str | Path | None, examples: int
) -> tuple[Batch, str]:
    """Examples of a run's own data, or windows of a text; and their description."""
    texts = task.token_texts()
    if data is None:
        batch = task.held_out_batch(examples)
        noun = "windows" if texts is not None else "examples"
        setting = run.settings.get("data")
        source = f" of {Path(str(setting)).name}" if isinstance(setting, str) else ""
        split = "held-out" if task.has_held_out else "training"
        return batch, f"{count_examples(batch)} {split} {noun}{source}"
    if texts is None:
        raise TaskError(
            f"{run.name} is a run of `{run.settings.get('task')}`: its own held-out data is used; "
            "leave out --data"
        )
    text, source = read_text(data)
    ids_by_text = {character: index for index, character in enumerate(texts)}
    unknown = sorted(set(text) - set(ids_by_text))
    if unknown:
        raise TaskError(
            f"{source} has characters that {run.name} does not know: "
            + " ".join(map(repr, unknown[:5]))
        )
    ids = torch.tensor([ids_by_text[character] for character in text])
    context = task.held_out_batch(1)["x"].shape[1]
    windows = cut_windows(ids, context + 1, examples, source)
    batch = {"x": windows[:, :-1].contiguous(), "y": windows[:, 1:].contiguous()}
    return batch, f"{len(windows)} windows of {source}"


def prepare_batch_losses(objective: Objective, batches: Sequence[Batch]) -> Losses:
    """Any loss on any batches: dicts of tensors with examples first."""
    batches = list(batches)
    if not all(isinstance(batch, Mapping) for batch in batches):
        raise TaskError(
            "a batch is a dict of tensors with examples first, such as "
            '{"input_ids": ids, "labels": labels}'
        )
    try:
        count = sum(count_examples(batch) for batch in batches)
    except ValueError as error:
        raise TaskError(str(error)) from None
    objective = explain_failures(objective, "the objective")
    return Losses(objective, batches, f"{count} examples")


def _prepare_line_losses(
    subject: Subject, objective: str, text: str, source: str, examples: int
) -> Losses:
    """A named objective (objectives.py) on the lines of a text."""
    lines = [line for line in text.splitlines() if line.strip()][:examples]
    batch = build_batch(objective, lines, subject.tokenizer)
    ids = batch["input_ids"]
    tokens = ids.reshape(-1, ids.shape[-1])  # the two texts of a pair are examples of attention
    return Losses(
        explain_failures(create_objective(objective, subject.model), f"the objective {objective}"),
        [batch],
        f"{len(lines)} lines of {source}",
        name_objective(objective),
        tokens,
        label_ids(subject.tokenizer, tokens),
    )


def prepare_losses(
    subject: Subject,
    text: str,
    source: str,
    examples: int,
    length: int | None = None,
    *,
    objective: str | None = None,
) -> Losses:
    """Cut a text into windows; choose the loss that fits the model. TargetError if it has none.

    `source` names the text in messages. `length`: tokens of a window; by default `DEFAULT_LENGTH`.
    `objective`: instead of a loss, an objective by name on the lines of the text.
    """
    if objective is not None:
        return _prepare_line_losses(subject, objective, text, source, examples)
    tokenizer = subject.tokenizer
    if tokenizer is None:
        reason = f": {subject.tokenizer_error}" if subject.tokenizer_error else ""
        raise TargetError(
            f"{subject.name} has no tokenizer{reason}; save it into the same folder "
            "(tokenizer.save_pretrained), or return (model, tokenizer) from a function"
        )
    kind, size = _find_model_kind(subject), choose_length(subject, length)
    ids = torch.tensor(encode_text(tokenizer, text, special_tokens=False), dtype=torch.long)
    # the last token of a causal window is a target only
    windows = cut_windows(ids, size + (kind == "causal"), examples, source)
    batch, compute = _LOSSES[kind](subject, windows)
    compute = explain_failures(compute, subject.name, on="this text")
    if kind == "causal":
        _check_causal(subject, compute, batch)
    details = {"masked": ", 15 % of them masked", "encoder-decoder": ", the second half predicted"}
    inputs, targets = batch.get("decoder_input_ids", batch["input_ids"]), batch["targets"]
    classes: list[Mapping[str, Tensor]] | None = None
    if kind != "masked":  # the token before a masked one is not what the model continues

        def get_text(token: int) -> str:
            return label_ids(tokenizer, torch.tensor([[token]]))[0][0]

        classes = [find_token_classes(inputs, targets, get_text)]
    unknown = describe_unknown_tokens(tokenizer, windows)
    return Losses(
        compute,
        [batch],
        f"{len(windows)} windows of {size} tokens of {source}{details.get(kind, '')}",
        tokens=inputs,
        labels=label_ids(tokenizer, inputs) if kind == "causal" else None,
        classes=classes,
        chance_loss=compute_chance_loss(targets),
        notes=() if unknown is None else (unknown,),
    )


def choose_length(subject: Subject, length: int | None) -> int:
    """Tokens of a window: as asked for, else at most what the model takes."""
    return length or min(DEFAULT_LENGTH, subject.max_positions or DEFAULT_LENGTH)


def _find_model_kind(subject: Subject) -> str:
    """`causal`, `masked` or `encoder-decoder`; TargetError for models without such a loss."""
    if not _is_hugging_face(subject):
        return "causal"
    name = type(subject.model).__name__
    if "MaskedLM" in name or name.endswith("ForPreTraining"):
        return "masked"
    if "ForConditionalGeneration" in name and subject.is_encoder_decoder:
        return "encoder-decoder"
    if ("CausalLM" in name or "LMHead" in name) and not subject.is_encoder_decoder:
        return "causal"
    raise TargetError(
        f"{subject.name} is a {name}, which has no loss on a text: load it as a language model "
        "(…ForCausalLM, …ForMaskedLM, …ForConditionalGeneration), or name what is measured instead: "
        f"--objective {OBJECTIVES}"
    )


def _is_hugging_face(subject: Subject) -> bool:
    return hasattr(subject.config, "model_type")


def _build_causal(subject: Subject, windows: Tensor) -> tuple[Batch, Objective]:
    """Cross-entropy of the next token."""
    is_hugging_face = _is_hugging_face(subject)
    options = {"use_cache": False} if hasattr(subject.config, "use_cache") else {}

    def compute(model: Any, batch: Batch) -> Tensor:
        if is_hugging_face:
            output = model(input_ids=batch["input_ids"], **options)
        elif isinstance(model, NetworkModule):  # its `forward` returns probabilities
            network: Any = model
            output = network.logits(batch["input_ids"])
        else:
            output = model(batch["input_ids"])
        return _cross_entropy(output, batch["targets"], subject.name)

    inputs, targets = windows[:, :-1].contiguous(), windows[:, 1:].contiguous()
    return {"input_ids": inputs, "targets": targets}, compute


def _build_masked(subject: Subject, windows: Tensor) -> tuple[Batch, Objective]:
    """Cross-entropy of masked tokens; the same are masked for every model."""
    mask_id = getattr(subject.tokenizer, "mask_token_id", None)
    if mask_id is None:
        raise TargetError(f"the tokenizer of {subject.name} has no mask token")
    generator = torch.Generator().manual_seed(MASK_SEED)
    is_masked = torch.rand(windows.shape, generator=generator) < MASKED_SHARE
    is_masked[:, 0] |= ~is_masked.any(dim=1)  # every example has a target
    batch = {
        "input_ids": windows.masked_fill(is_masked, mask_id),
        "targets": windows.masked_fill(~is_masked, -1),
    }

    def compute(model: nn.Module, batch: Batch) -> Tensor:
        return _cross_entropy(model(input_ids=batch["input_ids"]), batch["targets"], subject.name)

    return batch, compute


def _build_encoder_decoder(subject: Subject, windows: Tensor) -> tuple[Batch, Objective]:
    """Cross-entropy of the second half of each window; the encoder reads the first half."""
    half = windows.shape[1] // 2
    start = getattr(subject.config, "decoder_start_token_id", None)
    if start is None or half < 1:
        raise TargetError(f"{subject.name} does not say with which token its decoder starts")
    targets = windows[:, half:].contiguous()
    decoder_input = torch.cat([torch.full_like(targets[:, :1], start), targets[:, :-1]], dim=1)
    batch = {
        "input_ids": windows[:, :half].contiguous(),
        "decoder_input_ids": decoder_input,
        "targets": targets,
    }

    def compute(model: nn.Module, batch: Batch) -> Tensor:
        output = model(
            input_ids=batch["input_ids"],
            decoder_input_ids=batch["decoder_input_ids"],
            use_cache=False,
        )
        return _cross_entropy(output, batch["targets"], subject.name)

    return batch, compute


_LOSSES: dict[str, Callable[[Subject, Tensor], tuple[Batch, Objective]]] = {
    "causal": _build_causal,
    "masked": _build_masked,
    "encoder-decoder": _build_encoder_decoder,
}


def _cross_entropy(output: Any, targets: Tensor, name: str) -> Tensor:
    """Losses (B, T); NaN where the target is negative."""
    logits = output if isinstance(output, torch.Tensor) else getattr(output, "logits", None)
    if logits is None and isinstance(output, tuple | list) and output:
        logits = output[0]
    if not isinstance(logits, torch.Tensor) or logits.shape[:-1] != targets.shape:
        shape = tuple(logits.shape) if isinstance(logits, torch.Tensor) else type(output).__name__
        raise TargetError(
            f"{name} returned {shape}, not a prediction for each of {tuple(targets.shape)} tokens: "
            f"it has no loss on a text; name what is measured: --objective {OBJECTIVES}"
        )
    if int(targets.max()) >= logits.shape[-1]:
        raise TargetError(
            f"{name} predicts {logits.shape[-1]} tokens, but its tokenizer has more: they belong "
            "to different models"
        )
    # not (B, V, T): sums over a strided axis of 49,152 tokens are 1.4e-4 off in float32
    losses = functional.cross_entropy(
        logits.float().flatten(0, 1), targets.clamp(min=0).flatten(), reduction="none"
    )
    return losses.view_as(targets).masked_fill(targets < 0, math.nan)


def _check_causal(subject: Subject, objective: Objective, batch: Batch) -> None:
    """TargetError if predictions depend on later tokens: their loss would mean nothing."""
    small = take_rows(batch, slice(0, 2))
    with preserve_model_state(subject.model):
        objective(subject.model, small)  # raises a message if the model has no such loss
    if not subject.is_causal(small["input_ids"]):
        raise TargetError(
            f"{subject.name} is not causal: its prediction at a position depends on later tokens, "
            "so the loss of the next token means nothing"
        )


def cut_windows(ids: Tensor, size: int, examples: int, source: str) -> Tensor:
    """Up to `examples` windows of `size` tokens, evenly spaced, that do not overlap: (n, size)."""
    available = len(ids) // size
    if available < 2:
        raise TargetError(
            f"{source} has {len(ids):,} tokens; two windows of {size:,} need {2 * size:,}: use a "
            "longer text, or --length for shorter windows"
        )
    count = min(examples, available)
    starts = torch.linspace(0, len(ids) - size, count).long()
    return torch.stack([ids[start : start + size] for start in starts.tolist()])


def compute_chance_loss(targets: Tensor) -> float | None:
    """Loss of predicting every target by the frequencies of all targets, in nats.

    None if most targets occur once: frequencies of so few tokens know the targets themselves, and
    their loss is far below that of any model.
    """
    counts = np.unique(targets[targets >= 0].cpu().numpy(), return_counts=True)[1]
    if (counts == 1).sum() > counts.sum() / 2:
        return None
    shares = counts / max(1, counts.sum())
    return float(-(shares * np.log(shares)).sum())

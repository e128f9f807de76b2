"""Losses of language models of others on windows of a text, for `neural ablate`.

    losses = prepare_text_losses(watched, text, "notes.txt", examples=64)
    losses.objective(model, losses.batch)           (B, T), NaN where there is no target

Of a causal language model, the next token; of a masked one, 15 % of the tokens, which are masked;
of an encoder–decoder, the second half of each window, with the first half as the encoder's input.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neural.capture.interventions import InterventionError
from neural.capture.replay import take_rows
from neural.capture.tracker import preserve_model_state
from neural.capture.watch import NoAttentionError
from neural.core.errors import TaskError
from neural.core.files import format_missing_file, is_file_name
from neural.interpret._foreign_models import (
    TargetError,
    WatchedModel,
    find_first_line,
    find_max_positions,
)
from neural.interpret.inputs import describe_unknown_tokens, label_ids
from neural.interpret.objectives import OBJECTIVES
from neural.nn.build import NetworkModule
from neural.nn.lazy_torch import functional, torch

if TYPE_CHECKING:
    from torch import Tensor, nn

    from neural.capture.replay import Batch, Objective

DEFAULT_LENGTH = 256
"""Tokens of a window, unless the model takes fewer."""
MASKED_SHARE = 0.15
"""Share of the tokens that a masked language model predicts, as in its training."""
MASK_SEED = 0


@dataclass(frozen=True)
class TextLosses:
    """Windows of a text, and the loss of a model on them."""

    kind: str
    """`causal`, `masked` or `encoder-decoder`."""
    batch: Batch
    """`input_ids`, `targets` (negative without a target), for some models `decoder_input_ids`."""
    objective: Objective
    description: str
    """The examples, for people."""
    get_text: Callable[[int], str]
    """The text of a token id."""
    notes: tuple[str, ...] = ()
    """What a reader of the loss should know about the text."""

    @property
    def inputs(self) -> Tensor:
        """The tokens before each target, (B, T)."""
        return self.batch.get("decoder_input_ids", self.batch["input_ids"])


def prepare_text_losses(
    watched: WatchedModel, text: str, source: str, examples: int, length: int | None = None
) -> TextLosses:
    """Cut a text into windows; choose the loss that fits the model. TargetError if it has none.

    `source` names the text in messages. `length`: tokens of a window; by default `DEFAULT_LENGTH`.
    """
    if watched.tokenizer is None:
        reason = f": {watched.tokenizer_error}" if watched.tokenizer_error else ""
        raise TargetError(
            f"{watched.name} has no tokenizer{reason}; save it into the same folder "
            "(tokenizer.save_pretrained), or return (model, tokenizer) from a function"
        )
    kind, size = _find_model_kind(watched), choose_length(watched, length)
    ids = _encode(watched.tokenizer, text)
    # the last token of a causal window is a target only
    windows = cut_windows(ids, size + (kind == "causal"), examples, source)
    batch, objective = _LOSSES[kind](watched, windows)
    objective = _explain_failures(watched, objective)
    if kind == "causal":
        _check_causal(watched, objective, batch)
    details = {"masked": ", 15 % of them masked", "encoder-decoder": ", the second half predicted"}
    description = f"{len(windows)} windows of {size} tokens of {source}{details.get(kind, '')}"
    unknown = describe_unknown_tokens(watched.tokenizer, windows)
    return TextLosses(
        kind,
        batch,
        objective,
        description,
        lambda token: label_ids(watched.tokenizer, torch.tensor([[token]]))[0][0],
        () if unknown is None else (unknown,),
    )


def choose_length(watched: WatchedModel, length: int | None) -> int:
    """Tokens of a window: as asked for, else at most what the model takes."""
    return length or min(DEFAULT_LENGTH, find_max_positions(watched.config) or DEFAULT_LENGTH)


def _find_model_kind(watched: WatchedModel) -> str:
    """`causal`, `masked` or `encoder-decoder`; TargetError for models without such a loss."""
    if not _is_hugging_face(watched):
        return "causal"
    name = type(watched.model).__name__
    if "MaskedLM" in name or name.endswith("ForPreTraining"):
        return "masked"
    if "ForConditionalGeneration" in name and watched.is_encoder_decoder:
        return "encoder-decoder"
    if ("CausalLM" in name or "LMHead" in name) and not watched.is_encoder_decoder:
        return "causal"
    raise TargetError(
        f"{watched.name} is a {name}, which has no loss on a text: load it as a language model "
        "(…ForCausalLM, …ForMaskedLM, …ForConditionalGeneration), or name what is measured instead: "
        f"--objective {OBJECTIVES}"
    )


def _is_hugging_face(watched: WatchedModel) -> bool:
    return hasattr(watched.config, "model_type")


def _build_causal(watched: WatchedModel, windows: Tensor) -> tuple[Batch, Objective]:
    """Cross-entropy of the next token."""
    is_hugging_face = _is_hugging_face(watched)
    options = {"use_cache": False} if hasattr(watched.config, "use_cache") else {}

    def compute(model: Any, batch: Batch) -> Tensor:
        if is_hugging_face:
            output = model(input_ids=batch["input_ids"], **options)
        elif isinstance(model, NetworkModule):  # its `forward` returns probabilities
            network: Any = model
            output = network.logits(batch["input_ids"])
        else:
            output = model(batch["input_ids"])
        return _cross_entropy(output, batch["targets"], watched.name)

    inputs, targets = windows[:, :-1].contiguous(), windows[:, 1:].contiguous()
    return {"input_ids": inputs, "targets": targets}, compute


def _build_masked(watched: WatchedModel, windows: Tensor) -> tuple[Batch, Objective]:
    """Cross-entropy of masked tokens; the same are masked for every model."""
    mask_id = getattr(watched.tokenizer, "mask_token_id", None)
    if mask_id is None:
        raise TargetError(f"the tokenizer of {watched.name} has no mask token")
    generator = torch.Generator().manual_seed(MASK_SEED)
    is_masked = torch.rand(windows.shape, generator=generator) < MASKED_SHARE
    is_masked[:, 0] |= ~is_masked.any(dim=1)  # every example has a target
    batch = {
        "input_ids": windows.masked_fill(is_masked, mask_id),
        "targets": windows.masked_fill(~is_masked, -1),
    }

    def compute(model: nn.Module, batch: Batch) -> Tensor:
        return _cross_entropy(model(input_ids=batch["input_ids"]), batch["targets"], watched.name)

    return batch, compute


def _build_encoder_decoder(watched: WatchedModel, windows: Tensor) -> tuple[Batch, Objective]:
    """Cross-entropy of the second half of each window; the encoder reads the first half."""
    half = windows.shape[1] // 2
    start = getattr(watched.config, "decoder_start_token_id", None)
    if start is None or half < 1:
        raise TargetError(f"{watched.name} does not say with which token its decoder starts")
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
        return _cross_entropy(output, batch["targets"], watched.name)

    return batch, compute


_LOSSES: dict[str, Callable[[WatchedModel, Tensor], tuple[Batch, Objective]]] = {
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


def _explain_failures(watched: WatchedModel, objective: Objective) -> Objective:
    """The objective; an error of the first pass becomes a TargetError."""
    has_run = False

    def compute(model: nn.Module, batch: Batch) -> Tensor:
        nonlocal has_run
        try:
            losses = objective(model, batch)
        except (TaskError, InterventionError, NoAttentionError):
            raise
        except Exception as error:
            if has_run:
                raise
            raise TargetError(
                f"{watched.name} failed on this text: {find_first_line(error)}"
            ) from error
        has_run = True
        return losses

    return compute


def _check_causal(watched: WatchedModel, objective: Objective, batch: Batch) -> None:
    """TargetError if predictions depend on later tokens: their loss would mean nothing."""
    small = take_rows(batch, slice(0, 2))
    changed = dict(small)
    ids = small["input_ids"].clone()
    half = ids.shape[1] // 2
    if half < 1:
        return
    ids[:, half:] = ids[:, half:].roll(1, dims=1).flip(1)
    changed["input_ids"] = ids
    with preserve_model_state(watched.model):
        losses = objective(watched.model, small)[:, :half]
        changed_losses = objective(watched.model, changed)[:, :half]
    if not torch.allclose(losses, changed_losses, rtol=1e-2, atol=1e-2, equal_nan=True):
        raise TargetError(
            f"{watched.name} is not causal: its prediction at a position depends on later tokens, "
            "so the loss of the next token means nothing"
        )


def _encode(tokenizer: Any, text: str) -> Tensor:
    """Token ids of a text, without special tokens."""
    try:
        # not `verbose`: a text longer than the model's input is cut into windows
        ids = tokenizer.encode(text, add_special_tokens=False, verbose=False)
    except TypeError:  # a tokenizer of another kind
        ids = tokenizer.encode(text)
    ids = getattr(ids, "ids", ids)
    return torch.as_tensor(list(ids), dtype=torch.long)


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


def read_text(data: str | Path | None, required_by: str | None = None) -> tuple[str, str]:
    """A text and its name: the content of a file, or the given text itself."""
    if data is None:
        raise TargetError(f"{required_by} needs a text to measure its loss on: --data FILE")
    if isinstance(data, Path) or is_file_name(str(data)):
        path = Path(data)
        if not path.exists():
            raise TargetError(format_missing_file(path))
        try:
            return path.read_text(encoding="utf-8"), path.name
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
            raise TargetError(f"{path} cannot be read as text: {reason}") from None
    text = str(data)
    if not any(character.isspace() for character in text):
        raise TargetError(format_missing_file(text))
    return text, "the given text"

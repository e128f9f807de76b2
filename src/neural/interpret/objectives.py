"""What `ablate`, `patch` and `attribute` measure of a model that has no loss on a text.

    cosine                     similarity of the embeddings of two texts
    norm                       norm of the embedding of a text
    logit:LABEL                a logit of a classifier, by the name or number of its class
    package.module:function    a loss of your own: function(model, batch) returns one per example

The embedding of a text is the mean of the last hidden states of its tokens, as in Sentence
Transformers. A loss is minus the similarity, the norm or the logit; a score is minus the loss. A batch
is a dict of tensors with examples first: `input_ids` and `attention_mask`, (B, T), or (B, 2, T) for
pairs of texts. The loss of an example must not depend on the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from neural.core.errors import NeuralError, TaskError
from neural.interpret.foreign_models import (
    FUNCTION_TARGET,
    TargetError,
    find_first_line,
    import_function,
)
from neural.nn.lazy_torch import functional, nn, torch

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from neural.capture.replay import Batch, Objective

CONTRACT = (
    "It gets the model and some examples of a batch, at first one, and returns a loss for each "
    "example or token; the loss of an example must not depend on the others"
)
"""What a function of the user must keep."""
OBJECTIVES = "cosine, norm, logit:LABEL, or package.module:function"


def create_objective(name: str, model: nn.Module) -> Objective:
    """Losses (B,) of a named objective; TaskError if there is none of this name."""
    _check_name(name)
    if name == "norm":
        return lambda model, batch: -embed(model, batch).norm(dim=-1)
    if name == "cosine":
        return _compute_cosine_loss
    if name.startswith("logit:"):
        index = _find_class(model, name.removeprefix("logit:"))
        return lambda model, batch: -_read_output(model, batch, "logits")[:, index].float()
    return import_function(name)


def _check_name(name: str) -> None:
    is_logit = name.startswith("logit:") and name != "logit:"
    if name not in ("norm", "cosine") and not is_logit and not FUNCTION_TARGET.match(name):
        raise TaskError(f"there is no objective `{name}`: use {OBJECTIVES}")


def embed(model: nn.Module, batch: Batch) -> Float[Tensor, "B E"]:
    """Mean of the last hidden states of the tokens that are not padding."""
    hidden = _read_output(model, batch, "last_hidden_state").float()
    mask = batch["attention_mask"].unsqueeze(-1).to(hidden)
    return (hidden * mask).sum(dim=1) / mask.sum(dim=1)


def _compute_cosine_loss(model: nn.Module, batch: Batch) -> Float[Tensor, " B"]:
    """Minus the cosine of pairs of texts, (B, 2, T), which run in one pass."""
    rows = {name: value.flatten(0, 1) for name, value in batch.items()}
    first, second = embed(model, rows).unflatten(0, (-1, 2)).unbind(dim=1)
    return -functional.cosine_similarity(first, second, dim=-1)


def _read_output(model: nn.Module, batch: Batch, name: str) -> Tensor:
    output = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"])
    value = getattr(output, name, None)
    if value is None:
        raise TaskError(
            f"{type(model).__name__} returns no `{name}`: cosine and norm need an encoder "
            "without a head, logit:LABEL a classifier, or write package.module:function"
        )
    return value


def _find_class(model: nn.Module, label: str) -> int:
    names = getattr(getattr(model, "config", None), "id2label", None) or {}
    by_name = {str(name): int(number) for number, name in names.items()}
    if label in by_name:
        return by_name[label]
    if label.isdecimal() and (not names or int(label) in by_name.values()):
        return int(label)
    raise TaskError(f"`{label}` is not a class: {', '.join(by_name) or 'give its number'}")


def build_batch(name: str, texts: Sequence[str], tokenizer: Any) -> dict[str, Tensor]:
    """Padded token ids of texts; of pairs of texts, divided by a tab, for the objective cosine."""
    _check_name(name)  # it decides how many texts a line has
    rows = [text.split("\t") for text in texts]
    count = 2 if name == "cosine" else 1
    for number, row in enumerate(rows, 1):
        if len(row) != count:
            raise TaskError(
                f"line {number} has {len(row)} texts, and the objective {name} needs {count}"
                + ": write `text<TAB>text`" * (count == 2)
            )
    if tokenizer is None:
        raise TaskError(f"the objective {name} needs a tokenizer")
    flat = [text for row in rows for text in row]
    encoded = tokenizer(flat, padding=True, truncation=True, return_tensors="pt")
    batch = {key: encoded[key] for key in ("input_ids", "attention_mask")}
    if count == 1:
        return batch
    return {key: value.unflatten(0, (-1, 2)) for key, value in batch.items()}


def name_objective(name: str) -> str:
    """What is measured: minus the score, except of a loss of the user."""
    is_own_loss = ":" in name and not name.startswith("logit:")
    return name if is_own_loss else f"−{name}"


def explain_failures(objective: Objective, name: str, *, on: str = "") -> Objective:
    """The objective; an error before its first result becomes a TargetError.

    Its message says on which input it failed, or what the objective must keep.
    """
    has_run = False

    def compute(model: nn.Module, batch: Batch) -> Tensor:
        nonlocal has_run
        try:
            losses = objective(model, batch)
        except NeuralError:
            raise
        except Exception as error:
            if has_run:
                raise
            reason = find_first_line(error)
            if on:
                raise TargetError(f"{name} failed on {on}: {reason}") from error
            raise TargetError(
                f"{name} failed: {type(error).__name__}: {reason}. {CONTRACT}"
            ) from error
        has_run = True
        return losses

    return compute


class ScoredModel(nn.Module):
    """A model whose only logit (B, 1) is its score by an objective.

    For cosine: the similarity of the input and a reference, or the embedding (B, E) without one.
    """

    def __init__(self, model: nn.Module, name: str, reference: Tensor | None = None) -> None:
        super().__init__()
        self.model, self.name = model, name
        self.config = SimpleNamespace(id2label={0: name})
        objective: Callable[..., Tensor] = create_objective(name, model)
        self.compute_losses = explain_failures(objective, f"the objective {name}")
        self.reference = reference

    def get_input_embeddings(self) -> nn.Module | None:
        """The embeddings of the model."""
        find = getattr(self.model, "get_input_embeddings", None)
        return None if find is None else find()

    def forward(self, input_ids: Tensor) -> Tensor:
        """Scores of token ids without padding."""
        batch = {"input_ids": input_ids, "attention_mask": torch.ones_like(input_ids)}
        if self.name != "cosine":
            return -self.compute_losses(self.model, batch).unsqueeze(-1)
        embedding = embed(self.model, batch)
        if self.reference is None:
            return embedding
        return functional.cosine_similarity(embedding, self.reference, dim=-1).unsqueeze(-1)

"""A model that reads token ids and gives logits, with its tokenizer: of a run, or of others.

model = load_token_model("runs/characters")     a run of `neural`: its best checkpoint
model = load_token_model("./gpt2")              any target of `neural watch`
model.run(ids)                                  logits (B, C) after the last position
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neural.capture.watch import run_model
from neural.core.errors import TaskError
from neural.core.registry import UnknownNameError
from neural.interpret._foreign_models import (
    TargetError,
    WatchedModel,
    find_first_line,
    load_watched_model,
)
from neural.interpret.inputs import label_ids
from neural.nn.build import NetworkModule, SequentialNetwork
from neural.nn.lazy_torch import torch
from neural.runs.errors import RunError
from neural.runs.find import DEFAULT_RUNS_DIR, find_run_target
from neural.runs.run import Run
from neural.tasks._text_generator import CharacterTokenizer, load_tokenizer
from neural.training.load_model import load_model
from neural.training.trained_run import TrainedRunFolder

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor, nn

MODEL_ERRORS = (RuntimeError, TypeError, ValueError, IndexError, AttributeError, KeyError)
"""What a model may raise for an input that it cannot read."""


@dataclass
class TokenModel:
    """A model in evaluation mode that maps token ids (B, T) to logits."""

    name: str
    model: nn.Module
    tokenizer: Any = None
    """A tokenizer of Hugging Face or of `neural`, one with `encode` and `decode`, or None."""
    source: str = ""
    """Where the weights come from, for people."""
    notes: list[str] = field(default_factory=list)

    def build_probe(self, ids: Int[Tensor, "B T"]) -> dict[str, Any] | tuple[Any, ...]:
        """The arguments of the model for a batch, as `neural.watch` takes them."""
        names, ids = self._parameter_names, ids.to(self._device)
        if "input_ids" not in names:
            return (ids,)
        probe: dict[str, Any] = {"input_ids": ids}
        # logits of one position and no cache: the memory of a batch stays small
        if "logits_to_keep" in names:
            probe["logits_to_keep"] = 1
        if "use_cache" in names:
            probe["use_cache"] = False
        return probe

    def run(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B C"]:
        """Logits after the last position, without gradients."""
        with torch.no_grad():
            if isinstance(self.model, SequentialNetwork):
                output: Any = self.model.logits(ids.to(self._device))
            else:
                output = run_model(self.model, self.build_probe(ids))
        logits = self._find_logits(output)
        return (logits[:, -1] if logits.ndim == 3 else logits).float().cpu()

    def check_run(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B C"]:
        """As `run`; TaskError with a message if the model cannot read the ids."""
        try:
            return self.run(ids)
        except MODEL_ERRORS as error:
            if isinstance(error, TaskError):
                raise
            raise TaskError(
                f"{self.name} failed on an input of {ids.shape[1]} tokens: {find_first_line(error)}"
            ) from error

    def encode(self, text: str) -> list[int]:
        """Token ids of a text, with the special tokens that the tokenizer adds."""
        tokenizer = self._need_tokenizer()
        if self._is_hugging_face:
            # not `verbose`: transformers warns of a text longer than the model's input
            return [int(token) for token in tokenizer(text, verbose=False)["input_ids"]]
        return [int(token) for token in tokenizer.encode(text)]

    def encode_next(self, context: str | Sequence[int], text: str) -> list[int]:
        """Token ids of a text that follows a context.

        Tokenizers treat a blank in the middle of a text unlike one at its beginning, so both are
        encoded together if that keeps the tokens of the context.
        """
        tokenizer = self._need_tokenizer()
        if not self._is_hugging_face:
            return [int(token) for token in tokenizer.encode(text)]

        def encode_plain(value: str) -> list[int]:
            return list(tokenizer(value, add_special_tokens=False)["input_ids"])

        if isinstance(context, str):
            # a word alone is written without the blank before it, too
            start = encode_plain(context)
            for joined in (context + text, f"{context} {text}"):
                ids = encode_plain(joined)
                if len(ids) > len(start) and ids[: len(start)] == start:
                    ids = ids[len(start) :]
                    break
            else:
                ids = encode_plain(text)
        else:
            ids = encode_plain(text)
        unknown = getattr(tokenizer, "unk_token_id", None)
        if unknown is not None and unknown in ids:
            raise TaskError(f"`{text}` is not in the vocabulary of {self.name}")
        return [int(token) for token in ids]

    def label(self, ids: Sequence[int]) -> list[str]:
        """Text of every token."""
        if self.tokenizer is None:
            return [str(token) for token in ids]
        if isinstance(self.tokenizer, CharacterTokenizer):
            decode, size = self.tokenizer.create_decoder(), self.tokenizer.vocab_size
            # a network may predict more ids than the training text had characters
            return [decode(int(token)) if token < size else f"<{token}>" for token in ids]
        return label_ids(self.tokenizer, torch.tensor([list(ids)]))[0]

    def check_ids(self, ids: Sequence[int]) -> str | None:
        """What is wrong with the ids of an input; None if nothing."""
        if not ids:
            return "there are no tokens"
        size = self._vocabulary_size
        if size is not None and max(ids) >= size:
            return f"the id {max(ids):,} is not one of the {size:,} of the model"
        return None

    def check_class(self, token: int) -> str | None:
        """What is wrong with the id of a target; None if nothing."""
        count = self.class_count
        if count is not None and token >= count:
            return f"the id {token:,} is not one of the {count:,} that the model predicts"
        return None

    @property
    def _device(self) -> Any:
        return next((param.device for param in self.model.parameters()), "cpu")

    @property
    def _is_hugging_face(self) -> bool:
        return hasattr(self.tokenizer, "convert_ids_to_tokens")

    @property
    def _parameter_names(self) -> set[str]:
        return set(inspect.signature(self.model.forward).parameters)

    @property
    def _vocabulary_size(self) -> int | None:
        """Number of token embeddings; None if unknown."""
        if isinstance(self.model, NetworkModule):
            embeddings = [
                module.num_embeddings
                for module in self.model.modules()
                if isinstance(module, torch.nn.Embedding)
            ]
            return max(embeddings, default=None)
        get_embeddings = getattr(self.model, "get_input_embeddings", None)
        try:
            embedding = get_embeddings() if get_embeddings is not None else None
        except (NotImplementedError, AttributeError, TypeError):  # there is no table of tokens
            embedding = None
        size = getattr(embedding, "num_embeddings", None)
        return size if isinstance(size, int) else None

    @property
    def gives_last_logits(self) -> bool:
        """Whether the model computes logits of the last position only."""
        return {"input_ids", "logits_to_keep"} <= self._parameter_names

    @property
    def class_count(self) -> int | None:
        """Number of logits; None if unknown."""
        if isinstance(self.model, NetworkModule):
            size = self.model.network.output[-1]
            return size if isinstance(size, int) else None
        config = getattr(self.model, "config", None)
        size = getattr(config, "vocab_size", None)
        return size if isinstance(size, int) else None

    def _need_tokenizer(self) -> Any:
        if self.tokenizer is None:
            raise TaskError(f"{self.name} has no tokenizer: write token ids, such as [5, 3, 9]")
        return self.tokenizer

    def _find_logits(self, output: Any) -> Tensor:
        logits = getattr(output, "logits", output)
        if isinstance(logits, tuple | list) and logits:
            logits = logits[0]
        if not torch.is_tensor(logits) or logits.ndim not in (2, 3):
            raise TaskError(
                f"{self.name} gives no logits of tokens: load a model with a language-model head, "
                "such as GPT2LMHeadModel, or name what is measured: --objective cosine, norm"
            )
        if getattr(output, "last_hidden_state", None) is not None and not hasattr(output, "logits"):
            raise TaskError(
                f"{self.name} has no language-model head, so it predicts no token; name what is "
                "measured: --objective cosine, norm"
            )
        return logits


def load_token_model(
    target: str | Path | nn.Module,
    *,
    tokenizer: Any = None,
    step: int | None = None,
    build: str | None = None,
    implementation: str | None = None,
    runs: Path = DEFAULT_RUNS_DIR,
) -> TokenModel:
    """Load a run by its folder or name, any target of `neural watch`, or take a torch module.

    `step` selects a checkpoint of a run; by default the best, else the newest. TaskError or RunError
    if it cannot be loaded.
    """
    if not isinstance(target, str | Path):
        if not isinstance(target, torch.nn.Module):
            raise TaskError(
                f"{type(target).__name__} is no model: give a torch module, a run, or a target of "
                "`neural watch`"
            )
        return TokenModel(type(target).__name__, target.eval(), tokenizer)
    run_path = find_run_target(str(target), runs)
    if run_path is not None:
        return _load_run(Run.open(run_path), step)
    if step is not None:
        raise TaskError(f"--step selects a checkpoint of a run, and {target} is none")
    watched = load_watched_model(str(target), build=build, implementation=implementation)
    return wrap_watched_model(watched, tokenizer)


def wrap_watched_model(watched: WatchedModel, tokenizer: Any = None) -> TokenModel:
    """A loaded model of others; TaskError if it does not read one sequence of tokens."""
    if watched.is_encoder_decoder:
        raise TargetError(f"{watched.name} reads two sequences; this needs a model that reads one")
    notes = list(watched.notes)
    tokenizer = watched.tokenizer if tokenizer is None else tokenizer
    if tokenizer is None and watched.tokenizer_error:
        notes.append(f"the tokenizer cannot be read: {watched.tokenizer_error}")
    return TokenModel(watched.name, watched.model, tokenizer, watched.source, notes)


def _load_run(run: Run, step: int | None) -> TokenModel:
    checkpoint = (
        run.load_checkpoint(step)
        if step is not None
        else run.load_checkpoint("best") or run.load_checkpoint()
    )
    if checkpoint is None:
        at_step = "" if step is None else f" of step {step:,}"
        raise RunError(f"{run.path} has no checkpoint{at_step} yet")
    model = load_model(run, checkpoint)
    if not isinstance(model, NetworkModule) or not model.network.takes_token_ids:
        raise TaskError(f"{run.name} does not read token ids: this needs a language model")
    if not isinstance(model, SequentialNetwork):
        raise TaskError(f"{run.name} reads two sequences; this needs a model that reads one")
    source = (
        f"{'best checkpoint, ' * (checkpoint.is_best and step is None)}step {checkpoint.step:,}"
    )
    try:
        tokenizer: Any = load_tokenizer(TrainedRunFolder(run), model)
    except (TaskError, UnknownNameError) as error:
        return TokenModel(run.name, model, None, source, [f"there is no tokenizer: {error}"])
    return TokenModel(run.name, model, tokenizer, source)

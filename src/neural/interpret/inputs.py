"""Inputs of `neural watch`: texts, pairs of texts, files and random ids become one batch.

A batch is the named inputs of a model, with a label for every position: the text of its token.
Models with an encoder and a decoder have two sequences, and labels for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neural.core.errors import describe_os_error
from neural.core.files import (
    format_missing_file,
    is_file_name,
    looks_like_file_name,
)
from neural.interpret.foreign_models import TargetError
from neural.interpret.subject import Subject
from neural.interpret.tokens import (
    describe_unknown_tokens,
    encode_text,
    is_hugging_face,
    label_ids,
)
from neural.nn.lazy_torch import torch

if TYPE_CHECKING:
    from torch import Tensor

    from neural.tasks.task import Task

DEFAULT_TEXT = "The cat sat on the mat, and the cat sat on the rug."
"""Input of a language model if the user gives none; it repeats words, so induction can show."""


@dataclass(frozen=True)
class Inputs:
    """One batch for a model."""

    batch: Any
    """Named inputs, or inputs in order."""
    description: str
    """What the input is, for people."""
    labels: list[list[str]] | None = None
    """Texts of the positions of each example."""
    decoder_labels: list[list[str]] | None = None
    """Texts of the decoder's positions, if there are two sequences."""
    tokens: Tensor | None = None
    """Token ids (B, T)."""
    real: Tensor | None = None
    """True for positions that are not padding (B, T)."""
    notes: list[str] = field(default_factory=list)
    pixel_mean: tuple[float, ...] = ()
    """Means with which images were normalised, by channel; empty if unknown."""
    pixel_std: tuple[float, ...] = ()
    """Standard deviations with which images were normalised."""
    task: Task | None = None
    """The task of a run, if it is a batch of its own data: then the task runs the model."""


def read_inputs(values: Sequence[str], *, by_line: bool = False) -> list[str]:
    """Texts; a value that names a file is the text of that file, without its last line break.

    `by_line`: every line that is not blank is a text of its own. TargetError for a value that looks
    like the name of a file that does not exist.
    """
    # nearly every file ends with a line break, which is no part of the text
    texts = [
        read_file(Path(value)).removesuffix("\n") if _is_file(value) else value for value in values
    ]
    if by_line:
        texts = [line for text in texts for line in text.splitlines() if line.strip()]
        if values and not texts:
            raise TargetError("the input has no line with a text")
    return texts


def read_text(data: str | Path | None, required_by: str | None = None) -> tuple[str, str]:
    """A text of several words and its name: the content of a file, or the given text itself."""
    if data is None:
        raise TargetError(f"{required_by} needs a text to measure its loss on: --data FILE")
    text = str(data)
    if isinstance(data, Path) or is_file_name(text):
        return read_file(Path(data)), Path(data).name
    if not any(character.isspace() for character in text):
        raise TargetError(format_missing_file(text))
    return text, "the given text"


def read_file(path: Path) -> str:
    """The text of a file; TargetError if there is none."""
    if not path.exists():
        raise TargetError(format_missing_file(path))
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        is_os_error = isinstance(error, OSError)
        reason = describe_os_error(error) if is_os_error else "it is not UTF-8 text"
        raise TargetError(f"{path} cannot be read as text: {reason}") from None


def _is_file(value: str) -> bool:
    if is_file_name(value):
        return True
    if not looks_like_file_name(value):
        return False
    if not Path(value).exists():  # else a folder, or a pipe such as /dev/stdin
        raise TargetError(
            f'{format_missing_file(value)} (if it is meant as a text, add a blank: "{value} ")'
        )
    return True


def prepare_input(
    subject: Subject,
    texts: Sequence[str],
    *,
    pairs: Sequence[tuple[str, str]] = (),
    decoder_texts: Sequence[str] = (),
    max_length: int | None = None,
) -> Inputs:
    """Tokenize texts, or pairs of texts, into one padded batch with labels.

    `decoder_texts` are read by the decoder of an encoder–decoder model, one per text; without
    them, the decoder reads the same text. `max_length` cuts longer inputs.
    """
    if subject.tokenizer_error:
        raise TargetError(
            f"the tokenizer of {subject.name} cannot be read: {subject.tokenizer_error}; save it "
            'again (tokenizer.save_pretrained), or give token ids: --ids "5 3 9"'
        )
    if subject.tokenizer is None:
        raise TargetError(
            f"{subject.name} has no tokenizer: save it into the same folder "
            "(tokenizer.save_pretrained), return (model, tokenizer) from the function, or give "
            'token ids: --ids "5 3 9"'
        )
    if texts and pairs:
        raise TargetError("give either --input or --pair, not both")
    notes: list[str] = []
    if not texts and not pairs:
        texts = [DEFAULT_TEXT]
    tokenizer = subject.tokenizer
    first = [pair[0] for pair in pairs] if pairs else list(texts)
    second = [pair[1] for pair in pairs] if pairs else None
    if not all(text.strip() for text in first):
        raise TargetError("an input is empty: give a text, --input TEXT or --input FILE")
    encoded = _tokenize(subject, first, second, max_length, notes)
    ids = encoded["input_ids"]
    if not ids.numel():
        raise TargetError("the input has no tokens")
    _check_ids(subject, ids)
    unknown = describe_unknown_tokens(tokenizer, ids, encoded.get("attention_mask"))
    notes += [] if unknown is None else [unknown]
    accepted = subject.input_parameters
    takes_any = subject.config is None and any(
        parameter.kind is parameter.VAR_KEYWORD for parameter in accepted.values()
    )
    batch: dict[str, Any] = {
        name: tensor for name, tensor in encoded.items() if takes_any or name in accepted
    }
    decoder_labels = None
    if subject.is_encoder_decoder:
        decoder_ids = _prepare_decoder_ids(subject, decoder_texts or first, max_length, notes)
        batch["decoder_input_ids"] = decoder_ids
        decoder_labels = label_ids(tokenizer, decoder_ids)
    kind = "pair" if pairs else "text"
    count, length = ids.shape
    plural = "s" * (count != 1)
    description = f"{count} {kind}{plural}, {length} tokens" + (" with padding" * (count > 1))
    real = encoded["attention_mask"].bool() if count > 1 and "attention_mask" in encoded else None
    return Inputs(
        batch if "input_ids" in batch else (ids,),  # the model has another name for its ids
        description,
        label_ids(tokenizer, ids),
        decoder_labels,
        ids,
        None if subject.is_encoder_decoder else real,
        notes,
    )


def prepare_ids(subject: Subject, rows: Sequence[str]) -> Inputs:
    """Token ids written as numbers, `"5 3 9"`, for models without a tokenizer."""
    try:
        parsed = [[int(word) for word in row.replace(",", " ").split()] for row in rows]
    except ValueError:
        raise TargetError('--ids takes whole numbers, such as --ids "5 3 9"') from None
    if len({len(row) for row in parsed}) != 1 or not parsed[0]:
        raise TargetError("--ids: all rows need the same number of ids, at least one")
    ids = torch.tensor(parsed)
    if int(ids.min()) < 0:
        raise TargetError("--ids: token ids are not negative")
    _check_ids(subject, ids, "--ids has")
    return Inputs(
        {"input_ids": ids} if "input_ids" in subject.input_parameters else (ids,),
        f"{len(parsed)} × {ids.shape[1]} token ids",
        label_ids(subject.tokenizer, ids),
        tokens=ids,
    )


def _tokenize(
    subject: Subject,
    first: list[str],
    second: list[str] | None,
    max_length: int | None,
    notes: list[str],
) -> dict[str, Tensor]:
    tokenizer = subject.tokenizer
    limit = max_length or subject.max_positions
    if not is_hugging_face(tokenizer):  # a tokenizer of another library: encode and decode
        if second is not None or len(first) > 1:
            raise TargetError("several texts or pairs need a tokenizer of Hugging Face")
        return {"input_ids": torch.tensor([encode_text(tokenizer, first[0])[:limit]])}
    if len(first) > 1 and tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token
        if tokenizer.pad_token is None:
            raise TargetError("the tokenizer has no padding token: give one text at a time")
    encoded = tokenizer(
        first,
        second,
        return_tensors="pt",
        padding=len(first) > 1,
        truncation=limit is not None,
        max_length=limit,
    )
    if limit is not None and encoded["input_ids"].shape[1] == limit:
        longest = max(map(len, tokenizer(first, second, verbose=False)["input_ids"]))
        if longest > limit:
            notes.append(f"inputs are cut to {limit:,} tokens")
    return dict(encoded)


def _check_ids(subject: Subject, ids: Tensor, origin: str = "the tokenizer gives") -> None:
    """Raise TargetError if an id is outside the model's vocabulary."""
    size = subject.vocabulary_size
    largest = int(ids.max())
    if size is not None and largest >= size:
        advice = (
            f"ids go from 0 to {size - 1:,}"
            if origin.startswith("--ids")
            else "tokenizer and model do not belong together"
        )
        raise TargetError(
            f"{origin} id {largest:,}, and the model has {size:,} embeddings: {advice}"
        )


def _prepare_decoder_ids(
    subject: Subject, texts: Sequence[str], max_length: int | None, notes: list[str]
) -> Tensor:
    """Ids that the decoder reads: its start token, then the text."""
    encoded = _tokenize(subject, list(texts), None, max_length, notes)["input_ids"]
    config = subject.config
    start = next(
        (
            value
            for name in ("decoder_start_token_id", "bos_token_id", "pad_token_id")
            if isinstance(value := getattr(config, name, None), int)
        ),
        0,
    )
    _check_ids(subject, encoded)
    starts = torch.full((len(encoded), 1), start)
    return torch.cat((starts, encoded[:, :-1]), dim=1)

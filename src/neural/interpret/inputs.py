"""Inputs of `neural watch`: texts, pairs of texts, files and random ids become one batch.

A batch is the named inputs of a model, with a label for every position: the text of its token.
Models with an encoder and a decoder have two sequences, and labels for both.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neural.core.errors import describe_os_error
from neural.core.files import (
    format_missing_file,
    is_file_name,
    looks_like_file_name,
)
from neural.interpret._foreign_models import TargetError, WatchedModel, find_max_positions
from neural.nn.lazy_torch import torch

if TYPE_CHECKING:
    from torch import Tensor

DEFAULT_TEXT = "The cat sat on the mat, and the cat sat on the rug."
"""Input of a language model if the user gives none; it repeats words, so induction can show."""
WORD_MARKS = str.maketrans({"Ġ": " ", "▁": " ", "Ċ": "\n", "ĉ": "\t"})
"""Characters that tokenizers write for blanks, and the blanks."""
_VISIBLE_BYTES = (*range(33, 127), *range(161, 173), *range(174, 256))
_OTHER_BYTES = sorted({*range(256)} - {*_VISIBLE_BYTES})
BYTES_OF_CHARACTERS = {chr(byte): byte for byte in _VISIBLE_BYTES} | {
    chr(256 + index): byte for index, byte in enumerate(_OTHER_BYTES)
}
"""The character that byte-level tokenizers (GPT-2, Llama 3, SmolLM2) write for a byte → the byte."""


@dataclass(frozen=True)
class WatchInput:
    """One batch for a model."""

    batch: Mapping[str, Any] | tuple[Any, ...]
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


def read_inputs(values: Sequence[str], *, by_line: bool = False) -> list[str]:
    """Texts; a value that names a file is the text of that file, without its last line break.

    `by_line`: every line that is not blank is a text of its own. TargetError for a value that looks
    like the name of a file that does not exist.
    """
    texts = [_read_file(value) if _is_file(value) else value for value in values]
    if by_line:
        texts = [line for text in texts for line in text.splitlines() if line.strip()]
        if values and not texts:
            raise TargetError("the input has no line with a text")
    return texts


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


def _read_file(name: str) -> str:
    """The text of a file. Nearly every file ends with a line break, which is no part of the text."""
    try:
        return Path(name).read_text(encoding="utf-8").removesuffix("\n")
    except OSError as error:
        raise TargetError(f"{name} cannot be read as text: {describe_os_error(error)}") from None
    except UnicodeDecodeError as error:
        raise TargetError(f"{name} cannot be read as text: {error}") from None


def prepare_input(
    watched: WatchedModel,
    texts: Sequence[str],
    *,
    pairs: Sequence[tuple[str, str]] = (),
    decoder_texts: Sequence[str] = (),
    max_length: int | None = None,
) -> WatchInput:
    """Tokenize texts, or pairs of texts, into one padded batch with labels.

    `decoder_texts` are read by the decoder of an encoder–decoder model, one per text; without
    them, the decoder reads the same text. `max_length` cuts longer inputs.
    """
    if watched.tokenizer_error:
        raise TargetError(
            f"the tokenizer of {watched.name} cannot be read: {watched.tokenizer_error}; save it "
            'again (tokenizer.save_pretrained), or give token ids: --ids "5 3 9"'
        )
    if watched.tokenizer is None:
        raise TargetError(
            f"{watched.name} has no tokenizer: save it into the same folder "
            "(tokenizer.save_pretrained), return (model, tokenizer) from the function, or give "
            'token ids: --ids "5 3 9"'
        )
    if texts and pairs:
        raise TargetError("give either --input or --pair, not both")
    notes: list[str] = []
    if not texts and not pairs:
        texts = [DEFAULT_TEXT]
    tokenizer = watched.tokenizer
    first = [pair[0] for pair in pairs] if pairs else list(texts)
    second = [pair[1] for pair in pairs] if pairs else None
    if not all(text.strip() for text in first):
        raise TargetError("an input is empty: give a text, --input TEXT or --input FILE")
    encoded = _tokenize(watched, first, second, max_length, notes)
    ids = encoded["input_ids"]
    if not ids.numel():
        raise TargetError("the input has no tokens")
    _check_ids(watched, ids)
    unknown = describe_unknown_tokens(tokenizer, ids, encoded.get("attention_mask"))
    notes += [] if unknown is None else [unknown]
    accepted = _find_accepted_inputs(watched)
    batch: dict[str, Any] = {
        name: tensor for name, tensor in encoded.items() if accepted is None or name in accepted
    }
    decoder_labels = None
    if watched.is_encoder_decoder:
        decoder_ids = _prepare_decoder_ids(watched, decoder_texts or first, max_length, notes)
        batch["decoder_input_ids"] = decoder_ids
        decoder_labels = label_ids(tokenizer, decoder_ids)
    kind = "pair" if pairs else "text"
    count, length = ids.shape
    plural = "s" * (count != 1)
    description = f"{count} {kind}{plural}, {length} tokens" + (" with padding" * (count > 1))
    real = encoded["attention_mask"].bool() if count > 1 and "attention_mask" in encoded else None
    return WatchInput(
        batch if "input_ids" in batch else (ids,),  # the model has another name for its ids
        description,
        label_ids(tokenizer, ids),
        decoder_labels,
        ids,
        None if watched.is_encoder_decoder else real,
        notes,
    )


def describe_unknown_tokens(
    tokenizer: Any, ids: Tensor, attention_mask: Tensor | None = None
) -> str | None:
    """Note about tokens that are not in the vocabulary; None if there are none."""
    unknown = getattr(tokenizer, "unk_token_id", None)
    if unknown is None:
        return None
    is_unknown = ids == unknown
    if attention_mask is not None:  # padding may be written with the same token
        is_unknown &= attention_mask.bool()
    count = int(is_unknown.sum())
    if count == 0:
        return None
    tokens = f"{count:,} tokens are" if count > 1 else "1 token is"
    return f"{tokens} not in the vocabulary and became {tokenizer.unk_token}"


def prepare_ids(watched: WatchedModel, rows: Sequence[str]) -> WatchInput:
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
    _check_ids(watched, ids, "--ids has")
    tokenizer = watched.tokenizer
    labels = [list(map(str, row)) for row in parsed]
    accepted = _find_accepted_inputs(watched) or set()
    batch = {"input_ids": ids} if "input_ids" in accepted else (ids,)
    return WatchInput(
        batch,
        f"{len(parsed)} × {ids.shape[1]} token ids",
        labels if tokenizer is None else label_ids(tokenizer, ids),
        tokens=ids,
    )


def label_ids(tokenizer: Any, ids: Tensor) -> list[list[str]]:
    """Texts of token ids; the marks that tokenizers write for blanks and bytes become text."""
    if hasattr(tokenizer, "convert_ids_to_tokens"):
        rows = [tokenizer.convert_ids_to_tokens(row) for row in ids.tolist()]
        return [[_read_token(str(token)) for token in row] for row in rows]
    return [[str(tokenizer.decode([token])) for token in row] for row in ids.tolist()]


def _read_token(token: str) -> str:
    """The text of a token: `Ã©` of a byte-level tokenizer is `é`.

    A part of a character, or a control character, stays as the tokenizer writes it.
    """
    try:
        text = bytes(BYTES_OF_CHARACTERS[character] for character in token).decode()
    except (KeyError, UnicodeDecodeError):
        return token.translate(WORD_MARKS)
    is_control = any(unicodedata.category(letter) == "Cc" for letter in text)
    return token.translate(WORD_MARKS) if is_control else text


def _tokenize(
    watched: WatchedModel,
    first: list[str],
    second: list[str] | None,
    max_length: int | None,
    notes: list[str],
) -> dict[str, Tensor]:
    tokenizer = watched.tokenizer
    limit = max_length or find_max_positions(watched.config)
    is_hugging_face = hasattr(tokenizer, "convert_ids_to_tokens")
    if not is_hugging_face:  # a tokenizer of another library: encode and decode
        if second is not None or len(first) > 1:
            raise TargetError("several texts or pairs need a tokenizer of Hugging Face")
        ids = list(tokenizer.encode(first[0]))
        return {"input_ids": torch.tensor([ids[:limit]])}
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


def _find_accepted_inputs(watched: WatchedModel) -> set[str] | None:
    """Names of the arguments of `forward`; None if it takes any."""
    import inspect

    parameters = inspect.signature(watched.model.forward).parameters.values()
    has_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    is_hugging_face = watched.config is not None
    if has_any and not is_hugging_face:
        return None
    return {parameter.name for parameter in parameters}


def _check_ids(watched: WatchedModel, ids: Tensor, origin: str = "the tokenizer gives") -> None:
    """Raise TargetError if an id is outside the model's vocabulary."""
    size = _find_vocabulary_size(watched)
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


def _find_vocabulary_size(watched: WatchedModel) -> int | None:
    """Number of token embeddings; None if it is not known."""
    get_embeddings = getattr(watched.model, "get_input_embeddings", None)
    try:
        embeddings = get_embeddings() if get_embeddings is not None else None
    except (NotImplementedError, AttributeError, TypeError):  # models without token embeddings
        embeddings = None
    size = getattr(embeddings, "num_embeddings", None)
    size = getattr(watched.config, "vocab_size", None) if size is None else size
    return size if isinstance(size, int) else None


def _prepare_decoder_ids(
    watched: WatchedModel, texts: Sequence[str], max_length: int | None, notes: list[str]
) -> Tensor:
    """Ids that the decoder reads: its start token, then the text."""
    encoded = _tokenize(watched, list(texts), None, max_length, notes)["input_ids"]
    config = watched.config
    start = next(
        (
            value
            for name in ("decoder_start_token_id", "bos_token_id", "pad_token_id")
            if isinstance(value := getattr(config, name, None), int)
        ),
        0,
    )
    _check_ids(watched, encoded)
    starts = torch.full((len(encoded), 1), start)
    return torch.cat((starts, encoded[:, :-1]), dim=1)

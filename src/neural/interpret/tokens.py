"""Texts and token ids: tokenizers of Hugging Face, of `neural`, and of other libraries.

Every tokenizer has `encode` and a way back; one of Hugging Face also names its tokens, pads and cuts.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from neural.capture.token_classes import decode_byte_token
from neural.nn.lazy_torch import torch
from neural.tasks._text_generator import CharacterTokenizer

if TYPE_CHECKING:
    from torch import Tensor

WORD_MARKS = str.maketrans({"Ġ": " ", "▁": " ", "Ċ": "\n", "ĉ": "\t"})
"""Characters that tokenizers write for blanks, and the blanks."""
_VISIBLE_BYTES = (*range(33, 127), *range(161, 173), *range(174, 256))
_OTHER_BYTES = sorted({*range(256)} - {*_VISIBLE_BYTES})
BYTES_OF_CHARACTERS = {chr(byte): byte for byte in _VISIBLE_BYTES} | {
    chr(256 + index): byte for index, byte in enumerate(_OTHER_BYTES)
}
"""The character that byte-level tokenizers (GPT-2, Llama 3, SmolLM2) write for a byte → the byte."""

NEUTRAL_CONTEXT = "\n"
"""A context for answers that merge with the last token of their own: "ve" after "lo" is `love`."""


def is_hugging_face(tokenizer: Any) -> bool:
    """Whether a tokenizer has the methods of Hugging Face."""
    return hasattr(tokenizer, "convert_ids_to_tokens")


def encode_text(tokenizer: Any, text: str, *, special_tokens: bool = True) -> list[int]:
    """Token ids of a text; with the special tokens that a tokenizer of Hugging Face adds."""
    if is_hugging_face(tokenizer):
        # not `verbose`: transformers warns of a text longer than the model's input
        ids = tokenizer(text, add_special_tokens=special_tokens, verbose=False)["input_ids"]
    else:
        ids = tokenizer.encode(text)
    return [int(token) for token in getattr(ids, "ids", ids)]


def encode_answer(tokenizer: Any, context: str | Sequence[int], text: str) -> list[int]:
    """Token ids of a text that follows a context.

    A tokenizer writes a text after a context unlike the same text alone: "ved" after "lo" is `ved`,
    and alone it is `▁ved` for one that puts a blank before every text (SentencePiece: Llama 2,
    Mistral). So both are encoded together, wherever that keeps the tokens of the context. Of several
    readings, such as with and without a blank before a word, the first of these: a token whose text
    is this one; one token; one without unknown tokens; any.
    """
    if not is_hugging_face(tokenizer):
        return encode_text(tokenizer, text)
    readings = list(_iter_readings(tokenizer, context, text))
    unknown = getattr(tokenizer, "unk_token_id", None)
    known = [ids for ids in readings if unknown not in ids]
    single = [ids for ids in known if len(ids) == 1]
    exact = [ids for ids in single if label_ids(tokenizer, torch.tensor([ids])) == [[text]]]
    return next(iter([*exact, *single, *known, *readings]))


def _iter_readings(tokenizer: Any, context: str | Sequence[int], text: str) -> Iterator[list[int]]:
    """Ids of the text after the context, after a neutral one, and alone."""
    ids, written = None, context
    if not isinstance(written, str):
        special = set(tokenizer.all_special_ids)
        first = next((i for i, token in enumerate(context) if token not in special), len(context))
        ids = [int(token) for token in list(context)[first:]]
        written = tokenizer.decode(ids, clean_up_tokenization_spaces=False)
    for before in (written, NEUTRAL_CONTEXT):
        start = encode_text(tokenizer, before, special_tokens=False)
        if before is written and ids is not None and start != ids:
            continue  # decoding has lost something, such as half a character
        for joined in (before + text, f"{before} {text}"):
            both = encode_text(tokenizer, joined, special_tokens=False)
            if len(both) > len(start) and both[: len(start)] == start:
                yield both[len(start) :]
    yield encode_text(tokenizer, text, special_tokens=False)


def label_ids(tokenizer: Any, ids: Tensor) -> list[list[str]]:
    """Texts of token ids (B, T); the marks that tokenizers write for blanks and bytes become text.

    Numbers without a tokenizer.
    """
    rows = ids.tolist()
    if tokenizer is None:
        return [[str(token) for token in row] for row in rows]
    if is_hugging_face(tokenizer):
        named = [tokenizer.convert_ids_to_tokens(row) for row in rows]
        return [[_read_token(str(token)) for token in row] for row in named]
    if isinstance(tokenizer, CharacterTokenizer):
        return [_label_characters(tokenizer, row) for row in rows]
    return [[str(tokenizer.decode([token])) for token in row] for row in rows]


def _label_characters(tokenizer: CharacterTokenizer, row: list[int]) -> list[str]:
    decode, size = tokenizer.create_decoder(), tokenizer.vocab_size
    # a network may predict more ids than the training text had characters
    return [decode(token) if token < size else f"<{token}>" for token in row]


def _read_token(token: str) -> str:
    """The text of a token: `Ã©` of a byte-level tokenizer is `é`.

    A part of a character, or a control character, stays as the tokenizer writes it.
    """
    if (character := decode_byte_token(token)) != token:
        return character
    try:
        text = bytes(BYTES_OF_CHARACTERS[character] for character in token).decode()
    except (KeyError, UnicodeDecodeError):
        return token.translate(WORD_MARKS)
    is_control = any(unicodedata.category(letter) == "Cc" for letter in text)
    return token.translate(WORD_MARKS) if is_control else text


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

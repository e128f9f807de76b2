"""Token classes: targets of one kind, for which the importance of heads is measured separately.

    find_token_classes(inputs, targets, texts)      {"repeated tokens": (B, T) mask, …}

The classes are found from the data alone. `targets[b, t]` is the token that is predicted at
position t, and `inputs[b, t]` the token before it.

    repeated tokens     the pair (token before, token) has occurred earlier in the example: what an
                        induction head can predict by copying
    line ends           tokens that contain a line break
    digits              tokens that are digits
    word starts         tokens with which a word begins: after a space or a sign, or with one
    capitals            tokens whose first letter is a capital
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from neural.nn.lazy_torch import torch

if TYPE_CHECKING:
    from jaxtyping import Bool, Int
    from torch import Tensor

SPACE_MARKERS = re.compile("^[ĠĊ▁]")
"""Start of a word piece that stands for a space or line break (byte-level BPE, SentencePiece)."""
CONTINUATION = "##"
"""Start of a word piece that continues a word (WordPiece)."""
BYTE_TOKEN = re.compile("<0x([0-9A-F]{2})>")
"""A byte that is no part of a known token (SentencePiece with byte fallback, Llama 2)."""


def find_token_classes(
    inputs: Int[Tensor, "B T"],
    targets: Int[Tensor, "B T"],
    texts: Callable[[int], str] | Sequence[str] | None = None,
) -> dict[str, Bool[Tensor, "B T"]]:
    """Masks of the targets of each class; a class without targets is left out.

    `texts`: the text of each token id, a list or a function; without it only repeated tokens are
    found. Negative targets (none) are in no class.
    """
    classes = {"repeated tokens": find_repeated_pairs(inputs, targets)}
    if texts is not None:
        get_text = texts if callable(texts) else texts.__getitem__
        ids = torch.unique(torch.cat([inputs.flatten(), targets.flatten()]))
        ids = ids[ids >= 0]
        names = [_read_token(get_text(int(token))) for token in ids.tolist()]
        size = int(ids.max()) + 1 if len(ids) else 1

        def select(test: Callable[[str], bool], tokens: Tensor) -> Tensor:
            table = torch.zeros(size, dtype=torch.bool, device=targets.device)
            table[ids] = torch.tensor([test(name) for name in names], device=targets.device)
            return table[tokens.clamp(min=0)] & (tokens >= 0)

        ends_word = select(lambda text: not text or not text[-1].isalnum(), inputs)
        begins_word = select(
            lambda text: text[:1].isspace() and text.strip()[:1].isalnum(), targets
        )
        is_letter = select(lambda text: text[:1].isalnum(), targets)
        classes |= {
            "line ends": select(lambda text: "\n" in text, targets),
            "digits": select(lambda text: text.strip().isdigit(), targets),
            "word starts": begins_word | (is_letter & ends_word),
            "capitals": select(lambda text: text.strip()[:1].isupper(), targets),
        }
    return {name: mask for name, mask in classes.items() if bool(mask.any())}


def find_repeated_pairs(
    inputs: Int[Tensor, "B T"], targets: Int[Tensor, "B T"]
) -> Bool[Tensor, "B T"]:
    """Targets whose pair (token before, token) has occurred earlier in the example."""
    size = int(torch.maximum(inputs.max(), targets.max())) + 2
    pairs = (inputs.long() + 1) * size + targets.long() + 1
    # A stable sort puts equal pairs together in the order of their positions: all but the first of
    # each run are repetitions.
    ordered, order = pairs.sort(dim=-1, stable=True)
    is_repeated = torch.zeros_like(ordered, dtype=torch.bool)
    is_repeated[:, 1:] = ordered[:, 1:] == ordered[:, :-1]
    return torch.zeros_like(is_repeated).scatter(1, order, is_repeated) & (targets >= 0)


def decode_byte_token(token: str) -> str:
    """`<0x0A>` as a line break; any other token, and a part of a character, as it is."""
    match = BYTE_TOKEN.fullmatch(token)
    character = chr(int(match[1], 16)) if match else ""
    is_text = character in ("\n", "\t") or (character.isascii() and character.isprintable())
    return character if character and is_text else token


def _read_token(text: str) -> str:
    """The text of a token, with a space for the markers of tokenizers."""
    text = decode_byte_token(text)
    if text.startswith(CONTINUATION) and len(text) > len(CONTINUATION):
        return text.removeprefix(CONTINUATION)
    return SPACE_MARKERS.sub(lambda match: "\n" if match[0] == "Ċ" else " ", text)

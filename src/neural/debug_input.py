"""Something to show a network: a text, a file, or what is made up where nobody said."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from neural.language.network import Network
from neural.language.shapes import show
from neural.modules.build import any_length
from neural.modules.late import torch
from neural.tasks.data.alphabet import SHOWN, alphabet_of
from neural.tasks.data.array_files import array_in
from neural.tasks.data.check import vocabulary
from neural.tasks.task import TaskError

if TYPE_CHECKING:
    from torch import Tensor

    from neural.generation import Letters

SENTENCE = "the cat sat on the mat and the dog sat on the rug"
"""Shown to networks that read text, where nothing else is."""
OPEN = 32
"""Positions of made-up input where a program leaves the length open."""


class Given(NamedTuple):
    """Tensors for a network's `forward`, one example, and what they are."""

    tensors: tuple[Tensor, ...]
    said: str
    source: list[str] | None
    target: list[str] | None


def given(network: Network, inputs: Sequence[str], *, letters: Letters | None = None, seed: int = 0) -> Given:
    """One sequence for each that the network takes; the last one given stands for those that are missing."""
    count = 2 if network.two_streams else 1
    if len(inputs) > count:
        raise TaskError(f"{network.name} takes {count} input{'s' * (count > 1)}, got {len(inputs)}")
    made = [_one(network, text, letters, stream) for text, stream in zip(inputs, ("source", "target"), strict=False)]
    made = made or [_made_up(network, letters, seed)]
    said = "; ".join(one.said for one in made)
    if len(made) < count:
        made.append(made[0])
        said += ", as source and as target"
    return Given(tuple(one.tensors[0] for one in made), said, made[0].source, made[1].source if count == 2 else None)


def _one(network: Network, text: str, letters: Letters | None, stream: str) -> Given:
    path = Path(text)
    is_file = len(text) < 4096 and "\n" not in text and path.is_file()
    if path.suffix == ".npy" and not is_file:
        raise TaskError(f"there is no file {text}")
    if is_file and path.suffix == ".npy":
        return _array(network, path, stream)
    if is_file:
        said, text = f"the text of {path}", path.read_text(encoding="utf-8", errors="replace")
    elif path.suffix == ".txt":
        raise TaskError(f"there is no file {text}")
    else:
        said = "the text that was given"
    if not text:
        raise TaskError("--input is empty")
    return _text(network, text, letters, said, stream)


def _text(network: Network, text: str, letters: Letters | None, said: str, stream: str = "source") -> Given:
    """As ids, cut to what the network takes."""
    if letters is not None:
        try:
            ids = letters.encode(text)
        except TaskError as unknown:
            raise TaskError(str(unknown).replace("the prompt", "--input")) from None
        read = letters.reader()
        labels = [_visible(read(one)) for one in ids]
    else:
        alphabet = alphabet_of(network, "--input")
        found = alphabet.encode(text)
        if alphabet.unknown(text):
            said += f" ({alphabet.unknown(text)} characters that are not ASCII became question marks)"
        ids, labels = found.tolist(), [alphabet.tokens[one] for one in found]
    wanted = network.input[0]
    if isinstance(wanted, int):
        if len(ids) > wanted:
            said += f", its first {wanted} of {len(ids):,} positions"
        elif len(ids) < wanted and not any_length(network, stream):
            raise TaskError(f"{network.name} takes exactly {wanted} positions; {said} has {len(ids)}")
        ids, labels = ids[:wanted], labels[:wanted]
    return Given((torch.tensor([ids]),), said, labels, None)


def _array(network: Network, path: Path, stream: str) -> Given:
    """Of a .npy file: one example, or several along the first axis."""
    array = array_in(path)
    if array.dtype.kind not in "biuf":
        raise TaskError(f"{path} holds {array.dtype}, not numbers")
    array = array[None] if array.ndim == len(network.input) else array
    free = int(any_length(network, stream))
    sizes = zip(network.input[free:], array.shape[1 + free :], strict=False)
    fits = array.ndim == len(network.input) + 1 and all(isinstance(want, str) or want == got for want, got in sizes)
    if not fits or not array.size:
        raise TaskError(f"{path} is {array.shape}, but {network.name} takes {show(network.input, batch=True)}")
    if not np.isfinite(array).all():
        raise TaskError(f"{path} has numbers that are not finite")
    if network.ids:
        whole = np.issubdtype(array.dtype, np.integer) or (array == np.floor(array)).all()
        if not whole or array.min() < 0 or array.max() >= vocabulary(network):
            raise TaskError(f"{path} must hold ids, whole numbers from 0 to {vocabulary(network) - 1}")
        ids = array.astype(np.int64)
        return Given((torch.tensor(ids),), f"the ids of {path}", [str(one) for one in ids[0]], None)
    return Given((torch.tensor(array.astype(np.float32)),), f"the numbers of {path}", None, None)


def _made_up(network: Network, letters: Letters | None, seed: int) -> Given:
    """A sentence for networks that read text, else random ids or random numbers."""
    shape = tuple(OPEN if isinstance(one, str) else one for one in network.input)
    if network.ids and (letters is not None or _reads_text(network)):
        known = None if letters is None or letters.characters is None else set(letters.characters)
        if known is None or known >= set(SENTENCE):
            text = SENTENCE if any_length(network, "source") else (SENTENCE + " ") * (shape[0] // len(SENTENCE) + 1)
            return _text(network, text, letters, f"a sentence of our own, “{SENTENCE}”")
    random = torch.Generator().manual_seed(seed)
    if network.ids:
        ids = torch.randint(0, vocabulary(network), (1, *shape), generator=random)
        return Given((ids,), f"random ids (seed {seed})", [str(one) for one in ids[0].tolist()], None)
    return Given((torch.randn(1, *shape, generator=random),), f"random numbers (seed {seed})", None, None)


def _reads_text(network: Network) -> bool:
    try:
        alphabet_of(network, "--input")
    except TaskError:
        return False
    return True


def _visible(label: str) -> str:
    return SHOWN.get(label, label if label.isprintable() and label else "·")

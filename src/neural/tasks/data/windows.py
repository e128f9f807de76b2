"""A text → examples of what comes next: windows side by side, and the same one character on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neural.language.network import Network
from neural.tasks.data.alphabet import alphabet_of
from neural.tasks.data.source import Examples
from neural.tasks.task import TaskError

if TYPE_CHECKING:
    from neural.tasks.data.source import Arrays

USUAL_LENGTH = 128
"""Characters in a window where the network leaves the length open."""


def next_characters(text: str, network: Network, where: str) -> Examples:
    """Every character of a window is predicted from those before it; the end of the text is held out."""
    if network.two_streams:
        raise TaskError(f"{where} is one text, but {network.name} reads two sequences")
    alphabet = alphabet_of(network, where)
    length = network.input[0] if isinstance(network.input[0], int) else USUAL_LENGTH
    ids, unknown = alphabet.encode(text), alphabet.unknown(text)
    if len(ids) <= length:
        raise TaskError(f"{where} has {len(ids)} characters; a window of {length} needs at least {length + 1}")
    remarks = [f"{where}: {unknown:,} characters outside printable ASCII are read as `?`"] if unknown else []
    return Examples(
        where=where, train=windows(ids, length), ordered=True, tokens=alphabet.tokens, remarks=tuple(remarks)
    )


def windows(ids: np.ndarray, length: int) -> Arrays:
    """`x` and `y` of shape (windows, length); what is left at the end is dropped."""
    count = (len(ids) - 1) // length
    return {
        "x": ids[: count * length].reshape(count, length),
        "y": ids[1 : count * length + 1].reshape(count, length),
    }

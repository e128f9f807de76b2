"""Whether a network can learn what comes next: it takes characters, predicts one at every place, and cannot peek."""

from __future__ import annotations

from typing import Any

from neural.language.network import Network
from neural.language.shapes import show
from neural.modules.build import any_length, build
from neural.modules.late import torch
from neural.tasks.data.check import padding, vocabulary
from neural.tasks.task import TaskError

USUAL_CONTEXT = 128
"""Where neither the experiment nor the network says one."""
SHORT = 16
"""Places that are enough to see whether a network looks ahead."""


def context_of(network: Network, said: int | None) -> int:
    """How many characters go in: as the experiment says, or as the network does."""
    declared = network.input[0]
    return said or (declared if isinstance(declared, int) else USUAL_CONTEXT)


def check_network(network: Network, characters: int, where: str) -> None:
    """Refuse a network that does not read ids or does not score every character at every place."""
    name = network.name
    if not network.ids:
        raise TaskError(f"{name} takes numbers, not text; begin with `Embedding(input_dim={characters}, output_dim=…)`")
    if network.two_streams:
        raise TaskError(f"{name} reads two sequences, a text is one; leave out the encoder")
    if len(network.output) != 2:
        raise TaskError(f"{name} gives {show(network.output)}: it must predict at every place, not once for a text")
    if repr(network.loss).partition("(")[0] != "sparse_categorical_crossentropy":
        raise TaskError(f'{name} has another loss; write `loss: "sparse_categorical_crossentropy"`')
    if network.head != "softmax":
        raise TaskError(f'{name} does not give probabilities; end with `Output({characters}, activation="softmax")`')
    for layer, ids in (("Embedding", vocabulary(network)), ("Output", network.output[-1])):
        if isinstance(ids, int) and ids < characters:
            raise TaskError(f"{where} has {characters} characters, but `{layer}` of {name} {ids}; write {characters}")
    pad = padding(network)
    if pad is not None and pad < characters:
        raise TaskError(f"`pad_id={pad}` of {name} would hide a character; leave it out: a text needs no padding")


def check_causal(network: Network, context: int) -> None:
    """Refuse a network that cannot take so many characters, or sees what it is to predict: its loss means nothing."""
    free = context == network.input[0] and any_length(network, "source")
    length, ids = min(context, SHORT) if free else context, vocabulary(network)
    half = max(1, length // 2)
    with torch.random.fork_rng(devices=()), torch.no_grad():
        torch.manual_seed(0)
        model: Any = build(network).eval()
        for one in model.parameters():
            one.normal_(std=0.2)   # what begins at zero would hide where it looks
        x = torch.randint(ids, (1, length))
        other = torch.cat([x[:, :half], (x[:, half:] + 1) % ids], dim=1)
        try:
            before, after = model.scores(x)[:, :half], model.scores(other)[:, :half]
        except ValueError as problem:
            raise TaskError(f"`context` is {context}, but {problem}") from None
    if not torch.allclose(before, after, rtol=1e-4, atol=1e-4, equal_nan=True):
        raise TaskError(
            f"{network.name} looks ahead: what it predicts at a place changes with the characters behind it; "
            "use `TransformerDecoder`, which looks back only"
        )

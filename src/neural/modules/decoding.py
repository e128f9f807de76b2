"""A network that predicts the next token, read one token at a time.

There are three ways to the same scores: `Recomputed` reads the whole window for every token, `Cached` reads each token
once (modules/cache.py), `Compiled` does that in one compiled call (modules/packed.py). `continuation.decoding_of` takes
the fastest that fits the network.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from neural.language.layer import Layer
from neural.language.network import Network
from neural.modules.attention.causal import Causal
from neural.modules.build import Built, Chain, any_length
from neural.modules.cache import Twin, twin
from neural.modules.late import torch
from neural.modules.layers.residual import Residual
from neural.modules.mechanism import Mechanism
from neural.modules.positions.learned import Learned

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

USUAL = 1024
"""The window of a network that declares none."""


class CannotDecode(ValueError):
    """The network does not predict a next token, or not this way."""


class Decoding(ABC):
    """A text on its way: what was read, and the scores of what comes next."""

    def __init__(self, model: Built, context: int) -> None:
        self.model, self.context = model, context
        self.length = 0
        """Positions of the window that are taken."""
        last = model.network.layers[-1].layer
        self._shares = model.network.head == "linear" and getattr(last, "activation", "") == "softmax"

    def start(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B V"]:
        """Forget everything and read a text from position 0."""
        if not 0 < ids.shape[1] <= self.context:
            raise ValueError(f"a text of 1 to {self.context} tokens is read at once, not of {ids.shape[1]}")
        self.length = ids.shape[1]
        with torch.inference_mode():
            return self._scores(self.first(ids))

    def step(self, ids: Int[Tensor, " B"]) -> Float[Tensor, "B V"]:
        """Read one token more."""
        self.length += 1
        with torch.inference_mode():
            return self._scores(self.next(ids))

    @abstractmethod
    def first(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B V"]:
        """The scores after a whole text."""

    @abstractmethod
    def next(self, ids: Int[Tensor, " B"]) -> Float[Tensor, "B V"]:
        """The scores after one token more."""

    def seen(self) -> dict[str, Float[Tensor, "B H K"]]:
        """What the newest position looked at in every attention, by its path; the last key is the newest."""
        raise CannotDecode("only cached decoding tells what was looked at")

    def _scores(self, given: Tensor) -> Tensor:
        """Logits also where the network, having no loss, gives probabilities."""
        return given.clamp(min=torch.finfo(given.dtype).tiny).log() if self._shares else given


class Recomputed(Decoding):
    """The whole window again for every token: slow, plain, for any network."""

    def __init__(self, model: Built, context: int) -> None:
        super().__init__(model, context)
        self.twin = twin(model).eval()

    def first(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B V"]:
        """A forward pass."""
        self.ids = ids
        return self.twin.scores(ids)[:, -1]

    def next(self, ids: Int[Tensor, " B"]) -> Float[Tensor, "B V"]:
        """A forward pass of everything."""
        return self.first(torch.cat((self.ids, ids.unsqueeze(-1)), dim=-1))


class Cached(Decoding):
    """Each token is read once; attention keeps what it read."""

    def __init__(self, model: Built, context: int, *, watched: bool = False) -> None:
        """`watched`: `seen` tells what was looked at."""
        super().__init__(model, context)
        why = unfit_for_cache(model.network)
        if why:
            raise CannotDecode(f"{model.network.name} cannot be decoded with a cache: {why}")
        self.twin = Twin(model, context)
        for one in self.twin.attentions.values():
            one.watched = watched

    def first(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B V"]:
        """The text in one pass."""
        self.twin.forget()
        return self.twin.read(ids)[:, -1]

    def next(self, ids: Int[Tensor, " B"]) -> Float[Tensor, "B V"]:
        """One position."""
        return self.twin.read(ids.unsqueeze(-1))[:, -1]

    def seen(self) -> dict[str, Float[Tensor, "B H K"]]:
        """As the attentions have it."""
        found = {path: one.seen for path, one in self.twin.attentions.items()}
        return {path: one for path, one in found.items() if one is not None}


def window_of(model: Built, context: int | None) -> int:
    """How many positions a network can look back on; refuses what predicts no next token."""
    network = model.network
    if not isinstance(model, Chain) or not network.ids or len(network.output) != 2:
        raise CannotDecode(
            f"{network.name} does not write text: that takes token ids, `input: (length,)` and `Embedding(…)`, "
            "decoder blocks, and an `Output` at every position"
        )
    declared = network.input[0]
    if not any_length(network, "source"):
        raise CannotDecode(f"{network.name} cannot write text: it takes sequences of {declared}, neither more nor less")
    learned = [one for one in network.layers if isinstance(getattr(one.layer, "encoding_type", None), Learned)]
    longest = min((len(getattr(model, one.name).table) for one in learned), default=None)
    if context is None:
        usual = declared if isinstance(declared, int) else USUAL
        return usual if longest is None else min(usual, longest)
    if context < 2 or (longest is not None and context > longest):
        limit = "at least 2" if context < 2 else f"at most {longest}: its positions end there"
        raise CannotDecode(f"{network.name} cannot look back on {context} positions, but on {limit}")
    return context


def unfit_for_cache(network: Network) -> str | None:
    """Why some layer needs more than the newest position and the keys before it; None where none does."""
    for placed in network.layers:
        if not _one_by_one(placed.layer) or (placed.layer.role == "positions" and placed.copies > 1):
            return f"`{type(placed.layer).__name__}` looks at other positions by a way of its own"
    return None


def _one_by_one(layer: Layer) -> bool:
    """Whether a layer treats every position alone, but for attention to what came before it."""
    if isinstance(layer, Residual):
        return all(_one_by_one(one) and one.role != "positions" for one in layer.layers)
    mechanism = getattr(layer, "attention", None)
    if isinstance(mechanism, Mechanism):
        return layer.role == "decoder" or isinstance(mechanism, Causal)
    return layer.pointwise or layer.role == "head"

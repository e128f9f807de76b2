"""What attention has read already, kept: a network whose attentions remember needs only the newest position.

`Twin(model, context)` is the network again: the same weights, other modules. Its attentions keep keys and values in
memory that is taken once, and its positions go on counting where the last call ended. The network itself is not
touched, and nothing of its layers is written twice: each attention runs as it stands, with a mechanism in the place of
its own that puts the old keys before the new ones.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from neural.modules.attention.localized import Localized
from neural.modules.build import Built
from neural.modules.heads import Heads
from neural.modules.late import Module, nn, torch
from neural.modules.mask import Mask, as_bool
from neural.modules.mechanism import Mechanism
from neural.modules.position import InsideAttention

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor


class Clock:
    """How many positions were read before those that are being read."""

    at: int = 0


class Kept:
    """A tensor that grows along its time axis, the last but one, inside memory that is taken once.

    A rolling one has room for the newest positions alone: position p stands at p mod `room`.
    """

    def __init__(self, room: int, *, rolling: bool = False) -> None:
        self.room, self.rolling = room, rolling
        self.all: Tensor | None = None
        self.count = 0
        """Positions that were ever added."""

    def forget(self) -> None:
        """Begin anew in the same memory."""
        self.count = 0

    def add(self, new: Float[Tensor, "*any T D"]) -> Float[Tensor, "*any K D"]:
        """All that is kept, in order, with the new ones at the end; of a rolling one, all that the new ones may see."""
        shape = (*new.shape[:-2], self.room, new.shape[-1])
        if self.all is None or self.all.shape != shape or self.all.dtype != new.dtype:
            self.all = new.new_empty(shape)
        if self.rolling:
            return self._rolled(new)
        first, self.count = self.count, self.count + new.shape[-2]
        if self.count > self.room:
            raise ValueError(f"there is room for {self.room} positions, not for {self.count}")
        self.all[..., first : self.count, :] = new
        return self.all[..., : self.count, :]

    def _rolled(self, new: Tensor) -> Tensor:
        assert self.all is not None
        first, self.count = self.count, self.count + new.shape[-2]
        if new.shape[-2] == 1:   # one more: overwrite the oldest
            self.all[..., first % self.room, :] = new[..., 0, :]
            return self._in_order(self.count)
        whole = torch.cat((self._in_order(first), new), dim=-2)
        last = whole[..., -self.room :, :]
        self.all[..., : last.shape[-2], :] = last.roll((self.count - last.shape[-2]) % self.room, dims=-2)
        return whole

    def _in_order(self, count: int) -> Tensor:
        """The oldest that is kept first."""
        assert self.all is not None
        if count <= self.room or count % self.room == 0:
            return self.all[..., : min(count, self.room), :]
        oldest = count % self.room
        return torch.cat((self.all[..., oldest:, :], self.all[..., :oldest, :]), dim=-2)


class Remembering:
    """A mechanism that looks at the keys of earlier calls as well; in the place of an attention's `own`."""

    def __init__(self, own: Mechanism, position: InsideAttention | None, context: int) -> None:
        self.own, self.position = own, position
        near = min(context, own.window // 2 + 1) if isinstance(own, Localized) else context
        self.keys, self.values, self.real = (Kept(near, rolling=near < context) for _ in range(3))
        self.watched = False
        self.seen: Float[Tensor, "B H K"] | None = None
        """What the newest query looked at, the oldest key first; where it is `watched`."""

    def forget(self) -> None:
        """Begin anew."""
        for one in (self.keys, self.values, self.real):
            one.forget()

    def mix(
        self, q: Float[Tensor, "B H T D"], k: Float[Tensor, "B H T D"], v: Float[Tensor, "B H T V"], mask: Mask,
        dropout: float = 0.0, extra: Tensor | None = None,
    ) -> Float[Tensor, "B H T V"]:  # fmt: skip
        """By the own mechanism, with fewer queries than keys."""
        k, v = self.keys.add(k), self.values.add(v)
        real = None if mask.keys is None else self.real.add(as_bool(mask.keys).unsqueeze(-1)).squeeze(-1)
        if self.watched:
            newest = q[..., -1:, :]
            self.seen = self.own.weights(newest, k, self.rules(newest, k, real, causal=False), extra).squeeze(-2)
        # a query at the last key has nothing ahead of it
        return self.own.mix(q, k, v, self.rules(q, k, real, causal=mask.causal and q.shape[-2] > 1), dropout, extra)

    def rules(self, q: Tensor, k: Tensor, real: Bool[Tensor, "B K"] | None, *, causal: bool) -> Mask:
        """Who may look at whom, and the biases of positions."""
        rules = Mask(causal=causal, keys=real)
        if self.position is None:
            return rules
        return replace(
            rules, bias=self.position.bias(q, k.shape[-2]), key_bias=self.position.key_bias(q, k.shape[-2])
        )


class Later(InsideAttention):
    """Positions inside attention, for queries and keys that do not begin at 0; biases are left to the mechanism."""

    def __init__(self, own: InsideAttention, clock: Clock) -> None:
        super().__init__()
        self.own, self.clock = own, clock

    def rotate(self, x: Float[Tensor, "B H T D"], first: int) -> Float[Tensor, "B H T D"]:
        """From where the clock stands."""
        return self.own.rotate(x, first + self.clock.at)


class Added(Module):
    """Positions that are added to the input, from where the clock stands: looked up, not computed again."""

    table: Float[Tensor, "K E"] | None = None

    def __init__(self, own: nn.Module, clock: Clock, context: int) -> None:
        super().__init__()
        self.own, self.clock, self.context = own, clock, context

    def forget(self) -> None:
        """Ask again: what is learned may have changed."""
        self.table = None

    def forward(self, x: Float[Tensor, "B T E"]) -> Float[Tensor, "B T E"]:
        """What the own positions add to zeros is what they add to anything."""
        if self.table is None:
            self.table = self.own(x.new_zeros(1, self.context, x.shape[-1])).squeeze(0)
        return x + self.table[self.clock.at : self.clock.at + x.shape[1]]


class Whole(Module):
    """The learned part of a mechanism, which is asked about all positions, not about the new ones alone."""

    def __init__(self, own: nn.Module, context: int) -> None:
        super().__init__()
        self.own, self.inputs = own, Kept(context)

    def forget(self) -> None:
        """Begin anew."""
        self.inputs.forget()

    def forward(self, x: Float[Tensor, "B T E"]) -> Tensor:
        """As if everything had come at once."""
        return self.own(self.inputs.add(x))


class Twin:
    """A network that remembers what it read."""

    def __init__(self, model: Built, context: int) -> None:
        self.model, self.clock = twin(model).eval(), Clock()
        self.attentions: dict[str, Remembering] = {}
        self.parts: list[Remembering | Whole | Added] = []
        for path, heads in self.model.named_modules():
            if isinstance(heads, Heads):
                self._remember(path, heads, context)
        for placed in model.network.layers:
            if placed.layer.role == "positions":
                own = getattr(self.model, placed.name)
                added = Added(own, self.clock, context)
                setattr(self.model, placed.name, added)
                self.parts.append(added)

    def _remember(self, path: str, heads: Heads, context: int) -> None:
        """Put the remembering mechanism, and what it needs, in the place of the attention's own."""
        memory = Remembering(heads.mechanism, heads.position, context)
        heads.mechanism = memory   # type: ignore[assignment]  # it does what a mechanism does
        self.attentions[path] = memory
        self.parts.append(memory)
        if heads.position is not None:
            heads.position = Later(heads.position, self.clock)
        if heads.learned is not None:
            whole = Whole(heads.learned, context)
            heads.learned = whole
            self.parts.append(whole)

    def forget(self) -> None:
        """Begin a new text."""
        self.clock.at = 0
        for one in self.parts:
            one.forget()

    def read(self, ids: Tensor) -> Float[Tensor, "B T V"]:
        """Some positions more: the scores after each of them."""
        scores, _ = self.model.through(self.model.network.layers, ids, None)
        self.clock.at += ids.shape[1]
        return scores


def twin(module: Any, done: dict[int, Any] | None = None) -> Any:
    """The same weights in modules of their own; what stands in two places, stands in two places again."""
    done = {} if done is None else done
    if id(module) not in done:
        made = done[id(module)] = copy.copy(module)
        made._modules = {name: None if one is None else twin(one, done) for name, one in module._modules.items()}
    return done[id(module)]

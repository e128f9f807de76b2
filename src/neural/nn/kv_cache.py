"""Key/value cache for incremental decoding.

`CachedModel(model, context)` is a copy of a network that shares its weights and reads only new
positions. Its attentions cache keys and values in preallocated buffers, and its positional
encodings continue after the positions of the last call. The network itself is not changed.

No layer is implemented twice. The copy has the same modules, but parts of the attention modules are
wrapped: the mechanism (mechanism.py: it computes attention from queries, keys and values) gets the
cached keys and values too, and the positional encoding (position.py) gets an offset.

Axes: B samples, T new positions, K all positions, H heads, D head width, V width of values (in
logits: vocabulary), E model width.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from neural.nn.attention.localized import Localized
from neural.nn.build import NetworkModule
from neural.nn.lazy_torch import Module, nn, torch
from neural.nn.mask import Mask, as_bool
from neural.nn.mechanism import Mechanism
from neural.nn.multi_head_attention import MultiHeadAttentionModule
from neural.nn.position import AttentionPositions

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor


class PositionOffset:
    """Number of positions read before the current call; one object for all modules of a model."""

    value: int = 0


class KVBuffer:
    """Preallocated key or value cache, filled along the time axis (dim -2).

    With `rolling=True` it is a ring buffer of the newest `capacity` positions: position p is stored
    at p mod `capacity`.
    """

    def __init__(self, capacity: int, *, rolling: bool = False) -> None:
        self.capacity, self.rolling = capacity, rolling
        self.storage: Tensor | None = None
        self.count = 0
        """Positions appended since the last reset."""

    def reset(self) -> None:
        """Empty the cache; the allocated tensor is reused."""
        self.count = 0

    def append(self, new: Float[Tensor, "*any T D"]) -> Float[Tensor, "*any K D"]:
        """Append positions; returns all cached positions in time order, `new` at the end.

        A rolling buffer returns the positions before `new` that it still holds, then `new`.
        """
        shape = (*new.shape[:-2], self.capacity, new.shape[-1])
        if self.storage is None or self.storage.shape != shape or self.storage.dtype != new.dtype:
            self.storage = new.new_empty(shape)
        if self.rolling:
            return self._append_rolling(new)
        first, self.count = self.count, self.count + new.shape[-2]
        if self.count > self.capacity:
            raise ValueError(f"the cache holds {self.capacity} positions, got {self.count}")
        self.storage[..., first : self.count, :] = new
        return self.storage[..., : self.count, :]

    def _append_rolling(self, new: Tensor) -> Tensor:
        """`append` of a ring buffer."""
        assert self.storage is not None
        first, self.count = self.count, self.count + new.shape[-2]
        if new.shape[-2] == 1:  # overwrite the oldest position
            self.storage[..., first % self.capacity, :] = new[..., 0, :]
            return self._in_time_order(self.count)
        combined = torch.cat((self._in_time_order(first), new), dim=-2)
        newest = combined[..., -self.capacity :, :]
        # Roll so that position p is stored at p mod capacity again.
        self.storage[..., : newest.shape[-2], :] = newest.roll(
            (self.count - newest.shape[-2]) % self.capacity, dims=-2
        )
        return combined

    def _in_time_order(self, count: int) -> Tensor:
        """The stored positions, the oldest first, after `count` positions were appended."""
        assert self.storage is not None
        if count <= self.capacity or count % self.capacity == 0:
            return self.storage[..., : min(count, self.capacity), :]
        oldest = count % self.capacity
        return torch.cat((self.storage[..., oldest:, :], self.storage[..., :oldest, :]), dim=-2)


class CachedMechanism:
    """Wraps the mechanism of an attention module: attends to the keys of earlier calls as well."""

    def __init__(
        self, mechanism: Mechanism, position: AttentionPositions | None, context: int
    ) -> None:
        self.mechanism, self.position = mechanism, position
        # A window is centred at the query: in causal attention only its earlier half is visible.
        capacity = (
            min(context, mechanism.window // 2 + 1) if isinstance(mechanism, Localized) else context
        )
        self.keys, self.values, self.key_mask = (
            KVBuffer(capacity, rolling=capacity < context) for _ in range(3)
        )
        self.capture_weights = False
        self.last_weights: Float[Tensor, "B H K"] | None = None
        """Weights of the newest query, the oldest key first; set if `capture_weights`."""

    def reset(self) -> None:
        """Empty the caches."""
        for buffer in (self.keys, self.values, self.key_mask):
            buffer.reset()

    def attend(
        self,
        q: Float[Tensor, "B H T D"],
        k: Float[Tensor, "B H T D"],
        v: Float[Tensor, "B H T V"],
        mask: Mask,
        dropout: float = 0.0,
        extra: Tensor | None = None,
    ) -> Float[Tensor, "B H T V"]:
        """`attend` of the wrapped mechanism, for new queries and all cached keys."""
        k, v = self.keys.append(k), self.values.append(v)
        key_mask = (
            None
            if mask.keys is None
            else self.key_mask.append(as_bool(mask.keys).unsqueeze(-1)).squeeze(-1)
        )
        if self.capture_weights:
            newest = q[..., -1:, :]
            self.last_weights = self.mechanism.weights(
                newest, k, self.build_mask(newest, k, key_mask, causal=False), extra
            ).squeeze(-2)
        # A single query is at the last key: there are no later keys to mask.
        return self.mechanism.attend(
            q,
            k,
            v,
            self.build_mask(q, k, key_mask, causal=mask.causal and q.shape[-2] > 1),
            dropout,
            extra,
        )

    def build_mask(
        self, q: Tensor, k: Tensor, key_mask: Bool[Tensor, "B K"] | None, *, causal: bool
    ) -> Mask:
        """The mask over all cached keys, with the biases of the positions."""
        mask = Mask(causal=causal, keys=key_mask)
        if self.position is None:
            return mask
        return replace(
            mask,
            bias=self.position.bias(q, k.shape[-2]),
            key_bias=self.position.key_bias(q, k.shape[-2]),
        )


class OffsetPositions(AttentionPositions):
    """Wraps a positional encoding inside attention: adds the offset to rotations.

    Biases are None here: `CachedMechanism` adds them, because only it has all keys.
    """

    def __init__(self, positions: AttentionPositions, offset: PositionOffset) -> None:
        super().__init__()
        self.positions, self.offset = positions, offset

    def rotate(self, x: Float[Tensor, "B H T D"], offset: int) -> Float[Tensor, "B H T D"]:
        """Rotation by positions after the cached ones."""
        return self.positions.rotate(x, offset + self.offset.value)


class CachedPositions(Module):
    """Wraps an additive positional encoding: adds a precomputed table from the offset on."""

    table: Float[Tensor, "K E"] | None = None

    def __init__(self, positions: nn.Module, offset: PositionOffset, context: int) -> None:
        super().__init__()
        self.positions, self.offset, self.context = positions, offset, context

    def reset(self) -> None:
        """Drop the table: learned positions may have changed."""
        self.table = None

    def forward(self, x: Float[Tensor, "B T E"]) -> Float[Tensor, "B T E"]:
        """x plus rows of the table, which is the output of the wrapped encoding for zeros."""
        if self.table is None:
            self.table = self.positions(x.new_zeros(1, self.context, x.shape[-1])).squeeze(0)
        return x + self.table[self.offset.value : self.offset.value + x.shape[1]]


class CachedLearnedModule(Module):
    """Wraps the module with a mechanism's own parameters (`Mechanism.build_learned`).

    That module needs the inputs of all positions, not only of new ones: they are cached here.
    """

    def __init__(self, module: nn.Module, context: int) -> None:
        super().__init__()
        self.module, self.inputs = module, KVBuffer(context)

    def reset(self) -> None:
        """Empty the cache."""
        self.inputs.reset()

    def forward(self, x: Float[Tensor, "B T E"]) -> Tensor:
        """Output for all positions since the reset."""
        return self.module(self.inputs.append(x))


class CachedModel:
    """A copy of a network with shared weights and a key/value cache."""

    def __init__(self, model: NetworkModule, context: int) -> None:
        self.model, self.offset = copy_sharing_weights(model).eval(), PositionOffset()
        self.attentions: dict[str, CachedMechanism] = {}
        self.stateful_modules: list[CachedMechanism | CachedLearnedModule | CachedPositions] = []
        for path, module in self.model.named_modules():
            if isinstance(module, MultiHeadAttentionModule):
                self._attach_cache(path, module, context)
        # Layers that add positions to the input; those inside attention are wrapped above.
        for placed_layer in model.network.layers:
            if placed_layer.layer.role == "positions":
                positions = CachedPositions(
                    getattr(self.model, placed_layer.name), self.offset, context
                )
                setattr(self.model, placed_layer.name, positions)
                self.stateful_modules.append(positions)

    def _attach_cache(self, path: str, module: MultiHeadAttentionModule, context: int) -> None:
        """Wrap mechanism, positions and learned module of the attention module at `path`."""
        mechanism = CachedMechanism(module.mechanism, module.position, context)
        module.mechanism = mechanism  # type: ignore[assignment]  # duck-typed mechanism
        self.attentions[path] = mechanism
        self.stateful_modules.append(mechanism)
        if module.position is not None:
            module.position = OffsetPositions(module.position, self.offset)
        if module.learned is not None:
            learned = CachedLearnedModule(module.learned, context)
            module.learned = learned
            self.stateful_modules.append(learned)

    def reset(self) -> None:
        """Empty all caches, for a new text."""
        self.offset.value = 0
        for module in self.stateful_modules:
            module.reset()

    def forward(self, ids: Tensor) -> Float[Tensor, "B T V"]:
        """Read new positions; returns the logits after each of them."""
        logits, _ = self.model.run_layers(self.model.network.layers, ids, None)
        self.offset.value += ids.shape[1]
        return logits


def copy_sharing_weights(module: Any, memo: dict[int, Any] | None = None) -> Any:
    """A copy of the module tree that shares parameters and buffers with the original.

    A module that occurs twice in the tree is copied once and occurs twice in the copy.
    """
    memo = {} if memo is None else memo
    if id(module) not in memo:
        copied = memo[id(module)] = copy.copy(module)
        copied._modules = {
            name: None if child is None else copy_sharing_weights(child, memo)
            for name, child in module._modules.items()
        }
    return memo[id(module)]

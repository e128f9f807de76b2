"""Sparse attention by a fixed pattern: a window, a few positions for all, every n-th key, and random blocks.

Window and global positions are the Longformer (Beltagy et al., 2020), random blocks make it BigBird (Zaheer et al.,
2020), strided keys are the fixed pattern of the sparse transformer (Child et al., 2019). Who sees whom depends on
positions counted from the start alone: a longer text keeps the pattern of a shorter one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from neural.language.declaration import count
from neural.language.shapes import Cost
from neural.modules.attention.self import Self, fused
from neural.modules.late import functional, torch
from neural.modules.mask import Mask, as_bool
from neural.modules.mechanism import Mechanism
from neural.modules.rowwise import rows_of

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor

WORTH = 4
"""Gathering the keys of a block pays when they are fewer than all keys by this factor, forward and backward."""


class Sparse(Mechanism):
    """Every query looks at a window, at the global positions, at every `stride`-th key and at random earlier blocks."""

    self_attention_only: ClassVar[bool] = True

    window: int = count(
        "Width of the window, the query's own position in its middle; a causal block sees its earlier half.",
        default=7, odd=True, shown=True,
    )
    global_tokens: int = count("First positions that see all and are seen by all.", default=1, at_least=0)
    stride: int | None = count("Every so many keys one that all see, from the first on.", default=None)
    random_blocks: int = count("Blocks that each block draws from itself and those before it.", default=0, at_least=0)
    block: int = count("Positions of a block.", default=64)
    seed: int = count("Another one, other random blocks.", default=0, at_least=0)

    def weights(
        self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], mask: Mask, extra: Tensor | None = None
    ) -> Float[Tensor, "B H Q K"]:
        """The softmax over the pattern alone."""
        return Self().weights(q, k, self.as_softmax(q, k, mask))

    def mix(
        self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], v: Float[Tensor, "B H K V"], mask: Mask,
        dropout: float = 0.0, extra: Tensor | None = None,
    ) -> Float[Tensor, "B H Q V"]:  # fmt: skip
        """Blocks of queries, each with the keys that any of them may see; short ones by the fused kernel."""
        simple = replace(mask, keys=None).order_only and mask.reach is None
        if simple and self.gathers(q.shape[-2], k.shape[-2]):
            return self.gathered(q, k, v, mask, dropout)
        return fused(q, k, v, self.as_softmax(q, k, mask), dropout)

    def as_softmax(
        self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], mask: Mask, extra: Tensor | None = None
    ) -> Mask:
        """The mask and the pattern."""
        queries, keys = q.shape[-2], k.shape[-2]
        at = torch.arange(keys - queries, keys, device=q.device).unsqueeze(-1)
        pattern = self.sees(at, torch.arange(keys, device=q.device))[None, None]
        return replace(mask, pairs=pattern if mask.pairs is None else pattern & as_bool(mask.pairs))

    def cost(self, heads: int, queries: int, keys: int, width: int) -> Cost:
        """Two products with the keys that a block gathers; of full attention where gathering does not pay."""
        if not self.gathers(queries, keys):
            # the result before and after empty rows are zeroed, and the pattern, which all examples of a batch share
            masked = Cost(activations=heads * queries * width + queries * keys // 4)
            return Self().cost(heads, queries, keys, width) + masked
        blocks, some = -(-keys // self.block), self.gathered_keys(keys)
        pairs = blocks * self.block * some + min(self.global_tokens, keys) * keys
        copies = 2 * blocks * some * width + queries * (4 * width + 1)
        kept = heads * copies + blocks * self.block * some // 4   # the pattern takes a byte per pair
        return Cost(multiply_adds=2 * heads * pairs * width, activations=kept)

    @classmethod
    def tiny(cls) -> Mechanism:
        """A little of everything."""
        return cls(window=3, global_tokens=1, stride=4, random_blocks=1, block=2)

    def sees(self, at: Int[Tensor, "... Q 1"], key: Int[Tensor, "... 1 K"]) -> Bool[Tensor, "... Q K"]:
        """Whether a query at one position sees a key at another: the pattern."""
        seen = ((key - at).abs() <= self.window // 2) | self.for_all(key) | ((at >= 0) & (at < self.global_tokens))
        if self.random_blocks:
            drawn = self.drawn(at.squeeze(-1).clamp(min=0) // self.block).unsqueeze(-2)
            seen = seen | (key.unsqueeze(-1) // self.block == drawn).any(dim=-1)
        return seen

    def for_all(self, key: Int[Tensor, "*any"]) -> Bool[Tensor, "*any"]:
        """Whether a key is seen from everywhere."""
        first = key < self.global_tokens
        return first if self.stride is None else first | (key % self.stride == 0)

    def drawn(self, block: Int[Tensor, "*any"]) -> Int[Tensor, "*any R"]:
        """The random blocks of a block, none after itself; a mixing of bits, so that each depends on nothing else."""
        block = block.unsqueeze(-1)
        draw = torch.arange(self.random_blocks, device=block.device)
        bits = block * 0x1E3779B1 + draw * 0x5EBCA6B + self.seed * 0x2B2AE35
        for shift, factor in ((16, 0x21F0AAAD), (15, 0x35A2D97), (15, 0x2C1B3C6D)):
            bits = bits & 0x7FFFFFFF
            bits = (bits ^ (bits >> shift)) * factor
        return (bits & 0x7FFFFFFF) % (block + 1)

    def gathers(self, queries: int, keys: int) -> bool:
        """Whether a block sees so few keys that gathering them pays."""
        return queries == keys and WORTH * self.gathered_keys(keys) <= keys

    def gathered_keys(self, keys: int) -> int:
        """How many keys a block of queries gathers: those around it, those for all, and its random blocks."""
        around = self.block + 2 * (self.window // 2)
        return around + len(self.columns(keys)) + self.random_blocks * self.block

    def columns(self, keys: int) -> list[int]:
        """The positions that are seen from everywhere."""
        first = list(range(min(self.global_tokens, keys)))
        return first if self.stride is None else first + [j for j in range(0, keys, self.stride) if j >= len(first)]

    def gathered(
        self, q: Float[Tensor, "B H T D"], k: Float[Tensor, "B H T D"], v: Float[Tensor, "B H T V"], mask: Mask,
        dropout: float,
    ) -> Float[Tensor, "B H T V"]:  # fmt: skip
        """Each block of queries with a copy of its keys; the few queries that see everything apart."""
        time, size, reach, device = q.shape[-2], self.block, self.window // 2, q.device
        blocks = -(-time // size)
        rest = blocks * size - time
        number = torch.arange(blocks, device=device).unsqueeze(-1)
        columns = torch.tensor(self.columns(time), dtype=torch.long, device=device)
        drawn = self.drawn(number.squeeze(-1))

        # where the gathered keys of each block stand, and whether they are there for the first time
        around = number * size + torch.arange(-reach, size + reach, device=device)
        apart = columns.expand(blocks, -1)
        chance = (drawn.unsqueeze(-1) * size + torch.arange(size, device=device)).flatten(1)
        again = (drawn.unsqueeze(-1) == drawn.unsqueeze(-2)).tril(-1).any(dim=-1).repeat_interleave(size, dim=-1)
        key = torch.cat((around, apart, chance), dim=-1)
        near = (key >= around[:, :1]) & (key <= around[:, -1:])
        fresh = torch.cat((
            torch.ones_like(around, dtype=torch.bool), ~near[:, around.shape[1] : around.shape[1] + apart.shape[1]],
            ~near[:, around.shape[1] + apart.shape[1] :] & ~self.for_all(chance) & ~again,
        ), dim=-1)  # fmt: skip

        # who sees whom among them
        at = (number * size + torch.arange(size, device=device)).unsqueeze(-1)
        key, fresh = key.unsqueeze(-2), (fresh & (key >= 0) & (key < time)).unsqueeze(-2)
        kept = self.sees(at, key) & fresh
        kept = (kept & (key <= at) if mask.causal else kept)[None]
        if mask.keys is not None:
            kept = kept & as_bool(mask.keys)[:, key.clamp(0, time - 1)]
        kept = kept.expand(len(q), -1, -1, -1).flatten(0, 1).unsqueeze(1)
        seen = kept.any(dim=-1, keepdim=True)

        def gather(x: Float[Tensor, "B H T D"]) -> Float[Tensor, "BN H M D"]:
            beside = functional.pad(x, (0, 0, reach, reach + rest)).unfold(-2, size + 2 * reach, size).transpose(-1, -2)
            shared = x.index_select(-2, columns).unsqueeze(2).expand(-1, -1, blocks, -1, -1)
            cut = functional.pad(x, (0, 0, 0, rest)).unflatten(-2, (blocks, size))
            random = cut.index_select(2, drawn.flatten()).unflatten(2, (blocks, -1)).flatten(3, 4)
            return torch.cat([one.transpose(1, 2) for one in (beside, shared, random)], dim=-2).flatten(0, 1)

        own = functional.pad(q, (0, 0, 0, rest)).unflatten(-2, (blocks, size)).transpose(1, 2).flatten(0, 1)
        attend = functional.scaled_dot_product_attention
        out = attend(own, gather(k), gather(v), attn_mask=kept | ~seen, dropout_p=dropout).masked_fill(~seen, 0)
        out = out.unflatten(0, (len(q), blocks)).transpose(1, 2).flatten(2, 3)[..., :time, :]
        few = min(self.global_tokens, time)
        if not few:
            return out
        whole = fused(q[..., :few, :], k, v, rows_of(mask, 0, few, time, time, time, device), dropout)
        return torch.cat((whole, out[..., few:, :]), dim=-2)

"""Sparse attention by a fixed pattern: window, global positions, strided keys, random blocks.

Window and global positions are the Longformer (Beltagy et al., 2020); with random blocks it is
BigBird (Zaheer et al., 2020); strided keys are the fixed pattern of the sparse transformer (Child
et al., 2019). Positions are counted from the start of the text, so that the pattern of a text does
not change if the text is continued. To gather keys is to copy those that a block of queries sees.

A mechanism (mechanism.py): `weights` defines it, `attend` computes `weights @ v` fast, and `cost`
counts its multiply-adds and the values saved for the backward pass. `Self` is plain softmax
attention (self.py). `extra` is unused: it is for mechanisms with learned parameters.

A `Mask` (mask.py) combines causality, padding (`keys`), a largest distance (`reach`), packed
documents (`segments`), any other rule (`pairs`) and biases of the scores.

Axes: B batch, H heads, Q queries, K keys, D head width, V width of values.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from neural.language.declaration import int_field
from neural.language.shapes import Cost
from neural.nn.attention.self import Self, fused_attention
from neural.nn.lazy_torch import functional, torch
from neural.nn.mask import Mask, as_bool
from neural.nn.mechanism import Mechanism
from neural.nn.positionwise import slice_mask

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor

MIN_GATHER_RATIO = 4
"""Keys are gathered only if the sequence has at least this many times as many keys as one block
gathers; below that, gathering is slower than full attention."""


class Sparse(Mechanism):
    """Attention to a window, global positions, every `stride`-th key and random earlier blocks."""

    self_attention_only: ClassVar[bool] = True  # not for cross-attention: it compares positions

    window: int = int_field(
        "Width of the window, centred at the query; with causal attention, only the half before "
        "the query is seen.",
        default=7,
        odd=True,
        shown=True,  # `repr` prints the argument even if it has its default
    )
    global_tokens: int = int_field(
        "Number of first positions that see all positions and are seen by all.",
        default=1,
        at_least=0,
    )
    stride: int | None = int_field(
        "Distance between keys that all queries see, from the first key on.", default=None
    )
    random_blocks: int = int_field(
        "Number of random blocks for each block, drawn from itself and earlier blocks.",
        default=0,
        at_least=0,
    )
    block: int = int_field("Number of positions of a block.", default=64)
    seed: int = int_field("Seed of the random blocks.", default=0, at_least=0)

    def weights(
        self,
        q: Float[Tensor, "B H Q D"],
        k: Float[Tensor, "B H K D"],
        mask: Mask,
        extra: Tensor | None = None,
    ) -> Float[Tensor, "B H Q K"]:
        """The softmax over the pattern."""
        return Self().weights(q, k, self.softmax_mask(q, k, mask))

    def attend(
        self,
        q: Float[Tensor, "B H Q D"],
        k: Float[Tensor, "B H K D"],
        v: Float[Tensor, "B H K V"],
        mask: Mask,
        dropout: float = 0.0,
        extra: Tensor | None = None,
    ) -> Float[Tensor, "B H Q V"]:
        """Blocks of queries with their gathered keys; for short sequences, torch's fused kernel."""
        # Whether the mask has only causality and padding: no other rules and no biases.
        is_simple = replace(mask, keys=None).is_order_only and mask.reach is None
        if is_simple and self.should_gather(q.shape[-2], k.shape[-2]):
            return self.attend_gathered(q, k, v, mask, dropout)
        return fused_attention(q, k, v, self.softmax_mask(q, k, mask), dropout)

    def softmax_mask(
        self,
        q: Float[Tensor, "B H Q D"],
        k: Float[Tensor, "B H K D"],
        mask: Mask,
        extra: Tensor | None = None,
    ) -> Mask:
        """The mask combined with the pattern."""
        queries, keys = q.shape[-2], k.shape[-2]
        positions = torch.arange(keys - queries, keys, device=q.device).unsqueeze(-1)
        pattern = self.is_visible(positions, torch.arange(keys, device=q.device))[None, None]
        return replace(mask, pairs=pattern if mask.pairs is None else pattern & as_bool(mask.pairs))

    def cost(self, heads: int, queries: int, keys: int, width: int) -> Cost:
        """Two products with the gathered keys of each block; else the cost of full attention."""
        if not self.should_gather(queries, keys):
            # Saved besides: the output before rows without keys are zeroed, and the pattern, one
            # byte per pair, in units of 4-byte floats.
            masked = Cost(activations=heads * queries * width + queries * keys // 4)
            return Self().cost(heads, queries, keys, width) + masked
        blocks, gathered = -(-keys // self.block), self.count_gathered_keys(keys)
        pairs = blocks * self.block * gathered + min(self.global_tokens, keys) * keys
        # Saved per head: the gathered keys and values of all blocks; of each query, its copy in a
        # block, its output before and after it is zeroed and in the layout of the result, and the
        # log-sum-exp of its scores. This is an estimate: torch frees one of the three outputs, but
        # its CPU kernel saves the pattern (`keep` in `attend_gathered`) as 4-byte floats.
        copies = 2 * blocks * gathered * width + queries * (4 * width + 1)
        pattern = blocks * self.block * gathered // 4  # a byte per pair, in 32-bit values
        return Cost(multiply_adds=2 * heads * pairs * width, activations=heads * copies + pattern)

    @classmethod
    def example(cls) -> Mechanism:
        """An instance for tests, with all four kinds of keys."""
        return cls(window=3, global_tokens=1, stride=4, random_blocks=1, block=2)

    def is_visible(
        self, query: Int[Tensor, "... Q 1"], key: Int[Tensor, "... 1 K"]
    ) -> Bool[Tensor, "... Q K"]:
        """The pattern: whether a query at one position sees a key at another.

        The last query is at the position of the last key. With more queries than keys, the first
        queries have negative positions: they are not global and use the random blocks of block 0.
        """
        visible = (
            ((key - query).abs() <= self.window // 2)
            | self.is_global(key)
            | ((query >= 0) & (query < self.global_tokens))
        )
        if self.random_blocks:
            query_block = query.squeeze(-1).clamp(min=0) // self.block
            random_blocks = self.draw_random_blocks(query_block).unsqueeze(-2)
            visible = visible | (key.unsqueeze(-1) // self.block == random_blocks).any(dim=-1)
        return visible

    def is_global(self, key: Int[Tensor, "*any"]) -> Bool[Tensor, "*any"]:
        """Whether all queries see the key at a position: first positions and strided keys."""
        first = key < self.global_tokens
        return first if self.stride is None else first | (key % self.stride == 0)

    def draw_random_blocks(self, block: Int[Tensor, "*any"]) -> Int[Tensor, "*any R"]:
        """Indices of the random blocks of each block index, none later than the block itself.

        They are an integer hash of (block, number of the draw, seed), not draws of a generator: so
        they do not depend on the length of the text or on other blocks.
        """
        block = block.unsqueeze(-1)
        draw = torch.arange(self.random_blocks, device=block.device)
        bits = block * 0x1E3779B1 + draw * 0x5EBCA6B + self.seed * 0x2B2AE35
        for shift, factor in ((16, 0x21F0AAAD), (15, 0x35A2D97), (15, 0x2C1B3C6D)):
            bits = bits & 0x7FFFFFFF
            bits = (bits ^ (bits >> shift)) * factor
        return (bits & 0x7FFFFFFF) % (block + 1)

    def should_gather(self, queries: int, keys: int) -> bool:
        """Whether gathering is faster: a block sees few keys, and all positions are queries."""
        return queries == keys and MIN_GATHER_RATIO * self.count_gathered_keys(keys) <= keys

    def count_gathered_keys(self, keys: int) -> int:
        """Keys that a block gathers: its window, the global positions and its random blocks."""
        window_keys = self.block + 2 * (self.window // 2)
        return window_keys + len(self.global_positions(keys)) + self.random_blocks * self.block

    def global_positions(self, keys: int) -> list[int]:
        """The positions that all queries see."""
        first = list(range(min(self.global_tokens, keys)))
        return (
            first
            if self.stride is None
            else first + [j for j in range(0, keys, self.stride) if j >= len(first)]
        )

    def attend_gathered(
        self,
        q: Float[Tensor, "B H T D"],
        k: Float[Tensor, "B H T D"],
        v: Float[Tensor, "B H T V"],
        mask: Mask,
        dropout: float,
    ) -> Float[Tensor, "B H T V"]:
        """Attention of each block to a copy of its keys; global queries are computed separately.

        Shapes below: N blocks, M gathered keys per block.
        """
        time, size, reach, device = q.shape[-2], self.block, self.window // 2, q.device
        blocks = -(-time // size)
        padding = blocks * size - time
        block_index = torch.arange(blocks, device=device).unsqueeze(-1)
        global_index = torch.tensor(self.global_positions(time), dtype=torch.long, device=device)
        drawn = self.draw_random_blocks(block_index.squeeze(-1))  # (N, random_blocks)

        # Positions of the gathered keys of each block: window, global positions, random blocks.
        window_keys = block_index * size + torch.arange(-reach, size + reach, device=device)
        global_keys = global_index.expand(blocks, -1)
        random_keys = (drawn.unsqueeze(-1) * size + torch.arange(size, device=device)).flatten(1)
        key = torch.cat((window_keys, global_keys, random_keys), dim=-1)

        # A key that was gathered twice must count once: the first copy stays.
        is_drawn_before = (
            (drawn.unsqueeze(-1) == drawn.unsqueeze(-2))
            .tril(-1)
            .any(dim=-1)
            .repeat_interleave(size, dim=-1)
        )
        in_window = (key >= window_keys[:, :1]) & (key <= window_keys[:, -1:])
        num_window, num_global = window_keys.shape[1], global_keys.shape[1]
        is_first_copy = torch.cat(
            (
                torch.ones_like(window_keys, dtype=torch.bool),
                ~in_window[:, num_window : num_window + num_global],
                ~in_window[:, num_window + num_global :]
                & ~self.is_global(random_keys)
                & ~is_drawn_before,
            ),
            dim=-1,
        )

        # The mask between the queries of a block and its gathered keys.
        query = (block_index * size + torch.arange(size, device=device)).unsqueeze(-1)
        is_valid = (is_first_copy & (key >= 0) & (key < time)).unsqueeze(-2)
        key = key.unsqueeze(-2)
        keep = self.is_visible(query, key) & is_valid
        keep = (keep & (key <= query) if mask.causal else keep)[None]
        if mask.keys is not None:
            keep = keep & as_bool(mask.keys)[:, key.clamp(0, time - 1)]
        keep = keep.expand(len(q), -1, -1, -1).flatten(0, 1).unsqueeze(1)
        has_keys = keep.any(dim=-1, keepdim=True)

        def gather(x: Float[Tensor, "B H T D"]) -> Float[Tensor, "BN H M D"]:
            """Keys or values in the order of `key`, blocks in the batch dimension."""
            window = (
                functional.pad(x, (0, 0, reach, reach + padding))
                .unfold(-2, size + 2 * reach, size)
                .transpose(-1, -2)
            )
            shared = x.index_select(-2, global_index).unsqueeze(2).expand(-1, -1, blocks, -1, -1)
            split = functional.pad(x, (0, 0, 0, padding)).unflatten(-2, (blocks, size))
            random = split.index_select(2, drawn.flatten()).unflatten(2, (blocks, -1)).flatten(3, 4)
            return torch.cat(
                [tensor.transpose(1, 2) for tensor in (window, shared, random)], dim=-2
            ).flatten(0, 1)

        query_blocks = (
            functional.pad(q, (0, 0, 0, padding))
            .unflatten(-2, (blocks, size))
            .transpose(1, 2)
            .flatten(0, 1)
        )
        attend = functional.scaled_dot_product_attention
        out = attend(
            query_blocks, gather(k), gather(v), attn_mask=keep | ~has_keys, dropout_p=dropout
        ).masked_fill(~has_keys, 0)
        out = out.unflatten(0, (len(q), blocks)).transpose(1, 2).flatten(2, 3)[..., :time, :]
        num_global = min(self.global_tokens, time)
        if not num_global:
            return out
        # Global queries see all keys, not only the gathered ones.
        global_mask = slice_mask(
            mask,
            first=0,
            last=num_global,
            visible_keys=time,
            queries=time,
            keys=time,
            device=device,
        )
        global_out = fused_attention(q[..., :num_global, :], k, v, global_mask, dropout)
        return torch.cat((global_out, out[..., num_global:, :]), dim=-2)

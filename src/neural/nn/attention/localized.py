"""Local attention inside a window (Luong et al., 2015, section 3.2, without the learned centre).

A mechanism (mechanism.py): `weights` defines it, `attend` computes `weights @ v` fast, and `cost`
counts its multiply-adds and the values saved for the backward pass. `Self` is plain softmax
attention (self.py). `extra` is unused: it is for mechanisms with learned parameters.

A `Mask` (mask.py) combines causality, padding (`keys`), a largest distance (`reach`), packed
documents (`segments`), any other rule (`pairs`) and biases of the scores.

Axes: B batch, H heads, Q queries, K keys, D head width, V width of values.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, ClassVar

from neural.language.declaration import int_field
from neural.language.shapes import Cost
from neural.nn.attention.self import Self, fused_attention
from neural.nn.kernel_dispatch import use_kernel
from neural.nn.lazy_torch import functional, torch
from neural.nn.mask import Mask
from neural.nn.mechanism import Mechanism

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

BLOCK_SIZE = 32
"""Queries per block if the compiled kernel does not run; the fastest for windows of 7 to 64."""


def _load_kernel() -> ModuleType:
    """The module with a compiled replacement of `attend` (kernel_dispatch.py)."""
    from neural.nn.kernels import localized

    return localized


class Localized(Mechanism):
    """Scaled dot-product attention to the keys at most `window // 2` positions away."""

    self_attention_only: ClassVar[bool] = True  # not for cross-attention: it compares positions
    spreads_nan: ClassVar[bool] = True

    window: int = int_field(
        "Width of the window, centred at the query; with causal attention, only the half before "
        "the query is seen.",
        default=7,
        odd=True,
        shown=True,  # `repr` prints the argument even if it has its default
    )

    def weights(
        self,
        q: Float[Tensor, "B H Q D"],
        k: Float[Tensor, "B H K D"],
        mask: Mask,
        extra: Tensor | None = None,
    ) -> Float[Tensor, "B H Q K"]:
        """The softmax over the window."""
        return Self().weights(q, k, self.softmax_mask(q, k, mask))

    @use_kernel(_load_kernel)
    def attend(
        self,
        q: Float[Tensor, "B H Q D"],
        k: Float[Tensor, "B H K D"],
        v: Float[Tensor, "B H K V"],
        mask: Mask,
        dropout: float = 0.0,
        extra: Tensor | None = None,
    ) -> Float[Tensor, "B H Q V"]:
        """Blocks of queries, each with the keys around it: O(n·w) for n positions, window w."""
        window_mask = self.softmax_mask(q, k, mask)
        tensors = (window_mask.segments, window_mask.pairs, window_mask.bias, window_mask.key_bias)
        # The keys around all blocks would be more than all keys of a short sequence.
        is_short = q.shape[-2] <= 2 * max(BLOCK_SIZE, window_mask.reach or 0)
        has_tensors = any(tensor is not None for tensor in tensors)
        if has_tensors or q.shape[-2] != k.shape[-2] or is_short:
            return fused_attention(q, k, v, window_mask, dropout)
        return attend_in_blocks(q, k, v, window_mask, dropout)

    def softmax_mask(
        self,
        q: Float[Tensor, "B H Q D"],
        k: Float[Tensor, "B H K D"],
        mask: Mask,
        extra: Tensor | None = None,
    ) -> Mask:
        """The mask limited to the window."""
        return mask.limit_reach(self.window // 2)

    def cost(self, heads: int, queries: int, keys: int, width: int) -> Cost:
        """Two products of each query with the keys of its window.

        Saves the output; the backward pass computes the weights again.
        """
        window = min(self.window, keys)
        return Cost(
            multiply_adds=2 * heads * queries * window * width,
            activations=heads * queries * width,
        )

    @classmethod
    def example(cls) -> Mechanism:
        """An instance for tests."""
        return cls(window=3)


def attend_in_blocks(
    q: Float[Tensor, "B H T D"],
    k: Float[Tensor, "B H T D"],
    v: Float[Tensor, "B H T V"],
    mask: Mask,
    dropout: float,
) -> Float[Tensor, "B H T V"]:
    """Attention of blocks of queries, each to the keys that any query of the block may see."""
    assert mask.reach is not None
    time, reach = q.shape[-2], mask.reach
    size = max(BLOCK_SIZE, reach)
    blocks = -(-time // size)
    padding = blocks * size - time
    q = functional.pad(q, (0, 0, 0, padding)).unflatten(-2, (blocks, size))
    k, v = (functional.pad(tensor, (0, 0, reach, reach + padding)) for tensor in (k, v))
    k, v = (tensor.unfold(-2, size + 2 * reach, size).transpose(-1, -2) for tensor in (k, v))
    # Position of each gathered key minus that of each query of a block; the same for all blocks.
    ahead = torch.arange(-reach, size + reach, device=q.device) - torch.arange(
        size, device=q.device
    ).unsqueeze(-1)
    keep = (ahead <= 0) & (ahead >= -reach) if mask.causal else ahead.abs() <= reach
    key_mask = (
        mask.keys
        if mask.keys is not None
        else torch.ones(1, time, dtype=torch.bool, device=q.device)
    )
    block_key_mask = functional.pad(key_mask != 0, (reach, reach + padding)).unfold(
        -1, size + 2 * reach, size
    )
    keep = keep & block_key_mask[:, None, :, None, :]
    has_keys = keep.any(dim=-1, keepdim=True)
    out = functional.scaled_dot_product_attention(
        q, k, v, attn_mask=keep | ~has_keys, dropout_p=dropout
    )
    return out.masked_fill(~has_keys, 0).flatten(2, 3)[..., :time, :]

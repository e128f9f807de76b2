"""Additive attention (Bahdanau et al., 2015): a small network computes the scores of q and k.

A mechanism (mechanism.py): `weights` defines it, `attend` computes `weights @ v` fast, and `cost`
counts its multiply-adds and the values saved for the backward pass. `extra` is the output of the
mechanism's learned module.

Axes: B batch, H heads, Q queries, K keys, D head width, V width of values.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

from neural.language.shapes import Cost
from neural.nn.attention.self import masked_softmax
from neural.nn.kernel_dispatch import use_kernel
from neural.nn.lazy_torch import Module, nn, torch
from neural.nn.mask import Mask
from neural.nn.mechanism import Mechanism
from neural.nn.positionwise import attend_in_chunks

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


def _load_kernel() -> ModuleType:
    """The compiled form of `attend`, imported at its first use."""
    from neural.nn.kernels import additive

    return additive


class Additive(Mechanism):
    """Weights are the softmax of u · tanh(q + k), with a learned u for each head."""

    def weights(
        self,
        q: Float[Tensor, "B H Q D"],
        k: Float[Tensor, "B H K D"],
        mask: Mask,
        extra: Tensor | None = None,
    ) -> Float[Tensor, "B H Q K"]:
        """softmax(u · tanh(q + k)); `extra` (H, D) is u.

        The paper's matrices W and U are the projections of q and k in the attention layer.
        """
        assert extra is not None
        # q and k are transposed views. Contiguous copies of them give a contiguous sum, so that
        # `flatten` does not copy `hidden`, the largest tensor.
        hidden = torch.tanh(q.contiguous().unsqueeze(-2) + k.contiguous().unsqueeze(-3))
        u = extra.to(hidden.dtype).unsqueeze(-1)
        scores = (hidden.flatten(2, 3) @ u).view(hidden.shape[:-1])
        bias = mask.combine_biases()
        scores = scores if bias is None else scores + bias
        return masked_softmax(scores, mask.to_keep_mask(q.shape[-2], k.shape[-2], q.device))

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
        """`weights @ v` in chunks of queries: tanh has Q × K × D values."""
        return attend_in_chunks(
            self, q, k, v, mask, dropout, extra, elements_per_weight=q.shape[-1]
        )

    def cost(self, heads: int, queries: int, keys: int, width: int) -> Cost:
        """Products with u and with the values, Q·K·D multiply-adds each per head.

        Saves the output, exponentials of queries and keys (Q × D and K × D), and the log-sum-exp
        of each query. Without the kernel, a single chunk of queries saves tanh (Q × K × D) instead.
        """
        return Cost(
            multiply_adds=2 * heads * queries * keys * width,
            activations=heads * (queries * (2 * width + 1) + keys * width),
        )

    def build_learned(self, width: int, heads: int, head_width: int) -> ScoreVector:
        """The vector u of every head."""
        return ScoreVector(heads, head_width)

    def learned_cost(self, width: int, heads: int, head_width: int, keys: int) -> Cost:
        """The parameters; the learned module only returns them."""
        return Cost(parameters=heads * head_width)

    def example_extra(self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"]) -> Tensor:
        """A vector u for every head."""
        return torch.randn(q.shape[1], q.shape[-1], dtype=q.dtype, requires_grad=True)


class ScoreVector(Module):
    """The learned vector u of every head."""

    def __init__(self, heads: int, head_width: int) -> None:
        super().__init__()
        self.u = nn.Parameter(torch.randn(heads, head_width) / head_width**0.5)

    def forward(self, x: Float[Tensor, "B T E"]) -> Float[Tensor, "H D"]:
        """The vectors, independent of the input."""
        return self.u

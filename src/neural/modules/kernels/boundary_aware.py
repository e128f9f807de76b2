"""Boundary-aware attention with gradients: the bias per key is a mask on the way in and a column on the way back.

torch's fused kernel takes a mask that does not learn, and that costs next to nothing; folded in as one more column of q
and k, the bias learns, but 65 columns are slower than 64. So forward takes the mask, and backward, which needs the
gradient of the bias, takes the column: both compute the same.
"""

from __future__ import annotations

from typing import Any

from neural.modules.late import functional, torch
from neural.modules.mask import Mask
from neural.modules.mechanism import Mechanism

ops = torch.ops.aten


def fits(
    mechanism: Mechanism, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: Mask, dropout: float = 0.0,
    extra: torch.Tensor | None = None,
) -> bool:  # fmt: skip
    """On the CPU, where the scores learn and every query sees every key."""
    learns = torch.is_grad_enabled() and extra is not None and extra.requires_grad
    plain = mask == Mask(key_bias=mask.key_bias) and q.shape[-1] == v.shape[-1] and dropout == 0
    there = q.numel() > 0 and k.numel() > 0   # the kernel divides by their sizes
    return learns and plain and there and q.device.type == "cpu" and q.dtype in (torch.float32, torch.float64)


def run(
    mechanism: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: Mask, dropout: float = 0.0,
    extra: torch.Tensor | None = None,
) -> torch.Tensor:  # fmt: skip
    """The same as the plain way."""
    bias = mechanism.as_softmax(q, k, mask, extra).key_bias
    return _MaskThenColumn.apply(q, k, v, bias.expand(k.shape[:-1]).to(q.dtype), q.shape[-1] ** -0.5)


class _MaskThenColumn(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Any, k: Any, v: Any, bias: Any, scale: float) -> Any:
        mask = bias.unsqueeze(-2)
        out, sums = ops._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, False, attn_mask=mask, scale=scale)
        ctx.save_for_backward(q, k, v, bias, out, sums)
        ctx.scale = scale
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grad_outputs: Any) -> Any:  # type: ignore[bad-override]  # the decorator hides its names
        (towards,) = grad_outputs
        q, k, v, bias, out, sums = ctx.saved_tensors
        q = torch.cat((q, q.new_ones(*q.shape[:-1], 1)), dim=-1)
        k = torch.cat((k, bias.unsqueeze(-1) / ctx.scale), dim=-1)
        towards, v, out = (functional.pad(one, (0, 1)) for one in (towards, v, out))
        back = ops._scaled_dot_product_flash_attention_for_cpu_backward
        to_q, to_k, to_v = back(towards, q, k, v, out, sums, 0.0, False, scale=ctx.scale)
        return to_q[..., :-1], to_k[..., :-1], to_v[..., :-1], to_k[..., -1] / ctx.scale, None

"""Fast training of boundary-aware attention: a bias per key, with a gradient.

`run` replaces `BoundaryAware.attend` (nn/attention/boundary_aware.py) if `supports` is True
(kernel_dispatch.py). The bias is half the boundary score of a key, which a small network predicts;
it is added to the scores of all queries for that key.

torch's fused kernel adds a mask at almost no cost, but gives it no gradient. As one more column of
q and k the bias has a gradient, but 65 columns are slower than 64. So the forward pass uses the
bias as a mask, and the backward pass, which needs its gradient, as a column. Both compute the same
function.
"""

from __future__ import annotations

from typing import Any

from neural.nn.lazy_torch import functional, torch
from neural.nn.mask import Mask
from neural.nn.mechanism import Mechanism

ops = torch.ops.aten


def supports(
    mechanism: Mechanism,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: Mask,
    dropout: float = 0.0,
    extra: torch.Tensor | None = None,
) -> bool:
    """Whether `run` can compute a call; arguments as in `BoundaryAware.attend`.

    It can on the CPU, if the boundary scores `extra` need a gradient and nothing is masked.
    """
    needs_grad = torch.is_grad_enabled() and extra is not None and extra.requires_grad
    is_plain = mask == Mask(key_bias=mask.key_bias) and q.shape[-1] == v.shape[-1] and dropout == 0
    is_nonempty = q.numel() > 0 and k.numel() > 0  # the kernel divides by their sizes
    return (
        needs_grad
        and is_plain
        and is_nonempty
        and q.device.type == "cpu"
        and q.dtype in (torch.float32, torch.float64)
    )


def run(
    mechanism: Any,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: Mask,
    dropout: float = 0.0,
    extra: torch.Tensor | None = None,
) -> torch.Tensor:
    """The same values as `BoundaryAware.attend` in torch operations."""
    bias = mechanism.softmax_mask(q, k, mask, extra).key_bias
    return _BoundaryAwareAttention.apply(
        q, k, v, bias.expand(k.shape[:-1]).to(q.dtype), q.shape[-1] ** -0.5
    )


class _BoundaryAwareAttention(torch.autograd.Function):
    """Flash attention with a differentiable bias (batch, head, key)."""

    @staticmethod
    def forward(ctx: Any, q: Any, k: Any, v: Any, bias: Any, scale: float) -> Any:
        mask = bias.unsqueeze(-2)
        out, logsumexp = ops._scaled_dot_product_flash_attention_for_cpu(
            q, k, v, 0.0, False, attn_mask=mask, scale=scale
        )
        ctx.save_for_backward(q, k, v, bias, out, logsumexp)
        ctx.scale = scale
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grad_outputs: Any) -> Any:  # type: ignore[bad-override]  # the decorator hides the signature
        (grad_out,) = grad_outputs
        q, k, v, bias, out, logsumexp = ctx.saved_tensors
        # (q·k + 1·bias / scale) · scale = q·k · scale + bias: the scores of the forward pass.
        q = torch.cat((q, q.new_ones(*q.shape[:-1], 1)), dim=-1)
        k = torch.cat((k, bias.unsqueeze(-1) / ctx.scale), dim=-1)
        grad_out, v, out = (functional.pad(tensor, (0, 1)) for tensor in (grad_out, v, out))
        flash_backward = ops._scaled_dot_product_flash_attention_for_cpu_backward
        grad_q, grad_k, grad_v = flash_backward(
            grad_out, q, k, v, out, logsumexp, 0.0, False, scale=ctx.scale
        )
        grad_bias = grad_k[..., -1] / ctx.scale
        return grad_q[..., :-1], grad_k[..., :-1], grad_v[..., :-1], grad_bias, None

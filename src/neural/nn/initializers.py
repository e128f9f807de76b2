"""Weight initialization other than torch's default.

The residual stream is the sum that the residual connections of transformer blocks add to.
"""

from __future__ import annotations

from neural.nn.lazy_torch import nn, torch

INITIALIZERS = ("torch", "gpt2", "zero")
"""Values of the argument `init` of layers; "torch" leaves torch's default."""
GPT2_STD = 0.02
"""Standard deviation of GPT-2's initial weights (Radford et al., 2019)."""
RESIDUAL_OUTPUT_NAMES = ("output", "down")
"""Attribute names of the linear maps whose output is added to the residual stream.

They are the output projection of attention and the second map of the feed-forward network.
"""


def init_weights(module: nn.Linear | nn.Embedding, init: str, std_scale: float = 1.0) -> None:
    """Initialize a linear map or embedding in place; biases and padding vectors become 0.

    `init` is one of INITIALIZERS; `std_scale` multiplies the standard deviation of "gpt2".
    """
    if init == "torch":
        return
    if init == "zero":
        nn.init.zeros_(module.weight)
    else:
        nn.init.normal_(module.weight, std=GPT2_STD * std_scale)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)
    if isinstance(module, nn.Embedding) and module.padding_idx is not None:
        with torch.no_grad():
            module.weight[module.padding_idx].zero_()


def init_block(block: nn.Module, init: str, num_blocks: int) -> None:
    """Initialize one of `num_blocks` transformer blocks in place.

    "gpt2" scales the residual outputs by 1 / √(2 · num_blocks), so that the residual stream does
    not grow with depth. "zero" sets them to 0: every block starts as the identity.
    """
    for name, module in block.named_modules():
        if isinstance(module, nn.Linear):
            is_output = name.rpartition(".")[-1] in RESIDUAL_OUTPUT_NAMES
            if is_output or init == "gpt2":
                init_weights(module, init, (2 * num_blocks) ** -0.5 if is_output else 1.0)

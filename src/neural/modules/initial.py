"""How weights begin, where a program does not leave that to torch."""

from __future__ import annotations

from neural.modules.late import nn, torch

INITS = ("torch", "gpt2", "zero")
GPT2 = 0.02
"""The deviation of GPT-2's first weights (Radford et al., 2019)."""
ENDS = ("output", "down")
"""The linear maps at the end of a block's parts: what they give is added to what goes around."""


def start(module: nn.Linear | nn.Embedding, init: str, share: float = 1.0) -> None:
    """Set the weights of one map or table; `share` of the usual deviation. Biases begin at 0."""
    if init == "torch":
        return
    if init == "zero":
        nn.init.zeros_(module.weight)
    else:
        nn.init.normal_(module.weight, std=GPT2 * share)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)
    if isinstance(module, nn.Embedding) and module.padding_idx is not None:
        with torch.no_grad():
            module.weight[module.padding_idx].zero_()


def start_block(block: nn.Module, init: str, blocks: int) -> None:
    """Set the weights of one of so many blocks.

    "gpt2": the more blocks add to the same stream, the less each adds at first. "zero": none adds anything.
    """
    for name, module in block.named_modules():
        if isinstance(module, nn.Linear):
            last = name.rpartition(".")[-1] in ENDS
            if last or init == "gpt2":
                start(module, init, (2 * blocks) ** -0.5 if last else 1.0)

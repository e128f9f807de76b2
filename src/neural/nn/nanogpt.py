"""nanoGPT checkpoints: the network as a `.neural` program, and the state dict in our names.

nanoGPT (github.com/karpathy/nanoGPT) trains the network of GPT-2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from neural.nn.lazy_torch import torch

if TYPE_CHECKING:
    from torch import Tensor

COMPILE_PREFIX = "_orig_mod."
"""Prefix that `torch.compile` adds to every name."""
TOP_LEVEL_NAMES = {
    "transformer.wte.weight": "embedding.table.weight",
    "transformer.wpe.weight": "positional_encoding.table",
    "transformer.ln_f.weight": "layer_normalization.weight",
    "transformer.ln_f.bias": "layer_normalization.bias",
}
"""nanoGPT's names of weights outside the blocks → ours."""
BLOCK_NAMES = {
    "ln_1": ("attention.norm",),
    "attn.c_attn": (
        "attention.sublayer.query",
        "attention.sublayer.key",
        "attention.sublayer.value",
    ),
    "attn.c_proj": ("attention.sublayer.output",),
    "ln_2": ("feed_forward.norm",),
    "mlp.c_fc": ("feed_forward.sublayer.up",),
    "mlp.c_proj": ("feed_forward.sublayer.down",),
}
"""nanoGPT's modules of a block → ours; nanoGPT projects queries, keys and values by one matrix."""
MASK_BUFFER_NAMES = ("attn.bias", "attn.masked_bias")
"""Buffers of a block with the causal mask, which only old checkpoints contain; not converted."""
_BLOCK_PATTERN = re.compile(r"transformer\.h\.(\d+)\.(.+)")


def convert_nanogpt_state(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """nanoGPT's state dict, renamed for the network that `write_nanogpt_program` declares.

    Raises ValueError if it is not a nanoGPT checkpoint.
    """
    weights = {name.removeprefix(COMPILE_PREFIX): tensor for name, tensor in state.items()}
    num_layers = _count_layers(weights)
    converted: dict[str, Tensor] = {}
    for name, tensor in weights.items():
        if name == "lm_head.weight":
            if not torch.equal(tensor, weights["transformer.wte.weight"]):
                raise ValueError(
                    "lm_head.weight differs from transformer.wte.weight; nanoGPT ties them"
                )
            continue
        converted |= {
            new_name: weight.contiguous()
            for new_name, weight in _rename_weight(name, tensor, num_layers)
        }
    return converted


def write_nanogpt_program(state: Mapping[str, Tensor], num_heads: int, dropout: float = 0.0) -> str:
    """The `.neural` program of a checkpoint's network; `state` is its state dict.

    `num_heads` is an argument because it cannot be inferred from the weights.
    """
    weights = {name.removeprefix(COMPILE_PREFIX): tensor for name, tensor in state.items()}
    num_layers = _count_layers(weights)
    vocab_size, width = weights["transformer.wte.weight"].shape
    context = len(weights["transformer.wpe.weight"])
    bias = "" if "transformer.ln_f.bias" in weights else "bias=false, "
    dropout_layer = f"\n    Dropout({dropout})" if dropout else ""
    block_dropout = f'dropout_rate={dropout}, dropout_at="residual", ' if dropout else ""
    block = (
        f"num_heads={num_heads}, d_model={width}, dff={4 * width}, "
        f'{block_dropout}activation="gelu", {bias}init="gpt2"'
    )
    return f"""network NanoGPT {{
  input: ({context},)
  layers:
    Embedding(input_dim={vocab_size}, output_dim={width}, init="gpt2")
    PositionalEncoding(encoding_type="learned"){dropout_layer}
    TransformerDecoder({block}, final_norm=true) * {num_layers}
    Output({vocab_size}, activation="softmax", tied=true, bias=false)

  loss: "sparse_categorical_crossentropy"
}}
"""


def _count_layers(state: Mapping[str, Tensor]) -> int:
    """Number of transformer blocks; ValueError if the state is not a nanoGPT checkpoint."""
    blocks = {int(match[1]) for name in state if (match := _BLOCK_PATTERN.fullmatch(name))}
    for name in ("transformer.wte.weight", "transformer.wpe.weight"):
        if name not in state:
            raise ValueError(f"not a nanoGPT checkpoint: {name} is missing")
    if not blocks or blocks != set(range(len(blocks))):
        raise ValueError(
            "not a nanoGPT checkpoint: its blocks are not transformer.h.0, transformer.h.1, …"
        )
    return len(blocks)


def _rename_weight(name: str, tensor: Tensor, num_layers: int) -> Iterator[tuple[str, Tensor]]:
    """Our names of a nanoGPT weight, each with its tensor."""
    if name in TOP_LEVEL_NAMES:
        yield TOP_LEVEL_NAMES[name], tensor
        return
    match = _BLOCK_PATTERN.fullmatch(name)
    if match and match[2] in MASK_BUFFER_NAMES:
        return
    module, _, kind = match[2].rpartition(".") if match else ("", "", "")
    if match is None or module not in BLOCK_NAMES or kind not in ("weight", "bias"):
        raise ValueError(f"not a nanoGPT checkpoint: {name} is none of its names")
    block = f"transformer_decoder.{match[1]}" if num_layers > 1 else "transformer_decoder"
    new_modules = BLOCK_NAMES[module]
    for new_module, chunk in zip(new_modules, tensor.chunk(len(new_modules)), strict=True):
        yield f"{block}.{new_module}.{kind}", chunk

"""nanoGPT's checkpoints: the same network as a program, and its weights under the program's names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from neural.modules.late import torch

if TYPE_CHECKING:
    from torch import Tensor

COMPILED = "_orig_mod."
"""What `torch.compile` puts before every name."""
NAMES = {
    "transformer.wte.weight": "embedding.table.weight",
    "transformer.wpe.weight": "positional_encoding.table",
    "transformer.ln_f.weight": "layer_normalization.weight",
    "transformer.ln_f.bias": "layer_normalization.bias",
}
PARTS = {
    "ln_1": ("attention.norm",),
    "attn.c_attn": ("attention.part.query", "attention.part.key", "attention.part.value"),
    "attn.c_proj": ("attention.part.output",),
    "ln_2": ("feed_forward.norm",),
    "mlp.c_fc": ("feed_forward.part.up",),
    "mlp.c_proj": ("feed_forward.part.down",),
}
"""The parts of a block; queries, keys and values stand on top of each other in one matrix."""
NOT_LEARNED = ("attn.bias", "attn.masked_bias")
"""The causal mask, which old checkpoints hold as if it were a weight."""
_IN_A_BLOCK = re.compile(r"transformer\.h\.(\d+)\.(.+)")


def load_nanogpt(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The state dict of `nanogpt_program`'s network, from nanoGPT's; ValueError where it is something else."""
    given = {name.removeprefix(COMPILED): tensor for name, tensor in state.items()}
    layers = _layers(given)
    found: dict[str, Tensor] = {}
    for name, tensor in given.items():
        if name == "lm_head.weight":
            if not torch.equal(tensor, given["transformer.wte.weight"]):
                raise ValueError("lm_head.weight differs from transformer.wte.weight; nanoGPT ties them")
            continue
        found |= {ours: part.contiguous() for ours, part in _renamed(name, tensor, layers)}
    return found


def nanogpt_program(state: Mapping[str, Tensor], heads: int, dropout: float = 0.0) -> str:
    """The program of a checkpoint's network. The number of heads leaves no trace in the weights."""
    given = {name.removeprefix(COMPILED): tensor for name, tensor in state.items()}
    layers = _layers(given)
    (ids, width), context = given["transformer.wte.weight"].shape, len(given["transformer.wpe.weight"])
    bias = "" if "transformer.ln_f.bias" in given else "bias=false, "
    drop = f"\n    Dropout({dropout})" if dropout else ""
    dropped = f'dropout_rate={dropout}, dropout_at="residual", ' if dropout else ""
    block = f'num_heads={heads}, d_model={width}, dff={4 * width}, {dropped}activation="gelu", {bias}init="gpt2"'
    return f"""network NanoGPT {{
  input: ({context},)
  layers:
    Embedding(input_dim={ids}, output_dim={width}, init="gpt2")
    PositionalEncoding(encoding_type="learned"){drop}
    TransformerDecoder({block}, final_norm=true) * {layers}
    Output({ids}, activation="softmax", tied=true, bias=false)

  loss: "sparse_categorical_crossentropy"
}}
"""


def _layers(given: Mapping[str, Tensor]) -> int:
    """How many blocks there are; refuses what is no checkpoint of nanoGPT."""
    blocks = {int(match[1]) for name in given if (match := _IN_A_BLOCK.fullmatch(name))}
    for name in ("transformer.wte.weight", "transformer.wpe.weight"):
        if name not in given:
            raise ValueError(f"no nanoGPT checkpoint: there is no {name}")
    if not blocks or blocks != set(range(len(blocks))):
        raise ValueError("no nanoGPT checkpoint: its blocks are not transformer.h.0, transformer.h.1, …")
    return len(blocks)


def _renamed(name: str, tensor: Tensor, layers: int) -> Iterator[tuple[str, Tensor]]:
    """Our names for a weight of nanoGPT, with what belongs to each."""
    if name in NAMES:
        yield NAMES[name], tensor
        return
    match = _IN_A_BLOCK.fullmatch(name)
    if match and match[2] in NOT_LEARNED:
        return
    part, _, kind = match[2].rpartition(".") if match else ("", "", "")
    if match is None or part not in PARTS or kind not in ("weight", "bias"):
        raise ValueError(f"no nanoGPT checkpoint: {name} is none of its names")
    block = f"transformer_decoder.{match[1]}" if layers > 1 else "transformer_decoder"
    ours = PARTS[part]
    for one, share in zip(ours, tensor.chunk(len(ours)), strict=True):
        yield f"{block}.{one}.{kind}", share

"""Language models ready to train, as programs: three sizes of two architectures.

`tiny` learns in a minute on two cores; `nanogpt_cpu` is the size that nanoGPT recommends for a processor; `full` is
its character-level model. `classic` is GPT-2 as nanoGPT writes it (Radford et al., 2019; Karpathy, 2022). `modern` is
what later work put in place of its parts: rotary positions (Su et al., 2021), RMS norms (Zhang and Sennrich, 2019), of
queries and keys too (Henry et al., 2020), squared ReLU (So et al., 2021), and Muon for the matrices (Jordan, 2024).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from neural.core.diagnostics import Findings
from neural.language.parser import parse
from neural.language.printer import print_program

Preset = Literal["tiny", "nanogpt_cpu", "full"]
Architecture = Literal["classic", "modern"]


@dataclass(frozen=True, kw_only=True)
class Size:
    """How large a network is, and how long it learns."""

    layers: int
    heads: int
    width: int
    context: int
    batch: int
    """Windows per step."""
    steps: int
    dropout: float = 0.0
    modern: tuple[int, int] | None = None
    """Batch and steps of the modern recipe, where it makes fewer and larger ones: Muon's cost more each."""

    def length(self, architecture: Architecture) -> tuple[int, int]:
        """Batch and steps."""
        return (self.modern if architecture == "modern" else None) or (self.batch, self.steps)


SIZES: dict[Preset, Size] = {
    "tiny": Size(layers=2, heads=2, width=64, context=64, batch=16, steps=1000),
    "nanogpt_cpu": Size(layers=4, heads=4, width=128, context=64, batch=12, steps=2000, modern=(24, 720)),
    "full": Size(layers=6, heads=6, width=384, context=256, batch=64, steps=5000, dropout=0.2),
}
WARM_UP = 100
"""Steps of rising; a tenth of the run where that is less."""


def program_of(
    preset: Preset, architecture: Architecture, vocabulary: int, context: int | None = None, *,
    steps: int | None = None, warm_up: int = 0,
) -> str:  # fmt: skip
    """The program of a preset, for so many characters.

    The rate falls over the steps that are really made. An experiment that has a `warm_up` of its own is given a rate
    that only falls, over what is left.
    """
    size = SIZES[preset]
    batch, usual = size.length(architecture)
    context, steps = context or size.context, steps or usual
    rising = 0 if warm_up else min(WARM_UP, steps // 10)
    falling = max(1, steps - (warm_up or rising))
    layers, optimizer = (_classic if architecture == "classic" else _modern)(size, vocabulary, rising, falling)
    name = "".join(word.capitalize() for word in (*preset.split("_"), architecture))
    written = f"""network {name} {{
  input: ({context},)
  layers: {layers}
  loss: "sparse_categorical_crossentropy"
  optimizer: {optimizer}
  train {{ steps: {steps} batch_size: {batch} clip_norm: 1.0 }}
}}
"""
    return print_program(parse(written, Findings()))


def _classic(size: Size, vocabulary: int, rising: int, falling: int) -> tuple[str, str]:
    """Learned positions, LayerNorm, GELU, no biases, one table for reading and writing."""
    dropped, dropout = "", ""
    if size.dropout:
        dropped, dropout = f"Dropout({size.dropout})", f'dropout_rate={size.dropout}, dropout_at="residual",'
    layers = f"""
    Embedding(input_dim={vocabulary}, output_dim={size.width}, init="gpt2")
    PositionalEncoding(encoding_type="learned")
    {dropped}
    TransformerDecoder(
      num_heads={size.heads}, d_model={size.width}, dff={4 * size.width}, {dropout} activation="gelu",
      bias=false, init="gpt2", final_norm=true
    ) * {size.layers}
    Output({vocabulary}, activation="softmax", tied=true, bias=false)
"""
    rate = f"CosineDecay(0.001, {falling}, alpha=0.1, warmup_steps={rising})"
    return layers, f"AdamW(learning_rate={rate}, beta_2=0.99, weight_decay=0.1)"


def _modern(size: Size, vocabulary: int, rising: int, falling: int) -> tuple[str, str]:
    """Rotary positions, RMS norms, squared ReLU; a block does nothing until it has learned something."""
    dropout = f"dropout_rate={size.dropout}," if size.dropout else ""
    layers = f"""
    Embedding(input_dim={vocabulary}, output_dim={size.width})
    TransformerDecoder(
      num_heads={size.heads}, d_model={size.width}, dff={4 * size.width}, {dropout} activation="squared_relu",
      positional="rotary", normalization="rms", qk_norm=true, bias=false, init="zero", final_norm=true
    ) * {size.layers}
    Output({vocabulary}, activation="softmax", bias=false, init="zero")
"""
    rate = f"LinearDecay(0.02, {falling}, alpha=0.01, warmup_steps={rising})"
    return layers, f"Muon(learning_rate={rate}, other_learning_rate=0.01)"

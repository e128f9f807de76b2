"""Presets of language models as `.neural` programs: three sizes of two architectures.

`tiny` trains in a minute on two cores; `nanogpt_cpu` is the size that nanoGPT recommends for a CPU;
`full` is the character-level model of nanoGPT. `classic` is GPT-2 as in nanoGPT (Radford et al.,
2019; Karpathy, 2022). `modern` replaces the parts of GPT-2: rotary positions (Su et al., 2021), RMS
norms (Zhang and Sennrich, 2019), also of queries and keys (Henry et al., 2020), squared ReLU (So et
al., 2021), and the optimizer Muon for weight matrices (Jordan, 2024).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Preset = Literal["tiny", "nanogpt_cpu", "full"]
Architecture = Literal["classic", "modern"]


@dataclass(frozen=True, kw_only=True)
class PresetSize:
    """Sizes of a network and length of its training."""

    layers: int
    heads: int
    width: int
    context: int
    """Context length in characters."""
    batch: int
    """Windows of text per training step."""
    steps: int
    dropout: float = 0.0
    modern_batch_and_steps: tuple[int, int] | None = None
    """(batch, steps) of the `modern` architecture, if different: a step of its optimizer Muon costs
    more, so there are fewer and larger ones."""

    def batch_and_steps(self, architecture: Architecture) -> tuple[int, int]:
        """(batch size, steps) for an architecture."""
        return (self.modern_batch_and_steps if architecture == "modern" else None) or (
            self.batch,
            self.steps,
        )


PRESET_SIZES: dict[Preset, PresetSize] = {
    "tiny": PresetSize(layers=2, heads=2, width=64, context=64, batch=16, steps=1000),
    "nanogpt_cpu": PresetSize(
        layers=4,
        heads=4,
        width=128,
        context=64,
        batch=12,
        steps=2000,
        modern_batch_and_steps=(24, 720),
    ),
    "full": PresetSize(
        layers=6, heads=6, width=384, context=256, batch=64, steps=5000, dropout=0.2
    ),
}
DEFAULT_WARMUP_STEPS = 100
"""Warm-up steps of the learning rate; shorter trainings warm up for a tenth of their steps."""


def write_program(
    preset: Preset,
    architecture: Architecture,
    vocabulary_size: int,
    context: int | None = None,
    *,
    steps: int | None = None,
    warmup_steps: int = 0,
) -> str:
    """Program text of a preset. If `context` or `steps` is None, that of the preset is used.

    The learning rate decays over the actual number of steps. `warmup_steps` is the experiment's
    setting: the training engine then does the warm-up, and the program's schedule only decays, over
    the remaining steps.
    """
    size = PRESET_SIZES[preset]
    batch, default_steps = size.batch_and_steps(architecture)
    context, steps = context or size.context, steps or default_steps
    program_warmup = 0 if warmup_steps else min(DEFAULT_WARMUP_STEPS, steps // 10)
    decay_steps = max(1, steps - (warmup_steps or program_warmup))
    write_parts = _write_classic if architecture == "classic" else _write_modern
    layers, optimizer = write_parts(size, vocabulary_size, program_warmup, decay_steps)
    name = "".join(word.capitalize() for word in (*preset.split("_"), architecture))
    # The layout is that of `neural fmt`, because users read this text in the run folder.
    return f"""network {name} {{
  input: ({context},)
  layers:
{layers}
  loss: "sparse_categorical_crossentropy"
  optimizer: {optimizer}
  train {{
    steps: {steps}
    batch_size: {batch}
    clip_norm: 1.0
  }}
}}
"""


def _write_classic(
    size: PresetSize, vocabulary_size: int, warmup_steps: int, decay_steps: int
) -> tuple[str, str]:
    """(layers, optimizer): learned positions, LayerNorm, GELU, no biases, tied embeddings."""
    embedding_dropout, dropout = "", ""
    if size.dropout:
        embedding_dropout = f"    Dropout({size.dropout})"
        dropout = f'      dropout_rate={size.dropout},\n      dropout_at="residual",\n'
    layers = f"""\
    Embedding(input_dim={vocabulary_size}, output_dim={size.width}, init="gpt2")
    PositionalEncoding(encoding_type="learned")
{embedding_dropout}
    TransformerDecoder(
      num_heads={size.heads},
      d_model={size.width},
      dff={4 * size.width},
{dropout}      activation="gelu",
      bias=false,
      init="gpt2",
      final_norm=true,
    ) * {size.layers}
    Output({vocabulary_size}, activation="softmax", tied=true, bias=false)
"""
    optimizer = f"""AdamW(
    learning_rate=CosineDecay(0.001, {decay_steps}, alpha=0.1, warmup_steps={warmup_steps}),
    beta_2=0.99,
    weight_decay=0.1,
  )"""
    return layers, optimizer


def _write_modern(
    size: PresetSize, vocabulary_size: int, warmup_steps: int, decay_steps: int
) -> tuple[str, str]:
    """(layers, optimizer): rotary positions, RMS norms, squared ReLU, zero-initialised blocks."""
    dropout = f"      dropout_rate={size.dropout},\n" if size.dropout else ""
    layers = f"""\
    Embedding(input_dim={vocabulary_size}, output_dim={size.width})
    TransformerDecoder(
      num_heads={size.heads},
      d_model={size.width},
      dff={4 * size.width},
{dropout}      activation="squared_relu",
      positional="rotary",
      normalization="rms",
      qk_norm=true,
      bias=false,
      init="zero",
      final_norm=true,
    ) * {size.layers}
    Output({vocabulary_size}, activation="softmax", bias=false, init="zero")
"""
    optimizer = f"""Muon(
    learning_rate=LinearDecay(0.02, {decay_steps}, alpha=0.01, warmup_steps={warmup_steps}),
    other_learning_rate=0.01,
  )"""
    return layers, optimizer

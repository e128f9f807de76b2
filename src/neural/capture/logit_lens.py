"""Logit lens: what the model would answer if it stopped after each layer.

    for row in read_layers(tracing, position=-1, answer=17): row.layer, row.probability, row.rank

The residual stream after each layer (attention and MLP) goes through the model's own final norm and
unembedding (nostalgebraist, 2020). The last row is the model's own answer. Early layers were never
trained to be read this way: a low probability there does not mean that the model does not know yet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from neural.nn.lazy_torch import torch

if TYPE_CHECKING:
    from neural.capture.attribution import AttentionTracing

DEFAULT_TOP = 5
"""Most probable tokens that are listed by layer."""


@dataclass(frozen=True)
class LensRow:
    """The prediction after one layer."""

    layer: int
    """−1 before the first layer: embedding and positions only."""
    top: list[tuple[int, float]]
    """Most probable tokens and their probabilities."""
    probability: float
    """Of the answer."""
    rank: int
    """Of the answer; 0 is the most probable token."""

    @property
    def name(self) -> str:
        """`embedding` or `L0`."""
        return "embedding" if self.layer < 0 else f"L{self.layer}"


def read_layers(
    tracing: AttentionTracing,
    position: int,
    answer: int,
    *,
    example: int = 0,
    top: int = DEFAULT_TOP,
) -> list[LensRow]:
    """The predictions at a position after the embedding and after each layer.

    AttributionError if the residual stream is no sum of the layers' outputs.
    """
    rows = []
    ends = tracing.layer_ends
    stream = tracing.stream
    assert stream is not None  # `layer_ends` raises without one
    with torch.no_grad():
        residual = torch.zeros_like(stream.total[:1], dtype=torch.double)
        start = 0
        for index, end in enumerate(ends):
            for term in stream.terms[start:end]:
                residual = residual + term.value[example : example + 1].double()
            start = end
            logits = stream.readout.apply(residual.to(stream.total.dtype))[0]
            logits = logits[position] if stream.readout.is_sequence else logits
            probabilities = logits.double().softmax(-1)
            best = probabilities.topk(min(top, len(probabilities)))
            rows.append(
                LensRow(
                    index - 1,
                    list(zip(best.indices.tolist(), best.values.tolist(), strict=True)),
                    float(probabilities[answer]),
                    int((probabilities > probabilities[answer]).sum()),
                )
            )
    return rows

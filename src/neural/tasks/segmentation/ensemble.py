"""Ensemble of segmenter networks: several of the same kind, whose mean prediction counts.

Networks that were trained with different seeds make different errors. The mean of their log
probabilities has fewer, and its probabilities are better calibrated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from neural.nn.lazy_torch import Module, nn, torch
from neural.tasks.segmentation.model import Segmenter
from neural.tasks.segmentation.model_builder import build_segmenter

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor

    from neural.tasks.segmentation.settings import SegmentationSettings


class SegmenterEnsemble(Module):
    """Networks with the same inputs and classes; has the methods of a `Segmenter`."""

    boundary_logits = None
    """Only a single network has an auxiliary boundary loss."""

    def __init__(self, members: Sequence[Segmenter]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    @property
    def networks(self) -> list[Segmenter]:
        """The members with their type, which a ModuleList does not keep."""
        return [cast("Segmenter", member) for member in self.members]

    def forward(
        self, x: Float[Tensor, "B T F"], mask: Bool[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B T C"]:
        """Class probabilities."""
        return self.logits(x, mask).softmax(dim=-1)

    def logits(
        self, x: Float[Tensor, "B T F"], mask: Bool[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B T C"]:
        """Mean of the members' log probabilities: with two classes, of their log-odds."""
        log_probabilities = [member.logits(x, mask).log_softmax(dim=-1) for member in self.networks]
        return torch.stack(log_probabilities).mean(dim=0)


def build_model(settings: SegmentationSettings) -> Segmenter | SegmenterEnsemble:
    """New, untrained model: an ensemble if `training.seeds` is above 1."""
    if settings.training.seeds == 1:
        return build_segmenter(settings)
    return SegmenterEnsemble([build_segmenter(settings) for _ in range(settings.training.seeds)])

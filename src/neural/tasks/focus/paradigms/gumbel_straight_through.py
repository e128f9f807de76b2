"""Straight-through Gumbel-softmax (Jang et al., 2017): one sampled segment, gradient of a blend.

A paradigm (paradigm.py) is a loss that trains the focus, the weights of the segments of an example,
and the classifier g together. A blend is the weighted mean of the segments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.language.declaration import float_field
from neural.nn.lazy_torch import functional
from neural.tasks.focus.paradigms.soft import Soft

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from neural.tasks.focus.segment_batch import SegmentBatch


class GumbelStraightThrough(Soft):
    """One sampled segment is classified; the gradient of the focus is that of a blend of all."""

    temperature: float = float_field(
        "Temperature of the blend that the gradient goes through.", default=1.0, above=0
    )

    def loss(self, batch: SegmentBatch) -> Float[Tensor, " B"]:
        """−log softmax(g(xⱼ))[y] for a segment j sampled from the focus; y is the label.

        The gradient with respect to the focus is biased, with a low variance.
        """
        one_hot = functional.gumbel_softmax(batch.scores, tau=self.temperature, hard=True, dim=-1)
        return -batch.gather_label(batch.blend_log_probs(one_hot))

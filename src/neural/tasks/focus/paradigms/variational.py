"""Variational attention (Deng et al., 2018): an inference network sees the label in training.

A paradigm (paradigm.py) is a loss that trains the focus on segments and their classifier together.
aⱼ is the focus weight of segment j, qⱼ that of the inference network, pⱼ its class probabilities, y
the label. LVML is the latent variable marginal likelihood, −log Σⱼ aⱼ pⱼ[y] (lvml.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.nn.lazy_torch import functional
from neural.tasks.focus.paradigms._marginal import MarginalParadigm

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from neural.tasks.focus.segment_batch import SegmentBatch


class Variational(MarginalParadigm):
    """ELBO of the marginal likelihood; tight if the inference network gives the true posterior."""

    uses_inference_network: ClassVar[bool] = True

    def loss(self, batch: SegmentBatch) -> Float[Tensor, " B"]:
        """−Σⱼ qⱼ (log pⱼ[y] + log aⱼ − log qⱼ).

        Never below LVML; equal if q is the posterior a p[y] / Σ a p[y]. An estimator selects
        segments by q instead of the focus: q knows the label and finds the segment earlier.
        """
        log_q = functional.log_softmax(batch.inference_scores, dim=-1)
        index, log_w = batch.estimator.choose(log_q, batch.samples)
        log_ratio = batch.log_focus - log_q
        log_ratio = log_ratio if index is None else log_ratio.gather(-1, index.clamp(min=0))
        return -(log_w.exp() * (batch.gather_label(batch.log_probs(index)) + log_ratio)).sum(dim=-1)

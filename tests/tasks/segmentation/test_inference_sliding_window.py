"""Long documents run through a segmenter in overlapping windows."""

import numpy as np
import pytest
import torch
from torch import nn

from neural.nn.attention.localized import Localized
from neural.nn.kernel_dispatch import no_kernels
from neural.tasks.segmentation.inference import compute_logits, compute_logits_in_windows
from neural.tasks.segmentation.model import AttentionBlock, Segmenter


class IdentityModel(nn.Module):
    """Returns the first two features as scores, and records the window lengths."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))
        self.lengths = set()

    def logits(self, x, mask):
        self.lengths.add(x.shape[1])
        return x[..., :2]


@pytest.mark.parametrize("count", [1, 11, 12, 13, 17, 29, 30, 31, 100, 101])
def test_every_element_gets_its_own_scores(count):
    x = np.random.default_rng(0).normal(size=(count, 3)).astype(np.float32)
    model = IdentityModel()
    assert (
        compute_logits_in_windows(model, x, max_single_pass=12, window=11, context=3) == x[:, :2]
    ).all()
    assert model.lengths == {count if count <= 12 else 11}, "equal windows need no padding"


def test_with_enough_context_windows_equal_a_single_pass():
    torch.manual_seed(0)
    attention = AttentionBlock(6, 4, 2, Localized(window=5))
    model = Segmenter(7, 2, hidden_dim=3, num_layers=1, attention=attention).eval()
    x = np.random.default_rng(0).normal(size=(300, 7)).astype(np.float32)
    with no_kernels():
        single_pass = compute_logits(model, [x])[0]
        errors = {
            context: np.abs(
                compute_logits_in_windows(model, x, max_single_pass=1, window=64, context=context)
                - single_pass
            ).max()
            for context in (2, 24)
        }
    assert errors[2] > 1e-2, "the ends of a window do matter"
    assert errors[24] < 1e-4


def test_progress_is_reported():
    progress = []
    compute_logits_in_windows(
        IdentityModel(),
        np.zeros((70_000, 2), np.float32),
        on_progress=lambda done, count: progress.append((done, count)),
    )
    assert len(progress) > 3
    assert [done for done, _ in progress] == sorted(done for done, _ in progress)
    assert progress[-1] == (70_000, 70_000)

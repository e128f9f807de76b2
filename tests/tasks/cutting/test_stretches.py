"""Long documents go through a segmenter in stretches."""

import numpy as np
import pytest
import torch
from torch import nn

from neural.modules.attention.localized import Localized
from neural.modules.compiled import plain_torch
from neural.modules.segmenter import LookAround, Segmenter
from neural.tasks.cutting.predicted import scores_of
from neural.tasks.cutting.stretches import scores_of_any_length


class Mirror(nn.Module):
    """Says of every element its first two features, and how long the stretch is."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))
        self.lengths = set()

    def scores(self, x, mask):
        self.lengths.add(x.shape[1])
        return x[..., :2]


@pytest.mark.parametrize("count", [1, 11, 12, 13, 17, 29, 30, 31, 100, 101])
def test_every_element_gets_its_own_answer(count):
    x = np.random.default_rng(0).normal(size=(count, 3)).astype(np.float32)
    model = Mirror()
    assert (scores_of_any_length(model, x, whole=12, stretch=11, context=3) == x[:, :2]).all()
    assert model.lengths == {count if count <= 12 else 11}, "equal stretches need no padding"


def test_far_from_the_ends_of_a_stretch_it_is_as_if_all_were_read_at_once():
    torch.manual_seed(0)
    attention = LookAround(6, 4, 2, Localized(window=5))
    model = Segmenter(7, 2, hidden_dim=3, num_layers=1, attention=attention).eval()
    x = np.random.default_rng(0).normal(size=(300, 7)).astype(np.float32)
    with plain_torch():
        whole = scores_of(model, [x])[0]
        near = np.abs(scores_of_any_length(model, x, whole=1, stretch=64, context=2) - whole).max()
        far = np.abs(scores_of_any_length(model, x, whole=1, stretch=64, context=24) - whole).max()
    assert near > 1e-2, "the ends do matter"
    assert far < 1e-4


def test_one_hears_how_far_it_is():
    heard = []
    scores_of_any_length(
        Mirror(), np.zeros((70_000, 2), np.float32), tell=lambda done, count: heard.append((done, count))
    )
    assert len(heard) > 3
    assert [done for done, _ in heard] == sorted(done for done, _ in heard)
    assert heard[-1] == (70_000, 70_000)

"""Noise that is there in training only."""

import torch

from neural.modules.layers.gaussian_noise import GaussianNoise


def test_the_noise_has_the_deviation_that_was_asked_for():
    torch.manual_seed(0)
    added = GaussianNoise(stddev=0.3).build((100, 100))(torch.ones(1, 100, 100)) - 1
    assert abs(float(added.mean())) < 0.02
    assert abs(float(added.std()) - 0.3) < 0.02


def test_there_is_none_once_trained():
    x = torch.ones(1, 7, 3)
    assert torch.equal(GaussianNoise(stddev=0.3).build((7, 3)).eval()(x), x)

"""Gaussian noise in training only."""

import torch

from neural.nn.layers.gaussian_noise import GaussianNoise


def test_the_noise_has_the_declared_standard_deviation():
    torch.manual_seed(0)
    noise = GaussianNoise(stddev=0.3).build((100, 100))(torch.ones(1, 100, 100)) - 1
    assert abs(float(noise.mean())) < 0.02
    assert abs(float(noise.std()) - 0.3) < 0.02


def test_there_is_no_noise_in_evaluation_mode():
    x = torch.ones(1, 7, 3)
    assert torch.equal(GaussianNoise(stddev=0.3).build((7, 3)).eval()(x), x)

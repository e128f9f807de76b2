"""Root-mean-square normalization."""

import torch

from neural.nn.layers.rms_normalization import RMSNormalization


def test_the_mean_square_of_every_position_becomes_one():
    module = RMSNormalization().build((7, 5))
    x = 30 + 4 * torch.randn(2, 7, 5)
    y = module(x)
    torch.testing.assert_close(y.square().mean(dim=-1), torch.ones(2, 7))
    torch.testing.assert_close(
        y / x, (y / x)[..., :1].expand_as(x), msg="the features keep their ratios"
    )


def test_epsilon_is_passed_to_the_norm():
    module = RMSNormalization(epsilon=1.0).build((3,))
    torch.testing.assert_close(module(torch.ones(1, 3)), torch.full((1, 3), 0.5**0.5))

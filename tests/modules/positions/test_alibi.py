"""Positions as slopes: the same in any precision."""

import torch

from neural.modules.attention.causal import Causal
from neural.modules.mask import Mask
from neural.modules.positions.alibi import AlibiPositions


def test_sixteen_bits_tell_neighbours_apart_wherever_they_stand():
    torch.manual_seed(0)
    q, k, v = torch.zeros(1, 2, 600, 8), torch.zeros(1, 2, 600, 8), torch.randn(1, 2, 600, 8)
    positions = AlibiPositions(2, causal=True)

    def mixed(dtype):
        q16, k16, v16 = (one.to(dtype) for one in (q, k, v))
        rules = Mask(causal=True, bias=positions.bias(q16, 600), key_bias=positions.key_bias(q16, 600))
        return Causal().mix(q16, k16, v16, rules).float()

    torch.testing.assert_close(mixed(torch.bfloat16), mixed(torch.float32), atol=0.02, rtol=0)

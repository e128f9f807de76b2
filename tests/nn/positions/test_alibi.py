"""ALiBi gives the same result in any precision."""

import torch

from neural.nn.attention.causal import Causal
from neural.nn.mask import Mask
from neural.nn.positions.alibi import AlibiPositions


def test_neighbouring_keys_are_distinguished_in_16_bits():
    torch.manual_seed(0)
    q, k, v = torch.zeros(1, 2, 600, 8), torch.zeros(1, 2, 600, 8), torch.randn(1, 2, 600, 8)
    positions = AlibiPositions(2, causal=True)

    def attend(dtype):
        q16, k16, v16 = (tensor.to(dtype) for tensor in (q, k, v))
        mask = Mask(
            causal=True, bias=positions.bias(q16, 600), key_bias=positions.key_bias(q16, 600)
        )
        return Causal().attend(q16, k16, v16, mask).float()

    torch.testing.assert_close(attend(torch.bfloat16), attend(torch.float32), atol=0.02, rtol=0)

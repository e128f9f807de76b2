"""Checks of an attention kernel against the definition, `weights @ v` in 64 bits."""

from contextlib import contextmanager

import torch

from neural.native.library import force_level
from neural.nn.mask import Mask
from neural.nn.mechanism import Mechanism


def create_leaves(
    batch: int, heads: int, queries: int, keys: int, width: int, value_width: int, scale: float = 1
) -> list[torch.Tensor]:
    """Queries, keys and values with gradients; `scale` is the size of queries and keys."""
    torch.manual_seed(queries * keys + width)
    sizes = ((queries, width, scale), (keys, width, scale), (keys, value_width, 1))
    return [
        (factor * torch.randn(batch, heads, time, features)).requires_grad_()
        for time, features, factor in sizes
    ]


def assert_level_matches_definition(
    mechanism: Mechanism,
    leaves: list[torch.Tensor],
    mask: Mask,
    level: str,
    tolerance: float = 5e-6,
) -> None:
    """Output and gradients at a level differ from the definition in 64 bits by rounding only.

    `leaves` are q, k, v and, if the mechanism needs it, the extra input. The tolerance is relative
    to the largest value of a tensor.
    """
    with force_level(level):
        output = mechanism.attend(*leaves[:3], mask, extra=next(iter(leaves[3:]), None))
        grad_output = torch.randn_like(output)
        actual = (output, *torch.autograd.grad(output, leaves, grad_output))
    exact = [leaf.detach().double().requires_grad_() for leaf in leaves]
    weights = mechanism.weights(*exact[:2], mask, next(iter(exact[3:]), None))
    expected_output = weights @ exact[2]
    gradients = torch.autograd.grad(expected_output, exact, grad_output.double())
    for ours, expected in zip(actual, (expected_output, *gradients), strict=True):
        largest = max(1.0, float(expected.detach().abs().max()))
        torch.testing.assert_close(ours.double(), expected, rtol=0, atol=tolerance * largest)


@contextmanager
def torch_threads(count: int):
    """Kernels split the work for this many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)

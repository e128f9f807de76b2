"""Attention in chunks of queries equals the definition."""

from dataclasses import replace

import pytest
import torch

from neural.nn import positionwise
from neural.nn.attention import registry as attention
from neural.nn.mask import Mask
from neural.nn.positionwise import PositionwiseMechanism, slice_mask
from neural.testing.attention_inputs import (
    B,
    H,
    compute_gradients,
    make_extra,
    make_mask,
    random_qkv,
)
from neural.testing.fixtures import count_saved_activations

NAMES = [
    "additive",
    "linear",
    *(name for name in attention.names() if issubclass(attention.get(name), PositionwiseMechanism)),
]
KINDS = [
    "none",
    "causal keys",
    "causal segments",
    "pairs",
    "bias causal keys",
    "key_bias bias keys window segments",
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("queries", "keys"), [(11, 11), (5, 11), (11, 5)])
def test_chunks_give_the_same_values_and_gradients(name, kind, queries, keys, monkeypatch):
    mechanism, qkv, mask = (
        attention.get(name).example(),
        random_qkv(queries, keys),
        make_mask(kind, queries, keys),
    )
    extra = make_extra(mechanism, *qkv[:2])
    optional = (mask.bias, mask.key_bias, extra)
    leaves = [*qkv, *(tensor for tensor in optional if tensor is not None)]
    expected = mechanism.weights(*qkv[:2], mask, extra) @ qkv[2]
    monkeypatch.setattr(positionwise, "MAX_CHUNK_ELEMENTS", 2 * keys)
    actual = mechanism.attend(*qkv, mask, extra=extra)
    torch.testing.assert_close(actual, expected)
    grad_out = torch.randn_like(actual)
    for actual_grad, expected_grad in zip(
        compute_gradients(actual, leaves, grad_out),
        compute_gradients(expected, leaves, grad_out),
        strict=True,
    ):
        torch.testing.assert_close(actual_grad, expected_grad)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("queries", "keys"), [(7, 7), (5, 7), (7, 5)])
def test_a_sliced_mask_has_the_rows_of_the_mask(kind, queries, keys):
    mask = make_mask(kind, queries, keys)
    full, bias = mask.to_keep_mask(queries, keys, torch.device("cpu")), mask.combine_biases()
    for first, last, visible in ((0, 2, keys), (2, 5, keys), (4, 5, 3)):
        sliced = slice_mask(mask, first, last, visible, queries, keys, torch.device("cpu"))
        keep = sliced.to_keep_mask(last - first, visible, torch.device("cpu"))
        if full is None:
            assert keep is None
        else:
            shape = (B, H, last - first, visible)
            assert torch.equal(
                keep.expand(shape), full.expand(B, H, queries, keys)[:, :, first:last, :visible]
            )
        if bias is not None:
            assert torch.equal(
                sliced.combine_biases(),
                bias.expand(*bias.shape[:-2], queries, keys)[..., first:last, :visible],
            )


def test_a_rule_that_broadcasts_is_sliced():
    mask = Mask(pairs=torch.tensor([True, False, True]), bias=torch.ones(5, 1))
    sliced = slice_mask(mask, 1, 3, 2, 5, 3, torch.device("cpu"))
    assert sliced.pairs.tolist() == [[[[True, False], [True, False]]]]
    assert sliced.bias.shape == (2, 2)


def test_dropout_is_the_same_when_weights_are_recomputed(monkeypatch):
    q, k, v = random_qkv(11, 11)
    monkeypatch.setattr(positionwise, "MAX_CHUNK_ELEMENTS", 22)
    torch.manual_seed(0)
    output = attention.get("topk")(k=3).attend(q, k, v, Mask(), dropout=0.5)
    (grad_v,) = torch.autograd.grad(output, v, torch.ones_like(output))
    # The output is linear in the values, so the gradient shows the weights that were used.
    torch.testing.assert_close((grad_v * v).sum(), output.sum())


@pytest.mark.parametrize("name", NAMES)
def test_saved_activations_are_not_quadratic(name):
    mechanism = attention.get(name).example()

    class Attention(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            q, k, v = x.unbind(dim=2)
            return mechanism.attend(q, k, v, Mask(), extra=extra)

    for time in (32, 512):
        x = torch.randn(2, 3, 3, time, 16, requires_grad=True)
        extra = make_extra(mechanism, x[:, :, 0], x[:, :, 1])
        extra = extra if extra is None else extra.detach()
        saved = count_saved_activations(Attention(), x)
        predicted = mechanism.cost(3, time, time, 16).activations
        assert 0.8 * saved <= predicted <= 1.25 * saved, (
            f"predicted {predicted}, saved {saved:g} at {time}"
        )
    assert saved < 3 * 512 * 512


def test_sampled_keys_are_the_same_when_weights_are_recomputed(monkeypatch):
    q, k, v = random_qkv(11, 11)
    monkeypatch.setattr(positionwise, "MAX_CHUNK_ELEMENTS", 22)
    torch.manual_seed(0)
    output = replace(attention.get("hard")(), sampled=True).attend(q, k, v, Mask())
    (grad_v,) = torch.autograd.grad(output, v, torch.ones_like(output))
    torch.testing.assert_close((grad_v * v).sum(), output.sum())

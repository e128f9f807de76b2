"""The definition on a few queries at a time."""

from dataclasses import replace

import pytest
import torch

from neural.contract.attention_inputs import B, H, extra_of, gradients, mask_of, three
from neural.contract.measured import kept_numbers
from neural.modules import rowwise
from neural.modules.attention import registry as attention
from neural.modules.mask import Mask
from neural.modules.rowwise import RowWise, rows_of

NAMES = ["additive", "linear", *(name for name in attention.names() if issubclass(attention.get(name), RowWise))]
KINDS = ["none", "causal keys", "causal segments", "pairs", "bias causal keys", "key_bias bias keys window segments"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("queries", "keys"), [(11, 11), (5, 11), (11, 5)])
def test_few_rows_at_a_time_give_the_same(name, kind, queries, keys, monkeypatch):
    mechanism, qkv, mask = attention.get(name).tiny(), three(queries, keys), mask_of(kind, queries, keys)
    extra = extra_of(mechanism, *qkv[:2])
    leaves = [*qkv, *(one for one in (mask.bias, mask.key_bias, extra) if one is not None)]
    wanted = mechanism.weights(*qkv[:2], mask, extra) @ qkv[2]
    monkeypatch.setattr(rowwise, "AT_ONCE", 2 * keys)
    found = mechanism.mix(*qkv, mask, extra=extra)
    torch.testing.assert_close(found, wanted)
    towards = torch.randn_like(found)
    for one, other in zip(gradients(found, leaves, towards), gradients(wanted, leaves, towards), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("queries", "keys"), [(7, 7), (5, 7), (7, 5)])
def test_the_mask_of_some_rows_is_those_rows_of_the_mask(kind, queries, keys):
    mask = mask_of(kind, queries, keys)
    whole, spread = mask.kept(queries, keys, torch.device("cpu")), mask.biases()
    for first, last, seen in ((0, 2, keys), (2, 5, keys), (4, 5, 3)):
        part = rows_of(mask, first, last, seen, queries, keys, torch.device("cpu"))
        kept = part.kept(last - first, seen, torch.device("cpu"))
        if whole is None:
            assert kept is None
        else:
            shape = (B, H, last - first, seen)
            assert torch.equal(kept.expand(shape), whole.expand(B, H, queries, keys)[:, :, first:last, :seen])
        if spread is not None:
            assert torch.equal(part.biases(), spread.expand(*spread.shape[:-2], queries, keys)[..., first:last, :seen])


def test_a_rule_that_spreads_is_cut_as_well():
    real = torch.tensor([True, False, True])
    part = rows_of(Mask(pairs=real, bias=torch.ones(5, 1)), 1, 3, 2, 5, 3, torch.device("cpu"))
    assert part.pairs.tolist() == [[[[True, False], [True, False]]]]
    assert part.bias.shape == (2, 2)


def test_dropout_is_the_same_when_the_weights_are_computed_again(monkeypatch):
    q, k, v = three(11, 11)
    monkeypatch.setattr(rowwise, "AT_ONCE", 22)
    torch.manual_seed(0)
    mixed = attention.get("topk")(k=3).mix(q, k, v, Mask(), dropout=0.5)
    (to_v,) = torch.autograd.grad(mixed, v, torch.ones_like(mixed))
    # it is linear in the values, so that its gradient tells the weights that were used
    torch.testing.assert_close((to_v * v).sum(), mixed.sum())


@pytest.mark.parametrize("name", NAMES)
def test_what_is_kept_does_not_grow_with_the_square(name):
    mechanism = attention.get(name).tiny()

    class Mixed(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            q, k, v = x.unbind(dim=2)
            return mechanism.mix(q, k, v, Mask(), extra=extra)

    for time in (32, 512):
        x = torch.randn(2, 3, 3, time, 16, requires_grad=True)
        extra = extra_of(mechanism, x[:, :, 0], x[:, :, 1])
        extra = extra if extra is None else extra.detach()
        kept, predicted = kept_numbers(Mixed(), x), mechanism.cost(3, time, time, 16).activations
        assert 0.8 * kept <= predicted <= 1.25 * kept, f"predicted {predicted}, kept {kept:g} at {time}"
    assert kept < 3 * 512 * 512


def test_sampled_keys_are_the_same_when_they_are_drawn_again(monkeypatch):
    q, k, v = three(11, 11)
    monkeypatch.setattr(rowwise, "AT_ONCE", 22)
    torch.manual_seed(0)
    mixed = replace(attention.get("hard")(), sampled=True).mix(q, k, v, Mask())
    (to_v,) = torch.autograd.grad(mixed, v, torch.ones_like(mixed))
    torch.testing.assert_close((to_v * v).sum(), mixed.sum())

"""Addresses of heads, and rows that interventions change."""

import pytest
import torch

from neural.capture.interventions import (
    Head,
    HeadCall,
    InterventionError,
    parse_head,
    parse_heads,
    scale,
    zero,
)


@pytest.mark.parametrize(
    "address", ["L2 h3", "l2 h3", "L2h3", "L2.3", " L2 h3 ", (2, 3), Head(2, 3)]
)
def test_a_head_can_be_written_in_several_ways(address):
    assert parse_head(address) == Head(2, 3)
    assert str(parse_head(address)) == "L2 h3"


def test_a_module_path_is_an_address():
    assert parse_head(("encoder.0.attn", 1)) == Head("encoder.0.attn", 1)
    assert parse_heads([("encoder.0.attn", 1), "L0 h0"]) == [Head("encoder.0.attn", 1), Head(0, 0)]
    assert parse_heads("all") is None


@pytest.mark.parametrize("address", ["", "L2", "h3", "2 3 4", (2,), (2, 3.5), (-1, 0), (0, -1), 7])
def test_other_addresses_are_refused(address):
    with pytest.raises(InterventionError, match="is not a head"):
        parse_head(address)


def make_call(layer=0):
    output = torch.arange(48.0).reshape(2, 3, 4, 2) + 1
    return HeadCall(layer, "path", output, lambda: output)


def test_heads_of_other_layers_stay():
    call = make_call(layer=1)
    assert zero("L0 h1").apply(call) is call.output
    assert not zero("L0 h1").targets(1, "path")
    assert zero(("path", 1)).targets(1, "path")


def test_a_boolean_mask_selects_examples():
    call = make_call()
    changed = zero("L0 h1", examples=torch.tensor([False, True])).apply(call)
    assert torch.equal(changed[0], call.output[0])
    assert changed[1, 1].eq(0).all()
    assert torch.equal(changed[1, [0, 2]], call.output[1, [0, 2]])
    with pytest.raises(InterventionError, match=r"a mask of \(3,\), but the call has 2 examples"):
        zero("L0 h1", examples=torch.ones(3, dtype=torch.bool)).apply(call)


def test_negative_positions_count_from_the_end():
    call = make_call()
    changed = scale("L0 h2", 2.0, positions=[-1]).apply(call)
    expected = call.output.clone()
    expected[:, 2, -1] *= 2
    assert torch.equal(changed, expected)


def test_no_rows_change_nothing():
    call = make_call()
    assert torch.equal(zero("L0 h1", examples=[]).apply(call), call.output)

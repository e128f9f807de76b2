"""What every layer promises: what it declares is what its module does."""

import copy
import io
import pickle

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from neural.modules.layers import registry as layers
from tests.contract.subjects import B, batch, built, kept_numbers, plain_kernels, step_by_step
from tests.programs import network

LAYERS = layers.names()
every_layer = pytest.mark.parametrize("name", LAYERS)
every_masked_layer = pytest.mark.parametrize("name", [one for one in LAYERS if layers.get(one).tiny()[0].uses_mask])
CLOSE_ENOUGH = (0.8, 1.25)
"""Predicted over measured activations: kernels differ in what they keep, by less than this."""


@every_layer
def test_the_predicted_shape_is_the_real_one(name):
    layer, shape, module = built(name)
    assert tuple(module(batch(layer, shape)).shape) == (B, *layer.shape(shape))


@every_layer
def test_the_predicted_parameters_are_the_real_ones(name):
    layer, shape, module = built(name)
    assert layer.cost(shape).parameters == sum(one.numel() for one in module.parameters())


@every_layer
def test_the_predicted_multiply_adds_are_the_counted_ones(name):
    layer, shape, module = built(name)
    with plain_kernels(), FlopCounterMode(display=False) as counter:
        module(batch(layer, shape))
    assert 2 * B * layer.cost(shape).multiply_adds == counter.get_total_flops()


@every_layer
def test_the_predicted_activations_are_close_to_the_kept_ones(name):
    layer, shape, module = built(name)
    x = batch(layer, shape)
    with step_by_step():
        kept = kept_numbers(module.train(), x.requires_grad_(x.is_floating_point()))
    predicted = layer.cost(shape).activations
    least, most = CLOSE_ENOUGH
    assert least * kept <= predicted <= most * kept, f"predicted {predicted}, kept {kept:g}"


@every_layer
def test_a_layer_builds_without_memory(name):
    layer, shape, _ = built(name)
    with torch.device("meta"):
        module = layer.build(shape)
    assert all(one.is_meta for one in (*module.parameters(), *module.buffers()))
    assert tuple(module(batch(layer, shape, device="meta")).shape) == (B, *layer.shape(shape))


@every_layer
def test_predictions_are_the_same_every_time(name):
    layer, shape, module = built(name)
    module.eval()
    x = batch(layer, shape)
    assert torch.equal(module(x), module(x))


@every_layer
def test_examples_do_not_influence_each_other(name):
    layer, shape, module = built(name)
    module.eval()
    x, other = batch(layer, shape), batch(layer, shape, seed=1)
    other[0] = x[0]
    assert not torch.equal(x, other)
    assert torch.equal(module(x)[0], module(other)[0])
    torch.testing.assert_close(module(x)[:1], module(x[:1]))


@every_layer
def test_every_parameter_gets_a_gradient(name):
    layer, shape, module = built(name)
    y = module(batch(layer, shape))
    if not y.requires_grad:
        assert not list(module.parameters())
        return
    y.backward(torch.randn_like(y))
    for path, one in module.named_parameters():
        assert one.grad is not None, path
        assert one.grad.isfinite().all(), path
        assert one.ndim < 2 or one.grad.count_nonzero(), path


@every_layer
def test_the_input_gets_a_gradient(name):
    layer, shape, module = built(name)
    x = batch(layer, shape)
    if not x.is_floating_point():
        return
    y = module.eval()(x.requires_grad_())
    y.backward(torch.randn_like(y))
    assert x.grad.isfinite().all()
    assert x.grad.count_nonzero()


@every_layer
def test_a_state_dict_makes_another_instance_the_same(name):
    layer, shape, module = built(name)
    file = io.BytesIO()
    torch.save(module.state_dict(), file)
    file.seek(0)
    torch.manual_seed(1)
    other = layer.build(shape)
    other.load_state_dict(torch.load(file, weights_only=True))
    x = batch(layer, shape)
    assert torch.equal(module.eval()(x), other.eval()(x))


@every_layer
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))], ids=["copy", "pickle"])
def test_a_copy_is_the_same_and_its_own(name, copied):
    layer, shape, module = built(name)
    module.eval()
    other, x = copied(module), batch(layer, shape)
    assert isinstance(other, torch.nn.Module)
    assert not other.training
    before = module(x)
    assert torch.equal(before, other(x))
    with torch.no_grad():
        for one in other.parameters():
            one.fill_(1)
    assert torch.equal(before, module(x))


@every_layer
def test_a_layer_works_in_double_precision(name):
    layer, shape, module = built(name)
    module.eval()
    x = batch(layer, shape)
    y = module(x)
    again = module.double()(x.double() if x.is_floating_point() else x)
    assert again.dtype == torch.float64
    torch.testing.assert_close(again.float(), y)


@every_layer
def test_a_layer_works_in_mixed_precision(name):
    layer, shape, module = built(name)
    x = batch(layer, shape)
    y = module.eval()(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        again = module(x)
    torch.testing.assert_close(again.float(), y, rtol=0.05, atol=0.05)
    assert again.shape == y.shape


@every_layer
def test_a_layer_stands_in_a_program_as_it_prints_itself(name):
    layer, shape, _ = built(name)
    written = f"network One {{\n input: {'(' + ''.join(f'{dim},' for dim in shape) + ')'}\n layers:\n  {layer!r}\n}}"
    placed = [one for one in network(written).layers if not one.automatic]
    assert [one.layer for one in placed] == [layer]
    assert placed[0].gives == layer.shape(shape)


# --- padding ------------------------------------------------------------------------------------------------


def padding(time: int) -> torch.Tensor:
    """Two sequences with real positions and padding: at the end, in the middle, at the start."""
    mask = torch.ones(B, time, dtype=torch.bool)
    mask[0, 3], mask[0, -2:], mask[1, 0] = False, False, False
    return mask


def real(layer, y: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """What padding must not change: everything, or where time is kept, what stands at real positions."""
    if not (layer.keeps_time and y.ndim == 3 and y.shape[1] >= mask.shape[1]):
        return y
    return y[:, : mask.shape[1]][mask]


@every_masked_layer
def test_what_stands_in_the_padding_changes_nothing(name):
    layer, shape, module = built(name)
    module.eval()
    x, mask = batch(layer, shape), padding(shape[0])
    other = torch.where(mask.unsqueeze(-1), x, 100 * torch.randn_like(x))
    assert torch.equal(real(layer, module(x, mask), mask), real(layer, module(other, mask), mask))
    assert not torch.allclose(real(layer, module(x), mask), real(layer, module(other), mask)), "without a mask it does"


@every_masked_layer
def test_more_padding_changes_nothing(name):
    layer, shape, module = built(name)
    module.eval()
    x, mask = batch(layer, shape), padding(shape[0])
    y = module(x, mask)
    if y.ndim == 3 and not layer.keeps_time:
        return   # windows of its own: what stands where depends on the length
    longer = torch.cat((x, torch.randn(B, 5, *shape[1:])), dim=1)
    longer_mask = torch.cat((mask, torch.zeros(B, 5, dtype=torch.bool)), dim=1)
    torch.testing.assert_close(real(layer, module(longer, longer_mask), mask), real(layer, y, mask))


@every_masked_layer
def test_a_mask_that_keeps_everything_is_no_mask(name):
    layer, shape, module = built(name)
    module.eval()
    x = batch(layer, shape)
    torch.testing.assert_close(module(x, torch.ones(B, shape[0], dtype=torch.bool)), module(x))


@every_masked_layer
def test_a_sequence_of_nothing_but_padding_is_finite_forward_and_backward(name):
    layer, shape, module = built(name)
    x = batch(layer, shape).requires_grad_()
    y = module(x, torch.tensor([True, False]).unsqueeze(-1).expand(B, shape[0]))
    assert y.isfinite().all()
    y.sum().backward()
    assert all(one.grad.isfinite().all() for one in (x, *module.parameters()))

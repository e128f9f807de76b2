"""What every layer promises: what it declares is what its module does."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from neural.contract.measured import B, Sizes, batch, built, kept_numbers, plain_kernels, step_by_step
from neural.contract.promise import hold, promise, same
from neural.language.check import check
from neural.language.layer import Layer
from neural.modules.late import late, torch
from neural.standard import CATALOGUE

if TYPE_CHECKING:
    from torch import Tensor, nn

flop_counter = late("torch.utils.flop_counter")

CLOSE_ENOUGH = (0.8, 1.25)
"""Predicted over measured activations: kernels differ in what they keep, by less than this."""


def has_shape(y: Tensor, layer: Layer, shape: Sizes) -> None:
    """As the layer predicts it."""
    predicted, real = layer.shape(shape), tuple(y.shape[1:])
    hold(y.shape[0] == B and real == predicted, f"`shape{shape}` predicts {predicted} per example, and it is {real}")


def counts_parameters(module: nn.Module, layer: Layer, shape: Sizes) -> None:
    """As the layer predicts it."""
    predicted, real = layer.cost(shape).parameters, sum(one.numel() for one in module.parameters())
    hold(predicted == real, f"`cost{shape}` predicts {predicted:,} parameters, and there are {real:,}")


def reaches_every_parameter(module: nn.Module, y: Tensor) -> None:
    """By a gradient, from the result."""
    if not y.requires_grad:
        hold(not list(module.parameters()), "no gradient reaches the parameters")
        return
    y.backward(torch.randn_like(y))
    for path, one in module.named_parameters():
        if one.grad is None:
            raise AssertionError(f"no gradient reaches the parameter `{path}`")
        hold(one.grad.isfinite().all(), f"the gradient of `{path}` is not finite")
        hold(one.ndim < 2 or one.grad.count_nonzero() > 0, f"the gradient of `{path}` is zero")


@promise()
def the_predicted_shape_is_the_real_one(entry: type[Layer]) -> None:
    """`neural check` tells shapes before anything is built."""
    layer, shape, module = built(entry)
    has_shape(module(batch(layer, shape)), layer, shape)


@promise()
def the_predicted_parameters_are_the_real_ones(entry: type[Layer]) -> None:
    """To the last one."""
    layer, shape, module = built(entry)
    counts_parameters(module, layer, shape)


@promise()
def the_predicted_multiply_adds_are_the_counted_ones(entry: type[Layer]) -> None:
    """As torch counts products of matrices."""
    layer, shape, module = built(entry)
    with plain_kernels(), flop_counter.FlopCounterMode(display=False) as counter:
        module(batch(layer, shape))
    predicted, counted = layer.cost(shape).multiply_adds, counter.get_total_flops() / (2 * B)
    hold(predicted == counted, f"`cost{shape}` predicts {predicted:,} multiply-adds, torch counts {counted:,g}")


@promise()
def the_predicted_activations_are_close_to_the_kept_ones(entry: type[Layer]) -> None:
    """What autograd keeps for the way back, and the result."""
    layer, shape, module = built(entry)
    x = batch(layer, shape)
    with step_by_step():
        kept = kept_numbers(module.train(), x.requires_grad_(x.is_floating_point()))
    predicted = layer.cost(shape).activations
    least, most = CLOSE_ENOUGH
    hold(least * kept <= predicted <= most * kept, f"`cost{shape}` predicts {predicted:,} kept numbers, kept {kept:g}")


@promise()
def a_layer_builds_without_memory(entry: type[Layer]) -> None:
    """On torch's meta device, all of it."""
    layer, shape, _ = built(entry)
    with torch.device("meta"):
        module = layer.build(shape)
    hold(all(one.is_meta for one in (*module.parameters(), *module.buffers())), "something was built on a real device")
    has_shape(module(batch(layer, shape, device="meta")), layer, shape)


@promise()
def predictions_are_the_same_every_time(entry: type[Layer]) -> None:
    """After `eval()`."""
    layer, shape, module = built(entry)
    module.eval()
    x = batch(layer, shape)
    hold(torch.equal(module(x), module(x)), "the same input gives another result the second time, after `eval()`")


@promise()
def examples_do_not_influence_each_other(entry: type[Layer]) -> None:
    """Not to the last bit."""
    layer, shape, module = built(entry)
    module.eval()
    x, other = batch(layer, shape), batch(layer, shape, seed=1)
    other[0] = x[0]
    hold(not torch.equal(x, other), "`tiny` leaves no room for two different examples")
    hold(torch.equal(module(x)[0], module(other)[0]), "an example changes with the others of its batch")
    same(module(x)[:1], module(x[:1]), "an example alone gives something else than in a batch")


@promise()
def every_parameter_gets_a_gradient(entry: type[Layer]) -> None:
    """That is finite, and not zero in all of a matrix."""
    layer, shape, module = built(entry)
    reaches_every_parameter(module, module(batch(layer, shape)))


@promise()
def the_input_gets_a_gradient(entry: type[Layer]) -> None:
    """Where it is numbers."""
    layer, shape, module = built(entry)
    x = batch(layer, shape)
    if not x.is_floating_point():
        return
    y = module.eval()(x.requires_grad_())
    y.backward(torch.randn_like(y))
    reached = x.grad is not None and bool(x.grad.isfinite().all()) and bool(x.grad.count_nonzero())
    hold(reached, "the gradient of the input is missing, zero or not finite")


@promise()
def a_state_dict_makes_another_instance_the_same(entry: type[Layer]) -> None:
    """By way of a file that holds tensors alone."""
    layer, shape, module = built(entry)
    file = io.BytesIO()
    torch.save(module.state_dict(), file)
    file.seek(0)
    torch.manual_seed(1)
    other = layer.build(shape)
    other.load_state_dict(torch.load(file, weights_only=True))
    x = batch(layer, shape)
    hold(torch.equal(module.eval()(x), other.eval()(x)), "something that matters is not in the state dict")


def by_pickle(module: Any) -> Any:
    """As a process hands it to another."""
    return pickle.loads(pickle.dumps(module))


COPIES: dict[str, Callable[[Any], Any]] = {"copy": copy.deepcopy, "pickle": by_pickle}


@promise(way=tuple(COPIES))
def a_copy_is_the_same_and_its_own(entry: type[Layer], way: str) -> None:
    """Its parameters are not those of the original."""
    layer, shape, module = built(entry)
    module.eval()
    other, x = COPIES[way](module), batch(layer, shape)
    hold(isinstance(other, torch.nn.Module) and not other.training, "a copy is no module, or forgets `eval()`")
    before = module(x)
    hold(torch.equal(before, other(x)), "a copy gives something else")
    with torch.no_grad():
        for one in other.parameters():
            one.fill_(1)
    hold(torch.equal(before, module(x)), "a copy shares its parameters with the original")


@promise()
def a_layer_works_in_double_precision(entry: type[Layer]) -> None:
    """With the same result, and in that precision."""
    layer, shape, module = built(entry)
    module.eval()
    x = batch(layer, shape)
    y = module(x)
    again = module.double()(x.double() if x.is_floating_point() else x)
    hold(again.dtype == torch.float64, f"after `double()` the result is {again.dtype}")
    same(again.float(), y, "in double precision the result is another one")


@promise()
def a_layer_works_in_mixed_precision(entry: type[Layer]) -> None:
    """Under torch's autocast."""
    layer, shape, module = built(entry)
    x = batch(layer, shape)
    y = module.eval()(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        again = module(x)
    same(again.float(), y, "in mixed precision the result is another one", rtol=0.05, atol=0.05)


@promise()
def a_layer_stands_in_a_program_as_it_prints_itself(entry: type[Layer]) -> None:
    """Its `repr` is a line of a program that makes it again."""
    layer, shape, _ = built(entry)
    sizes = "".join(f"{dim}," for dim in shape)
    result = check(f"network One {{\n input: ({sizes})\n layers:\n  {layer!r}\n}}", CATALOGUE)
    wrong = [one.message for one in result.mistakes]
    hold(not wrong, f"a program with the layer {layer!r} has mistakes: {'; '.join(wrong)}")
    (network,) = result.networks
    placed = [one for one in network.layers if not one.automatic]
    hold([one.layer for one in placed] == [layer], f"the program's {layer!r} is another layer: {placed[0].layer!r}")
    hold(placed[0].gives == layer.shape(shape), "the program gives the layer another shape")

"""Contract rules of layers: the module matches the declaration, and padding has no influence.

A rule (rule.py) is called with `entry`, a layer class. A layer is a declaration: its arguments, and
methods that predict output shape and cost; `build(shape)` creates the torch module. Shapes of
declarations have no batch axis; costs are per example. Masks are True at real positions, False at
padding.
"""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from neural.language.check import check
from neural.language.layer import Layer
from neural.nn.lazy_torch import lazy_import, torch
from neural.optim.catalogue import CATALOGUE
from neural.testing.fixtures import (
    B,
    Sizes,
    build_example,
    count_saved_activations,
    disable_mkldnn,
    make_batch,
    use_math_kernels,
)
from neural.testing.rule import contract_rule, require, require_close

if TYPE_CHECKING:
    from torch import Tensor, nn

flop_counter = lazy_import("torch.utils.flop_counter")

ACTIVATION_RATIO_BOUNDS = (0.8, 1.25)
"""Allowed range of predicted / measured activations. Not exactly 1, because kernels differ in what
they save for the backward pass."""


def assert_shape(y: Tensor, layer: Layer, shape: Sizes) -> None:
    """Check that the output `y` has the shape the layer declares for the input `shape`."""
    predicted, real = layer.shape(shape), tuple(y.shape[1:])
    require(
        y.shape[0] == B and real == predicted,
        f"`shape{shape}` predicts {predicted} per example, the output is {real}",
    )


def assert_parameter_count(module: nn.Module, layer: Layer, shape: Sizes) -> None:
    """Check that the module has as many parameters as the layer declares for `shape`."""
    predicted = layer.cost(shape).parameters
    counted = sum(param.numel() for param in module.parameters())
    require(
        predicted == counted,
        f"`cost{shape}` predicts {predicted:,} parameters, the module has {counted:,}",
    )


def assert_gradients(module: nn.Module, y: Tensor) -> None:
    """Check that every parameter gets a finite gradient, and matrices one that is not zero."""
    if not y.requires_grad:
        require(not list(module.parameters()), "no gradient reaches the parameters")
        return
    y.backward(torch.randn_like(y))
    for name, param in module.named_parameters():
        if param.grad is None:
            raise AssertionError(f"no gradient reaches the parameter `{name}`")
        require(param.grad.isfinite().all(), f"the gradient of `{name}` is not finite")
        require(
            param.ndim < 2 or param.grad.count_nonzero() > 0, f"the gradient of `{name}` is zero"
        )


@contract_rule()
def the_predicted_shape_is_the_real_one(entry: type[Layer]) -> None:
    """`neural check` shows shapes before anything is built."""
    layer, shape, module = build_example(entry)
    assert_shape(module(make_batch(layer, shape)), layer, shape)


@contract_rule()
def the_predicted_parameters_are_the_real_ones(entry: type[Layer]) -> None:
    """`neural check` shows parameter counts before anything is built."""
    layer, shape, module = build_example(entry)
    assert_parameter_count(module, layer, shape)


@contract_rule()
def the_predicted_multiply_adds_are_the_counted_ones(entry: type[Layer]) -> None:
    """Torch's FLOP counter counts two FLOPs per multiply-add of a matrix product."""
    layer, shape, module = build_example(entry)
    with use_math_kernels(), flop_counter.FlopCounterMode(display=False) as counter:
        module(make_batch(layer, shape))
    predicted, counted = layer.cost(shape).multiply_adds, counter.get_total_flops() / (2 * B)
    require(
        predicted == counted,
        f"`cost{shape}` predicts {predicted:,} multiply-adds, torch counts {counted:,g}",
    )


@contract_rule()
def the_predicted_activations_are_close_to_the_saved_ones(entry: type[Layer]) -> None:
    """Activations are the values that autograd saves for the backward pass, and the output."""
    layer, shape, module = build_example(entry)
    x = make_batch(layer, shape)
    with disable_mkldnn():
        saved = count_saved_activations(module.train(), x.requires_grad_(x.is_floating_point()))
    predicted = layer.cost(shape).activations
    low, high = ACTIVATION_RATIO_BOUNDS
    require(
        low * saved <= predicted <= high * saved,
        f"`cost{shape}` predicts {predicted:,} activations, autograd saves {saved:g}",
    )


@contract_rule()
def a_layer_builds_on_the_meta_device(entry: type[Layer]) -> None:
    """No parameter or buffer is created on a real device."""
    layer, shape, _ = build_example(entry)
    with torch.device("meta"):
        module = layer.build(shape)
    require(
        all(tensor.is_meta for tensor in (*module.parameters(), *module.buffers())),
        "something was built on a real device",
    )
    assert_shape(module(make_batch(layer, shape, device="meta")), layer, shape)


@contract_rule()
def predictions_are_the_same_every_time(entry: type[Layer]) -> None:
    """Two calls after `eval()` give the same output."""
    layer, shape, module = build_example(entry)
    module.eval()
    x = make_batch(layer, shape)
    require(
        torch.equal(module(x), module(x)),
        "the second call with the same input gives a different output after `eval()`",
    )


@contract_rule()
def examples_do_not_influence_each_other(entry: type[Layer]) -> None:
    """Results are bit-identical whatever the other examples of the batch are."""
    layer, shape, module = build_example(entry)
    module.eval()
    x, other = make_batch(layer, shape), make_batch(layer, shape, seed=1)
    other[0] = x[0]
    require(not torch.equal(x, other), "`example` allows only one possible input")
    require(
        torch.equal(module(x)[0], module(other)[0]),
        "an example changes with the other examples of its batch",
    )
    require_close(
        module(x)[:1], module(x[:1]), "an example alone gives a different output than in a batch"
    )


@contract_rule()
def every_parameter_gets_a_gradient(entry: type[Layer]) -> None:
    """Gradients are finite, and those of matrices are not zero."""
    layer, shape, module = build_example(entry)
    assert_gradients(module, module(make_batch(layer, shape)))


@contract_rule()
def the_input_gets_a_gradient(entry: type[Layer]) -> None:
    """Checked if the input is floating point, not token ids."""
    layer, shape, module = build_example(entry)
    x = make_batch(layer, shape)
    if not x.is_floating_point():
        return
    y = module.eval()(x.requires_grad_())
    y.backward(torch.randn_like(y))
    reached = x.grad is not None and bool(x.grad.isfinite().all()) and bool(x.grad.count_nonzero())
    require(reached, "the gradient of the input is missing, zero or not finite")


@contract_rule()
def a_state_dict_restores_the_output(entry: type[Layer]) -> None:
    """The state dict is saved to a file and loaded with `weights_only=True`."""
    layer, shape, module = build_example(entry)
    file = io.BytesIO()
    torch.save(module.state_dict(), file)
    file.seek(0)
    torch.manual_seed(1)
    other = layer.build(shape)
    other.load_state_dict(torch.load(file, weights_only=True))
    x = make_batch(layer, shape)
    require(
        torch.equal(module.eval()(x), other.eval()(x)),
        "loading the state dict does not restore the output: a tensor is missing in it",
    )


def copy_by_pickle(module: Any) -> Any:
    """Copy by pickling, as `multiprocessing` does."""
    return pickle.loads(pickle.dumps(module))


COPY_METHODS: dict[str, Callable[[Any], Any]] = {"copy": copy.deepcopy, "pickle": copy_by_pickle}


@contract_rule(method=tuple(COPY_METHODS))
def a_copy_is_equal_and_independent(entry: type[Layer], method: str) -> None:
    """The copy's parameters are not those of the original."""
    layer, shape, module = build_example(entry)
    module.eval()
    other, x = COPY_METHODS[method](module), make_batch(layer, shape)
    require(
        isinstance(other, torch.nn.Module) and not other.training,
        "a copy is no module, or is in training mode though the original is not",
    )
    before = module(x)
    require(torch.equal(before, other(x)), "a copy gives a different output")
    with torch.no_grad():
        for param in other.parameters():
            param.fill_(1)
    require(torch.equal(before, module(x)), "a copy shares its parameters with the original")


@contract_rule()
def a_layer_works_in_double_precision(entry: type[Layer]) -> None:
    """The output is float64 and close to the float32 output."""
    layer, shape, module = build_example(entry)
    module.eval()
    x = make_batch(layer, shape)
    y = module(x)
    again = module.double()(x.double() if x.is_floating_point() else x)
    require(again.dtype == torch.float64, f"after `double()` the output is {again.dtype}")
    require_close(again.float(), y, "the output differs in double precision")


@contract_rule()
def a_layer_works_in_mixed_precision(entry: type[Layer]) -> None:
    """The output under `torch.autocast` with bfloat16 is close to that in float32."""
    layer, shape, module = build_example(entry)
    x = make_batch(layer, shape)
    y = module.eval()(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        again = module(x)
    require_close(again.float(), y, "the output differs in mixed precision", rtol=0.05, atol=0.05)


@contract_rule()
def repr_is_a_program_line_that_recreates_the_layer(entry: type[Layer]) -> None:
    """`repr` can be pasted into a `.neural` program."""
    layer, shape, _ = build_example(entry)
    sizes = "".join(f"{dim}," for dim in shape)
    result = check(f"network One {{\n input: ({sizes})\n layers:\n  {layer!r}\n}}", CATALOGUE)
    messages = "; ".join(error.message for error in result.errors)
    require(not messages, f"a program with the layer {layer!r} has errors: {messages}")
    (network,) = result.networks
    # without the automatic layers, which the language inserts
    written_layers = [placed for placed in network.layers if not placed.automatic]
    require(
        [placed.layer for placed in written_layers] == [layer],
        f"the program's {layer!r} is a different layer: {written_layers[0].layer!r}",
    )
    require(
        written_layers[0].output_shape == layer.shape(shape),
        "the layer's shape differs in the program",
    )


def uses_mask(entry: type[Layer]) -> bool:
    """Whether the layer's module takes a padding mask."""
    return entry.example()[0].uses_mask


def make_padding_mask(time: int) -> Tensor:
    """A mask for two sequences with padding at the end, in the middle and at the start."""
    mask = torch.ones(B, time, dtype=torch.bool)
    mask[0, 3], mask[0, -2:], mask[1, 0] = False, False, False
    return mask


def select_real_positions(layer: Layer, y: Tensor, mask: Tensor) -> Tensor:
    """The part of the output that padding must not change.

    The real positions if the layer keeps the time axis, else the whole output.
    """
    if not (layer.keeps_time and y.ndim == 3 and y.shape[1] >= mask.shape[1]):
        return y
    return y[:, : mask.shape[1]][mask]


@contract_rule(applies=uses_mask)
def values_in_the_padding_do_not_change_the_output(entry: type[Layer]) -> None:
    """The output is bit-identical with the mask, and different without it."""
    layer, shape, module = build_example(entry)
    module.eval()
    x, mask = make_batch(layer, shape), make_padding_mask(shape[0])
    other = torch.where(mask.unsqueeze(-1), x, 100 * torch.randn_like(x))
    is_equal = torch.equal(
        select_real_positions(layer, module(x, mask), mask),
        select_real_positions(layer, module(other, mask), mask),
    )
    require(is_equal, "values at padded positions change the output")
    is_equal = torch.allclose(
        select_real_positions(layer, module(x), mask),
        select_real_positions(layer, module(other), mask),
    )
    require(
        not is_equal,
        "values at padded positions change nothing even without a mask: `uses_mask` must be False",
    )


@contract_rule(applies=uses_mask)
def more_padding_does_not_change_the_output(entry: type[Layer]) -> None:
    """A batch is as long as its longest sequence."""
    layer, shape, module = build_example(entry)
    module.eval()
    x, mask = make_batch(layer, shape), make_padding_mask(shape[0])
    y = module(x, mask)
    if y.ndim == 3 and not (layer.keeps_time or layer.resizes_mask):
        return  # changes the time axis without an `output_mask`: real positions are unknown
    longer = torch.cat((x, torch.randn(B, 5, *shape[1:])), dim=1)
    longer_mask = torch.cat((mask, torch.zeros(B, 5, dtype=torch.bool)), dim=1)
    if layer.resizes_mask:
        longer_output = module(longer, longer_mask)
        longer_output = longer_output[module.output_mask(longer_mask, longer_output)]
        expected = y[module.output_mask(mask, y)]
        require_close(longer_output, expected, "five more positions of padding change real outputs")
        return
    longer_output = select_real_positions(layer, module(longer, longer_mask), mask)
    require_close(
        longer_output,
        select_real_positions(layer, y, mask),
        "five more positions of padding change the output",
    )


def resizes_mask(entry: type[Layer]) -> bool:
    """Whether the layer changes the length, and its module computes the mask of the output."""
    return entry.example()[0].resizes_mask


@contract_rule(applies=resizes_mask)
def the_mask_of_the_output_has_its_length(entry: type[Layer]) -> None:
    """A sequence without padding has an output without padding."""
    layer, shape, module = build_example(entry)
    y, mask = module.eval()(make_batch(layer, shape)), make_padding_mask(shape[0])
    output_mask: Any = module.output_mask
    require(
        output_mask(mask, y).shape == y.shape[:2],
        "`output_mask` must have one value per position of the output",
    )
    require(
        output_mask(torch.ones_like(mask), y).all(),
        "`output_mask` marks padding for a sequence without padding",
    )


@contract_rule(applies=uses_mask)
def an_all_true_mask_changes_nothing(entry: type[Layer]) -> None:
    """True means a real position."""
    layer, shape, module = build_example(entry)
    module.eval()
    x = make_batch(layer, shape)
    masked = module(x, torch.ones(B, shape[0], dtype=torch.bool))
    require_close(masked, module(x), "a mask that is True everywhere changes the output")


@contract_rule(applies=uses_mask)
def a_fully_padded_sequence_is_finite_forward_and_backward(entry: type[Layer]) -> None:
    """Output and gradients are never NaN or infinite."""
    layer, shape, module = build_example(entry)
    x = make_batch(layer, shape).requires_grad_()
    y = module(x, torch.tensor([True, False]).unsqueeze(-1).expand(B, shape[0]))
    require(y.isfinite().all(), "a fully padded sequence gives NaN or infinity")
    y.sum().backward()
    is_finite = all(
        tensor.grad is not None and tensor.grad.isfinite().all()
        for tensor in (x, *module.parameters())
    )
    require(is_finite, "a fully padded sequence gives a NaN or infinite gradient")

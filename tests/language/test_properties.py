"""Properties of all programs: formatting and parsing are inverse; checked networks learn."""

from __future__ import annotations

import json
import os

import torch
from hypothesis import HealthCheck, Phase, given, settings
from torch import Tensor, nn

from neural.language.formatter import format_program
from neural.language.network import Network
from neural.language.program_json import program_to_json
from neural.language.syntax import Program
from neural.nn.build import build
from tests.language.strategies import (
    TARGET_LENGTH,
    Sample,
    count_text_comments,
    count_tree_comments,
    programs,
    read,
    samples,
    strip_positions,
)

MAX_EXAMPLES = int(os.environ.get("EXAMPLES", "200"))
fixed_examples = settings(
    max_examples=MAX_EXAMPLES,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=MAX_EXAMPLES == 200,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
)
"""The same examples every time; `EXAMPLES=5000 pytest …` tries others."""

B = 2


@fixed_examples
@given(programs())
def test_formatting_and_parsing_give_the_same_tree(program: Program):
    assert strip_positions(read(format_program(program))) == strip_positions(program)


@fixed_examples
@given(programs(with_comments=True))
def test_formatting_is_idempotent(program: Program):
    once = format_program(program)
    assert format_program(read(once)) == once


@fixed_examples
@given(programs(with_comments=True))
def test_no_comment_is_lost_or_doubled(program: Program):
    once = format_program(program)
    assert count_text_comments(once) == count_tree_comments(program)
    assert count_tree_comments(read(once)) == count_tree_comments(program)
    assert strip_positions(read(once)) == strip_positions(program)


@fixed_examples
@given(programs())
def test_the_json_of_a_formatted_program_is_the_same(program: Program):
    data = program_to_json(program)
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert program_to_json(read(format_program(program))) == data


def make_inputs(network: Network) -> tuple[Tensor, ...]:
    """Inputs for two examples; of two sequences, the second one has another length."""
    vocabulary = getattr(network.layers[0].layer, "input_dim", 2)

    def make_input(shape: tuple[int, ...]) -> Tensor:
        return (
            torch.randint(0, vocabulary, shape) if network.takes_token_ids else torch.randn(shape)
        )

    sizes = tuple(int(size) for size in network.input)
    return (
        (make_input((B, *sizes)), make_input((B, TARGET_LENGTH, *sizes[1:])))
        if network.is_encoder_decoder
        else (make_input((B, *sizes)),)
    )


def make_target(network: Network, scores: Tensor) -> Tensor:
    """A target that the loss accepts, from the annotation of its signature."""
    annotation = str(type(network.loss).compute.__annotations__["target"])
    if annotation.startswith("Int"):
        return torch.randint(0, scores.shape[-1], scores.shape[:-1])
    return torch.rand(scores.shape)


def predict_sizes(network: Network) -> list[int | None]:
    """The sizes of the output; None where a window over an open size makes it unknown."""
    open_sizes = {"T": TARGET_LENGTH, "U": TARGET_LENGTH}
    return [size if isinstance(size, int) else open_sizes.get(size) for size in network.output]


def check_that_it_runs(network: Network, module: nn.Module) -> None:
    """A forward pass gives the predicted shape, and gradients reach every parameter."""
    inputs = make_inputs(network)
    module.eval()
    y = module(*inputs)
    sizes = [B, *predict_sizes(network)]
    assert len(sizes) == y.ndim and all(
        size in (None, got) for size, got in zip(sizes, y.shape, strict=True)
    ), y.shape
    assert torch.isfinite(y).all()
    module.train()
    scores = module.logits(*inputs)
    value = (
        module.loss(scores, make_target(network, scores))
        if network.loss is not None
        else scores.sum()
    )
    if any(parameter.requires_grad for parameter in module.parameters()):
        value.backward()
        without_gradient = [
            name for name, parameter in module.named_parameters() if parameter.grad is None
        ]
        assert not without_gradient


@fixed_examples
@given(samples())
def test_a_checked_network_builds_runs_and_has_the_predicted_shape_and_size(sample: Sample):
    torch.manual_seed(0)
    for network in (sample.network, sample.resolved):
        module = build(network)
        parameters = sum(parameter.numel() for parameter in module.parameters())
        assert parameters == network.cost.parameters, sample.text
    check_that_it_runs(sample.resolved, module)
    if sample.network.optimizer is not None and parameters:
        assert sample.network.optimizer.build(module.named_parameters())

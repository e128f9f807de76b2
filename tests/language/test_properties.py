"""What holds for every program: printing and reading undo each other; what passes `check` builds, runs and learns."""

from __future__ import annotations

import os

import torch
from hypothesis import HealthCheck, Phase, given, settings
from torch import Tensor, nn

from neural.language.interchange import from_json, to_json
from neural.language.network import Network
from neural.language.printer import print_program
from neural.language.syntax import Program
from neural.modules.build import build
from tests.language.strategies import (
    TARGET,
    Sample,
    comments_in,
    comments_of,
    one_of_each,
    programs,
    read,
    samples,
    without_places,
)

EXAMPLES = int(os.environ.get("EXAMPLES", "200"))
usual = settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=EXAMPLES == 200,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
)  # fmt: skip
"""The same examples every time; `EXAMPLES=5000 pytest …` tries others."""

B = 2


@usual
@given(programs())
def test_printing_and_reading_give_the_same_tree(program: Program):
    assert without_places(read(print_program(program))) == without_places(program)


@usual
@given(programs(commented=True))
def test_printing_twice_changes_nothing_more(program: Program):
    once = print_program(program)
    assert print_program(read(once)) == once


@usual
@given(programs(commented=True))
def test_no_comment_is_lost_or_doubled(program: Program):
    once = print_program(program)
    assert comments_in(once) == comments_of(program)
    assert comments_of(read(once)) == comments_of(program)
    assert without_places(read(once)) == without_places(program)


@usual
@given(programs().filter(one_of_each))
def test_a_program_survives_json(program: Program):
    back = from_json(to_json(program))
    order = sorted(program.items, key=lambda item: type(item).__name__ != "Block")
    assert without_places(back) == without_places(Program(items=tuple(order)))


def fed(network: Network) -> tuple[Tensor, ...]:
    """Two examples of what the network takes; for two sequences, the second one has another length."""
    vocabulary = getattr(network.layers[0].layer, "input_dim", 2)

    def one(shape: tuple[int, ...]) -> Tensor:
        return torch.randint(0, vocabulary, shape) if network.ids else torch.randn(shape)

    sizes = tuple(int(size) for size in network.input)
    return (one((B, *sizes)), one((B, TARGET, *sizes[1:]))) if network.two_streams else (one((B, *sizes)),)


def wanted(network: Network, scores: Tensor) -> Tensor:
    """A target that the loss can compare the scores with: what it takes stands in its signature."""
    annotation = str(type(network.loss).measure.__annotations__["target"])
    if annotation.startswith("Int"):
        return torch.randint(0, scores.shape[-1], scores.shape[:-1])
    return torch.rand(scores.shape)


def predicted(network: Network) -> list[int | None]:
    """The output's sizes; None where a window moved over an open one, so that nobody can know it beforehand."""
    open_sizes = {"T": TARGET, "U": TARGET}
    return [size if isinstance(size, int) else open_sizes.get(size) for size in network.output]


def check_that_it_runs(network: Network, module: nn.Module) -> None:
    """A forward pass gives the predicted shape, and gradients reach every parameter."""
    inputs = fed(network)
    module.eval()
    y = module(*inputs)
    sizes = [B, *predicted(network)]
    assert len(sizes) == y.ndim and all(size in (None, got) for size, got in zip(sizes, y.shape, strict=True)), y.shape
    assert torch.isfinite(y).all()
    module.train()
    scores = module.scores(*inputs)
    value = module.loss(scores, wanted(network, scores)) if network.loss is not None else scores.sum()
    if any(parameter.requires_grad for parameter in module.parameters()):
        value.backward()
        untouched = [name for name, parameter in module.named_parameters() if parameter.grad is None]
        assert not untouched


@usual
@given(samples())
def test_what_passes_the_check_builds_runs_and_has_the_predicted_shape_and_size(sample: Sample):
    torch.manual_seed(0)
    for network in (sample.network, sample.settled):
        module = build(network)
        parameters = sum(parameter.numel() for parameter in module.parameters())
        assert parameters == network.cost.parameters, sample.text
    check_that_it_runs(sample.settled, module)
    if sample.network.optimizer is not None and parameters:
        assert sample.network.optimizer.build(module.named_parameters())

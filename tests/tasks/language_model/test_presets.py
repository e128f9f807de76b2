"""Presets of language models, as programs."""

from typing import get_args

import pytest

from neural.core.diagnostics import DiagnosticCollector
from neural.language.check import check
from neural.language.formatter import format_program
from neural.language.parser import parse
from neural.optim.catalogue import CATALOGUE
from neural.optim.schedule import Schedule
from neural.tasks.language_model.presets import PRESET_SIZES, Architecture, Preset, write_program

every_preset = pytest.mark.parametrize(
    ("preset", "architecture"),
    [
        (preset, architecture)
        for preset in get_args(Preset)
        for architecture in get_args(Architecture)
    ],
)


def check_preset(*args, **settings):
    result = check(write_program(*args, **settings), CATALOGUE)
    assert not result.errors, result.errors
    return result.networks[0]


@every_preset
def test_a_preset_is_a_valid_program(preset, architecture):
    network = check_preset(preset, architecture, 65)
    size = PRESET_SIZES[preset]
    assert network.input == (size.context,)
    assert network.output == (size.context, 65)
    assert (network.train.batch_size, network.train.steps) == size.batch_and_steps(architecture)
    assert network.loss is not None


@every_preset
def test_a_preset_is_laid_out_as_by_the_formatter(preset, architecture):
    text = write_program(preset, architecture, 65)
    assert format_program(parse(text, DiagnosticCollector())) == text


def test_the_full_size_has_the_parameters_of_the_published_one():
    """10.65 million without the position embeddings, as nanoGPT counts them."""
    classic = check_preset("full", "classic", 65)
    assert classic.cost.parameters - 256 * 384 == 10_646_784


@every_preset
@pytest.mark.parametrize("steps", [1, 7, 300, 9000])
def test_the_learning_rate_decays_over_the_actual_steps(preset, architecture, steps):
    network = check_preset(preset, architecture, 65, steps=steps)
    schedule = network.optimizer.learning_rate
    assert isinstance(schedule, Schedule)
    assert network.train.steps == steps
    rates = [schedule.learning_rate_at(step) for step in range(steps + 1)]
    assert max(rates) == schedule.peak_learning_rate
    assert rates[-1] == min(rates[steps // 10 + 1 :]) <= schedule.peak_learning_rate / 10


def test_the_classic_cpu_recipe_is_the_published_one():
    assert PRESET_SIZES["nanogpt_cpu"].batch_and_steps("classic") == (12, 2000)


def test_another_context_is_written_into_the_program():
    assert check_preset("tiny", "modern", 11, 23).input == (23,)

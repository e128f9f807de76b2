"""Language models ready to train, as programs."""

from typing import get_args

import pytest

from neural.language.check import check
from neural.standard import CATALOGUE
from neural.tasks._presets import SIZES, Architecture, Preset, program_of
from neural.training.schedule import Schedule

every_one = pytest.mark.parametrize(
    ("preset", "architecture"), [(one, other) for one in get_args(Preset) for other in get_args(Architecture)]
)


def checked(*given, **more):
    found = check(program_of(*given, **more), CATALOGUE)
    assert not found.mistakes, found.mistakes
    return found.networks[0]


@every_one
def test_a_preset_is_a_program_without_mistakes(preset, architecture):
    network = checked(preset, architecture, 65)
    size = SIZES[preset]
    assert network.input == (size.context,)
    assert network.output == (size.context, 65)
    assert (network.train.batch_size, network.train.steps) == size.length(architecture)
    assert network.loss is not None


def test_the_full_size_has_the_parameters_of_the_published_one():
    """10.65 million without the table of positions, as nanoGPT counts them."""
    classic = checked("full", "classic", 65)
    assert classic.cost.parameters - 256 * 384 == 10_646_784


@every_one
@pytest.mark.parametrize("steps", [1, 7, 300, 9000])
def test_the_rate_falls_over_the_steps_that_are_made(preset, architecture, steps):
    network = checked(preset, architecture, 65, steps=steps)
    schedule = network.optimizer.learning_rate
    assert isinstance(schedule, Schedule)
    assert network.train.steps == steps
    rates = [schedule.at(step) for step in range(steps + 1)]
    assert max(rates) == schedule.peak
    assert rates[-1] == min(rates[steps // 10 + 1 :]) <= schedule.peak / 10


def test_the_classic_recipe_for_a_processor_is_the_published_one():
    assert SIZES["nanogpt_cpu"].length("classic") == (12, 2000)


def test_another_context_is_written_into_the_program():
    assert checked("tiny", "modern", 11, 23).input == (23,)

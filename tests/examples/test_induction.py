"""examples/induction: its text, its experiment, and how its benchmark finds the phase change."""

import importlib.util
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from neural.runs.run import Run
from neural.workflows.train import TrainRequest, prepare_training, train

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples/induction"


def load_module(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def text():
    return load_module(FOLDER / "repeat_symbols.py")


@pytest.fixture(scope="module")
def phase():
    before = list(sys.path)
    yield load_module(ROOT / "benchmarks/induction_phase.py")
    sys.path[:] = before


def split_blocks(text, copies, shortest=8, longest=24):
    """Lengths of the blocks of a text, found from their repetition alone."""
    lengths, start = [], 0
    while start + copies * longest <= len(text):
        block_lengths = [
            size
            for size in range(shortest, longest + 1)
            if text[start : start + copies * size] == copies * text[start : start + size]
        ]
        assert len(block_lengths) == 1
        lengths += block_lengths
        start += copies * block_lengths[0]
    return lengths


def test_a_text_consists_of_blocks_that_are_repeated(text):
    generated = text.generate_repeats(20_000, seed=5)
    assert len(generated) == 20_000 and set(generated) == set(text.SYMBOLS)
    lengths = split_blocks(generated, text.COPIES)
    assert set(lengths) == set(range(text.MIN_BLOCK, text.MAX_BLOCK + 1))
    start = 0
    for length in lengths:
        assert len(set(generated[start : start + length])) == length
        start += text.COPIES * length


def test_a_seed_determines_the_text(text):
    assert text.generate_repeats(999, 1) == text.generate_repeats(999, 1)
    assert text.generate_repeats(999, 1) != text.generate_repeats(999, 2)


def test_the_control_has_no_repeated_blocks(text):
    control = text.generate_repeats(5000, 0, copies=1)
    blocks = {control[start : start + 8] for start in range(len(control) - 8)}
    assert len(blocks) == len(control) - 8


def run_script(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["repeat_symbols.py", *arguments])
    runpy.run_path(str(FOLDER / "repeat_symbols.py"), run_name="__main__")


def test_the_script_writes_a_text(text, tmp_path, monkeypatch):
    path = tmp_path / "repeats.txt"
    run_script(monkeypatch, str(path), "--length", "500", "--seed", "3")
    assert path.read_text() == text.generate_repeats(500, 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing/repeats.txt", "--length", "9"], "cannot be written: No such file"),
        (["repeats.txt", "--length", "0"], "--length and --copies must be at least 1"),
        (["repeats.txt", "--copies", "0"], "--length and --copies must be at least 1"),
    ],
)
def test_wrong_arguments_are_explained(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match=message):
        run_script(monkeypatch, *arguments)


def test_the_experiment_keeps_a_checkpoint_of_every_snapshot(text, tmp_path):
    (tmp_path / "short.txt").write_text(text.generate_repeats(4000, 0))
    every_two_steps = (
        "training.validate_every",
        "training.checkpoint_every",
        "tracking.track_every",
    )
    overrides = (
        f'data="{tmp_path / "short.txt"}"',
        *("training.steps=6", "training.warmup_steps=1", "training.batch_size=2"),
        *(f"{key}=2" for key in every_two_steps),
    )
    request = TrainRequest(str(FOLDER / "induction.yaml"), overrides, runs=str(tmp_path / "runs"))
    run, _ = train(prepare_training(request))
    reopened = Run.open(run.path)
    assert [info.step for info in reopened.checkpoints()] == [2, 4, 6]
    assert {"induction_mass", "previous_token_mass"} <= set(reopened.measure_names())
    # the intervals that were overridden are equal in the file, too
    file = yaml.safe_load((FOLDER / "induction.yaml").read_text())
    sections = [key.split(".") for key in every_two_steps]
    assert len({file[section][name] for section, name in sections}) == 1


def test_the_phase_change_is_the_steepest_fall(phase):
    losses = np.array([3.7, 3.68, 3.6, 3.4, 1.9, 0.8, 0.5, 0.4])
    assert phase.find_phase_change(losses, chance_loss=3.69) == 4


def test_a_loss_that_hardly_falls_has_no_phase_change(phase):
    losses = 3.69 + 0.02 * np.random.default_rng(0).normal(size=20)
    assert phase.find_phase_change(losses, chance_loss=3.69) is None
    assert phase.find_phase_change(np.array([0.1]), chance_loss=3.69) is None


def test_half_of_the_importance_is_found_despite_first_signs_and_noise(phase):
    steps = np.arange(50, 1050, 50)
    noise = 0.01 * np.random.default_rng(1).normal(size=20)
    change = np.where(steps >= 450, 0.4, np.where(steps >= 150, 0.04, 0)) + noise
    assert phase.find_half_step(steps, change) == 450
    assert phase.find_half_step(steps, -change) is None


def test_a_step_agrees_within_one_snapshot(phase):
    fields = dict.fromkeys(phase.PhaseResult.__dataclass_fields__, 0)
    result = phase.PhaseResult(**{**fields, "truth": 400, "snapshot": 50})
    assert result.agrees(350) and result.agrees(450)
    assert not result.agrees(300) and not result.agrees(500) and not result.agrees(None)
    without_truth = phase.PhaseResult(**{**fields, "truth": None, "snapshot": 50})
    assert not without_truth.agrees(400)

"""Sample texts are generated and measured during training, with the same metrics after a resume."""

import math

import numpy as np
import pytest
from click.testing import CliRunner

from neural.cli.main import main
from neural.core.errors import TaskError
from neural.core.settings import dump_settings
from neural.findings.sample_quality import REAL_TEXT_KEY, SAMPLES_KEY
from neural.optim.catalogue import CATALOGUE
from neural.runs.run import Run
from neural.tasks.supervised.task import Supervised
from neural.training.engine import fit
from neural.training.load_task import load_task
from neural.workflows.samples import SampleEvaluator, SampleSettings
from neural.workflows.train import create_run
from tests.studies import write_study

SAMPLES = SampleSettings(number=3, length=60)
OVERRIDES = ["data=numbers.txt", "training.validate_every=4", "tracking.track_every=4"]


def load_small_task(folder, *overrides):
    write_study(folder)
    return load_task(folder / "small.yaml", [*OVERRIDES, *overrides])


def train(folder, name="uninterrupted", *, samples=SAMPLES, on_step=lambda progress: None):
    task = load_small_task(folder)
    run = create_run(task, folder / name, samples=dump_settings(SAMPLES))
    fit(
        task,
        run,
        extra_metrics=SampleEvaluator(task, samples).record_to(run) if samples else None,
        on_step=on_step,
    )
    return Run.open(run.path)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    return train(tmp_path_factory.mktemp("samples"))


def collect_rows(run):
    return [
        row
        for row in run.scalar_rows()
        if row[1].startswith(("generation/", "valid/", "train/loss"))
    ]


def test_every_validation_has_measured_texts(uninterrupted):
    steps, bits = uninterrupted.scalars("generation/bits")
    assert list(steps) == [4, 8, 12]
    assert np.isfinite(bits).all() and (bits > 0).all()
    assert {"generation/novelty", "generation/distinct_2", "generation/repeated_8"} <= set(
        uninterrupted.scalar_names()
    )
    texts = uninterrupted.metadata(SAMPLES_KEY)
    assert list(texts) == ["4", "8", "12"]
    assert {len(text) for text in texts.values()} == {60}
    assert texts["4"] != texts["12"]
    assert uninterrupted.metadata(REAL_TEXT_KEY)["generation/novelty"] == 0


def test_samples_do_not_change_the_training(uninterrupted, tmp_path):
    without = train(tmp_path, samples=None)
    assert "generation/bits" not in without.scalar_names()
    assert (
        without.scalars("train/loss")[1].tolist() == uninterrupted.scalars("train/loss")[1].tolist()
    )


def test_a_resumed_run_has_the_same_texts(uninterrupted, tmp_path):
    def fail(progress):
        if progress.step == 6:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        train(tmp_path, "runs", on_step=fail)
    (path,) = (tmp_path / "runs").glob("[!.]*")
    result = CliRunner().invoke(main, ["train", "--resume", str(path), "--quiet"])
    assert result.exit_code == 0, result.output
    resumed = Run.open(path)
    assert collect_rows(resumed) == collect_rows(uninterrupted)
    assert resumed.metadata(SAMPLES_KEY) == uninterrupted.metadata(SAMPLES_KEY)


def test_texts_depend_on_the_seed_and_the_temperature(tmp_path):
    task = load_small_task(tmp_path)
    model = task.build().eval()
    first = SampleEvaluator(task, SAMPLES).generate_texts(model)
    assert first == SampleEvaluator(task, SAMPLES).generate_texts(model)
    assert first != SampleEvaluator(
        task, SampleSettings(number=3, length=60, seed=1)
    ).generate_texts(model)
    greedy = SampleEvaluator(
        task, SampleSettings(number=3, length=60, temperature=0)
    ).generate_texts(model)
    assert len(set(greedy)) == 1, "temperature 0 is deterministic"
    many = SampleEvaluator(task, SampleSettings(number=34, length=60)).generate_texts(model)
    assert many[:3] == first and len(many) == 34


def test_bytes_are_compared_byte_for_byte(tmp_path):
    write_study(tmp_path)
    (tmp_path / "umlauts.txt").write_text("äöü ß\n" * 300, encoding="utf-8")
    program = (tmp_path / "small.neural").read_text().replace("18", "256")
    (tmp_path / "small.neural").write_text(program)
    task = load_task(tmp_path / "small.yaml", ["data=umlauts.txt", "units=bytes"])
    evaluator = SampleEvaluator(task, SAMPLES)
    assert len(evaluator.references.training) == task.windows.train_end
    assert evaluator.references.held_out.endswith("Ã¼ Ã\x9f\n")
    assert {len(text) for text in evaluator.generate_texts(task.build().eval())} == {60}
    assert all(
        math.isfinite(value)
        for value in evaluator(0, task.build().eval()).values()
        if value == value
    )


@pytest.mark.parametrize(
    ("overrides", "samples", "message"),
    [
        ((), SampleSettings(prompt="Q"), "character 1 of the prompt, 'Q'"),
        ((), SampleSettings(length=5000), "samples of 5,000 characters are longer than the"),
        (("validation_split=0",), SAMPLES, "`validation_split` must be above 0"),
        (("training.shard=true",), SAMPLES, "`training.shard`"),
    ],
)
def test_impossible_samples_are_refused_before_training(tmp_path, overrides, samples, message):
    with pytest.raises(TaskError, match=message.replace("`", ".")):
        SampleEvaluator(load_small_task(tmp_path, *overrides), samples)


def test_only_language_models_have_samples(tmp_path):
    with pytest.raises(TaskError, match="not `supervised`"):
        SampleEvaluator(Supervised.example(tmp_path, CATALOGUE), SAMPLES)


def test_a_misspelt_key_is_located_in_the_option(tmp_path):
    write_study(tmp_path)
    arguments = [
        "train",
        str(tmp_path / "small.yaml"),
        "--set",
        "data=numbers.txt",
        "--runs",
        str(tmp_path / "runs"),
    ]
    result = CliRunner().invoke(main, [*arguments, "--samples", "{numbr: 3}"])
    assert result.exit_code == 2
    assert "--samples:1:2" in result.output and "did you mean `number`?" in result.output
    assert not (tmp_path / "runs").exists()

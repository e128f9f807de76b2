"""Texts written and judged while a model learns: rows of the run, the same whatever happened to the run meanwhile."""

import math

import numpy as np
import pytest
from click.testing import CliRunner

from neural.cli.main import main
from neural.core.settings import resolved
from neural.experiments import new_run, task_of
from neural.samples import REAL, TEXTS, Judged, Samples
from neural.standard import CATALOGUE
from neural.tasks.supervised import Supervised
from neural.tasks.task import TaskError
from neural.tracking.run import Run
from neural.training.engine import fit
from tests.studies import write_study

SAMPLES = Samples(number=3, length=60)
CHANGES = ["data=numbers.txt", "training.validate_every=4", "tracking.track_every=4"]


def small(folder, *changes):
    write_study(folder)
    return task_of(folder / "small.yaml", [*CHANGES, *changes])


def trained(folder, name="straight", *, samples=SAMPLES, tell=lambda progress: None):
    task = small(folder)
    run = new_run(task, folder / name, samples=resolved(SAMPLES))
    fit(task, run, also=Judged(task, samples).kept_in(run) if samples else None, tell=tell)
    return Run.open(run.path)


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("samples"))


def rows(run):
    return [row for row in run.rows() if row[1].startswith(("generation/", "valid/", "train/loss"))]


def test_every_validation_has_judged_texts(straight):
    steps, bits = straight.scalars("generation/bits")
    assert list(steps) == [4, 8, 12]
    assert np.isfinite(bits).all() and (bits > 0).all()
    assert {"generation/novelty", "generation/distinct_2", "generation/repeated_8"} <= set(straight.names())
    texts = straight.described(TEXTS)
    assert list(texts) == ["4", "8", "12"]
    assert {len(text) for text in texts.values()} == {60}
    assert texts["4"] != texts["12"]
    assert straight.described(REAL)["generation/novelty"] == 0


def test_what_is_learned_is_the_same_with_and_without(straight, tmp_path):
    without = trained(tmp_path, samples=None)
    assert "generation/bits" not in without.names()
    assert without.scalars("train/loss")[1].tolist() == straight.scalars("train/loss")[1].tolist()


def test_a_run_that_was_interrupted_goes_on_with_the_same_texts(straight, tmp_path):
    def fall(progress):
        if progress.step == 6:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        trained(tmp_path, "runs", tell=fall)
    (path,) = (tmp_path / "runs").glob("[!.]*")
    done = CliRunner().invoke(main, ["train", "--resume", str(path), "--quiet"])
    assert done.exit_code == 0, done.output
    resumed = Run.open(path)
    assert rows(resumed) == rows(straight)
    assert resumed.described(TEXTS) == straight.described(TEXTS)


def test_the_seed_and_the_temperature_decide_what_is_written(tmp_path):
    task = small(tmp_path)
    model = task.build().eval()
    first = Judged(task, SAMPLES).written(model)
    assert first == Judged(task, SAMPLES).written(model)
    assert first != Judged(task, Samples(number=3, length=60, seed=1)).written(model)
    surest = Judged(task, Samples(number=3, length=60, temperature=0)).written(model)
    assert len(set(surest)) == 1, "nothing is drawn at temperature 0"
    many = Judged(task, Samples(number=34, length=60)).written(model)
    assert many[:3] == first and len(many) == 34


def test_bytes_are_compared_byte_for_byte(tmp_path):
    write_study(tmp_path)
    (tmp_path / "umlauts.txt").write_text("äöü ß\n" * 300, encoding="utf-8")
    program = (tmp_path / "small.neural").read_text().replace("18", "256")
    (tmp_path / "small.neural").write_text(program)
    task = task_of(tmp_path / "small.yaml", ["data=umlauts.txt", "units=bytes"])
    judged = Judged(task, SAMPLES)
    assert len(judged.references.training) == task.windows.end
    assert judged.references.held_out.endswith("Ã¼ Ã\x9f\n")
    assert {len(text) for text in judged.written(task.build().eval())} == {60}
    assert all(math.isfinite(value) for value in judged(0, task.build().eval()).values() if value == value)


@pytest.mark.parametrize(
    ("changes", "samples", "said"),
    [
        ((), Samples(prompt="Q"), "character 1 of the prompt, 'Q'"),
        ((), Samples(length=5000), "samples of 5,000 characters are longer than the"),
        (("validation_split=0",), SAMPLES, "`validation_split` must be above 0"),
        (("training.shard=true",), SAMPLES, "`training.shard`"),
    ],
)
def test_what_cannot_be_written_is_refused_before_training(tmp_path, changes, samples, said):
    with pytest.raises(TaskError, match=said.replace("`", ".")):
        Judged(small(tmp_path, *changes), samples)


def test_only_language_models_write(tmp_path):
    with pytest.raises(TaskError, match="not by `supervised`"):
        Judged(Supervised.tiny(tmp_path, CATALOGUE), SAMPLES)


def test_a_misspelt_key_is_shown_in_what_was_typed(tmp_path):
    write_study(tmp_path)
    words = ["train", str(tmp_path / "small.yaml"), "--set", "data=numbers.txt", "--runs", str(tmp_path / "runs")]
    done = CliRunner().invoke(main, [*words, "--samples", "{numbr: 3}"])
    assert done.exit_code == 2
    assert "--samples:1:2" in done.output and "did you mean `number`?" in done.output
    assert not (tmp_path / "runs").exists()

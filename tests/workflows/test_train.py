"""`neural.fit`: from a program and data to a trained run."""

import json

import numpy as np
import pytest
import torch

import neural
from neural.core.errors import TaskError
from neural.runs.errors import RunError
from neural.runs.find import find_run
from neural.training.load_model import load_best_model
from neural.training.load_task import load_task, restore_task
from neural.workflows.train import TrainRequest, prepare_training
from tests.training.programs import PROGRAM

TEXT = PROGRAM % "AdamW(learning_rate=0.01)"


@pytest.fixture
def arrays():
    random = np.random.default_rng(0)
    x = random.normal(size=(50, 5, 6)).astype(np.float32)
    return x, x[:, :, :3].mean(axis=1).argmax(axis=1)


@pytest.fixture
def fitted(arrays, tmp_path):
    return neural.fit(
        TEXT, arrays, {"training": {"steps": 30, "batch_size": 8}}, runs=tmp_path / "runs"
    )


def test_fit_learns_from_arrays_in_memory(fitted, arrays):
    assert fitted.result.state == "finished"
    with torch.no_grad():
        accuracy = (
            fitted.model(torch.from_numpy(arrays[0])).argmax(dim=-1).numpy() == arrays[1]
        ).mean()
    assert accuracy > 0.5


def test_the_model_of_a_run_is_loaded_without_its_data(fitted, arrays):
    model = load_best_model(fitted.run.path)
    x = torch.from_numpy(arrays[0])
    with torch.no_grad():
        assert torch.equal(model(x), fitted.model(x))


def test_fit_takes_a_blueprint_or_a_path(arrays, tmp_path):
    (tmp_path / "net.neural").write_text(TEXT)
    for network in (neural.parse(TEXT), tmp_path / "net.neural", str(tmp_path / "net.neural")):
        fitted = neural.fit(network, arrays, {"training": {"steps": 2}}, runs=tmp_path / "runs")
        assert neural.open_run(fitted.run.path).load_checkpoint().step == 2


def test_the_fitted_model_has_the_averaged_weights(arrays, tmp_path):
    fitted = neural.fit(
        TEXT, arrays, {"training": {"steps": 5, "ema": 0.9}}, runs=tmp_path / "runs"
    )
    saved = fitted.run.load_checkpoint("best").tensors
    name, weight = next(iter(fitted.model.named_parameters()))
    assert torch.equal(weight.detach(), saved[f"ema.{name}"])


def test_a_task_is_restored_from_its_run(tmp_path, arrays):
    np.savez(tmp_path / "data.npz", x=arrays[0], y=arrays[1])
    (tmp_path / "net.neural").write_text(TEXT)
    task = load_task(tmp_path / "net.neural", [f"data={tmp_path / 'data.npz'}", "training.steps=3"])
    short = {"training": {"steps": 3}}
    fitted = neural.fit(
        tmp_path / "net.neural", tmp_path / "data.npz", short, runs=tmp_path / "runs"
    )
    restored = restore_task(fitted.run)
    assert torch.equal(restored.batch(5)["x"], task.batch(5)["x"])
    assert restore_task(fitted.run, ["training.steps=4"]).experiment.training.steps == 4


def test_a_run_is_found_by_part_of_its_name(fitted, tmp_path):
    root = tmp_path / "runs"
    assert (
        find_run(None, root)
        == find_run("Small", root)
        == find_run(str(fitted.run.path), root)
        == fitted.run.path
    )
    with pytest.raises(RunError, match="there is no run `other`"):
        find_run("other", root)
    fitted.run.path.with_name("0_Small").mkdir()
    (fitted.run.path.with_name("0_Small") / "status.json").write_text("{}")
    with pytest.raises(RunError, match="matches several runs"):
        find_run("Small", root)


@pytest.mark.parametrize(
    ("network", "data", "message"),
    [
        ("nothing.neural", None, "cannot be read"),
        (TEXT, None, "has no data"),
        (TEXT, "nowhere.npz", "nowhere.npz"),
    ],
)
def test_missing_programs_and_data_are_reported(network, data, message, tmp_path):
    with pytest.raises(TaskError, match=message):
        neural.fit(network, data, runs=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_a_run_without_split_seed_is_restored_with_its_old_split(arrays, tmp_path):
    """Old runs split by the training seed; resuming must not train on their held-out examples."""
    settings = {"training": {"steps": 3, "seed": 5}, "split_seed": 5}
    np.savez(tmp_path / "data.npz", x=arrays[0], y=arrays[1])
    run = neural.fit(TEXT, tmp_path / "data.npz", settings, runs=tmp_path / "runs").run
    expected = restore_task(run).data.held_out_indices.tolist()
    file = run.path / "settings.json"
    saved_settings = json.loads(file.read_text())
    del saved_settings["split_seed"]
    file.write_text(json.dumps(saved_settings))
    restored = restore_task(neural.open_run(run.path))
    assert restored.data.held_out_indices.tolist() == expected
    assert restored.experiment.split_seed == 5
    with pytest.raises(TaskError, match="`split_seed` cannot change in a resumed run"):
        restore_task(neural.open_run(run.path), ["split_seed=0"])


def test_a_damaged_setting_is_reported_as_damage_before_it_is_used(arrays, tmp_path):
    """Otherwise the message is about the program, which the user has not changed."""
    np.savez(tmp_path / "data.npz", x=arrays[0], y=arrays[1])
    settings = {"training": {"steps": 1}}
    run = neural.fit(TEXT, tmp_path / "data.npz", settings, runs=tmp_path / "runs").run
    file = run.path / "settings.json"
    file.write_text(file.read_text().replace("layers:", "lazers:"))
    with pytest.raises(RunError, match=r"settings\.json is damaged: its checksum is wrong"):
        prepare_training(TrainRequest(resume=str(run.path)))

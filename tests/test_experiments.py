"""From what a user wrote to a run, in Python."""

import json

import numpy as np
import pytest
import torch

import neural
from neural.experiments import best_model, find_run, task_of, task_of_run
from neural.tasks.task import TaskError
from neural.tracking.trouble import RunError
from tests.training.programs import PROGRAM

TEXT = PROGRAM % "AdamW(learning_rate=0.01)"


@pytest.fixture
def arrays():
    random = np.random.default_rng(0)
    x = random.normal(size=(50, 5, 6)).astype(np.float32)
    return x, x[:, :, :3].mean(axis=1).argmax(axis=1)


@pytest.fixture
def fitted(arrays, tmp_path):
    return neural.fit(TEXT, arrays, {"training": {"steps": 30, "batch_size": 8}}, runs=tmp_path / "runs")


def test_arrays_in_memory_are_learned(fitted, arrays):
    assert fitted.outcome.state == "finished"
    with torch.no_grad():
        right = (fitted.model(torch.from_numpy(arrays[0])).argmax(dim=-1).numpy() == arrays[1]).mean()
    assert right > 0.5


def test_the_model_of_a_run_can_be_made_again_without_its_data(fitted, arrays):
    again = best_model(fitted.run.path)
    x = torch.from_numpy(arrays[0])
    with torch.no_grad():
        assert torch.equal(again(x), fitted.model(x))


def test_a_checked_network_and_a_path_are_fitted_too(arrays, tmp_path):
    (tmp_path / "net.neural").write_text(TEXT)
    for network in (neural.parse(TEXT), tmp_path / "net.neural", str(tmp_path / "net.neural")):
        done = neural.fit(network, arrays, {"training": {"steps": 2}}, runs=tmp_path / "runs")
        assert neural.open_run(done.run.path).restore().step == 2


def test_averaged_weights_are_the_best_ones(arrays, tmp_path):
    done = neural.fit(TEXT, arrays, {"training": {"steps": 5, "ema": 0.9}}, runs=tmp_path / "runs")
    saved = done.run.restore("best").tensors
    name, weight = next(iter(done.model.named_parameters()))
    assert torch.equal(weight.detach(), saved[f"average.{name}"])


def test_a_task_is_made_again_from_its_run(tmp_path, arrays):
    np.savez(tmp_path / "data.npz", x=arrays[0], y=arrays[1])
    (tmp_path / "net.neural").write_text(TEXT)
    task = task_of(tmp_path / "net.neural", [f"data={tmp_path / 'data.npz'}", "training.steps=3"])
    short = {"training": {"steps": 3}}
    done = neural.fit(tmp_path / "net.neural", tmp_path / "data.npz", short, runs=tmp_path / "runs")
    again = task_of_run(done.run)
    assert torch.equal(again.batch(5)["x"], task.batch(5)["x"])
    assert task_of_run(done.run, ["training.steps=4"]).experiment.training.steps == 4


def test_a_run_is_found_by_a_part_of_its_name(fitted, tmp_path):
    root = tmp_path / "runs"
    assert find_run(None, root) == find_run("Small", root) == find_run(str(fitted.run.path), root) == fitted.run.path
    with pytest.raises(RunError, match="there is no run `other`"):
        find_run("other", root)
    fitted.run.path.with_name("0_Small").mkdir()
    (fitted.run.path.with_name("0_Small") / "status.json").write_text("{}")
    with pytest.raises(RunError, match="fits several runs"):
        find_run("Small", root)


@pytest.mark.parametrize(
    ("network", "data", "says"),
    [("nothing.neural", None, "cannot be read"), (TEXT, None, "has no data"), (TEXT, "nowhere.npz", "nowhere.npz")],
)
def test_what_cannot_be_fitted_is_said(network, data, says, tmp_path):
    with pytest.raises(TaskError, match=says):
        neural.fit(network, data, runs=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_a_run_of_before_the_seed_of_the_split_holds_out_what_it_held_out(arrays, tmp_path):
    """Then the training's seed decided it. Training must not go on with what was held out."""
    settings = {"training": {"steps": 3, "seed": 5}, "split_seed": 5}
    np.savez(tmp_path / "data.npz", x=arrays[0], y=arrays[1])
    run = neural.fit(TEXT, tmp_path / "data.npz", settings, runs=tmp_path / "runs").run
    wanted = task_of_run(run).data.held.tolist()
    file = run.path / "settings.json"
    written = json.loads(file.read_text())
    del written["split_seed"]
    file.write_text(json.dumps(written))
    again = task_of_run(neural.open_run(run.path))
    assert again.data.held.tolist() == wanted
    assert again.experiment.split_seed == 5
    with pytest.raises(TaskError, match="`split_seed` cannot change in a resumed run"):
        task_of_run(neural.open_run(run.path), ["split_seed=0"])

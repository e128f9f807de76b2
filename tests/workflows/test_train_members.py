"""Ensembles: several seeds of a segmentation trained as one run."""

import shutil

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from neural.cli.main import main
from neural.runs.run import Run
from neural.training.load_model import load_best_model
from neural.training.trained_run import TrainedRunFolder
from neural.workflows.calibrate import calibrate
from neural.workflows.evaluate import evaluate
from neural.workflows.train import TrainRequest, prepare_training, train
from neural.workflows.train_members import MEMBERS_DIR
from tests.segmentation_runs import MODEL, write_songs

SEEDS = 3


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ensemble")
    write_songs(folder / "songs.jsonl", labels=False)
    model = ", ".join(f"{key}: {value}" for key, value in MODEL.items())
    (folder / "songs.yaml").write_text(
        "task: segmentation\nname: songs\ndata: songs.jsonl\nelements: lines\n"
        f"features: [word_overlap, shape]\nmodel: {{{model}}}\n"
        f"training: {{batch_size: 4, epochs: 3, seeds: {SEEDS}}}\n"
    )
    return folder / "songs.yaml"


def prepare(experiment, runs, resume=None):
    return prepare_training(
        TrainRequest(None if resume else str(experiment), resume=resume, runs=str(runs))
    )


@pytest.fixture(scope="module")
def undisturbed(experiment):
    progress = []
    run, result = train(prepare(experiment, experiment.parent / "runs"), on_step=progress.append)
    return run.path, result, progress


def load_weights(path):
    return load_best_model(path).state_dict()


def list_members(path):
    return sorted((path / MEMBERS_DIR).iterdir(), key=lambda folder: folder.name[-1])


def test_the_ensemble_has_the_best_weights_of_every_member(undisturbed):
    path, result, _ = undisturbed
    members = list_members(path)
    assert [member.name.rpartition("_")[2] for member in members] == ["seed-0", "seed-1", "seed-2"]
    weights = load_weights(path)
    for index, member in enumerate(members):
        for name, tensor in load_weights(member).items():
            assert torch.equal(weights[f"members.{index}.{name}"], tensor), name
    first, second = (load_weights(member)["classifier.weight"] for member in members[:2])
    assert not torch.equal(first, second)
    assert result.state == "finished" and "valid/pk" in result.scores


def test_its_prediction_is_the_mean_of_the_members_log_odds(undisturbed):
    path, _, _ = undisturbed
    task = TrainedRunFolder(Run.open(path)).load_task()
    batch = task.held_out_batch(2)
    models = [load_best_model(folder) for folder in (path, *list_members(path))]
    with torch.no_grad():
        logits = [model.logits(batch["x"], batch["mask"]) for model in models]
    ensemble, *members = [(each[..., 1] - each[..., 0])[batch["mask"]] for each in logits]
    torch.testing.assert_close(ensemble, torch.stack(members).mean(dim=0))


def test_progress_counts_the_steps_of_all_models(undisturbed):
    _, result, progress = undisturbed
    assert [each.step for each in progress] == list(range(1, result.step + 1))
    assert {each.steps for each in progress} == {result.step}
    assert [each.member for each in progress[:: result.step // SEEDS]] == [1, 2, 3]
    assert {each.members for each in progress} == {SEEDS}


def test_scores_of_the_ensemble_are_logged_after_every_member(undisturbed):
    path, result, _ = undisturbed
    run = Run.open(path)
    steps, values = run.scalars("ensemble/pk")
    assert steps.tolist() == [result.step * count // SEEDS for count in range(1, SEEDS + 1)]
    steps, final_values = run.scalars("valid/pk")
    assert steps.tolist() == [result.step]
    assert final_values[-1] == values[-1] == pytest.approx(result.scores["valid/pk"])


@pytest.mark.parametrize("step", [1, 13, 14, 23, 35])
def test_a_killed_training_resumes_to_the_same_weights(experiment, undisturbed, tmp_path, step):
    path, expected, _ = undisturbed
    assert expected.step == 36  # so that the steps above are in all members, and at their ends
    copy = tmp_path / "runs" / "killed"

    def copy_folder(progress):
        if progress.step == step:  # what SIGKILL would leave behind
            (running,) = (tmp_path / "all").glob("[!.]*")
            shutil.copytree(running, copy)

    train(prepare(experiment, tmp_path / "all"), on_step=copy_folder)
    assert not list((copy / "checkpoints").iterdir())
    progress = []
    _, result = train(prepare(experiment, "", resume=str(copy)), on_step=progress.append)
    assert result == expected
    assert progress[0].member == (step - 1) // 12 + 1  # finished members are not trained again
    weights, expected_weights = load_weights(copy), load_weights(path)
    assert weights.keys() == expected_weights.keys()
    assert all(torch.equal(weights[name], expected_weights[name]) for name in weights)


def test_an_error_in_a_member_fails_the_run_which_can_be_resumed(experiment, undisturbed, tmp_path):
    def fail(progress):
        if progress.step == 20:
            raise RuntimeError("no memory left")

    with pytest.raises(RuntimeError):
        train(prepare(experiment, tmp_path), on_step=fail)
    (path,) = tmp_path.glob("[!.]*")
    assert Run.open(path).status.state == "failed"
    _, result = train(prepare(experiment, "", resume=str(path)))
    assert result == undisturbed[1]


def test_members_can_be_added_to_a_finished_run(undisturbed, tmp_path):
    path, _, _ = undisturbed
    copy = tmp_path / "more"
    shutil.copytree(path, copy)
    progress = []
    request = TrainRequest(overrides=(f"training.seeds={SEEDS + 1}",), resume=str(copy))
    train(prepare_training(request), on_step=progress.append)
    assert {each.member for each in progress} == {SEEDS + 1}
    weights, expected = load_weights(copy), load_weights(path)
    assert all(torch.equal(weights[name], expected[name]) for name in expected)
    assert f"members.{SEEDS}.classifier.weight" in weights


def test_an_ensemble_is_calibrated_and_evaluated_like_a_single_model(undisturbed):
    path, _, _ = undisturbed
    calibration = calibrate(Run.open(path)).calibration
    evaluation = evaluate(path, decode="expected_pk").to_dict()
    assert evaluation["calibration"] == calibration.boundary.calibrator.name()
    assert evaluation["decoder"] == "expected_pk"
    assert np.isfinite(evaluation["rows"]["this run"]["pk"]["value"])


def test_the_option_seeds_sets_the_number_of_models(experiment, tmp_path):
    words = ["train", experiment, "--runs", tmp_path, "--seeds", 2, "--set", "training.steps=2"]
    words += ["--set", "training.epochs=null", "--json"]
    result = CliRunner().invoke(main, list(map(str, words)))
    assert result.exit_code == 0, result.output
    (path,) = tmp_path.glob("[!.]*")
    assert len(list_members(path)) == 2
    assert '"member": 2, "members": 2' in result.stdout

"""Training that starts from the weights of a saved segmenter."""

import numpy as np
import pytest
import torch

from neural.core.errors import TaskError
from neural.optim.catalogue import CATALOGUE
from neural.tasks.segmentation.calibration.none import None_
from neural.tasks.segmentation.feature_cache import list_columns
from neural.tasks.segmentation.pipeline import load_shipped_pipeline, save_pipeline
from neural.tasks.segmentation.settings import SegmentationSettings
from neural.tasks.segmentation.task import Segmentation
from tests.segmentation_runs import MODEL, write_songs


@pytest.fixture
def folder(tmp_path):
    """A folder with songs, and a segmenter with random weights in saved.json."""
    write_songs(tmp_path / "songs.jsonl", labels=False)
    task = create_task(tmp_path, features=("word_overlap", "shape"), model=MODEL)
    torch.manual_seed(1)
    save_pipeline(tmp_path, task.settings, task.build(), None_(), 0.4, name="saved")
    return tmp_path


def create_task(folder, **settings):
    experiment = SegmentationSettings.model_validate({"data": "songs.jsonl", **settings})
    return Segmentation(experiment, folder, CATALOGUE)


def load_saved(folder):
    from safetensors.torch import load_file

    return load_file(folder / "saved.safetensors")


def test_a_model_without_settings_of_its_own_is_the_saved_one(folder):
    task = create_task(folder, initial="saved.json")
    weights, saved = task.build().state_dict(), load_saved(folder)
    assert weights.keys() == saved.keys()
    assert all(torch.equal(weights[name], saved[name]) for name in saved)
    columns = len(list_columns(task.settings.features))
    assert f"weights for {columns} of {columns} inputs" in " ".join(task.notes)
    # The settings of a run repeat it from any working folder.
    assert task.settings.initial == str((folder / "saved.json").absolute())


def test_features_that_both_have_keep_their_columns(folder):
    features = ("cohesion", "word_overlap")  # in another place, and without `shape`
    task = create_task(folder, initial="saved.json", features=features, model=MODEL)
    torch.manual_seed(2)
    weights, saved = task.build().state_dict(), load_saved(folder)
    columns, saved_columns = list_columns(features), list_columns(("word_overlap", "shape"))
    for name in ("mean", "std", "lstm.cell.weight_ih_l0", "lstm.cell.weight_ih_l0_reverse"):
        for index, column in enumerate(columns):
            is_shared = column in saved_columns
            expected = saved[name][..., saved_columns.index(column)] if is_shared else None
            if is_shared:
                assert torch.equal(weights[name][..., index], expected), (name, column)
    np.testing.assert_array_equal(
        weights["mean"][: len(list_columns(("cohesion",)))],
        task.feature_mean_std[0][: len(list_columns(("cohesion",)))],
    )
    assert torch.equal(weights["classifier.weight"], saved["classifier.weight"])


def test_all_members_of_an_ensemble_start_from_the_weights(folder):
    task = create_task(folder, initial="saved.json", training={"seeds": 2})
    saved = load_saved(folder)["classifier.weight"]
    assert all(torch.equal(member.classifier.weight, saved) for member in task.build().members)


def test_the_shipped_segmenter_can_be_trained_further(folder):
    task = create_task(folder, initial="shipped")
    assert task.settings.features == load_shipped_pipeline().features
    assert "starts from the shipped segmenter" in " ".join(task.notes)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": {**MODEL, "hidden_dim": 5}}, "do not fit this model; leave out `features`"),
        ({"features": ("cohesion",)}, "do not fit this model"),
        ({"initial": "other.json"}, "there is no segmenter other.json; write `shipped`"),
        ({"initial": "songs.jsonl"}, "there is no segmenter songs.jsonl"),
        ({"model": {"attention_heads": 3}}, "the settings contradict saved.json"),
    ],
)
def test_weights_that_do_not_fit_are_refused_before_training(folder, settings, message):
    with pytest.raises(TaskError, match=message):
        create_task(folder, **{"initial": "saved.json", **settings})

"""Mosaics that grow during training."""

import numpy as np
import pytest

from neural.core.errors import TaskError
from neural.core.experiment import TrainingSettings
from neural.optim.catalogue import CATALOGUE
from neural.tasks.focus.task import Focus, FocusSettings
from neural.tasks.focus.training_plan import SegmentGrowth
from tests.tasks.focus.test_task import write_segments


def create_mosaic_task(folder, **settings):
    sizes = {"examples": 40, "valid_examples": 8, "test_examples": 8, "segments": 9}
    training = TrainingSettings(steps=40, batch_size=8)
    return Focus(FocusSettings(**{**sizes, "training": training, **settings}), folder, CATALOGUE)


def test_doublings_are_equally_long_and_end_at_half_of_the_training():
    sizes = [SegmentGrowth(4, 30).segments_at(share) for share in np.arange(20) / 20]
    assert sizes == [4] * 4 + [8] * 3 + [16] * 3 + [30] * 10


def test_smaller_mosaics_have_the_same_foreground_at_other_positions(tmp_path):
    full = create_mosaic_task(tmp_path).data.splits["train"]
    small = full.shrink(4)
    assert small.members.shape == (40, 4)
    assert (small.foreground.sum(axis=1) == 1).all()
    assert (small.members[small.foreground] == full.members[full.foreground]).all()
    assert set(small.foreground.argmax(axis=1)) == {0, 1, 2, 3}


def test_training_batches_grow_and_validation_always_has_all_segments(tmp_path):
    task = create_mosaic_task(tmp_path, grow=3)
    assert [task.batch(index)["members"].shape[1] for index in (0, 9, 10, 19, 20, 39, 0)] == [
        3,
        3,
        6,
        6,
        9,
        9,
        3,
    ]
    assert task.probe_batch()["members"].shape[1] == 9


def test_auto_grows_very_large_mosaics_and_gives_the_reason(tmp_path):
    task = create_mosaic_task(tmp_path, paradigm="auto", segments=200)
    assert task.plan.growth == SegmentGrowth(16, 200)
    assert "starts with mosaics of 16 segments" in task.notes[0]
    assert create_mosaic_task(tmp_path, paradigm="auto", segments=20).plan.growth is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"grow": 10}, "`grow` is 10, but must be at most `segments`, 9"),
        ({"data": "plain.npz", "segments": None, "grow": 2}, "for mosaics"),
    ],
)
def test_invalid_growth_is_refused(settings, message, tmp_path):
    write_segments(tmp_path)
    with pytest.raises(TaskError, match=message):
        create_mosaic_task(tmp_path, **settings)

"""Mosaics that grow while one trains."""

import numpy as np
import pytest

from neural.standard import CATALOGUE
from neural.tasks.experiment import Training
from neural.tasks.focus import Focus, FocusSettings
from neural.tasks.focusing.growth import Growth
from neural.tasks.task import TaskError
from tests.tasks.test_focus import plain


def mosaics(folder, **settings):
    few = {"examples": 40, "valid_examples": 8, "test_examples": 8, "segments": 9}
    training = Training(steps=40, batch_size=8)
    return Focus(FocusSettings(**{**few, "training": training, **settings}), folder, CATALOGUE)


def test_every_doubling_lasts_alike_and_half_of_the_training_has_all_segments():
    sizes = [Growth(4, 30).at(share) for share in np.arange(20) / 20]
    assert sizes == [4] * 4 + [8] * 3 + [16] * 3 + [30] * 10


def test_small_mosaics_hold_the_same_foreground_at_other_places(tmp_path):
    whole = mosaics(tmp_path).data.splits["train"]
    small = whole.smaller(4)
    assert small.members.shape == (40, 4)
    assert (small.foreground.sum(axis=1) == 1).all()
    assert (small.members[small.foreground] == whole.members[whole.foreground]).all()
    assert set(small.foreground.argmax(axis=1)) == {0, 1, 2, 3}


def test_batches_grow_with_their_number_and_validation_has_all_segments_from_the_start(tmp_path):
    made = mosaics(tmp_path, grow=3)
    assert [made.batch(at)["members"].shape[1] for at in (0, 9, 10, 19, 20, 39, 0)] == [3, 3, 6, 6, 9, 9, 3]
    assert made.probe()["members"].shape[1] == 9


def test_auto_lets_very_large_mosaics_grow_and_says_why(tmp_path):
    made = mosaics(tmp_path, paradigm="auto", segments=200)
    assert made.choice.growth == Growth(16, 200)
    assert "begins with mosaics of 16 segments" in made.remarks[0]
    assert mosaics(tmp_path, paradigm="auto", segments=20).choice.growth is None


@pytest.mark.parametrize(
    ("settings", "says"),
    [({"grow": 10}, "`grow` is 10, but a mosaic has 9"),
     ({"data": "plain.npz", "segments": None, "grow": 2}, "for mosaics")],
)  # fmt: skip
def test_what_cannot_grow_is_refused(settings, says, tmp_path):
    plain(tmp_path)
    with pytest.raises(TaskError, match=says):
        mosaics(tmp_path, **settings)

"""Windows of a long text: drawn to train on, fixed to judge by."""

import numpy as np
import pytest
import torch

from neural.tasks import _windows
from neural.tasks._windows import Windows
from neural.tasks.task import TaskError


def windows(count=101, context=7, share=0.3, kept=np.arange):
    return Windows(kept(count), np.arange(1000), context, share, "a.txt")


def test_what_comes_out_is_what_goes_in_one_place_on():
    batch = windows().draw(3, 5, seed=0)
    assert batch["x"].shape == batch["y"].shape == (5, 7)
    assert batch["x"].dtype == torch.int64
    assert torch.equal(batch["x"] + 1, batch["y"])   # the ids are their places
    assert torch.equal(batch["x"][:, 1:], batch["y"][:, :-1])


def test_training_reaches_every_place_before_the_end_and_none_behind_it():
    found = windows()
    drawn = [found.draw(index, 9, seed=1) for index in range(200)]
    seen = {int(one) for batch in drawn for part in batch.values() for one in part.flatten()}
    assert seen == set(range(70))


def test_a_draw_follows_from_seed_and_number_alone():
    one, other = windows(), windows()
    later = other.draw(8, 4, seed=5)
    assert torch.equal(one.draw(8, 4, seed=5)["x"], later["x"])
    assert not torch.equal(one.draw(9, 4, seed=5)["x"], later["x"])
    assert not torch.equal(one.draw(8, 4, seed=6)["x"], later["x"])
    assert torch.equal(one.draw(8, 4, seed=5)["x"], later["x"])


def test_fixed_windows_stand_side_by_side_over_all_that_is_held_out():
    found = windows()   # 31 held out: 4 windows of 7, each place predicted once
    predicted = found.take(found.fixed(0))["y"].flatten().tolist()
    assert predicted == list(range(71, 71 + 28))
    assert found.fixed(4).tolist() == found.fixed(0).tolist()


def test_fewer_windows_are_spread_from_end_to_end():
    starts = windows().fixed(3)
    assert starts.tolist() == [70, 81, 93]
    assert windows().take(starts)["y"].max() == 100


def test_nothing_held_out_is_nothing_to_judge_by():
    assert windows(share=0.0).fixed(5).tolist() == []
    assert windows(share=0.0).end == 101


def test_ids_are_translated_on_the_way():
    found = Windows(np.array([0, 1, 2, 1, 0], dtype=np.uint8), np.array([7, 5, 3]), 3, 0.0, "a")
    assert found.take(np.array([1]))["x"].tolist() == [[5, 3, 5]]


def test_the_split_by_position_is_the_usual_one():
    assert windows(count=1_115_394, share=0.1, kept=lambda count: np.zeros(count, np.uint8)).end == 1_003_854


def test_a_length_with_a_published_split_has_its_last_part_left_for_a_test(monkeypatch):
    monkeypatch.setattr(_windows, "PUBLISHED", {101: (60, 80)})
    found = windows(share=None)
    assert (found.end, found.last) == (60, 80)
    assert found.take(found.fixed(0))["y"].max() < 80


@pytest.mark.parametrize(
    ("count", "context", "share", "message"),
    [
        (7, 7, 0.1, "a.txt has 7 characters; a context of 7 needs at least 8"),
        (8, 7, 0.2, "a.txt has 8 characters, 6 of them to train on; a context of 7 needs at least 8, or a smaller"),
        (50, 7, 0.1, "a.txt has 50 characters, 5 of them held out; a context of 7 needs at least 8, or a larger"),
    ],
)
def test_a_context_longer_than_the_text_or_a_part_of_it_is_refused(count, context, share, message):
    with pytest.raises(TaskError) as refused:
        windows(count, context, share)
    assert message in str(refused.value)


def test_the_shortest_text_that_can_be_learned():
    found = windows(count=16, context=7, share=0.5)
    assert found.draw(0, 3, seed=0)["x"].tolist() == [[0, 1, 2, 3, 4, 5, 6]] * 3
    assert found.fixed(0).tolist() == [8]

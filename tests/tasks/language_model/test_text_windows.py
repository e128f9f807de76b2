"""Windows of a text: random ones for training, fixed ones for validation."""

import numpy as np
import pytest
import torch

from neural.core.errors import TaskError
from neural.tasks.language_model.text_windows import PUBLISHED_SPLITS, TextWindows


def create_windows(count=101, context=7, share=0.3, make_ids=np.arange):
    return TextWindows(make_ids(count), np.arange(1000), context, share, "a.txt")


def test_targets_are_inputs_shifted_by_one_position():
    batch = create_windows().sample_batch(3, 5, seed=0)
    assert batch["x"].shape == batch["y"].shape == (5, 7)
    assert batch["x"].dtype == torch.int64
    assert torch.equal(batch["x"] + 1, batch["y"])  # every id is its position
    assert torch.equal(batch["x"][:, 1:], batch["y"][:, :-1])


def test_training_windows_cover_the_training_text_and_nothing_else():
    text_windows = create_windows()
    batches = [text_windows.sample_batch(index, 9, seed=1) for index in range(200)]
    positions = {
        int(token_id)
        for batch in batches
        for tensor in batch.values()
        for token_id in tensor.flatten()
    }
    assert positions == set(range(70))


def test_a_batch_depends_on_seed_and_index_alone():
    first, second = create_windows(), create_windows()
    batch = second.sample_batch(8, 4, seed=5)
    assert torch.equal(first.sample_batch(8, 4, seed=5)["x"], batch["x"])
    assert not torch.equal(first.sample_batch(9, 4, seed=5)["x"], batch["x"])
    assert not torch.equal(first.sample_batch(8, 4, seed=6)["x"], batch["x"])
    assert torch.equal(first.sample_batch(8, 4, seed=5)["x"], batch["x"])


def test_validation_windows_are_adjacent_and_cover_the_held_out_text():
    text_windows = create_windows()  # 31 held out: 4 windows of 7, each position predicted once
    predicted = text_windows.take(text_windows.list_validation_starts(0))["y"].flatten().tolist()
    assert predicted == list(range(71, 71 + 28))
    assert (
        text_windows.list_validation_starts(4).tolist()
        == text_windows.list_validation_starts(0).tolist()
    )


def test_fewer_validation_windows_are_evenly_spaced():
    starts = create_windows().list_validation_starts(3)
    assert starts.tolist() == [70, 81, 93]
    assert create_windows().take(starts)["y"].max() == 100


def test_without_a_validation_split_there_are_no_validation_windows():
    assert create_windows(share=0.0).list_validation_starts(5).tolist() == []
    assert create_windows(share=0.0).train_end == 101


def test_ids_are_mapped_to_those_of_the_network():
    text_windows = TextWindows(
        np.array([0, 1, 2, 1, 0], dtype=np.uint8), np.array([7, 5, 3]), 3, 0.0, "a"
    )
    assert text_windows.take(np.array([1]))["x"].tolist() == [[5, 3, 5]]


def test_the_split_by_position_is_the_usual_one():
    assert (
        create_windows(
            count=1_115_394, share=0.1, make_ids=lambda count: np.zeros(count, np.uint8)
        ).train_end
        == 1_003_854
    )


def test_a_published_split_leaves_its_last_part_for_the_test(monkeypatch):
    monkeypatch.setitem(PUBLISHED_SPLITS, 101, (60, 80))
    text_windows = create_windows(share=None)
    assert (text_windows.train_end, text_windows.valid_end) == (60, 80)
    assert text_windows.take(text_windows.list_validation_starts(0))["y"].max() < 80


@pytest.mark.parametrize(
    ("count", "context", "share", "message"),
    [
        (
            7,
            7,
            0.1,
            "a.txt has 7 characters; a context of 7 needs at least 8: use a longer text",
        ),
        (
            8,
            7,
            0.2,
            "a.txt has 8 characters, 6 of them to train on; a context of 7 needs at least 8: "
            "use a longer text, or a smaller `validation_split`",
        ),
        (
            50,
            7,
            0.1,
            "a.txt has 50 characters, 5 of them held out; a context of 7 needs at least 8: "
            "use a longer text, or train with a smaller context (`--set context=4`), "
            "or a larger `validation_split`",
        ),
    ],
)
def test_a_context_longer_than_the_text_or_a_part_of_it_is_refused(count, context, share, message):
    with pytest.raises(TaskError) as caught:
        create_windows(count, context, share)
    assert message in str(caught.value)


def test_the_suggested_context_fits():
    with pytest.raises(TaskError, match=r"--set context=4\b"):
        create_windows(50, 7, 0.1)
    assert create_windows(50, 4, 0.1).list_validation_starts(0).tolist() == [45]


def test_the_shortest_text_that_can_be_learned():
    text_windows = create_windows(count=16, context=7, share=0.5)
    assert text_windows.sample_batch(0, 3, seed=0)["x"].tolist() == [[0, 1, 2, 3, 4, 5, 6]] * 3
    assert text_windows.list_validation_starts(0).tolist() == [8]

"""Examples that fit a network, ready to be taken."""

import numpy as np
import pytest
import torch

from neural.tasks.data.column import Column
from neural.tasks.data.dataset import Dataset
from neural.tasks.data.source import Examples
from neural.tasks.task import TaskError
from tests.tasks.networks import DENSE, READER, SEQUENCE, TRANSLATE, made


def dataset(network, train, *, share=0.0, valid=None, size=4, **more):
    examples = Examples(where="d", train=train, valid=valid, **more)
    return Dataset(examples, network, share=share, batch_size=size, seed=0)


def numbered(count=10):
    """Examples that can be told apart: the first feature is the number."""
    x = np.zeros((count, 7))
    x[:, 0] = np.arange(count)
    return {"x": x, "y": np.arange(count) % 3}


def test_inputs_and_labels_stay_together_through_split_and_shuffle():
    data = dataset(DENSE, numbered(23), share=0.3)
    seen = []
    for index in range(data.order.epoch):
        batch = data.batch(index)
        assert (batch["x"][:, 0] % 3 == batch["y"]).all()
        seen += batch["x"][:, 0].tolist()
    held = data.held_out(0, 100)["x"][:, 0].tolist()
    assert len(held) == 7
    assert not set(seen) & set(held)


def test_tensors_are_what_the_network_takes():
    batch = dataset(DENSE, numbered()).batch(0)
    assert (batch["x"].dtype, batch["y"].dtype) == (torch.float32, torch.int64)
    ids = {"x": np.ones((5, 7)), "y": np.zeros(5), "mask": np.ones((5, 7))}
    batch = dataset(READER, ids).batch(0)
    assert (batch["x"].dtype, batch["mask"].dtype) == (torch.int64, torch.bool)


def test_given_validation_data_is_used_and_nothing_is_held_out_of_the_rest():
    data = dataset(DENSE, numbered(10), valid=numbered(3), share=0.5)
    assert len(data.order.examples) == 10
    assert data.held_out(0, 9)["x"][:, 0].tolist() == [0, 1, 2]


def test_bad_validation_data_is_named_as_such():
    with pytest.raises(TaskError, match=r"d \(validation\): `y` has 9 at \[0\]"):
        dataset(DENSE, numbered(), valid={"x": np.zeros((1, 7)), "y": np.array([9])})


def test_a_target_is_predicted_from_what_stands_before_it():
    target = np.array([[1, 5, 6, 0], [1, 7, 0, 0]])
    mask = target > 0
    data = dataset(TRANSLATE, {"source": target, "target": target, "target_mask": mask}, size=2)
    batch = data.train.take(np.arange(2))
    assert batch["target"].tolist() == [[1, 5, 6], [1, 7, 0]]
    assert batch["y"].tolist() == [[5, 6, 0], [7, 0, 0]]
    assert batch["y_mask"].tolist() == [[True, True, False], [True, False, False]]
    assert batch["target_mask"].tolist() == [[True] * 3, [True, True, False]]


def test_answers_of_ones_own_are_not_shifted():
    target = np.array([[1, 5, 6]])
    batch = dataset(TRANSLATE, {"source": target, "target": target, "y": target}).batch(0)
    assert batch["target"].tolist() == batch["y"].tolist() == [[1, 5, 6]]


def test_a_target_of_one_token_has_nothing_to_predict():
    one = np.array([[1]])
    with pytest.raises(TaskError, match="`target` is 1 token long"):
        dataset(TRANSLATE, {"source": one, "target": one})


def test_a_class_without_training_examples_is_remarked():
    only = {"x": np.zeros((5, 7)), "y": np.ones(5)}
    assert dataset(DENSE, only).remarks == ("d: no training example of class 0, 2",)
    assert dataset(DENSE, only, classes=("cat", "dog", "cow")).remarks == ("d: no training example of class cat, cow",)
    assert dataset(DENSE, numbered()).remarks == ()
    positions = {"x": np.zeros((5, 5, 3)), "y": np.ones((5, 5))}
    assert dataset(SEQUENCE, positions).remarks == ()


def test_bytes_that_are_not_scaled_are_remarked():
    levels = {"x": np.full((6, 7), 200, dtype=np.uint8), "y": np.arange(6) % 3}
    (remark,) = dataset(DENSE, levels).remarks
    assert remark == "d: `x` is used as it is, 0 to 200; divide by 255 for values from 0 to 1"
    assert dataset(DENSE, levels, scale=1 / 255).remarks == ()


def test_a_mask_that_does_not_reach_the_predictions_is_remarked():
    network = made("(5, 3)", 'Conv1D(4, kernel_size=2, strides=2) | Output(2, activation="softmax")')
    arrays = {"x": np.zeros((4, 5, 3)), "y": np.ones((4, 2)), "mask": np.ones((4, 5))}
    (remark,) = dataset(network, arrays).remarks
    assert remark == "d: predictions stand at (2,), so no mask says which count: all do"


def test_a_single_example_cannot_be_held_out():
    data = dataset(DENSE, {"x": np.zeros((1, 7)), "y": np.zeros(1)}, share=0.5)
    assert "d: one example is too few to hold any out; there is no validation" in data.remarks
    assert len(data.few(4)["y"]) == 1


def test_a_network_without_a_loss_has_nothing_to_learn():
    with pytest.raises(TaskError, match="Small has no loss"):
        dataset(made("(7,)", "Dense(3)", loss=""), numbered())


def test_what_lies_on_disk_is_read_a_batch_at_a_time(tmp_path):
    array = np.arange(12.0).reshape(4, 3)
    np.save(tmp_path / "x.npy", array)
    column = Column(np.load(tmp_path / "x.npy", mmap_mode="r"), torch.float32)
    assert column.tensor is None
    assert column.take(np.array([3, 0])).tolist() == array[[3, 0]].tolist()
    assert Column(array, torch.float32).take(np.array([3, 0])).tolist() == array[[3, 0]].tolist()


@pytest.mark.parametrize("masked", [False, True])
def test_a_target_that_ends_behind_its_first_token_is_refused(masked):
    target = np.array([[1, 5, 6], [1, 0, 0]]) if not masked else np.array([[1, 5, 6], [1, 7, 8]])
    mask = {"target_mask": np.array([[1, 1, 1], [1, 0, 0]])} if masked else {}
    with pytest.raises(TaskError, match="`target`: example 1 has no token to predict behind its first"):
        dataset(TRANSLATE, {"source": np.array([[1, 5], [1, 6]]), "target": target, **mask})


def test_a_batch_of_one_has_nothing_to_be_normalised_by():
    network = made("(7,)", 'BatchNormalization() | Output(3, activation="softmax")')
    train = {"x": np.zeros((10, 7), np.float32), "y": np.arange(10) % 3}
    dataset(network, train, size=2)
    with pytest.raises(TaskError, match="batches hold one example, but `BatchNormalization` compares those of a batch"):
        dataset(network, train, size=1)

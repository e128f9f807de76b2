"""Dataset: split, batches, shifted targets and notes."""

import numpy as np
import pytest
import torch

from neural.core.errors import TaskError
from neural.data.dataset import Dataset, TensorColumn
from neural.data.source import Examples
from tests.tasks.networks import DENSE, READER, SEQUENCE, TRANSLATE, build_network


def create_dataset(network, train, *, share=0.0, valid=None, size=4, **extra):
    examples = Examples(data_name="d", train=train, valid=valid, **extra)
    return Dataset(examples, network, validation_split=share, batch_size=size, seed=0)


def numbered_examples(count=10):
    """Examples whose first feature is their index."""
    x = np.zeros((count, 7))
    x[:, 0] = np.arange(count)
    return {"x": x, "y": np.arange(count) % 3}


def test_inputs_and_labels_stay_together_through_split_and_shuffle():
    data = create_dataset(DENSE, numbered_examples(23), share=0.3)
    trained = []
    for index in range(data.sampler.batches_per_epoch):
        batch = data.batch(index)
        assert (batch["x"][:, 0] % 3 == batch["y"]).all()
        trained += batch["x"][:, 0].tolist()
    held_out = data.validation_batch(0, 100)["x"][:, 0].tolist()
    assert len(held_out) == 7
    assert not set(trained) & set(held_out)


def test_tensors_are_what_the_network_takes():
    batch = create_dataset(DENSE, numbered_examples()).batch(0)
    assert (batch["x"].dtype, batch["y"].dtype) == (torch.float32, torch.int64)
    ids = {"x": np.ones((5, 7)), "y": np.zeros(5), "mask": np.ones((5, 7))}
    batch = create_dataset(READER, ids).batch(0)
    assert (batch["x"].dtype, batch["mask"].dtype) == (torch.int64, torch.bool)


def test_with_validation_data_no_training_examples_are_held_out():
    data = create_dataset(DENSE, numbered_examples(10), valid=numbered_examples(3), share=0.5)
    assert len(data.sampler.examples) == 10
    assert data.validation_batch(0, 9)["x"][:, 0].tolist() == [0, 1, 2]


def test_bad_validation_data_is_named_as_such():
    with pytest.raises(TaskError, match=r"d \(validation\): `y` has 9 at \[0\]"):
        create_dataset(
            DENSE, numbered_examples(), valid={"x": np.zeros((1, 7)), "y": np.array([9])}
        )


def test_a_target_token_is_predicted_from_those_before_it():
    target = np.array([[1, 5, 6, 0], [1, 7, 0, 0]])
    mask = target > 0
    data = create_dataset(
        TRANSLATE, {"source": target, "target": target, "target_mask": mask}, size=2
    )
    batch = data.train.take(np.arange(2))
    assert batch["target"].tolist() == [[1, 5, 6], [1, 7, 0]]
    assert batch["y"].tolist() == [[5, 6, 0], [7, 0, 0]]
    assert batch["y_mask"].tolist() == [[True, True, False], [True, False, False]]
    assert batch["target_mask"].tolist() == [[True] * 3, [True, True, False]]


def test_explicit_labels_are_not_shifted():
    target = np.array([[1, 5, 6]])
    batch = create_dataset(TRANSLATE, {"source": target, "target": target, "y": target}).batch(0)
    assert batch["target"].tolist() == batch["y"].tolist() == [[1, 5, 6]]


def test_a_target_of_one_token_has_nothing_to_predict():
    token = np.array([[1]])
    with pytest.raises(TaskError, match="`target` is 1 token long"):
        create_dataset(TRANSLATE, {"source": token, "target": token})


def test_a_class_without_training_examples_is_noted():
    only = {"x": np.zeros((5, 7)), "y": np.ones(5)}
    assert create_dataset(DENSE, only).notes == ("d: no training example of class 0, 2",)
    assert create_dataset(DENSE, only, classes=("cat", "dog", "cow")).notes == (
        "d: no training example of class cat, cow",
    )
    assert create_dataset(DENSE, numbered_examples()).notes == ()
    positions = {"x": np.zeros((5, 5, 3)), "y": np.ones((5, 5))}
    assert create_dataset(SEQUENCE, positions).notes == ()


def test_unscaled_bytes_are_noted():
    levels = {"x": np.full((6, 7), 200, dtype=np.uint8), "y": np.arange(6) % 3}
    (note,) = create_dataset(DENSE, levels).notes
    assert note == "d: `x` is used unscaled, 0 to 200; divide by 255 for values from 0 to 1"
    assert create_dataset(DENSE, levels, scale=1 / 255).notes == ()


def test_a_mask_that_does_not_match_the_predictions_is_noted():
    network = build_network(
        "(5, 3)", 'Conv1D(4, kernel_size=2, strides=2) | Output(2, activation="softmax")'
    )
    arrays = {"x": np.zeros((4, 5, 3)), "y": np.ones((4, 2)), "mask": np.ones((4, 5))}
    (note,) = create_dataset(network, arrays).notes
    assert (
        note == "d: the mask does not match the positions of predictions, (2,); "
        "all positions count in the loss"
    )


def test_a_single_example_cannot_be_held_out():
    data = create_dataset(DENSE, {"x": np.zeros((1, 7)), "y": np.zeros(1)}, share=0.5)
    assert "d: one example is too few for a validation split; none is held out" in data.notes
    assert len(data.first_examples(4)["y"]) == 1


def test_a_network_without_a_loss_has_nothing_to_learn():
    with pytest.raises(TaskError, match="Small has no loss"):
        create_dataset(build_network("(7,)", "Dense(3)", loss=""), numbered_examples())


def test_memory_mapped_arrays_are_read_per_batch(tmp_path):
    array = np.arange(12.0).reshape(4, 3)
    np.save(tmp_path / "x.npy", array)
    column = TensorColumn(np.load(tmp_path / "x.npy", mmap_mode="r"), torch.float32)
    assert column.tensor is None
    assert column.take(np.array([3, 0])).tolist() == array[[3, 0]].tolist()
    assert (
        TensorColumn(array, torch.float32).take(np.array([3, 0])).tolist() == array[[3, 0]].tolist()
    )


@pytest.mark.parametrize("masked", [False, True])
def test_a_target_that_ends_after_its_first_token_is_refused(masked):
    target = np.array([[1, 5, 6], [1, 0, 0]]) if not masked else np.array([[1, 5, 6], [1, 7, 8]])
    mask = {"target_mask": np.array([[1, 1, 1], [1, 0, 0]])} if masked else {}
    with pytest.raises(
        TaskError, match="`target`: example 1 has no token to predict after its first"
    ):
        create_dataset(TRANSLATE, {"source": np.array([[1, 5], [1, 6]]), "target": target, **mask})


def test_batch_normalization_refuses_batches_of_one_example():
    network = build_network("(7,)", 'BatchNormalization() | Output(3, activation="softmax")')
    train = {"x": np.zeros((10, 7), np.float32), "y": np.arange(10) % 3}
    create_dataset(network, train, size=2)
    with pytest.raises(
        TaskError,
        match="batches hold one example, but `BatchNormalization` needs several",
    ):
        create_dataset(network, train, size=1)

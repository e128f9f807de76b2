"""What labels must be follows from the loss."""

import numpy as np
import pytest
import torch

from neural.modules.losses import registry as losses
from neural.tasks.data.targets import IGNORED, targets_of
from neural.tasks.task import TaskError


def targets(loss, output=(3,)):
    return targets_of(losses.get(loss)(), output)


def refused(loss, y, output=(3,)):
    with pytest.raises(TaskError) as caught:
        targets(loss, output).fit(np.asarray(y), "d: `y`")
    return str(caught.value)


SPARSE, ONE_HOT, BINARY = "sparse_categorical_crossentropy", "categorical_crossentropy", "binary_crossentropy"


@pytest.mark.parametrize(
    ("loss", "output", "given", "fitted"),
    [
        (SPARSE, (3,), (5,), (5,)),
        (SPARSE, (3,), (5, 1), (5,)),
        (SPARSE, (7, 3), (5, 7), (5, 7)),
        (ONE_HOT, (3,), (5,), (5,)),
        (BINARY, (1,), (5,), (5, 1)),
        (BINARY, (7, 1), (5, 7), (5, 7, 1)),
        (BINARY, (4,), (5, 4), (5, 4)),
        ("mse", (1,), (5,), (5, 1)),
        ("mae", (7, 2), (5, 7, 2), (5, 7, 2)),
    ],
)
def test_labels_come_into_the_shape_that_the_loss_compares(loss, output, given, fitted):
    assert targets(loss, output).fit(np.zeros(given), "y").shape == fitted


@pytest.mark.parametrize(
    ("loss", "y", "message"),
    [
        (SPARSE, [0, 3], "d: `y` has 3 at [1], but must be whole numbers from 0 to 2: the network has 3 classes"),
        (SPARSE, [0, -100], "d: `y` has -100 at [1], but must be whole numbers from 0 to 2: the network has 3 classes"),
        (SPARSE, [0.5, 1], "d: `y` has 0.5 at [0], but must be whole numbers from 0 to 2: the network has 3 classes"),
        (SPARSE, ["cat", "dog"], "d: `y` holds <U3, not numbers; number the classes from 0"),
        (
            SPARSE, np.eye(3), 'd: `y` is (3, 3), but "sparse_categorical_crossentropy" compares class numbers of '
            'shape (B,); write `loss: "categorical_crossentropy"` for one-hot labels',
        ),
        (ONE_HOT, [[1, 1, 0]], "d: `y` is no distribution at [0]: [1 1 0] must be 0 or more and sum to 1"),
        (ONE_HOT, [0, 4], "d: `y` has 4 at [1], but must be whole numbers from 0 to 2: the network has 3 classes"),
        (
            ONE_HOT, [[1, 0]], 'd: `y` is (1, 2), but "categorical_crossentropy" compares one-hot labels of shape '
            "(B, 3), or class numbers of shape (B,)",
        ),
        (BINARY, [[0, 1, 2]], 'd: `y` has 2 at [0, 2], but "binary_crossentropy" takes 0 or 1'),
        (BINARY, [0, 1], 'd: `y` is (2,), but "binary_crossentropy" compares 0 or 1 for every unit: (B, 3)'),
        ("mse", [[0, 1]], 'd: `y` is (1, 2), but "mse" compares what the network predicts: (B, 3)'),
        ("mse", [[0, 1, np.inf]], "d: `y` has inf at [0, 2]; remove or replace such examples"),
    ],
)  # fmt: skip
def test_labels_that_cannot_be_meant_are_named(loss, y, message):
    assert refused(loss, y) == message


def test_positions_may_be_left_out_with_minus_100_but_not_all_of_an_example():
    assert targets(SPARSE, (2, 3)).fit(np.array([[0, IGNORED]]), "y").shape == (1, 2)
    message = refused(SPARSE, [[0, 1], [IGNORED, IGNORED]], (2, 3))
    assert message == "d: `y`: example 1 holds nothing but -100; remove it"


def test_class_numbers_become_one_hot_and_probabilities_stay():
    numbers, soft = np.array([2, 0]), np.array([[0.2, 0.3, 0.5]])
    kind = targets(ONE_HOT)
    assert kind.ready(torch.tensor(numbers, dtype=kind.dtype(numbers))).tolist() == [[0, 0, 1], [1, 0, 0]]
    fitted = kind.fit(soft, "y")
    torch.testing.assert_close(kind.ready(torch.tensor(fitted, dtype=kind.dtype(fitted))), torch.tensor(soft).float())


def test_scores_are_counted_by_hand():
    scores, same = torch.tensor([[0.1, 0.9, 0.0], [2.0, 1.0, 0.0]]), torch.nn.Identity()
    assert targets(SPARSE).right(scores, torch.tensor([1, 2]), same).tolist() == [1, 0]
    assert targets(SPARSE, (2, 3)).right(scores[None], torch.tensor([[1, IGNORED]]), same).tolist() == [1]
    assert targets(ONE_HOT).right(scores, torch.eye(3)[[1, 0]], same).tolist() == [1, 1]
    assert targets(BINARY).right(scores - 0.5, torch.ones(2, 3), same).tolist() == [0, 1, 0, 1, 1, 0]
    torch.testing.assert_close(targets("mse").right(scores, scores, lambda found: found + 1), torch.ones(6))

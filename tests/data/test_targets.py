"""Labels are checked, converted and scored as the loss requires."""

import numpy as np
import pytest
import torch

from neural.core.errors import TaskError
from neural.data.targets import IGNORE_INDEX, select_targets
from neural.nn.losses import registry as losses


def create_targets(loss, output=(3,)):
    return select_targets(losses.get(loss)(), output)


def refusal_message(loss, y, output=(3,)):
    with pytest.raises(TaskError) as caught:
        create_targets(loss, output).prepare(np.asarray(y), "d: `y`")
    return str(caught.value)


SPARSE, ONE_HOT, BINARY = (
    "sparse_categorical_crossentropy",
    "categorical_crossentropy",
    "binary_crossentropy",
)


@pytest.mark.parametrize(
    ("loss", "output", "shape", "prepared_shape"),
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
def test_labels_are_reshaped_for_the_loss(loss, output, shape, prepared_shape):
    assert create_targets(loss, output).prepare(np.zeros(shape), "y").shape == prepared_shape


@pytest.mark.parametrize(
    ("loss", "y", "message"),
    [
        (
            SPARSE,
            [0, 3],
            "d: `y` has 3 at [1], but must hold integers from 0 to 2: the network has 3 classes",
        ),
        (
            SPARSE,
            [0, -100],
            "d: `y` has -100 at [1], but must hold integers from 0 to 2: the network has 3 classes",
        ),
        (
            SPARSE,
            [0.5, 1],
            "d: `y` has 0.5 at [0], but must hold integers from 0 to 2: the network has 3 classes",
        ),
        (SPARSE, ["cat", "dog"], "d: `y` holds <U3, not numbers; number the classes from 0"),
        (
            SPARSE,
            np.eye(3),
            'd: `y` is (3, 3), but "sparse_categorical_crossentropy" takes class numbers of '
            'shape (B,); write `loss: "categorical_crossentropy"` for one-hot labels',
        ),
        (
            ONE_HOT,
            [[1, 1, 0]],
            "d: `y` is not a distribution at [0]: [1 1 0] must be at least 0 and sum to 1",
        ),
        (
            ONE_HOT,
            [0, 4],
            "d: `y` has 4 at [1], but must hold integers from 0 to 2: the network has 3 classes",
        ),
        (
            ONE_HOT,
            [[1, 0]],
            'd: `y` is (1, 2), but "categorical_crossentropy" takes one-hot labels of shape '
            "(B, 3), or class numbers of shape (B,)",
        ),
        (BINARY, [[0, 1, 2]], 'd: `y` has 2 at [0, 2], but "binary_crossentropy" takes 0 or 1'),
        (
            BINARY,
            [0, 1],
            'd: `y` is (2,), but "binary_crossentropy" takes 0 or 1 for every unit: (B, 3)',
        ),
        ("mse", [[0, 1]], 'd: `y` is (1, 2), but "mse" takes the shape of the predictions: (B, 3)'),
        ("mse", [[0, 1, np.inf]], "d: `y` has inf at [0, 2]; remove or replace such examples"),
    ],
)
def test_wrong_labels_are_named(loss, y, message):
    assert refusal_message(loss, y) == message


def test_positions_may_be_ignored_with_minus_100_but_not_a_whole_example():
    assert create_targets(SPARSE, (2, 3)).prepare(np.array([[0, IGNORE_INDEX]]), "y").shape == (
        1,
        2,
    )
    message = refusal_message(SPARSE, [[0, 1], [IGNORE_INDEX, IGNORE_INDEX]], (2, 3))
    assert message == "d: `y`: example 1 holds only -100; remove it"


def test_class_numbers_become_one_hot_and_probabilities_stay():
    numbers, probabilities = np.array([2, 0]), np.array([[0.2, 0.3, 0.5]])
    one_hot_targets = create_targets(ONE_HOT)
    assert one_hot_targets.to_loss_target(
        torch.tensor(numbers, dtype=one_hot_targets.dtype(numbers))
    ).tolist() == [
        [0, 0, 1],
        [1, 0, 0],
    ]
    prepared = one_hot_targets.prepare(probabilities, "y")
    torch.testing.assert_close(
        one_hot_targets.to_loss_target(
            torch.tensor(prepared, dtype=one_hot_targets.dtype(prepared))
        ),
        torch.tensor(probabilities).float(),
    )


def test_metrics_equal_values_counted_by_hand():
    scores, identity = torch.tensor([[0.1, 0.9, 0.0], [2.0, 1.0, 0.0]]), torch.nn.Identity()
    assert create_targets(SPARSE).score_predictions(
        scores, torch.tensor([1, 2]), identity
    ).tolist() == [1, 0]
    assert create_targets(SPARSE, (2, 3)).score_predictions(
        scores[None], torch.tensor([[1, IGNORE_INDEX]]), identity
    ).tolist() == [1]
    assert create_targets(ONE_HOT).score_predictions(
        scores, torch.eye(3)[[1, 0]], identity
    ).tolist() == [1, 1]
    assert create_targets(BINARY).score_predictions(
        scores - 0.5, torch.ones(2, 3), identity
    ).tolist() == [
        0,
        1,
        0,
        1,
        1,
        0,
    ]
    torch.testing.assert_close(
        create_targets("mse").score_predictions(scores, scores, lambda scores: scores + 1),
        torch.ones(6),
    )

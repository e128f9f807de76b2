"""Class weights with label smoothing equal those of torch."""

import pytest
import torch

from neural.data.targets import BinaryTargets, ClassTargets
from neural.nn.losses.binary_crossentropy import BinaryCrossentropy
from neural.nn.losses.sparse_categorical_crossentropy import SparseCategoricalCrossentropy
from neural.tasks.segmentation.losses import cross_entropy
from neural.tasks.supervised.class_weights import ClassWeights

WEIGHTS = {"a": 1.0, "b": 5.0, "c": 0.2, "d": 1.0}


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_the_weighted_and_smoothed_loss_is_that_of_torch(smoothing):
    torch.manual_seed(0)
    logits, y = torch.randn(50, 4), torch.randint(0, 4, (50,))
    y[:3] = -100
    weight = torch.tensor(list(WEIGHTS.values()))
    expected = torch.nn.functional.cross_entropy(
        logits, y, weight=weight, label_smoothing=smoothing
    )
    loss = SparseCategoricalCrossentropy(label_smoothing=smoothing)
    targets = object.__new__(ClassTargets)
    torch.testing.assert_close(
        ClassWeights(WEIGHTS).compute_loss(loss, targets, logits, y), expected
    )
    segmented = cross_entropy(
        logits[None],
        y.clamp(min=0)[None],
        (y >= 0)[None],
        label_smoothing=smoothing,
        class_weights=weight,
    )
    torch.testing.assert_close(segmented, expected)


def test_one_sigmoid_unit_has_the_loss_of_two_classes():
    torch.manual_seed(0)
    logits, y = torch.randn(50, 1), torch.randint(0, 2, (50,))
    weights = {"no": 0.5, "yes": 3.0}
    two = torch.cat((torch.zeros_like(logits), logits), dim=1)
    expected = torch.nn.functional.cross_entropy(
        two, y, weight=torch.tensor(list(weights.values())), label_smoothing=0.2
    )
    loss, targets = BinaryCrossentropy(label_smoothing=0.2), object.__new__(BinaryTargets)
    actual = ClassWeights(weights).compute_loss(loss, targets, logits, y.float()[:, None])
    torch.testing.assert_close(actual, expected)

"""What a segmenter says about documents: scores per element, P(a part begins here), and when that is enough."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from neural.modules.late import torch
from neural.tasks.cutting.packed import in_batches

if TYPE_CHECKING:
    from neural.tasks.cutting.settings import Learned

AT_ONCE = 1 << 14
"""Elements that go through a model together, padding included."""
SMALLEST = 1e-9
"""How near a threshold may come to 0 and 1."""


def scores_of(model: Any, inputs: Sequence[np.ndarray], *, at_once: int = AT_ONCE) -> list[np.ndarray]:
    """The scores of the classes, (elements, classes), of every document, given its features, (elements, features).

    The model is used as it is: put it into evaluation mode before.
    """
    device, found = next(model.parameters()).device, {}
    with torch.no_grad():
        for numbers in in_batches([len(one) for one in inputs], at_once):
            lengths = [len(inputs[one]) for one in numbers]
            x = torch.zeros(len(numbers), max(lengths), inputs[numbers[0]].shape[1])
            for row, one in enumerate(numbers):
                x[row, : lengths[row]] = torch.from_numpy(np.ascontiguousarray(inputs[one], np.float32))
            mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(-1)
            scores = model.scores(x.to(device), mask.to(device)).float().cpu().numpy()
            found |= {one: scores[row, : lengths[row]] for row, one in enumerate(numbers)}
    return [found[number] for number in range(len(inputs))]


def class_probabilities(scores: np.ndarray) -> np.ndarray:
    """Of each class, (elements, classes), in 64 bits."""
    odds = np.exp(scores - scores.max(axis=-1, keepdims=True), dtype=np.float64)
    return odds / odds.sum(axis=-1, keepdims=True)


def boundary_probabilities(classes: np.ndarray, learned: Learned) -> np.ndarray:
    """P(a part begins at this element), (elements,), from the probabilities of the classes; 0 at the first element.

    Of labels: that it has another label than the element before, each being drawn on its own. With two classes that is
    above one half exactly where the likelier label changes.
    """
    if learned == "boundaries":
        found = classes[:, 1].copy()
    else:
        same = np.einsum("nc,nc->n", classes[1:], classes[:-1])
        found = np.concatenate([[0.0], 1 - same]).clip(0, 1)
    found[0] = 0.0
    return found


def threshold_for(probabilities: Sequence[np.ndarray], rate: float) -> float:
    """The probability above which lies a share `rate` of the gaps of all documents; one half where there is no gap.

    One half is the best threshold of a model that is sure of itself. One that is not, because it is young, or smoothed,
    or weighs rare classes, would find no boundary at all or far too many; at the rate of the documents that it learned
    from it finds about as many as there are, whatever its probabilities mean.
    """
    gaps = np.sort(np.concatenate([np.zeros(0), *(one[1:] for one in probabilities)]))[::-1]
    if len(gaps) == 0:
        return 0.5
    count = min(max(round(rate * len(gaps)), 1), len(gaps))
    below = gaps[count] if count < len(gaps) else 0.0
    return float(np.clip((gaps[count - 1] + below) / 2, SMALLEST, 1 - SMALLEST))

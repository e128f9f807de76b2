"""Run a segmenter on documents: logits, boundary probabilities, decision threshold.

Elements are the sentences or lines of a document; a gap is the place between two elements. A
boundary is an element where a segment begins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from neural.nn.lazy_torch import torch
from neural.tasks.segmentation.collate import iter_length_batches
from neural.tasks.segmentation.numpy_segmenter import NumpyEnsemble, NumpySegmenter

if TYPE_CHECKING:
    from neural.tasks.segmentation.settings import TargetKind

MAX_BATCH_ELEMENTS = 1 << 14
"""Maximum number of elements in a batch, padding included."""
MIN_THRESHOLD = 1e-9
"""Thresholds lie between this value and 1 minus this value."""
MAX_SINGLE_PASS_ELEMENTS = 4096
"""Longer documents are divided into overlapping windows; others are one sequence."""
WINDOW_ELEMENTS = 1024
"""Length of a window."""
CONTEXT_ELEMENTS = 128
"""Elements at either end of a window that serve as context only.

Their logits are taken from the neighbouring window, so windows overlap by twice this number.
"""


def compute_logits(
    model: Any, inputs: Sequence[np.ndarray], *, max_batch_elements: int = MAX_BATCH_ELEMENTS
) -> list[np.ndarray]:
    """Class logits (elements, classes) of every document.

    `model` is a segmenter or an ensemble, in torch or in NumPy; `inputs` are the features of each document,
    (elements, features). The function does not change the mode of the model: call `eval()` before.
    """
    if isinstance(model, NumpySegmenter | NumpyEnsemble):
        return [model.logits(x) for x in inputs]
    device, logits_by_index = next(model.parameters()).device, {}
    with torch.no_grad():
        for indices in iter_length_batches([len(x) for x in inputs], max_batch_elements):
            lengths = [len(inputs[index]) for index in indices]
            x = torch.zeros(len(indices), max(lengths), inputs[indices[0]].shape[1])
            for row, index in enumerate(indices):
                x[row, : lengths[row]] = torch.from_numpy(
                    np.ascontiguousarray(inputs[index], np.float32)
                )
            mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(-1)
            logits = model.logits(x.to(device), mask.to(device)).float().cpu().numpy()
            logits_by_index |= {
                index: logits[row, : lengths[row]] for row, index in enumerate(indices)
            }
    return [logits_by_index[index] for index in range(len(inputs))]


def compute_logits_in_windows(
    model: Any,
    x: np.ndarray,
    *,
    max_single_pass: int = MAX_SINGLE_PASS_ELEMENTS,
    window: int = WINDOW_ELEMENTS,
    context: int = CONTEXT_ELEMENTS,
    on_progress: Callable[[int, int], None] = lambda done, count: None,
) -> np.ndarray:
    """Class logits (elements, classes) of one document; a long one runs in overlapping windows.

    `x` are its features, (elements, features). `max_single_pass`, `window` and `context` are
    numbers of elements; see the constants that are their defaults. `on_progress(done, count)` is
    called after each batch of windows with numbers of elements.
    """
    count = len(x)
    if count <= max(max_single_pass, window):
        return compute_logits(model, [x])[0]
    # The last window ends at the end of the document, so it may overlap more than the others.
    starts = [*range(0, count - window, window - 2 * context), count - window]
    logits: np.ndarray | None = None
    windows_per_batch = max(1, MAX_BATCH_ELEMENTS // window)
    for first in range(0, len(starts), windows_per_batch):
        batch_starts = starts[first : first + windows_per_batch]
        batch_logits = compute_logits(model, [x[start : start + window] for start in batch_starts])
        for start, window_logits in zip(batch_starts, batch_logits, strict=True):
            if logits is None:
                logits = np.empty((count, window_logits.shape[1]), window_logits.dtype)
            # Skip the left context. The right context is overwritten by the next window.
            skipped = context if start else 0
            logits[start + skipped : start + window] = window_logits[skipped:]
        on_progress(batch_starts[-1] + window, count)
    assert logits is not None
    return logits


def class_probabilities(logits: np.ndarray) -> np.ndarray:
    """Softmax of class logits, (elements, classes), in float64."""
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True), dtype=np.float64)
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def boundary_probabilities(classes: np.ndarray, target_kind: TargetKind) -> np.ndarray:
    """P(boundary) of each element, (elements,); 0 at the first element.

    `classes` are class probabilities, (elements, classes). With boundaries as the target, class 1
    is "boundary". With labels, P(boundary) is the probability that two neighbouring elements have
    different labels, if their labels are independent. With two labels it exceeds one half exactly
    where the most likely label changes.
    """
    if target_kind == "boundaries":
        probabilities = classes[:, 1].copy()
    else:
        same_label = np.einsum("nc,nc->n", classes[1:], classes[:-1])
        probabilities = np.concatenate([[0.0], 1 - same_label]).clip(0, 1)
    probabilities[0] = 0.0
    return probabilities


def choose_threshold(probabilities: Sequence[np.ndarray], boundary_rate: float) -> float:
    """Threshold that predicts a boundary at a fraction `boundary_rate` of all gaps.

    `probabilities` are P(boundary) of each document. The result is 0.5 if there are no gaps.

    For a calibrated model 0.5 would be the best threshold. But a model early in training, or one
    trained with label smoothing or class weights, would predict no boundary at all or far too many
    with it. With the boundary rate of the training documents it predicts about the right number.
    """
    gap_probabilities = np.sort(np.concatenate([np.zeros(0), *(p[1:] for p in probabilities)]))[
        ::-1
    ]
    gap_count = len(gap_probabilities)
    if gap_count == 0:
        return 0.5
    boundary_count = min(max(round(boundary_rate * gap_count), 1), gap_count)
    below = gap_probabilities[boundary_count] if boundary_count < gap_count else 0.0
    threshold = (gap_probabilities[boundary_count - 1] + below) / 2
    return float(np.clip(threshold, MIN_THRESHOLD, 1 - MIN_THRESHOLD))

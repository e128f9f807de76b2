"""Training examples and batches: documents → features and targets → padded tensors.

A document is a sequence of elements (sentences or lines); a boundary is an element where a segment
begins. An example is a document, or a chunk of a long one. A batch holds examples of similar
length, to keep padding low. The batches and their order depend on the seed and the batch index
alone.

The target of an element is a class: with the target kind "boundaries", 1 where a segment begins and
else 0; with "labels", the label of the element.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from neural.core.errors import TaskError
from neural.data.sampler import BatchSampler, create_generator
from neural.nn.lazy_torch import torch
from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.feature_cache import compute_features
from neural.tasks.segmentation.settings import TargetKind

if TYPE_CHECKING:
    from neural.tasks.task import Batch

_BATCH_ORDER_RNG_STREAM = 2
"""Argument `stream` of `create_generator`: different streams of one seed are independent.

`neural.data.sampler` uses 0 and 1.
"""
BATCHES_PER_BUCKET = 8
"""Number of consecutive batches whose examples are sorted by length together."""
BOUNDARY_CLASS_NAMES = ("inside", "boundary")
"""Names of the classes 0 and 1 if boundaries are the target."""


@dataclass(frozen=True)
class SegmentationExample:
    """Features and targets of a document, or of a chunk of a long one."""

    document: int
    """Index of the document in `documents` of the task (task.py)."""
    first: int
    """Index in the document of the example's first element; above 0 for later chunks."""
    x: np.ndarray
    """Features, (elements, features)."""
    target: np.ndarray
    """Class index of each element, (elements,)."""
    boundaries: np.ndarray
    """True where a segment begins, (elements,)."""

    def __len__(self) -> int:
        return len(self.x)

    def split(self, max_elements: int) -> Iterator[SegmentationExample]:
        """Chunks of nearly equal length, none longer than `max_elements`."""
        count = -(-len(self) // max_elements)
        edges = np.linspace(0, len(self), count + 1).astype(np.int64)
        for start, end in pairwise(edges.tolist()):
            yield SegmentationExample(
                self.document,
                self.first + start,
                self.x[start:end],
                self.target[start:end],
                self.boundaries[start:end],
            )


class LengthBucketedOrder(BatchSampler):
    """Sampler of batches of example indices; the examples of a batch have similar length.

    The base class cuts the order of each epoch, which `shuffle` returns, into batches.
    """

    def __init__(self, lengths: Sequence[int], batch_size: int, seed: int) -> None:
        super().__init__(np.arange(len(lengths)), batch_size, seed)
        self.lengths = np.asarray(lengths)

    def shuffle(self, epoch: int) -> np.ndarray:
        """Example indices in the order of an epoch.

        Shuffles the examples, sorts them by length within buckets of `BATCHES_PER_BUCKET` batches,
        and shuffles the batches. Examples that do not fill a batch are dropped.
        """
        order = super().shuffle(epoch)[: self.batches_per_epoch * self.batch_size]
        bucket_size = self.batch_size * BATCHES_PER_BUCKET
        buckets = [
            order[start : start + bucket_size] for start in range(0, len(order), bucket_size)
        ]
        order = np.concatenate(
            [bucket[np.argsort(self.lengths[bucket], kind="stable")] for bucket in buckets]
        )
        batch_order = create_generator(
            self.seed, epoch, stream=_BATCH_ORDER_RNG_STREAM
        ).permutation(self.batches_per_epoch)
        return order.reshape(self.batches_per_epoch, self.batch_size)[batch_order].reshape(-1)


def collate_examples(examples: Sequence[SegmentationExample]) -> Batch:
    """Pad examples into a batch: tensors by name, with the fields of `SegmentationExample`.

    `x` is (B, T, F); `mask`, `target` and `boundaries` are (B, T); `document` and `first` are (B,).
    `mask` is False at padding, which is at the end of each row; all values there are 0.
    """
    rows, time = len(examples), max(len(example) for example in examples)
    x = np.zeros((rows, time, examples[0].x.shape[1]), np.float32)
    mask, boundaries = np.zeros((rows, time), bool), np.zeros((rows, time), bool)
    target = np.zeros((rows, time), np.int64)
    for row, example in enumerate(examples):
        size = len(example)
        x[row, :size], target[row, :size] = example.x, example.target
        boundaries[row, :size], mask[row, :size] = example.boundaries, True
    origins = {
        "document": [example.document for example in examples],
        "first": [example.first for example in examples],
    }
    arrays = {"x": x, "mask": mask, "target": target, "boundaries": boundaries}
    return {name: torch.from_numpy(array) for name, array in arrays.items()} | {
        name: torch.tensor(indices) for name, indices in origins.items()
    }


def iter_length_batches(lengths: Sequence[int], max_elements: int) -> Iterator[list[int]]:
    """Yield batches of document indices, longest documents first.

    `lengths` is the number of elements of each document. A batch has at most `max_elements`
    elements, padding included. A document longer than that is a batch of its own.
    """
    order = sorted(range(len(lengths)), key=lambda index: (-lengths[index], index))
    while order:
        batch_size = max(1, max_elements // lengths[order[0]])
        yield order[:batch_size]
        order = order[batch_size:]


@dataclass(frozen=True)
class SegmentationClasses:
    """The classes that a model predicts for each element."""

    target_kind: TargetKind
    """Whether the classes are boundary and no boundary, or the labels of the data."""
    names: tuple[str, ...]
    """Class names, in the order of the class indices."""
    label_ids: tuple[int, ...] = ()
    """With labels: the integer that stands for each class in `SegmentationDocument.labels`.

    In increasing order.
    """

    @classmethod
    def from_documents(
        cls,
        documents: Sequence[SegmentationDocument],
        target_kind: TargetKind | None,
        label_names: Sequence[str],
        collection_name: str,
    ) -> SegmentationClasses:
        """The classes of these documents.

        If `target_kind` is None, it is labels if every document has them, else boundaries.
        `label_names` are the text labels of the data by id. TaskError if labels are requested and
        missing, or if no document has a boundary.
        """
        unlabelled = [document for document in documents if document.labels is None]
        kind: TargetKind = target_kind or ("boundaries" if unlabelled else "labels")
        if kind == "labels" and unlabelled:
            raise TaskError(
                f"{collection_name}: {unlabelled[0].name} has no labels; write `learn: boundaries`"
            )
        if not any(document.boundaries.any() for document in documents):
            raise TaskError(
                f"{collection_name}: no boundary in {len(documents):,} documents, "
                "so there is nothing to learn"
            )
        if kind == "boundaries":
            return cls(kind, BOUNDARY_CLASS_NAMES)
        label_ids = np.unique(
            np.concatenate(
                [document.labels for document in documents if document.labels is not None]
            )
        ).tolist()
        names = [
            label_names[label] if 0 <= label < len(label_names) else str(label)
            for label in label_ids
        ]
        return cls(kind, tuple(names), tuple(label_ids))

    def encode_targets(self, document: SegmentationDocument) -> np.ndarray:
        """Class index of every element, (elements,)."""
        if self.target_kind == "boundaries" or document.labels is None:
            return document.boundaries.astype(np.int64)
        return np.searchsorted(self.label_ids, document.labels)


def make_examples(
    documents: Sequence[SegmentationDocument],
    feature_names: Sequence[str],
    classes: SegmentationClasses,
    *,
    first_id: int = 0,
) -> list[SegmentationExample]:
    """One example per document; `document` of the examples counts from `first_id`.

    Features are cached on disk.
    """
    return [
        SegmentationExample(
            document=first_id + index,
            first=0,
            x=compute_features(document, feature_names, use_cache=True),
            target=classes.encode_targets(document),
            boundaries=document.boundaries,
        )
        for index, document in enumerate(documents)
    ]


def compute_mean_std(examples: Sequence[SegmentationExample]) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of every feature over all elements, (features,) each.

    The standard deviation of a constant feature is set to 1, because the model divides by it.
    """
    count = sum(len(example) for example in examples)
    mean = np.sum([example.x.sum(axis=0, dtype=np.float64) for example in examples], axis=0) / count
    std = np.sqrt(
        np.sum([np.square(example.x - mean).sum(axis=0) for example in examples], axis=0) / count
    )
    return mean.astype(np.float32), np.where(std > 1e-6, std, 1).astype(np.float32)


def fingerprint_documents(documents: Sequence[SegmentationDocument]) -> str:
    """Hash of all elements and of the labels or boundaries, 32 hexadecimal digits.

    It is saved with a run, to detect on resume that the documents have changed.
    """
    digest = blake2b(digest_size=16)
    for document in documents:
        truth = document.boundaries if document.labels is None else document.labels
        for data in (
            *(element.encode("utf-8", "surrogatepass") for element in document.elements),
            truth.tobytes(),
        ):
            # The length separates the entries: ["ab", "c"] and ["a", "bc"] differ.
            digest.update(len(data).to_bytes(8, "little"))
            digest.update(data)
    return digest.hexdigest()

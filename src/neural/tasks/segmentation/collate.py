"""Training examples and batches: documents → features and targets → padded tensors.

A document is a sequence of elements (sentences or lines); a long one is split into chunks. A batch
holds documents of similar length, to keep padding low. The batches and their order depend on the
seed and the batch index alone.
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
"""Number of the random stream; `neural.data.sampler` uses 0 and 1."""
BATCHES_PER_BUCKET = 8
"""Number of consecutive batches whose documents are sorted by length together."""
BOUNDARY_CLASS_NAMES = ("inside", "boundary")
"""Class names if boundaries are the target."""


@dataclass(frozen=True)
class SegmentationExample:
    """Features and targets of a document, or of a chunk of a long one."""

    document: int
    """Index of the document in the task's list of documents."""
    first: int
    """Index in the document of the example's first element; above 0 for later chunks."""
    x: np.ndarray
    """(elements, features)."""
    target: np.ndarray
    """Class index of each element."""
    boundaries: np.ndarray
    """True where a segment begins."""

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
    """Epoch order in which the documents of a batch have similar length."""

    def __init__(self, lengths: Sequence[int], batch_size: int, seed: int) -> None:
        super().__init__(np.arange(len(lengths)), batch_size, seed)
        self.lengths = np.asarray(lengths)

    def shuffle(self, epoch: int) -> np.ndarray:
        """Shuffle, sort by length within buckets of batches, shuffle the batches."""
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
    """Pad examples into a batch.

    `x` (B, T, F), `mask`, `target` and `boundaries` (B, T), `document` and `first` (B,) as in
    `SegmentationExample`. `mask` is False at padding, which is zero and at the end.
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
    """Yield batches of document indices, longest first, of at most `max_elements` with padding.

    `lengths` are the elements of each document. A document longer than `max_elements` is a batch of
    its own.
    """
    order = sorted(range(len(lengths)), key=lambda index: (-lengths[index], index))
    while order:
        batch_size = max(1, max_elements // lengths[order[0]])
        yield order[:batch_size]
        order = order[batch_size:]


@dataclass(frozen=True)
class SegmentationClasses:
    """Target kind and class names."""

    target_kind: TargetKind
    names: tuple[str, ...]
    """Class names, in the order of the class indices."""
    label_ids: tuple[int, ...] = ()
    """Label of each class in the data, in increasing order, if labels are the target."""

    @classmethod
    def from_documents(
        cls,
        documents: Sequence[SegmentationDocument],
        target_kind: TargetKind | None,
        label_names: Sequence[str],
        collection_name: str,
    ) -> SegmentationClasses:
        """Classes of `target_kind`; if None, labels if every document has them, else boundaries.

        TaskError if labels are missing or no document has a boundary.
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
        """Class index of every element."""
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
    """Features and targets of each document; document indices count from `first_id`.

    Features are cached on disk.
    """
    return [
        SegmentationExample(
            first_id + index,
            0,
            compute_features(document, feature_names, use_cache=True),
            classes.encode_targets(document),
            document.boundaries,
        )
        for index, document in enumerate(documents)
    ]


def compute_mean_std(examples: Sequence[SegmentationExample]) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of every feature over all elements.

    The deviation of a constant feature is 1.
    """
    count = sum(len(example) for example in examples)
    mean = np.sum([example.x.sum(axis=0, dtype=np.float64) for example in examples], axis=0) / count
    std = np.sqrt(
        np.sum([np.square(example.x - mean).sum(axis=0) for example in examples], axis=0) / count
    )
    return mean.astype(np.float32), np.where(std > 1e-6, std, 1).astype(np.float32)


def fingerprint_documents(documents: Sequence[SegmentationDocument]) -> str:
    """Hash of the elements and of the labels or boundaries, to detect changed documents."""
    digest = blake2b(digest_size=16)
    for document in documents:
        truth = document.boundaries if document.labels is None else document.labels
        for data in (
            *(element.encode("utf-8", "surrogatepass") for element in document.elements),
            truth.tobytes(),
        ):
            digest.update(len(data).to_bytes(8, "little"))
            digest.update(data)
    return digest.hexdigest()

"""One task per file: raw data → batches, loss, scores."""

from __future__ import annotations

from neural.core.registry import Registry
from neural.tasks.task import Task

registry = Registry(
    __name__, Task, noun="task", spelling="file",
    beside=("block_means", "captioning", "cutting", "data", "experiment", "focusing", "task"),
)  # fmt: skip

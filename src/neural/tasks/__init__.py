"""Registry of tasks. Each task is a folder; its `task.py` defines batches, loss and metrics."""

from __future__ import annotations

from neural.core.registry import Registry
from neural.tasks.task import Task

registry = Registry(__name__, Task, noun="task", spelling="file")

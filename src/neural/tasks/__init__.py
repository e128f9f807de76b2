"""Registry of tasks: one folder each with batches, loss, metrics and own models, in `task.py`."""

from __future__ import annotations

from neural.core.registry import Registry
from neural.tasks.task import Task

registry = Registry(__name__, Task, noun="task", spelling="file")

"""One paradigm per file: how focus and classifier are joined into a loss."""

from __future__ import annotations

from neural.core.registry import Registry
from neural.tasks.focusing.paradigm import Paradigm

registry = Registry(__name__, Paradigm, noun="paradigm", spelling="file")

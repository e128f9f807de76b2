"""Registry of paradigms, one per file: losses that train focus and classifier together."""

from __future__ import annotations

from neural.core.registry import Registry
from neural.tasks.focus.paradigm import Paradigm

registry = Registry(__name__, Paradigm, noun="paradigm", spelling="file")

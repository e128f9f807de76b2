"""Registry of paradigms, one per file: losses that join focus and classifier."""

from __future__ import annotations

from neural.core.registry import Registry
from neural.tasks.focus.paradigm import Paradigm

registry = Registry(__name__, Paradigm, noun="paradigm", spelling="file")

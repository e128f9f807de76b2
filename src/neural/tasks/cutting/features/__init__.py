"""One file per group of columns that describe an element."""

from neural.core.registry import Registry
from neural.tasks.cutting.feature import Feature

registry = Registry(__name__, Feature, noun="feature", spelling="file")

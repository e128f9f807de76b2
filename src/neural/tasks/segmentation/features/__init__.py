"""Registry of features: one file per group of feature columns, found by its file name."""

from neural.core.registry import Registry
from neural.tasks.segmentation.feature import Feature

registry = Registry(__name__, Feature, noun="feature", spelling="file")

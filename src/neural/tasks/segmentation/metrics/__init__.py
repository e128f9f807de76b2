"""Registry of segmentation metrics: one file each, found by its file name."""

from neural.core.registry import Registry
from neural.tasks.segmentation.metric import SegmentationMetric

registry = Registry(__name__, SegmentationMetric, noun="segmentation metric", spelling="file")

"""Registry of segmentation metrics: one file each."""

from neural.core.registry import Registry
from neural.tasks.segmentation.metric import SegmentationMetric

registry = Registry(__name__, SegmentationMetric, noun="segmentation metric", spelling="file")

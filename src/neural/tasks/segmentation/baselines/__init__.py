"""Registry of segmentation baselines: one file each."""

from neural.core.registry import Registry
from neural.tasks.segmentation.baseline import SegmentationBaseline

registry = Registry(__name__, SegmentationBaseline, noun="segmentation baseline", spelling="file")

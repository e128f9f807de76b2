"""Registry of segmentation baselines: one file each, found by its file name.

A baseline is an untrained method that trained models are compared with; see baseline.py.
"""

from neural.core.registry import Registry
from neural.tasks.segmentation.baseline import SegmentationBaseline

registry = Registry(__name__, SegmentationBaseline, noun="segmentation baseline", spelling="file")

"""Registry of calibration methods: one file each. The base classes are in calibrator.py."""

from neural.core.registry import Registry
from neural.tasks.segmentation.calibrator import Calibrator

registry = Registry(__name__, Calibrator, noun="calibration method", spelling="file")

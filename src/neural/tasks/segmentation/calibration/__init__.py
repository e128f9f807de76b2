"""Registry of calibration methods: one file each, found by its file name.

A calibration method turns a model's logits into probabilities; see calibrator.py.
"""

from neural.core.registry import Registry
from neural.tasks.segmentation.calibrator import Calibrator

registry = Registry(__name__, Calibrator, noun="calibration method", spelling="file")

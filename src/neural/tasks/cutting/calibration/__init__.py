"""One file per way to turn scores into probabilities that mean what they say; `calibrated.py` has the promises."""

from neural.core.registry import Registry
from neural.tasks.cutting.calibrated import Calibration

registry = Registry(__name__, Calibration, noun="calibration method", spelling="file")

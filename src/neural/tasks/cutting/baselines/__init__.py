"""One file per baseline: elements → boundaries, with nothing trained."""

from neural.core.registry import Registry
from neural.tasks.cutting.baseline import Baseline

registry = Registry(__name__, Baseline, noun="segmentation baseline", spelling="file")

"""One file per metric: true and predicted parts → numbers between 0 and 1."""

from neural.core.registry import Registry
from neural.tasks.cutting.metric import Metric

registry = Registry(__name__, Metric, noun="segmentation metric", spelling="file")

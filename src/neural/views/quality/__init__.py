"""One file per measure of generated text; `views/judge.py` applies them all."""

from neural.core.registry import Registry
from neural.views.quality_measure import QualityMeasure

registry = Registry(__name__, QualityMeasure, noun="quality measure", spelling="file")

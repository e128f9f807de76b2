"""Quality measures of generated text, one file each; `analysis/sample_quality.py` runs them all."""

from neural.analysis.quality_measure import QualityMeasure
from neural.core.registry import Registry

registry = Registry(__name__, QualityMeasure, noun="quality measure", spelling="file")

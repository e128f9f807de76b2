"""Quality measures of generated text, one file each; `findings/sample_quality.py` runs them all."""

from neural.core.registry import Registry
from neural.findings.quality_measure import QualityMeasure

registry = Registry(__name__, QualityMeasure, noun="quality measure", spelling="file")

"""Analysis checks, one file each; `analysis/findings.py` runs them all."""

from neural.analysis.check import AnalysisCheck
from neural.core.registry import Registry

registry = Registry(__name__, AnalysisCheck, noun="analysis", spelling="file")

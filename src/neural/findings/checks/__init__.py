"""Analysis checks, one file each; `findings/findings.py` runs them all."""

from neural.core.registry import Registry
from neural.findings.check import AnalysisCheck

registry = Registry(__name__, AnalysisCheck, noun="analysis", spelling="file")

"""One file per question to runs; `views/findings.py` asks them all."""

from neural.core.registry import Registry
from neural.views.finding import Analysis

registry = Registry(__name__, Analysis, noun="analysis", spelling="file")

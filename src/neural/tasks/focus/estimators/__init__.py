"""Registry of estimators, one per file: they select the segments to classify in training."""

from __future__ import annotations

from neural.core.registry import Registry
from neural.tasks.focus.estimator import Estimator

registry = Registry(__name__, Estimator, noun="estimator", spelling="file")

"""One estimator per file: which segments the classifier reads where reading all of them is too much."""

from __future__ import annotations

from neural.core.registry import Registry
from neural.tasks.focusing.estimator import Estimator

registry = Registry(__name__, Estimator, noun="estimator", spelling="file")

"""One file per learning-rate schedule."""

from neural.core.registry import Registry
from neural.optim.schedule import Schedule

registry = Registry(__name__, Schedule, noun="schedule")

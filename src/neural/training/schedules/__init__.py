"""One file per schedule: the learning rate at a step."""

from neural.core.registry import Registry
from neural.training.schedule import Schedule

registry = Registry(__name__, Schedule, noun="schedule")

"""Registry of runners, one file each: where `neural sweep --runner NAME` runs its trainings."""

from neural.core.registry import Registry
from neural.training.runner import Runner

registry = Registry(__name__, Runner, noun="runner", spelling="file")

"""One file per place where the trials of a sweep can run: `neural sweep --on NAME`."""

from neural.core.registry import Registry
from neural.training.runner import Runner

registry = Registry(__name__, Runner, noun="runner", spelling="file")

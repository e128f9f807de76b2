"""One file per runner of sweep trials: `neural sweep --runner NAME`."""

from neural.core.registry import Registry
from neural.training.runner import Runner

registry = Registry(__name__, Runner, noun="runner", spelling="file")

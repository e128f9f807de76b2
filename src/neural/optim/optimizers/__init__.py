"""One file per optimizer."""

from neural.core.registry import Registry
from neural.optim.optimizer import Optimizer

registry = Registry(__name__, Optimizer, noun="optimizer")

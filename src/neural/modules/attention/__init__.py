"""One file per mechanism: `weights` defines it, `mix` runs it."""

from neural.core.registry import Registry
from neural.modules.mechanism import Mechanism

registry = Registry(__name__, Mechanism, noun="attention mechanism", spelling="file")

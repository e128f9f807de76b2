"""One file per layer: its arguments, the shape and cost that follow, its torch module."""

from neural.core.registry import Registry
from neural.language.layer import Layer

registry = Registry(__name__, Layer, noun="layer")

"""Layers, one file each: arguments, output shape, cost and torch module."""

from neural.core.registry import Registry
from neural.language.layer import Layer

registry = Registry(__name__, Layer, noun="layer")

"""Attention mechanisms (mechanism.py), one file each: `weights` defines it, `attend` is fast."""

from neural.core.registry import Registry
from neural.nn.mechanism import Mechanism

registry = Registry(__name__, Mechanism, noun="attention mechanism", spelling="file")

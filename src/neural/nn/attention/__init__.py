"""Attention mechanisms, one file each: `weights` defines it, `attend` computes it fast."""

from neural.core.registry import Registry
from neural.nn.mechanism import Mechanism

registry = Registry(__name__, Mechanism, noun="attention mechanism", spelling="file")

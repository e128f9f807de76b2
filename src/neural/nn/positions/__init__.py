"""Positional encodings (position.py), one file each."""

from neural.core.registry import Registry
from neural.nn.position import Position

registry = Registry(__name__, Position, noun="positional encoding", spelling="file")

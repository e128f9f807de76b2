"""One file per way of telling a transformer where things are."""

from neural.core.registry import Registry
from neural.modules.position import Position

registry = Registry(__name__, Position, noun="positional encoding", spelling="file")

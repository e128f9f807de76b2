"""One file per kind of data."""

from neural.core.registry import Registry
from neural.tasks.data.source import Source

registry = Registry(__name__, Source, noun="kind of data", spelling="file")

"""Registry of sinks: one file per external tracker."""

from neural.core.registry import Registry
from neural.runs.sink import Sink

registry = Registry(__name__, Sink, noun="sink", spelling="file")

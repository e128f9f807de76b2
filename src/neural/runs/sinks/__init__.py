"""Registry of sinks: one file per external tracker, named as in the setting `tracking.sinks`."""

from neural.core.registry import Registry
from neural.runs.sink import Sink

registry = Registry(__name__, Sink, noun="sink", spelling="file")

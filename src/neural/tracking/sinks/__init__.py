"""One file per tracker that can get a run's scalars too."""

from neural.core.registry import Registry
from neural.tracking.sink import Sink

registry = Registry(__name__, Sink, noun="sink", spelling="file")

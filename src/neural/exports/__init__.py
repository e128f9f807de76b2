"""One file per export format of trained networks: `neural export RUN --to NAME`."""

from neural.core.registry import Registry
from neural.workflows.export import Exporter

registry = Registry(__name__, Exporter, noun="export format", spelling="file")

"""Registry of data sources: one file per kind of data."""

from neural.core.registry import Registry
from neural.data.source import DataSource

registry = Registry(__name__, DataSource, noun="kind of data", spelling="file")

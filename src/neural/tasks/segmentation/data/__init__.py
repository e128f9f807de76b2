"""Registry of document readers: one file per input format, found by its file name."""

from neural.core.registry import Registry
from neural.tasks.segmentation.reader import DocumentReader

registry = Registry(__name__, DocumentReader, noun="kind of document", spelling="file")

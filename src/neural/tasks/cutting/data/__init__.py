"""One file per kind of file that holds documents with known parts."""

from neural.core.registry import Registry
from neural.tasks.cutting.reader import Reader

registry = Registry(__name__, Reader, noun="kind of document", spelling="file")

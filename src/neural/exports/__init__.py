"""One file per form in which a trained network leaves: written aside, read back, compared, and only then in place."""

from neural.core.registry import Registry
from neural.export import Export

registry = Registry(__name__, Export, noun="form to export to", spelling="file")

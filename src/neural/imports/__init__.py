"""One file per format of checkpoints from other programs: `neural import FILE --as NAME`."""

from neural.core.registry import Registry
from neural.workflows.import_model import Importer

registry = Registry(__name__, Importer, noun="import format", spelling="file")

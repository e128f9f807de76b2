"""One file per kind of network that others have trained and that can go on here, as a run folder."""

from neural.core.registry import Registry
from neural.importing import Import

registry = Registry(__name__, Import, noun="kind of file to import", spelling="file")

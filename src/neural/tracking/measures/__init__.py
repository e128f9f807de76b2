"""One file per measure: `plain` defines it, `needs` says what the compiled pass over the rows finds for it."""

from neural.core.registry import Registry
from neural.tracking.measure import Measure

registry = Registry(__name__, Measure, noun="measure", spelling="file")

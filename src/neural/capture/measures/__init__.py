"""Registry of attention measures: one file each.

`reference` defines a measure; `required_statistics` names the row statistics it is computed from.
"""

from neural.capture.measure import Measure
from neural.core.registry import Registry

registry = Registry(__name__, Measure, noun="measure", spelling="file")

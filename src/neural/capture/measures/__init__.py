"""Registry of attention measures (entropy, distance …): one file each, named as the user types it.

`reference` defines a measure; `required_statistics` names the row statistics it is computed from.
"""

from neural.capture.measure import Measure
from neural.core.registry import Registry

registry = Registry(__name__, Measure, noun="measure", spelling="file")

"""What every layer promises: what it declares is what its module does, and padding is as good as not there."""

from neural.contract import layers, layers_padding
from neural.modules.layers import registry
from tests.contract.promised import as_tests

ENTRIES = [(name, registry.get(name)) for name in registry.names()]
globals().update(as_tests(layers, layers_padding, entries=ENTRIES))

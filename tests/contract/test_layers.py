"""Every layer keeps the contract rules of layers."""

from neural.nn.layers import registry
from neural.testing import layer_rules
from tests.contract.rule_tests import make_tests

ENTRIES = [(name, registry.get(name)) for name in registry.names()]
globals().update(make_tests(layer_rules, ENTRIES))

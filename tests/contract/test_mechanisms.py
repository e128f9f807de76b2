"""Every attention mechanism keeps the contract rules of mechanisms."""

from neural.nn.attention import registry
from neural.testing import attention_rules
from tests.contract.rule_tests import make_tests

ENTRIES = [(name, registry.get(name)) for name in registry.names()]
globals().update(make_tests(attention_rules, ENTRIES))

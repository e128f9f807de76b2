"""What every attention mechanism promises: `weights` defines it, `mix` runs it, and nobody sees what is masked."""

from neural.contract import mechanisms, mechanisms_in_torch
from neural.modules.attention import registry
from tests.contract.promised import as_tests

ENTRIES = [(name, registry.get(name)) for name in registry.names()]
globals().update(as_tests(mechanisms, mechanisms_in_torch, entries=ENTRIES))

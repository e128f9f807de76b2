"""Every registry entry keeps the contract rules of entries."""

import subprocess
import sys

from neural.testing import entry_rules
from neural.testing.entry_rules import find_registries
from tests.contract.rule_tests import make_tests

ENTRIES = [
    (f"{package}-{name}", registry.get(name))
    for package, registry in sorted(find_registries().items())
    for name in registry.names()
]
globals().update(make_tests(entry_rules, ENTRIES))


def test_every_declaration_is_read_without_torch():
    script = (
        "import sys\n"
        "from tests.contract.read_declarations import read_all\n"
        "count = read_all()\n"
        "assert count > 20, count\n"
        "heavy = {'torch', 'entmax', 'numpy'} & set(sys.modules)\n"
        "assert not heavy, f'{heavy} imported'\n"
    )
    process = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr

"""What every entry of every registry promises."""

import subprocess
import sys

from neural.contract import entries
from neural.contract.entries import registries
from tests.contract.promised import as_tests

ENTRIES = [
    (f"{package}-{name}", registry.get(name))
    for package, registry in sorted(registries().items()) for name in registry.names()
]  # fmt: skip
globals().update(as_tests(entries, entries=ENTRIES))


def test_every_declaration_is_read_without_torch():
    script = (
        "import sys\n"
        "from tests.contract.subjects_without_torch import read_all\n"
        "count = read_all()\n"
        "assert count > 20, count\n"
        "heavy = {'torch', 'numba', 'entmax', 'numpy'} & set(sys.modules)\n"
        "assert not heavy, f'{heavy} imported'\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

"""What every entry of every registry promises."""

import subprocess
import sys

import pytest

from neural.core.diagnostics import Findings
from neural.core.names import key
from neural.language.binding import Binder
from neural.language.parser import parse
from tests.contract.subjects import registries

REGISTRIES = registries()
every_entry = pytest.mark.parametrize(
    ("package", "name"), [(package, name) for package, one in sorted(REGISTRIES.items()) for name in one.names()]
)


def tiny(package: str, name: str):
    made = REGISTRIES[package].get(name).tiny()
    return made[0] if isinstance(made, tuple) else made


@every_entry
def test_an_entry_is_a_file_of_its_own_name(package, name):
    entry = REGISTRIES[package].get(name)
    folder, _, stem = entry.__module__.rpartition(".")
    assert key(stem) == key(entry.__name__) == key(name)
    assert folder == package or not folder.startswith("neural."), f"{entry} is defined somewhere else"


@every_entry
def test_an_entry_and_its_file_say_what_they_are(package, name):
    entry = REGISTRIES[package].get(name)
    assert vars(entry).get("__doc__"), "a docstring of its own, not its base's"
    assert entry.summary().endswith(".")
    assert sys.modules[entry.__module__].__doc__
    assert all(one.doc for one in entry.settings().values())


@every_entry
def test_what_an_entry_prints_is_the_call_that_makes_it(package, name):
    registry, made = REGISTRIES[package], tiny(package, name)
    findings = Findings()
    (layer,) = parse(repr(made), findings).items
    again = Binder(findings).call(layer.call, registry, loosely=registry.spelling == "file").made
    assert not findings.mistakes, findings.mistakes
    assert again == made
    assert repr(again) == repr(made)


@every_entry
def test_an_entry_is_guessed_from_its_name_in_the_wrong_case(package, name):
    assert REGISTRIES[package].guess(name.swapcase()) == name


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

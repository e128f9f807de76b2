"""A project of one's own: an attention mechanism in one file, a program that uses it, an experiment that trains it.

The files are those of template/, with § where a name belongs.
"""

from __future__ import annotations

import keyword
import re
import shutil
import sys
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from string import Template
from unicodedata import normalize

from neural.core.files import write_atomically
from neural.core.names import snake
from neural.core.registry import UnknownName
from neural.modules.attention import registry as attentions

TEMPLATE = Path(__file__).parent / "template"
FILES = {
    "attention.py": ("src/§package/attention/§attention.py", "the mechanism: this is yours to change"),
    "attentions.py": ("src/§package/attention/__init__.py", ""),
    "package.py": ("src/§package/__init__.py", ""),
    "program.neural": ("§package.neural", "a network that uses it"),
    "experiment.yaml": ("experiment.yaml", "trains that network on embedded data"),
    "test_contract.py": ("tests/test_contract.py", "every promise that attention makes"),
    "pyproject.toml": ("pyproject.toml", "tells neural where the mechanism is"),
    "README.md": ("README.md", ""),
    "gitignore": (".gitignore", ""),
}
"""What becomes of each file of the template, and what it is for where that is worth a word."""
LONGEST = 60


class ProjectError(ValueError):
    """A project that cannot be made; nothing was written."""


@dataclass(frozen=True)
class Project:
    """A folder that was made."""

    path: Path
    attention: str
    files: dict[Path, str]
    """Below `path`, and what they are for."""


def new_project(name: str, into: Path, attention: str = "fading") -> Project:
    """Make the folder `into`/`name` with a package of that name in it; ProjectError says why not."""
    check_name(name)
    check_attention(attention)
    words = {"package": name, "Network": camel(name), "attention": attention, "Attention": camel(attention)}
    places = {Path(_filled(place, words)): about for place, about in FILES.values()}
    filled = dict(zip(places, (_filled(_template(file), words) for file in FILES), strict=True))
    path = into / name
    try:
        path.mkdir(parents=True)   # fails where it is there: nothing is ever overwritten
    except FileExistsError:
        raise ProjectError(f"{path} is there already, and is left as it is: choose another name or --into") from None
    except OSError as problem:
        raise ProjectError(f"{path} cannot be made: {_why(problem)}") from None
    try:
        for place, text in filled.items():
            (path / place).parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path / place, text, durable=False)
    except OSError as problem:
        shutil.rmtree(path, ignore_errors=True)
        raise ProjectError(f"{path} cannot be written: {_why(problem)}") from None
    return Project(path, attention, places)


def check_name(name: str) -> None:
    """Refuse what cannot be the name of a package, or is one already."""
    if keyword.iskeyword(name):
        raise ProjectError(f"`{name}` is a word of Python's own; how about `{suggested(name)}`?")
    if not _is_plain(name):
        plain = "a package's name is made of small letters, digits and `_`, and begins with a letter"
        raise ProjectError(f"`{name}` cannot be imported: {plain}; how about `{suggested(name)}`?")
    if name in sys.stdlib_module_names or find_spec(name) is not None:
        raise ProjectError(
            f"a package called `{name}` is installed already, and `import {name}` would not find yours; "
            f"how about `{suggested(name)}`?"
        )


def check_attention(name: str) -> None:
    """Refuse what programs could not write, or would find somewhere else."""
    usual = snake(camel(suggested(name)))
    if not _is_plain(name) or snake(camel(name)) != name:
        raise ProjectError(f'programs cannot write attention="{name}"; how about `{usual}`?')
    another = f"how about --attention my_{name}?"
    with suppress(UnknownName):
        there = attentions.get(name, loosely=True)
        raise ProjectError(f"an attention mechanism called `{name}` is there already, in {there.__module__}; {another}")
    if re.search(rf"\b{camel(name)}\b", _template("attention.py")):
        raise ProjectError(f"`{camel(name)}` means something else in the mechanism's file; {another}")


def suggested(name: str) -> str:
    """A name that can be imported and is not taken, near the one that was given."""
    letters = normalize("NFKD", snake(name)).encode("ascii", "ignore").decode()   # ü is u with dots
    words = re.sub(r"[\W_]+", "_", letters).strip("_")[:LONGEST]
    plain = words.lstrip("0123456789_") or "attention_lab"
    taken = not _is_plain(plain) or plain in sys.stdlib_module_names or find_spec(plain) is not None
    return f"{plain}_lab" if taken else plain


def camel(name: str) -> str:
    """A file name as a class name: `distance_decay` → `DistanceDecay`."""
    return "".join(part.capitalize() for part in name.split("_"))


def _is_plain(name: str) -> bool:
    fits = re.fullmatch(r"[a-z][a-z0-9_]*", name) is not None and len(name) <= LONGEST
    return fits and not keyword.iskeyword(name)


class _Filled(Template):
    delimiter = "§"


def _filled(text: str, words: dict[str, str]) -> str:
    return _Filled(text).substitute(words)


def _template(file: str) -> str:
    return (TEMPLATE / f"{file}.txt").read_text(encoding="utf-8")


def _why(problem: OSError) -> str:
    return (problem.strerror or str(problem)).lower()

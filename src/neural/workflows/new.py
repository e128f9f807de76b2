"""Create a project: an attention mechanism in one file, a program that uses it, an experiment.

The files come from template/, with § before the names to fill in. A program is a network in the
`.neural` language; it names a mechanism as `attention="fading"`. The contract is the set of tests
that every mechanism must pass (testing/contract.py): rows sum to 1, masked keys have no weight, ….
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

from neural.core.errors import NeuralError, describe_os_error
from neural.core.files import write_atomically
from neural.core.names import to_snake_case
from neural.core.registry import UnknownNameError
from neural.nn.attention import registry as attentions

TEMPLATE_DIR = Path(__file__).parent / "template"
TEMPLATE_FILES = {
    "attention.py": (
        "src/§package/attention/§attention.py",
        "the mechanism: change this",
    ),
    "attentions.py": ("src/§package/attention/__init__.py", ""),
    "package.py": ("src/§package/__init__.py", ""),
    "program.neural": ("§package.neural", "a network that uses it"),
    "experiment.yaml": (
        "experiment.yaml",
        "trains that network on images of digits, no download",
    ),
    "test_contract.py": ("tests/test_contract.py", "checks that every mechanism must pass"),
    "pyproject.toml": ("pyproject.toml", "tells neural where the mechanism is"),
    "README.md": ("README.md", ""),
    "gitignore": (".gitignore", ""),
}
"""Template file → (path in the project, description or empty)."""
MAX_NAME_LENGTH = 60
"""Longer names of packages and mechanisms are refused."""


class ProjectError(NeuralError, ValueError):
    """The project cannot be created; nothing was written."""


@dataclass(frozen=True)
class Project:
    """A created project."""

    path: Path
    attention: str
    files: dict[Path, str]
    """Paths below `path`, with their descriptions."""


def create_project(name: str, into: Path, attention: str = "fading") -> Project:
    """Create the folder `into`/`name` with a package of that name. Raises ProjectError.

    `attention` is the name of the new mechanism, in snake case.
    """
    check_package_name(name)
    check_attention_name(attention)
    names = {
        "package": name,
        "Network": to_camel_case(name),
        "attention": attention,
        "Attention": to_camel_case(attention),
    }
    descriptions = {
        Path(_fill_template(path, names)): description
        for path, description in TEMPLATE_FILES.values()
    }
    contents = dict(
        zip(
            descriptions,
            (_fill_template(_read_template(file), names) for file in TEMPLATE_FILES),
            strict=True,
        )
    )
    path = into / name
    try:
        path.mkdir(parents=True)  # fails if it exists: nothing is ever overwritten
    except FileExistsError:
        raise ProjectError(
            f"{path} exists already and was not changed: choose another name or --into"
        ) from None
    except OSError as error:
        raise ProjectError(f"{path} cannot be created: {describe_os_error(error)}") from None
    try:
        for file, text in contents.items():
            (path / file).parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path / file, text, durable=False)
    except OSError as error:
        shutil.rmtree(path, ignore_errors=True)
        raise ProjectError(f"{path} cannot be written: {describe_os_error(error)}") from None
    return Project(path, attention, descriptions)


def check_package_name(name: str) -> None:
    """Raise ProjectError for an invalid package name, or one that is taken."""
    if keyword.iskeyword(name):
        raise ProjectError(f"`{name}` is a keyword of Python; how about `{suggest_name(name)}`?")
    if not _is_valid_name(name):
        rule = "a package name has lower-case letters, digits and `_`, and starts with a letter"
        raise ProjectError(
            f"`{name}` cannot be imported: {rule}; how about `{suggest_name(name)}`?"
        )
    if name in sys.stdlib_module_names or find_spec(name) is not None:
        raise ProjectError(
            f"a package called `{name}` is installed already, and `import {name}` would not find yours; "
            f"how about `{suggest_name(name)}`?"
        )


def check_attention_name(name: str) -> None:
    """Raise ProjectError for a name that is invalid or taken."""
    # The registry derives a mechanism's name from its class: the class of `head_2` would be
    # `Head2`, which is registered as `head2`.
    registered_name = to_snake_case(to_camel_case(name))
    if not _is_valid_name(name) or registered_name != name:
        suggestion = to_snake_case(to_camel_case(suggest_name(name)))
        raise ProjectError(
            f"`{name}` cannot be the name of a mechanism: it needs lower-case words joined by "
            f"single `_`, each starting with a letter; how about `{suggestion}`?"
        )
    hint = f"how about --attention my_{name}?"
    with suppress(UnknownNameError):
        existing = attentions.get(name, ignore_case=True)
        raise ProjectError(
            f"an attention mechanism called `{name}` exists already, in {existing.__module__}; {hint}"
        )
    if re.search(rf"\b{to_camel_case(name)}\b", _read_template("attention.py")):
        raise ProjectError(
            f"`{to_camel_case(name)}` is used for something else in the mechanism's file; {hint}"
        )


def suggest_name(name: str) -> str:
    """A similar name that is valid and not taken."""
    # NFKD splits ü into u and its dots, which ASCII drops
    letters = normalize("NFKD", to_snake_case(name)).encode("ascii", "ignore").decode()
    words = re.sub(r"[\W_]+", "_", letters).strip("_")[:MAX_NAME_LENGTH]
    suggestion = words.lstrip("0123456789_") or "attention_lab"
    is_unusable = (
        not _is_valid_name(suggestion)
        or suggestion in sys.stdlib_module_names
        or find_spec(suggestion) is not None
    )
    return f"{suggestion}_lab" if is_unusable else suggestion


def to_camel_case(name: str) -> str:
    """A file name as a class name: `distance_decay` → `DistanceDecay`."""
    return "".join(part.capitalize() for part in name.split("_"))


def _is_valid_name(name: str) -> bool:
    fits = re.fullmatch(r"[a-z][a-z0-9_]*", name) is not None and len(name) <= MAX_NAME_LENGTH
    return fits and not keyword.iskeyword(name)


class _ProjectTemplate(Template):
    delimiter = "§"


def _fill_template(text: str, names: dict[str, str]) -> str:
    return _ProjectTemplate(text).substitute(names)


def _read_template(file: str) -> str:
    return (TEMPLATE_DIR / f"{file}.txt").read_text(encoding="utf-8")

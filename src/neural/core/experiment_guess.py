"""A guessed experiment: the settings that stand for a file of data, and why.

`neural train novel.txt` has no settings. Each task looks at the file (`Task.guess`) and offers the
settings that it would train it with; the most certain guess is used, shown and trained.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

_PLAIN_SCALAR = re.compile(r"[A-Za-z_./][\w./-]*( [\w./-]+)*")
_YAML_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "none", "y", "n", "."})
"""Words that YAML may read as something else than a text."""


@dataclass(frozen=True)
class ExperimentGuess:
    """Settings of an experiment for some data."""

    settings: Mapping[str, Any]
    """Keys of the experiment file, `task` and `data` among them."""
    reasons: tuple[str, ...]
    """What was recognised and decided, one sentence each."""
    certainty: float
    """0 to 1, to choose between the guesses of several tasks."""
    used_overrides: tuple[str, ...] = ()
    """Overrides of the user (`table.target=price`) that are part of the settings."""

    def with_data(self, data: str) -> ExperimentGuess:
        """The same guess with the data at another path, for a file in another folder."""
        return replace(self, settings={**self.settings, "data": data})

    def to_yaml(self) -> str:
        """The experiment as the text of a YAML file."""
        return "".join(f"{key}:{_format_value(value)}\n" for key, value in self.settings.items())


def _format_value(value: Any) -> str:
    """A value behind its key: a text of several lines as a block, all others on one line."""
    if isinstance(value, str) and "\n" in value:
        lines = "".join(f"\n  {line}" if line else "\n" for line in value.rstrip("\n").split("\n"))
        return f" |{lines}"
    return f" {_format_inline(value)}"


def _format_inline(value: Any) -> str:
    if isinstance(value, Mapping):
        items = (f"{_format_inline(key)}: {_format_inline(item)}" for key, item in value.items())
        return f"{{{', '.join(items)}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_format_inline, value))}]"
    if isinstance(value, str):
        is_plain = _PLAIN_SCALAR.fullmatch(value) and value.lower() not in _YAML_WORDS
        return value if is_plain else json.dumps(value, ensure_ascii=False)
    return json.dumps(value)

"""Explanations of the diagnostic codes of the `.neural` language, which `neural explain` prints.

explanations/E0201.md explains E0201:

    # A title

    The cause, in two or three sentences.

    ```wrong
    the smallest program that has the error
    ```

    ```right --network Large
    the corrected program; `--network Large` after `right` says which of its networks is checked
    ```

A new code is a new file. A code that no small text can show (a file of 10 MB) has no `wrong`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from neural.core.names import find_closest
from neural.core.registry import UnknownNameError

EXPLANATIONS_FOLDER = Path(__file__).with_name("explanations")

_EXAMPLE = re.compile(
    r"^```(?P<kind>wrong|right)(?: --network (?P<network>\w+))?\n(?P<text>.*?)^```$", re.M | re.S
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeExample:
    """A program, and the name of the network that is checked if it has several."""

    text: str
    network: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosticCode:
    """Explanation of a code. The title is a few words, the cause a paragraph."""

    code: str
    title: str
    cause: str
    wrong: CodeExample | None
    right: CodeExample


def list_codes() -> list[str]:
    """All codes, sorted. Reads the folder, not its files."""
    return sorted(file.stem for file in EXPLANATIONS_FOLDER.glob("*.md"))


def load_code(code: str) -> DiagnosticCode:
    """Explanation of a code, in any case; UnknownNameError with the closest code."""
    known = list_codes()
    normalized = code.strip().upper()
    if normalized not in known:
        raise UnknownNameError("code", code, find_closest(normalized, known))
    return parse_explanation(
        normalized, (EXPLANATIONS_FOLDER / f"{normalized}.md").read_text(encoding="utf-8")
    )


def parse_explanation(code: str, text: str) -> DiagnosticCode:
    """Parse the text of an explanation file."""
    title, _, body = text.partition("\n\n")
    examples = {
        match["kind"]: CodeExample(text=match["text"], network=match["network"])
        for match in _EXAMPLE.finditer(body)
    }
    return DiagnosticCode(
        code=code,
        title=title.removeprefix("# ").strip(),
        cause=" ".join(body.partition("\n```")[0].split()),
        wrong=examples.get("wrong"),
        right=examples["right"],
    )

"""Every code that the checker can say, explained: what it means, a program that has it, and the program mended.

explanations/E0201.md holds the whole story of E0201:

    # A title

    The cause, in two or three sentences.

    ```wrong
    the smallest program that has the mistake
    ```

    ```right --network Large
    the same program mended; behind the word, what else the command line says
    ```

Adding a code is adding its file. One that no small text can show (a file of 10 MB) has no `wrong`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from neural.core.names import closest
from neural.core.registry import UnknownName

FOLDER = Path(__file__).with_name("explanations")

_EXAMPLE = re.compile(r"^```(?P<kind>wrong|right)(?: --network (?P<network>\w+))?\n(?P<text>.*?)^```$", re.M | re.S)


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A program, and which of its networks the command line asks for."""

    text: str
    network: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """What a code means. The title is a few words, the cause a paragraph."""

    code: str
    title: str
    cause: str
    wrong: Example | None
    right: Example


def names() -> list[str]:
    """Every code, sorted. Reads the folder, not its files."""
    return sorted(file.stem for file in FOLDER.glob("*.md"))


def get(code: str) -> Code:
    """The code's explanation, in whatever case it is typed; UnknownName says what was probably meant."""
    known = names()
    wanted = code.strip().upper()
    if wanted not in known:
        raise UnknownName("code", code, closest(wanted, known))
    return read(wanted, (FOLDER / f"{wanted}.md").read_text(encoding="utf-8"))


def read(code: str, text: str) -> Code:
    """The explanation that a file's text spells."""
    title, _, rest = text.partition("\n\n")
    examples = {
        found["kind"]: Example(text=found["text"], network=found["network"]) for found in _EXAMPLE.finditer(rest)
    }
    return Code(
        code=code,
        title=title.removeprefix("# ").strip(),
        cause=" ".join(rest.partition("\n```")[0].split()),
        wrong=examples.get("wrong"),
        right=examples["right"],
    )

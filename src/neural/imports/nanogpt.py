"""nanoGPT: a `ckpt.pt` with its configuration in it becomes a language model that writes here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from neural.core.settings import Settings
from neural.importing import Came, CannotImport, Import, tensors_in
from neural.modules.nanogpt import load_nanogpt, nanogpt_program
from neural.tasks.language_model import LanguageModelSettings

LARGEST = 1 << 28
"""Bytes of a text whose characters are counted."""


class NanoGPTSettings(Settings):
    """What a checkpoint does not tell."""

    num_heads: int | None = Field(None, ge=1, description="As the checkpoint's own configuration says, if not said.")
    text: str | None = Field(None, description="The text it learned from: its characters, sorted, are the ids.")


class Nanogpt(Import):
    """GPT-2's network as nanoGPT trains it."""

    Settings: ClassVar[type[Settings]] = NanoGPTSettings

    def read(self, document: Mapping[str, Any], settings: NanoGPTSettings, name: str) -> Came:
        """The program, the weights, and the characters where the text is there."""
        said = document.get("model_args")
        said = said if isinstance(said, dict) else {}
        heads = settings.num_heads or said.get("n_head")
        if not isinstance(heads, int) or heads < 1:
            raise CannotImport("the checkpoint does not say how many heads it has: --set num_heads=…")
        state = tensors_in(document, "nanoGPT")
        try:
            weights = load_nanogpt(state)
            program = nanogpt_program(state, heads)
        except (ValueError, RuntimeError) as wrong:
            raise CannotImport(str(wrong)) from None
        ids = len(weights["embedding.table.weight"])
        known = None if settings.text is None else characters_of(Path(settings.text), ids)
        experiment = LanguageModelSettings(
            network=program, name=_name(name), vocabulary=known, context=len(weights["positional_encoding.table"])
        )
        return Came(experiment, program, weights, {} if known is None else {"vocabulary": list(known)})


def characters_of(path: Path, ids: int) -> str:
    """The characters of a text in the order of nanoGPT's ids."""
    try:
        if path.stat().st_size > LARGEST:
            raise CannotImport(f"{path} is too large to count its characters; a part that has all of them will do")
        found = "".join(sorted(set(path.read_text(encoding="utf-8"))))
    except (OSError, UnicodeDecodeError) as problem:
        raise CannotImport(f"{path} cannot be read as a text: {problem}") from None
    if len(found) != ids:
        raise CannotImport(f"{path} has {len(found)} different characters, the checkpoint {ids}: another text")
    return found


def _name(stem: str) -> str:
    kept = "".join(one if one.isalnum() or one in "._-" else "-" for one in stem)[:80]
    return kept or "nanogpt"

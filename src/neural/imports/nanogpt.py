"""Import of nanoGPT: its checkpoint `ckpt.pt` becomes a run of our language-model task.

A run is a folder with settings, weights and metrics of a model, as training writes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from neural.core.settings import Settings
from neural.nn.nanogpt import convert_nanogpt_state, write_nanogpt_program
from neural.tasks.language_model.task import LanguageModelSettings
from neural.workflows.import_model import (
    ImportedModel,
    Importer,
    ModelImportError,
    extract_state_dict,
)

MAX_TEXT_BYTES = 1 << 28
"""Largest size of the training text that is read for the vocabulary: 256 MiB."""


class NanoGPTSettings(Settings):
    """Settings that a checkpoint may not contain."""

    num_heads: int | None = Field(
        None, ge=1, description="Default: that of the checkpoint's own configuration."
    )
    text: str | None = Field(
        None, description="The training text: its characters, sorted, are the token ids."
    )


class Nanogpt(Importer):
    """A checkpoint of nanoGPT, which trains the network of GPT-2."""

    Settings: ClassVar[type[Settings]] = NanoGPTSettings

    def read(
        self, checkpoint: Mapping[str, Any], settings: NanoGPTSettings, name: str
    ) -> ImportedModel:
        """The `.neural` program, the weights, and the vocabulary if `settings.text` is given.

        `name` is that of the checkpoint file, from which the run is named.
        """
        model_args = checkpoint.get("model_args")
        model_args = model_args if isinstance(model_args, dict) else {}
        num_heads = settings.num_heads or model_args.get("n_head")
        if not isinstance(num_heads, int) or num_heads < 1:
            raise ModelImportError(
                "the checkpoint does not contain the number of heads: --set num_heads=…"
            )
        state = extract_state_dict(checkpoint, "nanoGPT")
        try:
            weights = convert_nanogpt_state(state)
            program = write_nanogpt_program(state, num_heads)
        except (ValueError, RuntimeError) as error:
            raise ModelImportError(str(error)) from None
        vocab_size = len(weights["embedding.table.weight"])
        vocabulary = None
        if settings.text is not None:
            vocabulary = read_vocabulary(Path(settings.text), vocab_size)
        experiment = LanguageModelSettings(
            network=program,
            name=_to_run_name(name),
            vocabulary=vocabulary,
            context=len(weights["positional_encoding.table"]),
        )
        metadata = {} if vocabulary is None else {"vocabulary": list(vocabulary)}
        return ImportedModel(experiment, program, weights, metadata)


def read_vocabulary(path: Path, vocab_size: int) -> str:
    """The characters of a text in the order of nanoGPT's token ids: sorted, each once."""
    try:
        if path.stat().st_size > MAX_TEXT_BYTES:
            raise ModelImportError(
                f"{path} is too large; a shorter text that has all of its characters is enough"
            )
        vocabulary = "".join(sorted(set(path.read_text(encoding="utf-8"))))
    except (OSError, UnicodeDecodeError) as error:
        raise ModelImportError(f"{path} cannot be read as text: {error}") from None
    if len(vocabulary) != vocab_size:
        raise ModelImportError(
            f"{path} has {len(vocabulary)} different characters, the checkpoint {vocab_size}: "
            "it is not the training text"
        )
    return vocabulary


def _to_run_name(stem: str) -> str:
    """A run name from a file name: characters other than letters, digits and ._- become -."""
    name = "".join(
        character if character.isalnum() or character in "._-" else "-" for character in stem
    )
    return name[:80] or "nanogpt"

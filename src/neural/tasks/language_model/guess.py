"""Guess a language model for a text file or a folder of text files."""

from __future__ import annotations

from pathlib import Path

from neural.core.experiment_guess import ExperimentGuess

TEXT_SUFFIXES = (".txt", ".text", ".md", ".markdown", ".rst", ".tex", ".org")
MAX_TINY_BYTES = 500_000
"""A text up to this size is learned by the preset `tiny`; a longer one by `nanogpt_cpu`."""
FILE_CERTAINTY, FOLDER_CERTAINTY = 0.6, 0.3
"""A folder of texts may also be documents of another task."""


def guess_language_model(path: Path) -> ExperimentGuess | None:
    """A language model of all text; None if there is no text file."""
    files = [path] if path.is_file() else sorted(path.rglob("*")) if path.is_dir() else []
    texts = [file for file in files if file.suffix.lower() in TEXT_SUFFIXES and file.is_file()]
    if not texts:
        return None
    size = sum(file.stat().st_size for file in texts)
    is_small = size <= MAX_TINY_BYTES
    preset = "tiny" if is_small else "nanogpt_cpu"
    size_text = f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size / 1e3:.1f} kB"
    subject = "a text" if path.is_file() else f"a folder of {len(texts)} texts"
    larger = "" if is_small else "; `--set preset=full` is larger and needs a GPU"
    return ExperimentGuess(
        settings={
            "task": "language_model",
            "name": path.stem,
            "data": str(path),
            "preset": preset,
        },
        reasons=(
            f"{subject} of {size_text}: a language model of its characters",
            f"preset {preset}, for this size{larger}",
        ),
        certainty=FILE_CERTAINTY if path.is_file() else FOLDER_CERTAINTY,
    )

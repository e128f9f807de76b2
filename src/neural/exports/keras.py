"""Keras 3: one .keras file of Keras' own layers, which loads without this package and can be trained on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from neural.export import Export
from neural.export_inputs import CannotExport, Leaving
from neural.exports._keras_network import keras_model, missing_words
from neural.exports._keras_words import keras
from neural.exports._traced import quiet
from neural.modules.late import torch

if TYPE_CHECKING:
    from torch import Tensor


class Keras(Export):
    """A functional model; what Keras has no layer for cannot leave this way."""

    suffix: ClassVar[str] = ".keras"
    needs: ClassVar[tuple[str, ...]] = ("keras",)

    def check(self, leaving: Leaving) -> None:
        """Everything that Keras has no words for, at once."""
        missing = list(missing_words(leaving))
        if missing:
            raise CannotExport(
                f"Keras has no words for {leaving.name}; --to onnx, --to torch and --to huggingface take any network\n"
                + "\n".join(f"  {one}" for one in missing)
            )

    def write(self, leaving: Leaving, path: Path) -> None:
        """Keras' own archive: JSON and arrays."""
        if path.suffix != self.suffix:
            raise CannotExport(f"Keras loads no file that is called otherwise than *.keras: -o {path.name}.keras")
        with quiet():
            keras_model(leaving).save(path)

    def read(self, leaving: Leaving, path: Path) -> Callable[..., Tensor]:
        """By Keras, in the mode that runs no code from files."""
        with quiet():
            model = keras.models.load_model(path, safe_mode=True)

        def called(*inputs: Tensor) -> Tensor:
            with torch.no_grad(), quiet():
                given = [one.numpy() for one in inputs]
                gives = model(given if len(given) > 1 else given[0], training=False)
                return torch.from_numpy(keras.ops.convert_to_numpy(gives))

        return called

    def use(self, leaving: Leaving, path: Path) -> str:
        """A line of Python."""
        names = ", ".join(one.name for one in leaving.inputs)
        given = f"[{names}]" if len(leaving.inputs) > 1 else names
        return f'keras.models.load_model("{path.name}")({given})'

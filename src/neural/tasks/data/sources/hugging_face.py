"""A data set that Hugging Face's `datasets` saved to disk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from neural.tasks.data.alphabet import alphabet_of
from neural.tasks.data.folders import VALID
from neural.tasks.data.packages import needed
from neural.tasks.data.pixels import SCALE, Pixels
from neural.tasks.data.source import Examples, Source, Where
from neural.tasks.data.sources.texts import padded
from neural.tasks.task import TaskError

if TYPE_CHECKING:
    from neural.language.network import Network

ANSWERS = ("label", "labels", "target", "y", "fine_label")
INPUTS = ("x", "input_ids", "image", "img", "text", "sentence", "features")
MASKS = ("mask", "attention_mask")
SIGNS = ("dataset_dict.json", "state.json")


class HuggingFace(Source):
    """Columns of numbers, pictures or texts, with a column `label`; its own splits are kept."""

    looks: ClassVar[str] = "a folder that `datasets` wrote with save_to_disk"

    @classmethod
    def fits(cls, where: Where) -> bool:
        """By the files that it always has."""
        return isinstance(where, Path) and where.is_dir() and any((where / sign).is_file() for sign in SIGNS)

    @classmethod
    def read(cls, where: Path, network: Network) -> Examples:
        """The training split, and the one held out if there is one."""
        datasets = needed("datasets", for_=f"{where.name} (saved by `datasets`)", install='"neural[hf]"')
        try:
            loaded = datasets.load_from_disk(str(where))
        except IndexError:   # a table without rows is saved without a file, and then not found
            raise TaskError(f"{where.name}: there are no examples") from None
        except Exception as problem:   # the libraries below raise anything; all of it is about the folder
            raise TaskError(f"{where.name} cannot be read: {problem or type(problem).__name__}") from None
        splits = dict(loaded) if isinstance(loaded, datasets.DatasetDict) else {"train": loaded}
        if "train" not in splits:
            raise TaskError(f"{where.name} has no split `train`; it has {', '.join(splits)}")
        reading = _Reading(where.name, network)
        train = reading.arrays(splits["train"])
        held = next((splits[name] for name in VALID if name in splits), None)
        valid = reading.arrays(held) if held is not None else None
        return Examples(
            where=where.name, train=train, valid=valid, scale=reading.scale, tokens=reading.tokens,
            classes=reading.classes, remarks=tuple(dict.fromkeys(reading.remarks)),
        )  # fmt: skip


class _Reading:
    """Columns → arrays, and what was learned about them on the way."""

    def __init__(self, where: str, network: Network) -> None:
        self.where, self.network, self.scale = where, network, 1.0
        self.classes: tuple[str, ...] = ()
        self.tokens: tuple[str, ...] = ()
        self.remarks: list[str] = []
        self.pixels: Pixels | None = None

    def arrays(self, table: Any) -> dict[str, np.ndarray]:
        """One split."""
        answer = self.column(table, ANSWERS, "the answers")
        name = self.column(table, INPUTS, "the inputs", besides=answer)
        if not len(table):
            raise TaskError(f"{self.where}: there are no examples")
        self.classes = tuple(getattr(table.features[answer], "names", None) or ())
        mask = next((one for one in MASKS if one in table.column_names), None)
        found = self.inputs(table[name], name)
        if mask is not None and "mask" not in found:
            found["mask"] = self.rectangle(table[mask], mask)
        return {**found, "y": self.rectangle(table[answer], answer)}

    def column(self, table: Any, known: tuple[str, ...], what: str, besides: str = "") -> str:
        """The first known name, or the only column that is left."""
        names = [name for name in table.column_names if name != besides]
        found = next((name for name in known if name in names), None)
        if found is None and besides and len(names) == 1:
            found = names[0]
        if found is None:
            raise TaskError(
                f"{self.where}: no column holds {what}; it has {', '.join(names)}, known are {', '.join(known)}"
            )
        return found

    def inputs(self, values: Any, name: str) -> dict[str, np.ndarray]:
        """Pictures, texts or numbers, by what the first one is."""
        values = list(values)
        if hasattr(values[0], "convert"):
            self.scale = SCALE
            self.pixels = self.pixels or Pixels(self.network, self.where)
            return {"x": np.stack([self.pixels.array(one, f"row {row}") for row, one in enumerate(values)])}
        if isinstance(values[0], str):
            alphabet = alphabet_of(self.network, self.where)
            self.tokens = alphabet.tokens
            names = [f"row {row}" for row in range(len(values))]
            arrays, said = padded(values, names, self.network, alphabet, self.where)
            self.remarks += said
            return arrays
        return {"x": self.rectangle(values, name)}

    def rectangle(self, values: Any, name: str) -> np.ndarray:
        """Rows of one length."""
        try:
            return np.asarray(list(values))
        except ValueError:
            message = f"{self.where}: the rows of `{name}` differ in length; pad them, and give an attention_mask"
            raise TaskError(message) from None

"""What every generated character looked at, as one .npz file.

ids      (sample, position)                     the whole text: the prompt, then what was generated
text     (sample,)                              the same as text
prompt   ()                                     how many of the positions are the prompt
layers   (layer,)                               the paths of the attentions in the network
first    (token,)                               the position in the text at which the window of a generated token began
weights  (sample, token, layer, head, key)      16-bit floats

`weights[s, t, l, h, j]` is how much the position just before the generated token t, the one that the token was
predicted from, looked at position `first[t] + j` of the text. Keys that were not there, and heads that a layer does not
have, are 0; every other row sums to 1.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from neural.core.files import replacing
from neural.generation import New


class AttentionFile:
    """Collects the steps of some samples, then writes them."""

    def __init__(self, prompt: str, ids: list[int]) -> None:
        self.prompt, self.ids = prompt, ids
        self.batches: list[list[New]] = []

    def begin(self) -> None:
        """Other samples."""
        self.batches.append([])

    def add(self, new: New) -> None:
        """One step of the samples that were begun last."""
        self.batches[-1].append(new)

    def arrays(self) -> dict[str, np.ndarray]:
        """All samples, as the file has them."""
        steps, samples = len(self.batches[0]), [len(batch[0].ids) for batch in self.batches]
        layers = list(self.batches[0][0].seen)
        windows = [len(self.ids) + number - new.first for number, new in enumerate(self.batches[0])]
        heads = max(one.shape[1] for one in self.batches[0][0].seen.values())
        weights = np.zeros((sum(samples), steps, len(layers), heads, max(windows)), np.float16)
        start = 0
        for batch, count in zip(self.batches, samples, strict=True):
            for number, new in enumerate(batch):
                for layer, seen in enumerate(new.seen.values()):
                    last = windows[number]   # the newest key stands at the window's end
                    place = (slice(start, start + count), number, layer, slice(seen.shape[1]))
                    weights[*place, last - seen.shape[2] : last] = seen
            start += count
        new_ids = np.concatenate([np.stack([new.ids for new in batch], axis=1) for batch in self.batches])
        begun = np.tile(np.array(self.ids), (len(new_ids), 1))
        texts = ["".join(new.text[one] for new in batch) for batch in self.batches for one in range(len(batch[0].ids))]
        return {
            "ids": np.concatenate((begun, new_ids), axis=1).astype(np.int32),
            "text": np.array([self.prompt + text for text in texts]), "prompt": np.array(len(self.ids)),
            "layers": np.array(layers), "first": np.array([new.first for new in self.batches[0]]), "weights": weights,
        }  # fmt: skip

    def write(self, path: Path) -> None:
        """Whole or not at all."""
        with replacing(path, durable=False) as file:
            arrays: dict[str, Any] = self.arrays()
            np.savez_compressed(file, **arrays)

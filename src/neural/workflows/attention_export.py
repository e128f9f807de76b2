"""Export the attention behind every generated token as one .npz file.

ids      (sample, position)                     prompt, then generated tokens
text     (sample,)                              the same as text
prompt   ()                                     number of prompt positions
layers   (layer,)                               paths of the attention modules
first    (token,)                               text position at which the context window starts
weights  (sample, token, layer, head, key)      16-bit floats

A sample is one generated text; "token" counts generated tokens only. `weights[s, t, l, h, j]` is
the attention weight from the position that token t was predicted from (the one before it) to
position `first[t] + j` of the text. Missing keys, and heads that a layer does not have, are 0;
every other row sums to 1.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from neural.core.files import open_atomic
from neural.tasks._text_generator import GenerationStep


class AttentionExport:
    """Collects the generation steps (one token each) of all samples, then writes the file."""

    def __init__(self, prompt: str, prompt_ids: list[int]) -> None:
        """`prompt` is the text before the generated tokens, `prompt_ids` are its token ids."""
        self.prompt, self.prompt_ids = prompt, prompt_ids
        self.batches: list[list[GenerationStep]] = []

    def start_batch(self) -> None:
        """Start the next batch of samples."""
        self.batches.append([])

    def add_step(self, step: GenerationStep) -> None:
        """Add a step of the current batch."""
        self.batches[-1].append(step)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The arrays of the file."""
        steps, batch_sizes = len(self.batches[0]), [len(batch[0].ids) for batch in self.batches]
        layers = list(self.batches[0][0].attention)
        window_lengths = [
            len(self.prompt_ids) + index - step.window_start
            for index, step in enumerate(self.batches[0])
        ]
        heads = max(layer.shape[1] for layer in self.batches[0][0].attention.values())
        weights = np.zeros(
            (sum(batch_sizes), steps, len(layers), heads, max(window_lengths)), np.float16
        )
        start = 0  # index of the batch's first sample
        for batch, count in zip(self.batches, batch_sizes, strict=True):
            for index, step in enumerate(batch):
                for layer, attention in enumerate(step.attention.values()):
                    end = window_lengths[index]  # the newest key is last in the window
                    rows = (slice(start, start + count), index, layer, slice(attention.shape[1]))
                    weights[*rows, end - attention.shape[2] : end] = attention
            start += count
        new_ids = np.concatenate(
            [np.stack([step.ids for step in batch], axis=1) for batch in self.batches]
        )
        prompts = np.tile(np.array(self.prompt_ids), (len(new_ids), 1))
        texts = [
            "".join(step.texts[sample] for step in batch)
            for batch in self.batches
            for sample in range(len(batch[0].ids))
        ]
        return {
            "ids": np.concatenate((prompts, new_ids), axis=1).astype(np.int32),
            "text": np.array([self.prompt + text for text in texts]),
            "prompt": np.array(len(self.prompt_ids)),
            "layers": np.array(layers),
            "first": np.array([step.window_start for step in self.batches[0]]),
            "weights": weights,
        }

    def write(self, path: Path) -> None:
        """Write the file atomically."""
        with open_atomic(path, durable=False) as file:
            arrays: dict[str, Any] = self.to_arrays()
            np.savez_compressed(file, **arrays)

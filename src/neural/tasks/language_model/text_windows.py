"""Windows of a text: sections as long as the context, for training and validation.

Training samples windows at random from the first part of the text; validation takes fixed windows
that cover the rest. The loss of a window is the mean over its characters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from neural.core.errors import TaskError
from neural.data.sampler import create_generator
from neural.nn.lazy_torch import functional, torch

if TYPE_CHECKING:
    from torch import Tensor

PUBLISHED_SPLITS = {100_000_000: (90_000_000, 95_000_000)}
"""Text length → (end of training, end of validation): the usual split of enwik8 and text8. The rest
is the test set."""
MIN_SUGGESTED_CONTEXT = 4
"""A message suggests no smaller context: nothing is learned from fewer characters."""
WINDOW_RNG_STREAM = 2
"""Random stream (data/sampler.py, which uses 0 and 1): different uses of one seed get independent
random numbers."""


class TextWindows:
    """Windows of a text, split by position: the start is for training, the end is held out."""

    def __init__(
        self,
        ids: np.ndarray,
        id_table: np.ndarray,
        context: int,
        validation_split: float | None,
        data_name: str,
    ) -> None:
        """`id_table` maps the ids of the text to those of the network.

        `validation_split` is the fraction of the text that is held out; None means the published
        split for this length.
        """
        self.ids, self.id_table, self.context = ids, id_table, context
        if validation_split is None:
            self.train_end, self.valid_end = PUBLISHED_SPLITS[len(ids)]
        else:
            self.train_end, self.valid_end = int(len(ids) * (1 - validation_split)), len(ids)
        held_out = self.valid_end - self.train_end
        if min(self.train_end, held_out or self.train_end) <= context:
            raise TaskError(
                format_too_short(data_name, len(ids), self.train_end, held_out, context)
            )

    @property
    def windows_per_epoch(self) -> int:
        """Number of adjacent windows that cover the training text."""
        return (self.train_end - 1) // self.context

    def sample_batch(self, index: int, count: int, seed: int) -> dict[str, Tensor]:
        """Training batch `index`: `count` windows at random positions."""
        starts = create_generator(seed, index, stream=WINDOW_RNG_STREAM).integers(
            0, self.train_end - self.context, size=count
        )
        return self.take(starts)

    def list_validation_starts(self, max_windows: int) -> np.ndarray:
        """Start positions of the validation windows: adjacent, or `max_windows` evenly spaced.

        0 means no limit. An incomplete window at the end is not used.
        """
        held_out = self.valid_end - self.train_end
        count = (held_out - 1) // self.context if held_out else 0
        if max_windows and count > max_windows:
            return self.train_end + np.linspace(0, held_out - self.context - 1, max_windows).astype(
                np.int64
            )
        return self.train_end + np.arange(count) * self.context

    def take(self, starts: np.ndarray) -> dict[str, Tensor]:
        """Inputs and targets of the windows at these positions."""
        windows = torch.from_numpy(
            self.id_table[self.ids[starts[:, None] + np.arange(self.context + 1)]]
        )
        return {"x": windows[:, :-1].contiguous(), "y": windows[:, 1:].contiguous()}


def format_too_short(
    data_name: str, count: int, train_end: int, held_out: int, context: int
) -> str:
    """Message for a text (of `count` characters) that is shorter than one window, with ways out."""
    needed = f"a context of {context:,} needs at least {context + 1:,}"
    largest_context = min(train_end, held_out or train_end) - 1
    advice = "use a longer text"
    if largest_context >= MIN_SUGGESTED_CONTEXT:
        advice += f", or train with a smaller context (`--set context={largest_context}`)"
    if count <= context:
        return f"{data_name} has {count:,} characters; {needed}: {advice}"
    split_name, split_length = (
        ("to train on", train_end) if train_end <= context else ("held out", held_out)
    )
    direction = "smaller" if train_end <= context else "larger"
    return (
        f"{data_name} has {count:,} characters, {split_length:,} of them {split_name}; {needed}: "
        f"{advice}, or a {direction} `validation_split`"
    )


VALIDATION_BATCH_CHARACTERS = 1 << 13
"""Number of characters in a validation batch; divided by the context, it gives the batch size."""


def compute_window_losses(model: Any, windows: TextWindows, starts: np.ndarray) -> np.ndarray:
    """Mean cross-entropy of each window at the positions `starts`, in nats, without gradients."""
    device, losses = next(model.parameters()).device, []
    windows_per_batch = max(1, VALIDATION_BATCH_CHARACTERS // windows.context)
    with torch.no_grad():
        for start in range(0, len(starts), windows_per_batch):
            batch = windows.take(starts[start : start + windows_per_batch])
            logits = model.logits(batch["x"].to(device)).float()
            token_losses = functional.cross_entropy(
                logits.transpose(1, 2), batch["y"].to(device), reduction="none"
            )
            losses.append(token_losses.double().mean(dim=1).cpu())
    return torch.cat(losses).numpy()

"""Entropy relative to its maximum: comparable between rows of a causal map.

A row is the attention weights of one query over the K keys; the value of a head is the mean over
its rows. `reference` defines the value of a row. The compiled pass (compiled_statistics.py) gives
the same value from the numbers that `required_statistics` names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.capture.measure import HeadMeasure
from neural.capture.measures.entropy import entropy_nats

if TYPE_CHECKING:
    from torch import Tensor

    from neural.capture.attention_maps import AttentionMaps


class RelativeEntropy(HeadMeasure):
    """Entropy as a share of the largest possible: 0 is a single key, 1 is uniform.

    The largest possible is the log of the number of visible keys. Rows that see one key do not
    count.
    """

    unit: ClassVar[str] = "share"
    required_statistics: ClassVar[tuple[str, ...]] = ("entropy", "visible")

    def reference(self, *layers: AttentionMaps) -> Tensor:
        """−Σ w log w / log V, V the number of keys that the row may see."""
        (layer,) = layers
        return divide_by_max_entropy(entropy_nats(layer.weights), layer.visible_count.float())

    def from_statistics(self, statistics: dict[str, Tensor]) -> Tensor:
        """The same from the row's entropy and its number of keys."""
        return divide_by_max_entropy(statistics["entropy"], statistics["visible"])

    def value_range(self, heads: int, keys: int) -> tuple[float, float]:
        """0 to 1: a share."""
        return 0, 1


def divide_by_max_entropy(entropy: Tensor, visible: Tensor) -> Tensor:
    """entropy / log(visible); NaN in rows that see one key."""
    return (entropy / visible.log()).masked_fill(visible <= 1, float("nan"))

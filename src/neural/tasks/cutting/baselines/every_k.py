"""A boundary every so many elements, whatever they say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
import numpy.typing as npt

from neural.language.declaration import count
from neural.tasks.cutting.baseline import Baseline
from neural.tasks.cutting.masses import Boundaries, checked


class EveryK(Baseline):
    """Parts of one length; the last one may be shorter."""

    length: int = count("Elements in a part; `of` takes the mean length of the training parts.", default=10)

    def find(self, elements: Sequence[str]) -> Boundaries:
        """At every multiple of the length."""
        at = np.arange(len(elements))
        return (at % self.length == 0) & (at > 0)

    @classmethod
    def of(cls, truths: Sequence[npt.ArrayLike]) -> Self:
        """The mean length of all training parts, rounded."""
        made = [checked(one) for one in truths]
        if not made:
            raise ValueError("the mean length of a part is taken from training documents; there are none")
        return cls(length=max(1, round(sum(map(len, made)) / sum(1 + int(one.sum()) for one in made))))

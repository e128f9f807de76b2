"""Arrays that are in memory already: for Python."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from neural.tasks.data.named import arrange
from neural.tasks.data.source import Examples, Source, Where
from neural.tasks.task import TaskError

if TYPE_CHECKING:
    from neural.language.network import Network


class Arrays(Source):
    """`(x, y)`, `(x, y, x_valid, y_valid)` or `{"x": …, "y": …}`: numpy arrays, tensors, lists."""

    looks: ClassVar[str] = "from Python: (x, y), (x, y, x_valid, y_valid), or a dict of arrays by name"

    @classmethod
    def fits(cls, where: Where) -> bool:
        """Anything but names and paths."""
        if isinstance(where, Mapping):
            return not where or not all(isinstance(value, Path) for value in where.values())
        return isinstance(where, tuple)

    @classmethod
    def read(cls, where: Mapping[str, Any] | tuple[Any, ...], network: Network) -> Examples:
        """As they are."""
        if isinstance(where, tuple):
            if len(where) not in (2, 4):
                raise TaskError(f"the data has {len(where)} parts: give (x, y) or (x, y, x_valid, y_valid)")
            where = dict(zip(("x", "y", "x_valid", "y_valid"), where, strict=False))
        found = {name: _array(name, value) for name, value in where.items()}
        train, valid, remarks = arrange(found, "the data", network)
        return Examples(where="the data", train=train, valid=valid, remarks=tuple(remarks))


def _array(name: str, value: Any) -> np.ndarray:
    """A tensor without its gradient, from any device; a list as an array."""
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    try:
        return np.asarray(value)
    except ValueError:   # lists of different lengths
        raise TaskError(f"the data: `{name}` is not rectangular; pad its rows to one length and give a mask") from None

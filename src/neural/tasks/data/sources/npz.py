"""Arrays in one file, as `numpy.savez` writes them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from neural.tasks.data.array_files import arrays_in
from neural.tasks.data.named import arrange
from neural.tasks.data.source import Examples, Source, Where

if TYPE_CHECKING:
    from neural.language.network import Network


class Npz(Source):
    """Named arrays: `x`, `y`, perhaps `mask`, `x_valid`, `y_valid`; or `source` and `target`."""

    looks: ClassVar[str] = "data.npz with the arrays x and y (or source and target)"

    @classmethod
    def fits(cls, where: Where) -> bool:
        """By its suffix."""
        return isinstance(where, Path) and where.suffix.lower() == ".npz"

    @classmethod
    def read(cls, where: Path, network: Network) -> Examples:
        """All arrays."""
        train, valid, remarks = arrange(arrays_in(where), where.name, network)
        return Examples(where=where.name, train=train, valid=valid, remarks=tuple(remarks))

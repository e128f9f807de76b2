"""The handbook that every Python carries: the English topics of `help()`, some 450,000 characters."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.tasks.data.source import Examples, Source, Where
from neural.tasks.data.windows import next_characters

if TYPE_CHECKING:
    from neural.language.network import Network


class Handbook(Source):
    """For networks that predict the next character; the wording follows the Python version."""

    looks: ClassVar[str] = '"handbook": the topics of Python\'s help(), for next-character prediction'
    names: ClassVar[tuple[str, ...]] = ("handbook",)

    @classmethod
    def fits(cls, where: Where) -> bool:
        """By its name."""
        return where == "handbook"

    @classmethod
    def read(cls, where: str, network: Network) -> Examples:
        """Windows side by side."""
        return next_characters(handbook_text(), network, where)


def handbook_text() -> str:
    """All topics, in the order of their names, a blank line between them."""
    from pydoc_data.topics import topics  # half a megabyte that only this needs

    return "\n\n".join(topics[name].strip() for name in sorted(topics)) + "\n"

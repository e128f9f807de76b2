"""Text that comes with every Python: the English topics of `help()`, about 450,000 characters."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.data.source import DataLocation, DataSource, Examples
from neural.data.text_encoding import next_character_examples

if TYPE_CHECKING:
    from neural.language.network import Network


CHARACTERS = frozenset("\n°ß–—‘’“”…") | set(map(chr, range(ord(" "), ord("~") + 1))) - set("$`")
"""Characters of the text in Python 3.11. Later versions have more, up to 140; they become `?`, so that
a network with 103 characters fits the text of every version."""


class Handbook(DataSource):
    """Topics of Python's `help()`, for next-character prediction.

    The text differs between Python versions; it has at most 103 characters in all of them.
    """

    description: ClassVar[str] = (
        '"handbook": the topics of Python\'s help(), for next-character prediction'
    )
    dataset_names: ClassVar[tuple[str, ...]] = ("handbook",)

    @classmethod
    def matches(cls, location: DataLocation) -> bool:
        """The name `handbook`."""
        return location == "handbook"

    @classmethod
    def read(cls, location: str, network: Network) -> Examples:
        """Adjacent windows of the text."""
        return next_character_examples(read_handbook(), network, location)


def read_handbook() -> str:
    """All topics, sorted by name, separated by blank lines."""
    from pydoc_data.topics import topics  # imported here: half a megabyte of text

    text = "\n\n".join(topics[name].strip() for name in sorted(topics)) + "\n"
    return text.translate({ord(character): "?" for character in set(text) - CHARACTERS})

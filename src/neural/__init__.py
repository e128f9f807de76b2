"""Neural, a laboratory for attention.

neural.load("net.neural")   a checked network: .summary(), .shapes, .build()
neural.parse(text)          the same from a text

core, language, modules, training, cli: in the order in which the data travels. Nothing heavy is imported here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neural.blueprint import Blueprint, ProgramError, load, parse

__all__ = ["Blueprint", "ProgramError", "load", "parse"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name in __all__:
        from neural import blueprint

        return getattr(blueprint, name)
    raise AttributeError(f"module 'neural' has no attribute '{name}'")

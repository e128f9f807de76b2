"""Neural, a laboratory for attention.

neural.load("net.neural")   a checked network: .summary(), .shapes, .build()
neural.parse(text)          the same from a text
neural.attend(q, k, v)      attention as a function, by any mechanism

core, language, modules, training, cli: in the order in which the data travels. Nothing heavy is imported here.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neural.blueprint import Blueprint, ProgramError, load, parse
    from neural.modules.attend import attend

__all__ = ["Blueprint", "ProgramError", "attend", "load", "parse"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name in __all__:
        home = import_module("neural.modules.attend" if name == "attend" else "neural.blueprint")
        return getattr(home, name)
    raise AttributeError(f"module 'neural' has no attribute '{name}'")

"""torch, imported when it is first used: `neural check` reads every declaration without it.

    from neural.modules.late import Module, functional, nn, torch

`torch`, `nn` and `functional` are the real things, fetched at the first attribute. `Module` is `nn.Module` for
classes that are defined before torch is there: the first instance brings it in. docs/decisions/0001 has the reasons.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch import nn
    from torch.nn import Module, functional

    __all__ = ["Module", "functional", "late", "nn", "torch"]

    def late(name: str) -> Any: ...   # a module that is imported at its first use
else:

    class _Late(ModuleType):
        """A module that is imported when something in it is first asked for."""

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):   # what inspection asks of any module must not import torch
                raise AttributeError(name)
            value = getattr(importlib.import_module(self.__name__), name)
            setattr(self, name, value)   # next time without this detour
            return value

    late = _Late
    torch, nn, functional = _Late("torch"), _Late("torch.nn"), _Late("torch.nn.functional")
    _classes: dict[type, type] = {}

    def _again(cls: type) -> Any:
        """An empty instance, for `pickle` and `copy` to fill."""
        return cls.__new__(cls)

    class Module:
        """`nn.Module`, for classes defined before torch is loaded. Remembers the arguments it was made with."""

        def __new__(cls, *args: Any, **named: Any) -> Module:
            if not issubclass(cls, nn.Module):
                if cls not in _classes:
                    body = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
                    _classes[cls] = type(cls.__name__, (cls, nn.Module), body)
                cls = _classes[cls]   # same name, same methods, and nn.Module's
            made = object.__new__(cls)
            object.__setattr__(made, "made_with", (args, named))   # the exporter writes this call
            return made

        def __init__(self) -> None:
            super().__init__()

        def __reduce__(self) -> tuple[Any, ...]:
            # the class that has nn.Module mixed in has no name of its own to be found by: say how it is made
            plain = next((cls for cls, mixed in _classes.items() if mixed is type(self)), type(self))
            return _again, (plain,), self.__dict__

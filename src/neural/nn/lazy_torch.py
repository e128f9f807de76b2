"""Lazy import of torch: `neural check` imports every layer and loss without loading torch.

    from neural.nn.lazy_torch import Module, functional, nn, torch

`torch`, `nn` and `functional` import the real module at the first attribute access. `Module` stands
for `nn.Module` as a base class: classes are defined without torch, and the first instance imports
it. Importing torch takes seconds, checking a program milliseconds (docs/decisions/0001).
"""

from __future__ import annotations

import importlib
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch import nn
    from torch.nn import Module, functional

    __all__ = ["Module", "functional", "lazy_import", "nn", "suppress_export_logs", "torch"]

    def lazy_import(name: str) -> Any: ...  # a third-party module, imported at its first use
else:

    class _LazyModule(ModuleType):
        """A module that is imported at the first access to one of its attributes."""

        def __getattr__(self, name: str) -> Any:
            # `inspect` reads dunder attributes of every module: that must not import torch.
            if name.startswith("__"):
                raise AttributeError(name)
            value = getattr(importlib.import_module(self.__name__), name)
            setattr(self, name, value)  # later accesses do not reach __getattr__
            return value

    lazy_import = _LazyModule
    torch, nn, functional = (
        _LazyModule("torch"),
        _LazyModule("torch.nn"),
        _LazyModule("torch.nn.functional"),
    )
    _torch_classes: dict[type, type] = {}
    """The subclass of `nn.Module` that was created for each class derived from `Module`."""

    def _empty_instance(cls: type) -> Any:
        """An instance without attributes, for `pickle` and `copy` to fill."""
        return cls.__new__(cls)

    class Module:
        """`nn.Module` for classes defined before torch is loaded. Keeps its constructor arguments.

        The first instance creates a class of the same name that derives from the class and from
        `nn.Module`; all instances have that class.
        """

        def __new__(cls, *args: Any, **kwargs: Any) -> Module:
            if not issubclass(cls, nn.Module):
                if cls not in _torch_classes:
                    body = {
                        "__module__": cls.__module__,
                        "__qualname__": cls.__qualname__,
                        "__doc__": cls.__doc__,
                    }
                    _torch_classes[cls] = type(cls.__name__, (cls, nn.Module), body)
                cls = _torch_classes[cls]
            instance = object.__new__(cls)
            # Read by the source exporter, which writes this call. nn.Module.__setattr__ does not
            # work before nn.Module.__init__ has run.
            object.__setattr__(instance, "init_args", (args, kwargs))
            return instance

        def __init__(self) -> None:
            super().__init__()

        def __reduce__(self) -> tuple[Any, ...]:
            # pickle finds classes by module and name; that name belongs to the class without
            # nn.Module, so pickle that one and let `__new__` derive the other again.
            class_without_torch = next(
                (cls for cls, derived in _torch_classes.items() if derived is type(self)),
                type(self),
            )
            return _empty_instance, (class_without_torch,), self.__dict__


@contextmanager
def suppress_export_logs() -> Iterator[None]:
    """Silence warnings and logs that torch writes for authors of exporters."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "torch.export", "torch._export")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)

"""Dispatch to kernels compiled by numba: a kernel replaces a function written in torch.

    def _load_kernel() -> ModuleType:
        from neural.nn.kernels import localized
        return localized

    @use_kernel(_load_kernel)
    def attend(self, q, k, v, mask, dropout=0.0, extra=None):
        …plain torch, exact, for any input…

The kernel module defines `supports(...)`, which decides whether it can compute a call, and
`run(...)`; both take the arguments of the decorated function. The loader imports the module at the
first call, so numba is not imported before. The plain body runs without numba, inside
`torch.compile` and `torch.export`, inside the transforms of `torch.func` (which cannot trace a
kernel) and under `no_kernels()`.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from neural.nn.lazy_torch import torch

Function = TypeVar("Function", bound=Callable[..., Any])
_disabled_depth = 0
"""Number of nested `no_kernels()` blocks that are active; kernels run only at 0."""


def ensure_numba_cache_dir(package: Path, home: Path) -> None:
    """Give numba a private cache folder if neither the package nor `home` is writable.

    Without a writable folder numba refuses to compile, e.g. in a container whose user owns no
    files. The folder gets a random name: numba loads code from it, so nobody else may predict it.
    """
    existing_home = next(path for path in (home, *home.parents) if path.exists())
    if "NUMBA_CACHE_DIR" not in os.environ and not any(
        os.access(path, os.W_OK) for path in (package, existing_home)
    ):
        os.environ["NUMBA_CACHE_DIR"] = folder = tempfile.mkdtemp(prefix="neural-kernels-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)


# This must run before numba is imported. Path.home() would raise for a user without home folder.
ensure_numba_cache_dir(Path(__file__).parent, Path(os.path.expanduser("~/.cache")).absolute())  # noqa: PTH111


@cache
def kernels_available() -> bool:
    """Whether numba is installed and `NEURAL_KERNELS=off` is not set."""
    return os.environ.get("NEURAL_KERNELS", "on") != "off" and find_spec("numba") is not None


def is_functorch_active() -> bool:
    """Whether a transform of `torch.func` (vmap, grad, jvp …) is active."""
    return torch._C._are_functorch_transforms_active()


@contextmanager
def no_kernels() -> Iterator[None]:
    """Run the plain torch bodies instead of compiled kernels inside this block."""
    global _disabled_depth
    _disabled_depth += 1
    try:
        yield
    finally:
        _disabled_depth -= 1


def use_kernel(load_kernel: Callable[[], ModuleType]) -> Callable[[Function], Function]:
    """Replace calls of a function by the kernel module's `run` where the kernel supports them.

    `load_kernel` imports and returns the kernel module; it runs once, at the first use.
    """
    load_once = cache(load_kernel)

    def wrap(plain: Function) -> Function:  # `plain` is the function in torch operations
        @wraps(plain)
        def dispatch(*args: Any, **kwargs: Any) -> Any:
            if (
                not torch.compiler.is_compiling()
                and not _disabled_depth
                and not is_functorch_active()
                and kernels_available()
                and load_once().supports(*args, **kwargs)
            ):
                return load_once().run(*args, **kwargs)
            return plain(*args, **kwargs)

        return dispatch  # type: ignore[return-value]  # the same signature as `plain`

    return wrap

"""Methods with a compiled kernel: the method's own body is plain torch, the kernel takes over where it can.

    @compiled("neural.modules.kernels.localized")
    def mix(self, q, k, v, mask, dropout=0.0, extra=None):
        …plain torch, exact, for any input…

The kernel module has `fits(...)`, which says whether it can take such a call, and `run(...)`; both get what the method
gets. Without numba, inside `torch.compile` and `torch.export`, inside the transforms of `torch.func` (which cannot see
into a kernel) and under `plain_torch()`, the body runs.
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
from typing import Any, TypeVar

from neural.modules.late import late, torch

Method = TypeVar("Method", bound=Callable[..., Any])
_off = 0


def place_for_kernels(package: Path, home: Path) -> None:
    """Give numba a folder for this process alone where it could keep nothing, beside the package or at home.

    It refuses to compile there, as in a container whose user owns nothing. Never a folder that others know the name
    of: what is kept is code.
    """
    there = next(one for one in (home, *home.parents) if one.exists())
    if "NUMBA_CACHE_DIR" not in os.environ and not any(os.access(one, os.W_OK) for one in (package, there)):
        os.environ["NUMBA_CACHE_DIR"] = folder = tempfile.mkdtemp(prefix="neural-kernels-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)


# before numba is imported; not Path.home(), which raises where nobody is at home
place_for_kernels(Path(__file__).parent, Path(os.path.expanduser("~/.cache")).absolute())   # noqa: PTH111


@cache
def numba_is_there() -> bool:
    """Whether kernels can be compiled here; `NEURAL_KERNELS=off` says no."""
    return os.environ.get("NEURAL_KERNELS", "on") != "off" and find_spec("numba") is not None


def transforming() -> bool:
    """Whether a transform of `torch.func` (vmap, grad, jvp …) is active. `torch.autograd.Function` asks the same way.
    """
    return torch._C._are_functorch_transforms_active()


@contextmanager
def plain_torch() -> Iterator[None]:
    """No compiled kernels inside this block."""
    global _off
    _off += 1
    try:
        yield
    finally:
        _off -= 1


def compiled(kernel: str) -> Callable[[Method], Method]:
    """Let the module `kernel` take over from a method where it fits."""
    module = late(kernel)

    def wrap(plain: Method) -> Method:
        @wraps(plain)
        def chosen(*args: Any, **named: Any) -> Any:
            if (
                not torch.compiler.is_compiling() and not _off and not transforming() and numba_is_there()
                and module.fits(*args, **named)
            ):  # fmt: skip
                return module.run(*args, **named)
            return plain(*args, **named)

        return chosen  # type: ignore[return-value]  # the same call as `plain`

    return wrap

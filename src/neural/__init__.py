"""Neural, a laboratory for attention.

neural.load("net.neural")   a checked network: .summary(), .shapes, .build()
neural.parse(text)          the same from a text
neural.attend(q, k, v)      attention as a function, by any mechanism
neural.fit(network, data)   a trained network and its run folder
neural.open_run(path)       a run folder, for reading
neural.watch(model)         the attention of any torch model, measured

core, language, modules, tasks, tracking, training, views, cli: in the order in which the data travels. Nothing heavy is
imported here.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neural.blueprint import Blueprint, ProgramError, load, parse
    from neural.experiments import fit, open_run
    from neural.modules.attend import attend
    from neural.tracking.watch import watch

__all__ = ["Blueprint", "ProgramError", "attend", "fit", "load", "open_run", "parse", "watch"]
_HOMES = {
    "attend": "neural.modules.attend", "fit": "neural.experiments", "open_run": "neural.experiments",
    "watch": "neural.tracking.watch",
}  # fmt: skip
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name in __all__:
        found = getattr(import_module(_HOMES.get(name, "neural.blueprint")), name)
        if "IPython" in sys.modules:   # notebooks show runs, attention and networks as pages
            import_module("neural.notebook").dress()
        return found
    raise AttributeError(f"module 'neural' has no attribute '{name}'")

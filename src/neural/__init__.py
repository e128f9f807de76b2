"""Neural, a laboratory for attention.

neural.load("net.neural")   a checked network program: .summary(), .shapes, .build()
neural.parse(text)          the same from a text
neural.attend(q, k, v)      attention as a function, with any mechanism
neural.fit(network, data)   a trained network and its run folder
neural.open_run(path)       a run folder (one training), for reading
neural.watch(model)         the attention of any torch model, measured

Folders, in the order in which they may import each other: core, language, nn, optim, data, tasks,
runs, capture, training, analysis, report, workflows, board, cli; exports, imports, lsp and testing
beside workflows. Names are loaded at first use: `import neural` imports nothing heavy.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neural.capture.watch import watch
    from neural.nn.attend import attend
    from neural.runs.find import open_run
    from neural.workflows.load import Blueprint, ProgramError, load, parse
    from neural.workflows.train import fit

__all__ = ["Blueprint", "ProgramError", "attend", "fit", "load", "open_run", "parse", "watch"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name == "attend":
        from neural.nn import attend as module
    elif name == "fit":
        from neural.workflows import train as module
    elif name == "open_run":
        from neural.runs import find as module
    elif name == "watch":
        from neural.capture import watch as module
    elif name in __all__:
        from neural.workflows import load as module
    else:
        raise AttributeError(f"module 'neural' has no attribute '{name}'")
    if "IPython" in sys.modules:
        from neural.workflows.notebook import register_html_reprs

        register_html_reprs()
    return getattr(module, name)

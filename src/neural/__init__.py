"""Neural, a laboratory for attention.

Networks
    load(path), parse(text)     a checked program: .summary(), .shapes, .build()
    check(path or text)         all errors, warnings and notes of a program or an experiment
    attend(q, k, v)             attention as a function, with any mechanism

Training
    fit(network, X, y)          a trained model with .predict, .evaluate, .history and its run
    neural.sklearn              the same as scikit-learn estimators

Runs: a run is the folder of one training, named by its path or a part of its name
    runs()                      all runs of a folder
    open_run(run)               settings, curves, attention and checkpoints of a run
    predict(run, data), evaluate(run, data), generate(run, prompt)
    analyze(run), report(run), export(run, format)
    figure(run, kind)           a figure for a paper, as SVG, PDF or PNG

Text and other models
    segment(text)               segments of a text, with probabilities and token budgets
    Segmenter.load(run)         the same for many texts, threads and streams
    watch(model, batch)         the attention of any torch model, measured
    track(model, probe)         the same during your own training loop, as a run
    ablate(run or model)        how much the loss changes without each head, with standard errors
    intervene(model, change)    a block in which heads are zeroed, patched or given a pattern
    neural.interventions        the changes: zero, scale, patch, replace_by_mean, replace_pattern;
                                of blocks: zero_mlp, skip_layer, patch_residual
    record_head_outputs(model, batch)   what the heads write, to patch it into another pass
    patch(model or run, pairs)  how much each head restores of what a corrupted input changes
    attribute(model, text)      why a model gives one answer, and which explanation to trust
    neural.callbacks            the same in the Trainers of Hugging Face and Lightning
    neural.integrations         the segmenter in LangChain, LlamaIndex and Haystack

Notebooks
    widget(run or capture)      the attention view, interactive

The functions do what the commands of the same names do. `import neural` imports nothing heavy:
a function is loaded at its first use. Folders, in the order in which they may import each other:
core, language, nn, optim, data, tasks, runs, capture, training, analysis, report, workflows; then
sklearn, callbacks, integrations, exports, imports, lsp and testing; then board and cli.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neural import sklearn as sklearn
    from neural.capture.intervene import intervene, record_head_outputs
    from neural.exports._export_run import export
    from neural.nn.attend import attend
    from neural.runs.find import open_run
    from neural.workflows import interventions as interventions
    from neural.workflows.ablate import ablate
    from neural.workflows.analyze import analyze
    from neural.workflows.attribute import attribute
    from neural.workflows.check import check
    from neural.workflows.evaluate import evaluate
    from neural.workflows.figure import figure
    from neural.workflows.fit import fit
    from neural.workflows.generate import generate
    from neural.workflows.load import Blueprint, ProgramError, load, parse
    from neural.workflows.patching import patch
    from neural.workflows.predict import predict
    from neural.workflows.report import report
    from neural.workflows.runs import runs
    from neural.workflows.segment import Segmenter, segment
    from neural.workflows.track import track
    from neural.workflows.watch import watch
    from neural.workflows.widget import widget

__all__ = [
    "Blueprint",
    "ProgramError",
    "Segmenter",
    "ablate",
    "analyze",
    "attend",
    "attribute",
    "check",
    "evaluate",
    "export",
    "figure",
    "fit",
    "generate",
    "intervene",
    "load",
    "open_run",
    "parse",
    "patch",
    "predict",
    "record_head_outputs",
    "report",
    "runs",
    "segment",
    "track",
    "watch",
    "widget",
]
__version__ = "0.2.0"


class _Package(ModuleType):
    """The package `neural`, in which `report` and `runs` are functions although folders too.

    When Python imports `neural.runs.run`, it assigns the folder to the attribute `runs` of the
    package. That assignment is left out here. Imports still work: they look modules up by their
    full name.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in __all__ and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    module: Any
    if name == "sklearn":
        return import_module(f"{__name__}.{name}")
    if name == "interventions":
        from neural.workflows import interventions

        return interventions
    if name == "attend":
        from neural.nn import attend as module
    elif name in ("intervene", "record_head_outputs"):
        from neural.capture import intervene as module
    elif name == "export":
        from neural.exports import _export_run as module
    elif name == "patch":
        from neural.workflows import patching as module
    elif name == "Segmenter":
        from neural.workflows import segment as module
    elif name == "open_run":
        from neural.runs import find as module
    elif name in ("Blueprint", "ProgramError", "load", "parse"):
        from neural.workflows import load as module
    elif name in __all__:  # a command: its module has its name
        from neural import workflows

        module = import_module(f"{workflows.__name__}.{name}")
    else:
        raise AttributeError(f"module 'neural' has no attribute '{name}'")
    value = getattr(module, name)
    folder = sys.modules.get(f"{__name__}.{name}")
    if folder is not None:
        value.__dict__ = vars(folder)  # so that `neural.runs.find` is the module, as usual
    if "IPython" in sys.modules:
        from neural.workflows.notebook import register_html_reprs

        register_html_reprs()
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [
        *__all__,
        "interventions",
        "sklearn",
        "__doc__",
        "__file__",
        "__name__",
        "__path__",
        "__version__",
    ]

"""Neural, a laboratory for attention.

Networks
    load(path), parse(text)     a checked program: .summary(), .shapes, .build()
    check(path or text)         all errors, warnings and notes of a program or an experiment
    attend(q, k, v)             attention as a function, with any mechanism

Training
    fit(network, X, y)          a trained model with .predict, .evaluate, .history and its run
    neural.sklearn              the same as scikit-learn estimators

Runs: a run is the folder of one training, named by its path or a part of its name
    list_runs()                 all runs of a folder
    open_run(run)               settings, curves, attention and checkpoints of a run
    predict(run, data), evaluate(run, data), generate(run, prompt)
    analyze(run), write_report(run), export(run, format)
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
core, stats, language, nn, optim, data, tasks, runs, capture, findings, report, training,
interpret, workflows; then sklearn, callbacks, integrations, exports, imports, lsp and testing; then
board and cli.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neural import sklearn as sklearn
    from neural.capture.intervene import intervene as intervene
    from neural.capture.intervene import record_head_outputs as record_head_outputs
    from neural.exports._export_run import export as export
    from neural.nn.attend import attend as attend
    from neural.optim.program import ProgramError as ProgramError
    from neural.runs.find import open_run as open_run
    from neural.workflows import interventions as interventions
    from neural.workflows.ablate import ablate as ablate
    from neural.workflows.analyze import analyze as analyze
    from neural.workflows.attribute import attribute as attribute
    from neural.workflows.check import check as check
    from neural.workflows.evaluate import evaluate as evaluate
    from neural.workflows.figure import figure as figure
    from neural.workflows.fit import fit as fit
    from neural.workflows.generate import generate as generate
    from neural.workflows.load import Blueprint as Blueprint
    from neural.workflows.load import load as load
    from neural.workflows.load import parse as parse
    from neural.workflows.patching import patch as patch
    from neural.workflows.predict import predict as predict
    from neural.workflows.report import write_report as write_report
    from neural.workflows.runs import list_runs as list_runs
    from neural.workflows.segment import Segmenter as Segmenter
    from neural.workflows.segment import segment as segment
    from neural.workflows.track import track as track
    from neural.workflows.watch import watch as watch
    from neural.workflows.widget import widget as widget

_MODULES = {
    "Blueprint": "workflows.load",
    "ProgramError": "optim.program",
    "Segmenter": "workflows.segment",
    "ablate": "workflows.ablate",
    "analyze": "workflows.analyze",
    "attend": "nn.attend",
    "attribute": "workflows.attribute",
    "check": "workflows.check",
    "evaluate": "workflows.evaluate",
    "export": "exports._export_run",
    "figure": "workflows.figure",
    "fit": "workflows.fit",
    "generate": "workflows.generate",
    "intervene": "capture.intervene",
    "interventions": "workflows.interventions",
    "list_runs": "workflows.runs",
    "load": "workflows.load",
    "open_run": "runs.find",
    "parse": "workflows.load",
    "patch": "workflows.patching",
    "predict": "workflows.predict",
    "record_head_outputs": "capture.intervene",
    "segment": "workflows.segment",
    "sklearn": "sklearn",
    "track": "workflows.track",
    "watch": "workflows.watch",
    "widget": "workflows.widget",
    "write_report": "workflows.report",
}
"""Public name → module that has it, or that it is; imported at the first use."""
__all__ = [name for name in _MODULES if name not in ("interventions", "sklearn")]
__version__ = "0.2.0"


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'neural' has no attribute '{name}'")
    module = import_module(f"{__name__}.{_MODULES[name]}")
    value = getattr(module, name, module)
    if "IPython" in sys.modules:
        from neural.workflows.notebook import register_html_reprs

        register_html_reprs()
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*_MODULES, "__doc__", "__file__", "__name__", "__path__", "__version__"]

"""Export the trained network of a run in the format of another program: `neural.export`."""

from __future__ import annotations

from pathlib import Path

from neural.exports import registry
from neural.runs.find import DEFAULT_RUNS_DIR, RunName, open_run
from neural.workflows.export import ExportResult, load_bundle
from neural.workflows.export import export as export_bundle


def export(
    run: RunName | None = None,
    format: str = "onnx",  # noqa: A002  (the word of pandas and of Keras for it)
    output: str | Path | None = None,
    *,
    mask: bool = False,
    logits: bool = False,
    length: int | None = None,
    runs: str | Path = DEFAULT_RUNS_DIR,
) -> ExportResult:
    """Export the network of a run with its best weights; the newest run by default.

        neural.export("Digits", "onnx", "digits.onnx").path

    `format` is `onnx`, `keras`, `torch` or `huggingface`. `output` is the file or folder to write;
    by default it is named after the run. `mask` adds a padding mask as a second input, `logits`
    returns the outputs before the last activation, `length` fixes the length of sequences. The
    written file is read back and compared with the network before it is put in place; ExportError
    if it differs.
    """
    exporter_type = registry.get(format)
    path = open_run(run, runs=runs).path
    bundle = load_bundle(path, return_logits=logits, with_mask=mask, length=length)
    suffix = exporter_type.suffix
    format_name = registry.name_of(exporter_type)  # `hf` is huggingface
    default_name = f"{bundle.name}{suffix}" if suffix else f"{bundle.name}_{format_name}"
    return export_bundle(bundle, exporter_type, Path(output or default_name))

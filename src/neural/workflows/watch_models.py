"""`neural watch`: capture the attention of models that others built; save it as a run.

    captures = list(watch_models(["gpt2-folder"], texts=["The cat sat"]))
    find_findings(record_captures(captures))
    save_record(record_captures(captures), Path("runs"))

Several targets are checkpoints of one model: together they become one run with a step each.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from neural.capture.vector_encoding import VECTORS_KEY
from neural.capture.watch import NoAttentionError
from neural.core.escape import escape_json
from neural.findings.capture_record import CaptureRecord
from neural.findings.capture_roles import find_capture_roles
from neural.findings.findings import RUN_KINDS, FindingList, analyze_runs
from neural.findings.record import Record
from neural.interpret.foreign_models import TargetError, find_first_line
from neural.interpret.images import (
    paint_pictures,
    prepare_images,
    reads_images,
    select_vision_part,
)
from neural.interpret.inputs import Inputs, prepare_ids, prepare_input
from neural.interpret.network_inputs import prepare_run_input
from neural.interpret.subject import MODEL_ERRORS, Subject, load_series
from neural.runs.find import DEFAULT_RUNS_DIR, find_run_target
from neural.runs.run import Run
from neural.workflows.watch import WatchResult, watch

MISSING_OPERATION = re.compile(r"not implemented for '(Half|BFloat16|Float8\w*)'|Half.*CPU")
"""Errors of torch for an operation that a device does not have in a narrow dtype."""


@dataclass(frozen=True)
class ModelCapture:
    """The attention of one model on one input."""

    step: int
    """Training step of a checkpoint; 0 for a single model."""
    target: str
    subject: Subject
    input: Inputs
    result: WatchResult
    notes: list[str]
    """Warnings and notes for people."""


def watch_models(
    targets: Sequence[str],
    *,
    texts: Sequence[str] = (),
    pairs: Sequence[tuple[str, str]] = (),
    decoder_texts: Sequence[str] = (),
    ids: Sequence[str] = (),
    images: Sequence[Path] = (),
    build: str | None = None,
    implementation: str | None = None,
    max_length: int | None = None,
    runs: Path = DEFAULT_RUNS_DIR,
    on_progress: Callable[[str], None] = lambda target: None,
) -> Iterator[ModelCapture]:
    """Capture the attention of each target on the same input, in the order of their steps.

    A target that is no model may be the path of a run, or its name in the folder `runs`.
    TargetError if a target cannot be loaded or run; NoAttentionError if nothing was captured.
    """
    unread = {
        "--ids": ids,
        "--pair": pairs,
        "--decoder": decoder_texts,
        "--max-tokens": max_length,
        "--build": build,
        "--attention": implementation,
    }
    for target in targets:
        if find_run_target(target, runs) is None:
            continue
        if images:
            raise TargetError(f"{target} is a run: its own model reads no image files")
        for option in (name for name, value in unread.items() if value):
            raise TargetError(
                f"{target} is a run, which {option} does not apply to: give it a text with "
                "--input, or nothing for its own probe"
            )
    series = load_series(
        targets, build=build, implementation=implementation, runs=runs, on_progress=on_progress
    )
    for target, subject in series:
        if subject.trained_run is not None:
            yield _capture_run(subject, texts)
            continue
        if images:
            subject = select_vision_part(subject)
            prepared = prepare_images(subject, images)
        elif ids:
            prepared = prepare_ids(subject, ids)
        elif subject.tokenizer is None and reads_images(subject):
            raise TargetError(f"{subject.name} reads images: give one with --image FILE")
        else:
            prepared = prepare_input(
                subject, texts, pairs=pairs, decoder_texts=decoder_texts, max_length=max_length
            )
        yield capture_model(subject, prepared, target=target)


def _capture_run(subject: Subject, texts: Sequence[str]) -> ModelCapture:
    """The attention of a run's model on the texts, or on its own probe."""
    prepared = prepare_run_input(subject, texts)
    result = subject.capture_attention(prepared, WatchResult())
    if not result:
        raise TargetError(f"{subject.name} has no attention")
    result.model_name = subject.name
    assert subject.trained_run is not None
    return ModelCapture(subject.step, str(subject.trained_run.path), subject, prepared, result, [])


def capture_model(subject: Subject, prepared: Inputs, *, target: str = "") -> ModelCapture:
    """Run the model once and capture its attention."""
    for name in subject.list_non_finite_weights()[:1]:  # all measures would be NaN
        raise TargetError(
            f"{subject.name}: the weight `{name}` has values that are not finite: the "
            "training diverged, or the file is damaged"
        )
    messages: list[str] = []
    try:
        result = _run_model(subject, prepared, messages)
    except NoAttentionError:
        raise
    except MODEL_ERRORS as error:
        reason = find_first_line(error)
        if not MISSING_OPERATION.search(str(error)):
            raise TargetError(f"{subject.name} failed on this input: {reason}") from error
        dtype = str(subject.dtype).removeprefix("torch.")
        try:  # the same weights in 32 bits, which every operation knows
            subject = replace(subject, model=subject.model.float())
            messages = [f"an operation of this model is missing for {dtype} here: run in 32 bits"]
            result = _run_model(subject, prepared, messages)
        except NoAttentionError:
            raise
        except Exception:
            raise TargetError(
                f"{subject.name} cannot run in {dtype} on this machine: {reason}; return it in "
                "32 bits from package.module:function (model.float())"
            ) from error
    if not result:
        reason = messages[0] if messages else "no attention was recognised"
        raise TargetError(f"{subject.name}: {reason.removeprefix('watch: ')}")
    _name_exported_layers(subject, result)
    result.model_name = subject.title or subject.name
    if prepared.labels is not None or not result.images:  # images label their own patches
        result.labels, result.decoder_labels = prepared.labels, prepared.decoder_labels
    paint_pictures(result, prepared)
    notes = [*subject.notes, *prepared.notes, *messages, *filter(None, [result.image_note])]
    return ModelCapture(subject.step, target, subject, prepared, result, notes)


def _run_model(subject: Subject, prepared: Inputs, messages: list[str]) -> WatchResult:
    """Watch one forward pass; `messages` receives the warnings."""
    return watch(
        subject.model,
        prepared.batch,
        tokens=None if subject.is_encoder_decoder else prepared.tokens,
        real=prepared.real,
        on_warning=messages.append,
    )


def _name_exported_layers(subject: Subject, result: WatchResult) -> None:
    """Give the calls of a program of torch.export the paths of the modules that made them.

    Such a program is one module; its graph remembers the others, in the order of the calls.
    """
    graph = getattr(subject.model, "graph", None)
    nodes = [node for node in getattr(graph, "nodes", ()) if "attention" in str(node.target)]
    if len(nodes) != len(result) or any(call.path for call in result):
        return
    for index, (node, call) in enumerate(zip(nodes, result, strict=True)):
        stack = list((node.meta.get("nn_module_stack") or {}).values())
        path = str(stack[-1][0]) if stack else ""
        result.calls[index] = replace(call, path=path or f"attention_{index}")


def record_captures(captures: Sequence[ModelCapture], name: str | None = None) -> CaptureRecord:
    """What checks and pages read of captures by step; called `name`, or as the last model."""
    last = captures[-1]
    return CaptureRecord(
        {capture.step: capture.result for capture in captures},
        name=name or last.subject.name,
        settings={
            "name": name or last.subject.name,
            "model": type(last.subject.model).__name__,
            # without folders: reports of the run are given to others
            "targets": [
                Path(capture.target).name if Path(capture.target).exists() else capture.target
                for capture in captures
            ],
            "input": last.input.description,
        },
        facts={"parameters": sum(param.numel() for param in last.subject.model.parameters())},
        notes=[(capture.step, note) for capture in captures for note in capture.notes],
    )


def save_record(record: CaptureRecord, root: Path) -> Path:
    """Write captures as a run, a step each, and return its folder."""
    run = Run.create(root, record.name, settings=record.settings, program=None)
    try:
        for key, value in {**record.facts, VECTORS_KEY: record.vectors}.items():
            run.set_metadata(key, value)
        for step in record.captures:
            run.log_arrays(step, record.arrays(step))
            run.log_maps(step, record.maps(step))
            run.heartbeat(step)
        for step, kind, text, _ in record.events():
            run.log_event(step, kind, text)
    except BaseException as error:
        run.finish("failed", str(error))
        raise
    run.finish("finished")
    return run.path


def find_findings(record: Record) -> FindingList:
    """Warnings and notes about the attention of captures; the same checks as for trainings."""
    return FindingList(
        finding for finding in analyze_runs([record], RUN_KINDS) if finding.supported == "yes"
    )


@dataclass(frozen=True)
class HeadSummary:
    """One head: its role and measures."""

    layer: int
    head: int
    role: str
    measures: dict[str, float]


def summarize_heads(capture: ModelCapture) -> list[HeadSummary]:
    """All heads by layer."""
    roles = find_capture_roles(capture.result)
    arrays = {
        name: values for name, values in capture.result.measure_arrays().items() if values.ndim == 2
    }
    return [
        HeadSummary(
            layer,
            head,
            str(roles[layer, head]) if roles.size else "",
            {name: float(values[layer, head]) for name, values in arrays.items()},
        )
        for layer, call in enumerate(capture.result)
        for head in range(call.heads)
    ]


def to_json(capture: ModelCapture, findings: FindingList) -> dict[str, Any]:
    """All that `neural watch` prints, as JSON data; NaN becomes None."""
    return {
        **capture.result.to_dict(),
        "model": type(capture.subject.model).__name__,
        "source": capture.subject.weights,
        "input": capture.input.description,
        "notes": capture.notes,
        "findings": [finding.to_dict() for finding in findings],
    }


def format_json(data: dict[str, Any]) -> str:
    """JSON text."""
    return escape_json(json.dumps(data, indent=1, ensure_ascii=False)) + "\n"

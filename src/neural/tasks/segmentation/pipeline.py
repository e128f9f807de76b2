"""Segmentation pipeline: model, features and calibration, loaded from a run or from two files.

    pipeline = load_shipped_pipeline()                   comes with the package
    pipeline = load_run_pipeline(Run.open("runs/…"))     from a run (neural.workflows.segment)
    pipeline = load_pipeline(Path("notes.json"))         written by `save_pipeline`

    document = SegmentationDocument.from_text(text, unit=pipeline.unit)
    pipeline.probabilities(document)                     (n,), P(boundary)
    pipeline.segment(document, min_elements=2, max_elements=40)   (n,), bool

An element is a line or sentence of a document; n is their number. A boundary is an element where a
segment begins. The margin of an element is the log-odds of a boundary there. Calibration
(calibrator.py) maps the margins of the model to probabilities that match observed frequencies.

A saved pipeline has two files: `NAME.safetensors` with the weights, and `NAME.json` with the keys

    version               format version
    settings              some of the settings of the experiment (`SAVED_SETTINGS`)
    calibration           result of `Calibrator.to_dict`
    threshold             calibrated probability above which a segment begins
    min_elements          minimum number of elements in a segment
    decoder               `threshold` or `expected_pk`; see decoding.py
    probe_threshold       argument `threshold` of `decode_expected_pk`
    feature_dependencies  versions of optional packages that the features use
    tensors               name, size and sha256 of the weights file
    metadata              any JSON object, such as the origin and the scores of the model
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from neural.core.errors import TaskError, describe_os_error
from neural.core.files import (
    open_atomic,
    open_ordinary_file,
    read_small_file,
    write_atomically,
)
from neural.core.json_values import parse_json
from neural.core.settings import SettingsError, dump_settings, load_settings
from neural.nn.lazy_torch import lazy_import
from neural.tasks.segmentation.author_headings import follow_author_headings
from neural.tasks.segmentation.boundary_encoding import Boundaries
from neural.tasks.segmentation.calibration.none import None_
from neural.tasks.segmentation.calibration_selection import RunCalibration, calibrator_from_dict
from neural.tasks.segmentation.calibrator import Calibrator
from neural.tasks.segmentation.decoding import decode_boundaries, decode_expected_pk
from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.feature_cache import (
    compute_features,
    dependency_versions,
    list_columns,
    resolve_features,
)
from neural.tasks.segmentation.inference import (
    boundary_probabilities,
    class_probabilities,
    compute_logits_in_windows,
)
from neural.tasks.segmentation.numpy_segmenter import NumpyEnsemble, NumpySegmenter
from neural.tasks.segmentation.probability import probabilities_to_margins
from neural.tasks.segmentation.settings import SegmentationSettings, TargetKind
from neural.tasks.segmentation.structure import Layout
from neural.tasks.segmentation.text_splitting import ElementUnit
from neural.tasks.segmentation.tokenization import tokenize_elements
from neural.tasks.segmentation.word_vectors import load_word_vectors
from neural.tasks.task import TrainedRun

SEGMENTER_FILE_VERSION = 2
"""Format version of `NAME.json`."""
SHIPPED_SEGMENTER = Path(__file__).parent / "shipped" / "segmenter.json"
MIN_STOP_WORD_SHARE = 0.15
"""English has at least this share of stop words, even tables and code with comments nearly so."""
MAX_UNKNOWN_SHARE = 0.15
"""With more words without a vector and fewer stop words, a text is not English.

Either share alone would refuse English lists of names, or tables of numbers.
"""
MIN_LANGUAGE_WORDS = 30
"""A shorter text is taken for English."""
MAX_LANGUAGE_ELEMENTS = 256
"""Elements at the start of a window that tell its language."""
SAVED_SETTINGS = ("features", "elements", "learn", "labels", "model")
"""Keys of the settings that are saved with a pipeline."""

numpy_safetensors = lazy_import("safetensors.numpy")
torch_safetensors = lazy_import("safetensors.torch")
Decoder = Literal["threshold", "expected_pk"]
ElementProgress = Callable[[int, int], None]
"""Called with the number of elements done and the number of all elements."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SegmentationPipeline:
    """Model, features and calibration: text → boundary probabilities → boundaries."""

    name: str
    """Used in messages."""
    model: Any
    """A segmenter or an ensemble, in NumPy, or in torch in evaluation mode."""
    features: tuple[str, ...]
    """Names of the features; see `neural.tasks.segmentation.features`."""
    unit: ElementUnit
    """Whether the elements of a plain text are its lines or its sentences."""
    target_kind: TargetKind = "boundaries"
    """Whether the model predicts boundaries, or a label per element."""
    labels: tuple[str, ...] = ()
    """Class names, in the order of the logits."""
    threshold: float = 0.5
    """Default probability above which a segment begins."""
    min_elements: int = 1
    """Default minimum number of elements in a segment."""
    decoder: Decoder = "threshold"
    """How `decode` works if it gets no limits: see decoding.py."""
    probe_threshold: float = 0.5
    """Argument `threshold` of `decode_expected_pk`."""
    calibration: Calibrator = field(default_factory=None_)
    """Maps margins to P(boundary); the default `None_` is no calibration."""
    label_calibration: Calibrator = field(default_factory=None_)
    """Maps label logits to probabilities, if labels are the target."""
    notes: tuple[str, ...] = ()
    """Warnings for the user, a sentence each."""
    needs_english: bool = False
    """True if the model cannot read other languages; see `describe_unknown_language`."""

    def describe_unknown_language(self, document: SegmentationDocument) -> str | None:
        """Why the model cannot read a document, in a sentence; None if it can."""
        if not self.needs_english:
            return None
        tokens = tokenize_elements(document.elements[:MAX_LANGUAGE_ELEMENTS])
        if len(tokens.ids) < MIN_LANGUAGE_WORDS or tokens.stop_word_share >= MIN_STOP_WORD_SHARE:
            return None
        unknown_share = load_word_vectors().unknown_share(tokens)
        if unknown_share <= MAX_UNKNOWN_SHARE:
            return None
        return (
            f"this does not look like English, which {self.name} needs ({unknown_share:.0%} of the "
            "words are unknown to it): segments begin at headings or paragraphs, not by topic"
        )

    def logits(
        self,
        document: SegmentationDocument,
        *,
        on_progress: ElementProgress = lambda done, count: None,
    ) -> np.ndarray:
        """Class logits, (n, classes). `on_progress` is called for long documents."""
        return compute_logits_in_windows(
            self.model, compute_features(document, self.features), on_progress=on_progress
        )

    def probabilities(self, document: SegmentationDocument) -> np.ndarray:
        """Calibrated P(boundary) of each element, (n,); 0 at the first."""
        return self.boundary_probabilities(self.logits(document), document.layout)

    def boundary_probabilities(
        self, logits: np.ndarray, layout: Layout | None = None
    ) -> np.ndarray:
        """Calibrated P(boundary) from class logits.

        If the model reads layout and the author marked the parts of the document, headings decide.
        """
        probabilities = self.calibration(self.margins(logits))
        probabilities[0] = 0.0
        if layout is None or "layout" not in self.features:
            return probabilities
        return follow_author_headings(layout, probabilities)

    def margins(self, logits: np.ndarray) -> np.ndarray:
        """Log-odds of a boundary before calibration, (n,). TaskError if the model gives NaN."""
        if not np.isfinite(logits).all():
            raise TaskError(f"{self.name} gives NaN or infinity: its weights are damaged")
        return probabilities_to_margins(
            boundary_probabilities(class_probabilities(logits), self.target_kind)
        )

    def label_probabilities(self, logits: np.ndarray) -> np.ndarray:
        """Calibrated class probabilities, (n, classes), from logits."""
        return self.label_calibration(logits)

    def segment(
        self,
        document: SegmentationDocument,
        min_elements: int | None = None,
        max_elements: int | None = None,
        threshold: float | None = None,
    ) -> Boundaries:
        """Boundaries of a document; see `decode`."""
        return self.decode(
            self.probabilities(document),
            min_elements,
            max_elements,
            threshold,
            can_begin=None if document.layout is None else document.layout.can_begin,
        )

    def decode(
        self,
        probabilities: np.ndarray,
        min_elements: int | None = None,
        max_elements: int | None = None,
        threshold: float | None = None,
        can_begin: np.ndarray | None = None,
    ) -> Boundaries:
        """Most likely boundaries, with `min_elements` to `max_elements` elements in each segment.

        `min_elements` and `threshold` default to those of the pipeline. No segment begins where
        `can_begin`, (n,), is False. If the decoder of the pipeline is `expected_pk`, boundaries
        without limits and threshold are those with the least expected Pk.
        """
        if self.decoder == "expected_pk" and min_elements is max_elements is threshold is None:
            return decode_expected_pk(
                probabilities, can_begin=can_begin, threshold=self.probe_threshold
            )
        # The default minimum gives way to a smaller `max_elements`.
        min_elements = (
            min(self.min_elements, max_elements or self.min_elements)
            if min_elements is None
            else min_elements
        )
        return decode_boundaries(
            probabilities,
            min_elements=min_elements,
            max_elements=max_elements,
            threshold=threshold or self.threshold,
            can_begin=can_begin,
        )


def load_shipped_pipeline() -> SegmentationPipeline:
    """The pipeline that comes with the package."""
    pipeline = load_pipeline(SHIPPED_SEGMENTER, name="the shipped segmenter")
    return replace(pipeline, needs_english=True)


def pipeline_from_run(run: TrainedRun, *, uncalibrated: bool = False) -> SegmentationPipeline:
    """Pipeline of a segmentation run: best checkpoint, and calibration if the run has one.

    `uncalibrated` ignores the calibration.
    """
    settings = load_segmentation_settings(run)
    model = run.load_model()
    calibration = None if uncalibrated else RunCalibration.load(run.path)
    training_versions = (run.metadata("segmentation") or {}).get("feature_dependencies", {})
    notes = _check_dependencies(training_versions, settings)
    if calibration is not None and calibration.weights != run.best_checkpoint():
        notes.append(
            f"{run.name} was trained further after its calibration, which is ignored: "
            f"run `neural calibrate {run.name}` again"
        )
        calibration = None
    if calibration is None:
        threshold = _default_threshold(run, settings)
        return _create_pipeline(run.name, settings, model, None_(), threshold, notes)
    return _create_pipeline(
        run.name,
        settings,
        model,
        calibration.boundary.calibrator,
        calibration.threshold,
        notes,
        label_calibration=calibration.label.calibrator if calibration.label else None_(),
    )


def load_segmentation_settings(run: TrainedRun) -> SegmentationSettings:
    """Settings of a segmentation run; TaskError for any other run."""
    settings = run.load_experiment()
    if not isinstance(settings, SegmentationSettings):
        raise TaskError(
            f"{run.name} is a run of `{settings.task}`, which does not segment texts; "
            "name a run of `segmentation`"
        )
    return settings


def save_pipeline(
    folder: Path,
    settings: SegmentationSettings,
    model: Any,
    calibration: Calibrator,
    threshold: float,
    *,
    min_elements: int = 1,
    decoder: Decoder = "threshold",
    probe_threshold: float = 0.5,
    half_precision: bool = False,
    name: str = "segmenter",
    metadata: Mapping[str, Any] | None = None,
) -> Path:
    """Write `NAME.safetensors` and then `NAME.json`. Returns the path of the JSON file.

    `settings` are those of a `Segmentation` task, with all values filled in. `calibration` maps
    margins to P(boundary); `None_()` is no calibration. `threshold` applies to calibrated
    probabilities. `half_precision` saves matrices as float16.
    """
    saved_settings = {
        key: value for key, value in dump_settings(settings).items() if key in SAVED_SETTINGS
    }
    saved_settings["features"] = resolve_features(settings.features)
    folder.mkdir(parents=True, exist_ok=True)
    state = {
        name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()
    }
    if half_precision:
        # only matrices: vectors are small, and the standard deviations may exceed its range
        state = {
            name: tensor.half() if tensor.ndim > 1 else tensor for name, tensor in state.items()
        }
    tensor_bytes = torch_safetensors.save(state)
    weights_path, path = folder / f"{name}.safetensors", folder / f"{name}.json"
    with open_atomic(weights_path) as file:
        file.write(tensor_bytes)
    saved = {
        "version": SEGMENTER_FILE_VERSION,
        "settings": saved_settings,
        "calibration": calibration.to_dict(),
        "threshold": float(threshold),
        "min_elements": min_elements,
        "decoder": decoder,
        "probe_threshold": float(probe_threshold),
        "feature_dependencies": dependency_versions(settings.features),
        "tensors": {
            "file": weights_path.name,
            "bytes": len(tensor_bytes),
            "sha256": hashlib.sha256(tensor_bytes).hexdigest(),
        },
        "metadata": dict(metadata or {}),
    }
    write_atomically(path, json.dumps(saved, indent=1, allow_nan=False) + "\n")
    return path


def load_pipeline(path: Path, *, name: str | None = None) -> SegmentationPipeline:
    """Read what `save_pipeline` wrote. TaskError if the files are broken."""
    with _report_broken_files(path):
        saved, settings, tensor_bytes = _read_files(path)
        model = _load_model(settings, tensor_bytes)
        calibration = calibrator_from_dict(saved["calibration"])
        threshold = float(saved["threshold"])
        probe_threshold = float(saved.get("probe_threshold", 0.5))
        min_elements, decoder = saved.get("min_elements", 1), saved.get("decoder", "threshold")
        if type(min_elements) is not int or min_elements < 1:
            raise ValueError("`min_elements` must be a whole number from 1")
        if decoder not in get_args(Decoder):
            raise ValueError(f"`decoder` must be one of {', '.join(get_args(Decoder))}")
        if not isinstance(saved.get("feature_dependencies", {}), dict):
            raise ValueError("`feature_dependencies` must be an object")
    notes = _check_dependencies(saved.get("feature_dependencies", {}), settings)
    return _create_pipeline(
        name or path.stem,
        settings,
        model,
        calibration,
        threshold,
        notes,
        min_elements=min_elements,
        decoder=decoder,
        probe_threshold=probe_threshold,
    )


def read_saved_weights(path: Path) -> tuple[SegmentationSettings, dict[str, np.ndarray]]:
    """Settings and weights that `save_pipeline` wrote, to train further. TaskError if broken.

    Of an ensemble, the weights are those of the first member.
    """
    with _report_broken_files(path):
        _, settings, tensor_bytes = _read_files(path)
        return settings, _split_members(_parse_tensors(numpy_safetensors.load, tensor_bytes))[0]


def _read_files(path: Path) -> tuple[dict[str, Any], SegmentationSettings, bytes]:
    """Content of the JSON file, its settings, and the weights file."""
    saved = parse_json(read_small_file(path).decode())
    if saved["version"] != SEGMENTER_FILE_VERSION:
        raise ValueError(
            f"its version is {saved['version']}, this program reads {SEGMENTER_FILE_VERSION}"
        )
    # Only the file name counts: the JSON file must not point to other folders.
    with open_ordinary_file(path.parent / Path(saved["tensors"]["file"]).name) as file:
        tensor_bytes = file.read()
    if hashlib.sha256(tensor_bytes).hexdigest() != saved["tensors"]["sha256"]:
        raise ValueError(f"{saved['tensors']['file']} is not the file that was saved with it")
    return saved, load_settings(SegmentationSettings, saved["settings"], path.name), tensor_bytes


@contextmanager
def _report_broken_files(path: Path) -> Iterator[None]:
    """Raise TaskError for everything that missing or broken files cause."""
    try:
        yield
    except OSError as error:
        raise TaskError(f"{error.filename}: {describe_os_error(error)}") from None
    except SettingsError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, RuntimeError) as error:
        raise TaskError(f"{path} is not a valid segmenter file: {error}") from None


def _load_model(settings: SegmentationSettings, tensor_bytes: bytes) -> Any:
    """The network without torch if `NumpySegmenter` has its architecture, else in torch.

    Names of tensors that begin with `members.N.` are those of an ensemble.
    """
    if NumpySegmenter.supports(settings.model):
        num_features = len(list_columns(settings.features))
        tensors = _parse_tensors(numpy_safetensors.load, tensor_bytes)
        members = [
            NumpySegmenter(settings.model, num_features, member)
            for member in _split_members(tensors)
        ]
        return members[0] if len(members) == 1 else NumpyEnsemble(members)
    # Imported here, because they import the attention mechanisms and the language of programs.
    from neural.tasks.segmentation.ensemble import SegmenterEnsemble
    from neural.tasks.segmentation.model_builder import build_segmenter

    models = []
    for member in _split_members(_parse_tensors(torch_safetensors.load, tensor_bytes)):
        model = build_segmenter(settings)
        model.load_state_dict({name: tensor.float() for name, tensor in member.items()})
        models.append(model.eval())
    return models[0] if len(models) == 1 else SegmenterEnsemble(models).eval()


def _split_members(tensors: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Tensors of each member of an ensemble; of a single network, all of them."""
    if not all(name.startswith("members.") for name in tensors):
        return [dict(tensors)]
    members: dict[int, dict[str, Any]] = {}
    for name, tensor in tensors.items():
        _, number, inner_name = name.split(".", 2)
        members.setdefault(int(number), {})[inner_name] = tensor
    return [members[number] for number in sorted(members)]


def _parse_tensors(load: Callable[[bytes], dict[str, Any]], tensor_bytes: bytes) -> dict[str, Any]:
    try:
        return load(tensor_bytes)
    except Exception as error:  # SafetensorError is not a ValueError
        raise ValueError(str(error)) from None


def _create_pipeline(
    name: str,
    settings: SegmentationSettings,
    model: Any,
    calibration: Calibrator,
    threshold: float,
    notes: list[str],
    **fields: Any,
) -> SegmentationPipeline:
    """Pipeline with the features, unit and target of the settings.

    `fields` are further fields of `SegmentationPipeline`.
    """
    return SegmentationPipeline(
        name=name,
        model=model,
        features=resolve_features(settings.features),
        unit=settings.elements,
        target_kind=settings.learn or "boundaries",
        labels=settings.labels or (),
        threshold=threshold,
        calibration=calibration,
        notes=tuple(notes),
        **fields,
    )


def _default_threshold(run: TrainedRun, settings: SegmentationSettings) -> float:
    """Threshold for uncalibrated probabilities.

    It is that of the settings, else the one chosen in the validation of the best checkpoint
    (metric `valid/threshold`), else that of the last validation, else 0.5.
    """
    if settings.threshold is not None:
        return settings.threshold
    steps, values = run.scalars("valid/threshold")
    if not len(steps):
        return 0.5
    best_step = run.best_checkpoint().removeprefix("step ")
    at_best = values[steps == int(best_step)] if best_step.isdigit() else values[:0]
    return float(at_best[-1] if len(at_best) else values[-1])


def _check_dependencies(
    training_versions: Mapping[str, str], settings: SegmentationSettings
) -> list[str]:
    """Warnings about features whose optional packages differ from those of the training.

    `training_versions` are the packages in training by feature; there are no warnings if empty.
    """
    versions = dependency_versions(settings.features)
    return [
        f"the feature `{name}` used {training_versions.get(name) or 'no package'} in training "
        f"and uses {versions.get(name) or 'no package'} here: predictions may be worse"
        for name in dict.fromkeys((*training_versions, *versions))
        if training_versions and training_versions.get(name) != versions.get(name)
    ]

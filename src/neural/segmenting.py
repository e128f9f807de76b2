"""Text → where its parts begin: a trained segmenter with all that it takes to use it, from a run or from two files.

    cutter = shipped()                              the one that comes with the package
    cutter = cutter_of_run(Run.open("runs/…"))      one that was trained here, calibrated if it was
    cutter = load_cutter(Path("notes.json"))        one that `save_cutter` wrote

    document = Document.of(text, unit=cutter.unit)
    p = cutter.probabilities(document)              (n,), P(a part begins at this element)
    cutter.cut(document, least=2, most=40)          (n,), True where one does

The files: `NAME.safetensors`, the weights, and `NAME.json`:

    version, settings      of a `SegmentationSettings` what the network needs: features, elements, learn, labels, model
    calibration            as `Calibration.to_dict` gives it, of margins of P(boundary)
    threshold, least       the probability above which a part begins, after calibration; elements of the shortest part
    features_made_with     what else the features depend on, such as a dictionary
    tensors                the other file's name, size and sha256
    about                  anything: how it was made, what it scored
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from neural.core.files import read_small, replacing, write_atomically
from neural.core.plain_json import read_json
from neural.core.settings import SettingsError, resolved, restored
from neural.experiments import best_model, experiment_of
from neural.modules.compiled import plain_torch
from neural.modules.late import late
from neural.tasks.cutting.calibrated import Calibration
from neural.tasks.cutting.calibration.none import None_
from neural.tasks.cutting.calibration_choice import calibration_of
from neural.tasks.cutting.calibration_file import Calibrated
from neural.tasks.cutting.decode import decode
from neural.tasks.cutting.described import features, made_with, resolve
from neural.tasks.cutting.document import Document
from neural.tasks.cutting.elements import Unit
from neural.tasks.cutting.masses import Boundaries
from neural.tasks.cutting.network import segmenter_of
from neural.tasks.cutting.predicted import boundary_probabilities, class_probabilities
from neural.tasks.cutting.probability import margins
from neural.tasks.cutting.settings import Learned, SegmentationSettings
from neural.tasks.cutting.stretches import scores_of_any_length
from neural.tasks.task import TaskError
from neural.tracking.run import Run
from neural.tracking.trouble import RunError

VERSION = 1
"""Of the two files."""
SHIPPED = Path(__file__).parent / "shipped" / "segmenter.json"
KEPT = ("features", "elements", "learn", "labels", "model")
"""Settings that a network is built from and used with."""

safetensors = late("safetensors.torch")
Tell = Callable[[int, int], None]


@dataclass(frozen=True, eq=False, kw_only=True)
class Cutter:
    """A segmenter that is ready to use. Probabilities are calibrated where a calibration is there."""

    name: str
    """What messages call it."""
    model: Any
    """A `Segmenter` in evaluation mode, or anything with its `scores`."""
    features: tuple[str, ...]
    """How elements are described."""
    unit: Unit
    """What plain text is cut into."""
    learned: Learned = "boundaries"
    labels: tuple[str, ...] = ()
    """What the classes are called."""
    threshold: float = 0.5
    """The probability above which a part begins, unless somebody says otherwise."""
    least: int = 1
    """Elements of the shortest part, unless somebody says otherwise."""
    calibration: Calibration = field(default_factory=None_)
    """Of margins of P(boundary)."""
    label_calibration: Calibration = field(default_factory=None_)
    """Of logits of the labels, where labels were learned."""
    remarks: tuple[str, ...] = ()
    """What is worth knowing before it is used, a sentence each."""

    def scores(self, document: Document, *, tell: Tell = lambda done, count: None) -> np.ndarray:
        """What the network says, (n, classes), as logits; `tell` hears how many of a long document's elements are done.
        """
        with plain_torch():   # as fast over so few elements, and starting takes two seconds less
            return scores_of_any_length(self.model, features(document, self.features), tell=tell)

    def probabilities(self, document: Document) -> np.ndarray:
        """P(a part begins at this element), (n,); 0 at the first."""
        return self.boundary_probabilities(self.scores(document))

    def boundary_probabilities(self, scores: np.ndarray) -> np.ndarray:
        """The same from scores."""
        found = self.calibration(self.margins(scores))
        found[0] = 0.0
        return found

    def margins(self, scores: np.ndarray) -> np.ndarray:
        """The logarithms of the odds that a part begins, before calibration, (n,)."""
        return margins(boundary_probabilities(class_probabilities(scores), self.learned))

    def label_probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Of every class, (n, classes), from scores."""
        return self.label_calibration(scores)

    def cut(
        self, document: Document, least: int | None = None, most: int | None = None, threshold: float | None = None
    ) -> Boundaries:
        """The best segmentation with parts of `least` to `most` elements; its own `least` and `threshold` if not said.
        """
        return self.cut_at(self.probabilities(document), least, most, threshold)

    def cut_at(
        self, probabilities: np.ndarray, least: int | None = None, most: int | None = None,
        threshold: float | None = None,
    ) -> Boundaries:  # fmt: skip
        """The same from probabilities."""
        least = min(self.least, most or self.least) if least is None else least
        return decode(probabilities, least=least, most=most, threshold=threshold or self.threshold)


def shipped() -> Cutter:
    """The segmenter that comes with the package."""
    return load_cutter(SHIPPED, name="the shipped segmenter")


def cutter_of_run(run: Run, *, plain: bool = False) -> Cutter:
    """The best checkpoint of a segmentation run; with the run's calibration and threshold where it has them.

    `plain`: as it was trained, whether it was calibrated since or not.
    """
    settings = segmentation_of(run)
    model, calibrated = best_model(run.path), None if plain else Calibrated.load(run.path)
    begun_with = (run.described("segmentation") or {}).get("features_made_with", {})
    remarks = _dictionaries(begun_with, settings)
    said = _usual_threshold(run, settings)
    if calibrated is not None and calibrated.weights != weights_of(run):
        remarks.append(f"{run.name} has learned since it was calibrated: `neural calibrate {run.name}` does it again")
        calibrated = None
    if calibrated is None:
        return _cutter(run.name, settings, model, None_(), said, remarks)
    return _cutter(
        run.name, settings, model, calibrated.boundary.calibration, calibrated.threshold, remarks,
        label_calibration=calibrated.label.calibration if calibrated.label else None_(),
    )  # fmt: skip


def segmentation_of(run: Run) -> SegmentationSettings:
    """The settings of a run that cuts texts; RunError for any other."""
    settings = experiment_of(run)
    if not isinstance(settings, SegmentationSettings):
        raise RunError(f"{run.name} is a run of `{settings.task}`: it does not cut texts; name a run of `segmentation`")
    return settings


def weights_of(run: Run) -> str:
    """Which weights `best_model` takes, as a word that changes when they do."""
    there = run.checkpoints()
    best = next((one for one in reversed(there) if one.best), None) or (there[-1] if there else None)
    return "none" if best is None else f"step {best.step}"


def save_cutter(
    folder: Path, settings: SegmentationSettings, model: Any, calibration: Calibration, threshold: float, *,
    least: int = 1, name: str = "segmenter", about: Mapping[str, Any] | None = None,
) -> Path:  # fmt: skip
    """Writes both files, the weights first; the path of the JSON file. `settings` are resolved, those of a task.

    `calibration` is of margins of P(boundary), `None_()` for none; `threshold` is of what it gives.
    """
    said = {key: value for key, value in resolved(settings).items() if key in KEPT}
    said["features"] = resolve(settings.features)
    folder.mkdir(parents=True, exist_ok=True)
    state = {key: one.detach().cpu().contiguous() for key, one in model.state_dict().items()}
    data = safetensors.save(state)
    weights, path = folder / f"{name}.safetensors", folder / f"{name}.json"
    with replacing(weights) as file:
        file.write(data)
    document = {
        "version": VERSION, "settings": said, "calibration": calibration.to_dict(), "threshold": float(threshold),
        "least": least, "features_made_with": made_with(settings.features),
        "tensors": {"file": weights.name, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()},
        "about": dict(about or {}),
    }  # fmt: skip
    write_atomically(path, json.dumps(document, indent=1, allow_nan=False) + "\n")
    return path


def load_cutter(path: Path, *, name: str | None = None) -> Cutter:
    """What `save_cutter` wrote; TaskError says what is wrong with the files."""
    try:
        document = read_json(read_small(path).decode())
        if document["version"] != VERSION:
            raise ValueError(f"its version is {document['version']}, this program reads {VERSION}")
        data = (path.parent / Path(document["tensors"]["file"]).name).read_bytes()   # beside it or nowhere
        if hashlib.sha256(data).hexdigest() != document["tensors"]["sha256"]:
            raise ValueError(f"{document['tensors']['file']} is not the file that was saved with it")
        settings = restored(SegmentationSettings, document["settings"], path.name)
        model = segmenter_of(settings)
        model.load_state_dict({key: one.float() for key, one in _tensors(data).items()})
        calibration, threshold = calibration_of(document["calibration"]), float(document["threshold"])
    except OSError as problem:
        raise TaskError(f"{problem.filename}: {(problem.strerror or str(problem)).lower()}") from None
    except SettingsError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, RuntimeError) as problem:
        raise TaskError(f"{path} is no segmenter that can be used: {problem}") from None
    remarks = _dictionaries(document.get("features_made_with", {}), settings)
    return _cutter(
        name or path.stem, settings, model.eval(), calibration, threshold, remarks, least=document.get("least", 1)
    )


def _tensors(data: bytes) -> dict[str, Any]:
    try:
        return safetensors.load(data)
    except Exception as problem:   # the library has an error class of its own
        raise ValueError(str(problem)) from None


def _cutter(
    name: str, settings: SegmentationSettings, model: Any, calibration: Calibration, threshold: float,
    remarks: list[str], **more: Any,
) -> Cutter:  # fmt: skip
    return Cutter(
        name=name, model=model, features=resolve(settings.features), unit=settings.elements,
        learned=settings.learn or "boundaries", labels=settings.labels or (), threshold=threshold,
        calibration=calibration, remarks=tuple(remarks), **more,
    )  # fmt: skip


def _usual_threshold(run: Run, settings: SegmentationSettings) -> float:
    """What was said, or what the best validation took, or one half."""
    if settings.threshold is not None:
        return settings.threshold
    if "valid/threshold" not in run.names():
        return 0.5
    steps, values = run.scalars("valid/threshold")
    best = weights_of(run).removeprefix("step ")
    fitting = values[steps == int(best)] if best.isdigit() else values[:0]
    return float(fitting[-1] if len(fitting) else values[-1])


def _dictionaries(begun_with: Mapping[str, str], settings: SegmentationSettings) -> list[str]:
    """Features that are not made with what the model has learned from."""
    now = made_with(settings.features)
    return [
        f"the feature `{name}` was made with {begun_with.get(name) or 'nothing'} in training and is made with "
        f"{now.get(name) or 'nothing'} here: answers may be worse"
        for name in dict.fromkeys((*begun_with, *now))
        if begun_with and begun_with.get(name) != now.get(name)
    ]

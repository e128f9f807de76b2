"""`neural.track`: attention snapshots of any model in any training loop, as a normal run.

    with neural.track(model, probe, every=50, run="runs/mine") as tracker:
        for batch in loader:
            loss = train_step(model, batch)
            tracker.step(loss=loss)

A snapshot is the attention of the probe, one fixed batch. Taking it changes nothing: the modes of
all modules, the random state and the number of threads are restored, so that the training is
bit-identical with and without it. Once the training has begun, tracking never stops it: an error,
such as a full disk, becomes a warning, and the snapshot is missing. The run works with every
command: `neural report`, `board`, `analyze`, `compare`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from neural.capture.capture_result import Capture
from neural.capture.labels import check_labels
from neural.capture.patch_positions import attach_images, find_pixels
from neural.capture.snapshot_writer import SnapshotWriter
from neural.capture.tracker import preserve_model_state
from neural.capture.watch import NoAttentionError, capture_calls, run_probe, warn_at_caller
from neural.capture.watch_arguments import (
    check_model,
    check_positions,
    convert_positions,
    explain_input_error,
)
from neural.interpret.tokens import label_ids
from neural.nn.lazy_torch import torch
from neural.runs.errors import RunError
from neural.runs.folder import ROWS_FILE
from neural.runs.run import Run

if TYPE_CHECKING:
    from torch import nn

    from neural.capture.probe_image import ProbeImage
    from neural.workflows.watch import Labels, PaddingMask, TokenIds

DEFAULT_EVERY = 50
TRACKED_TASK = "tracked"
"""`task` in the settings of runs of `neural.track`; not the name of one of our tasks."""
VALIDATION_PREFIX = re.compile(r"^(?:valid(?:ation)?|val|eval|test)[_/]")
"""Beginnings of the names that other libraries give to validation metrics: `eval_loss`."""


def track(
    model: nn.Module,
    probe: Any,
    *,
    every: int = DEFAULT_EVERY,
    run: str | Path | None = None,
    labels: Labels | None = None,
    tokens: TokenIds | None = None,
    tokenizer: Any = None,
    measures: Iterable[str] | None = None,
    real: PaddingMask | None = None,
    maps_every: int = 1,
    steps: int | None = None,
    start_step: int | None = None,
    settings: Mapping[str, Any] | None = None,
    softmax: bool | None = None,
) -> ModelTracker:
    """Take a snapshot of the model's attention every `every` steps of your own training loop.

        with neural.track(model, ids, every=50, run="runs/mine") as tracker:
            for batch in loader:
                loss = train_step(model, batch)
                tracker.step(loss=loss)          # after optimizer.step()

    `probe`: one batch, as for `neural.watch`: an input, a tuple or a mapping of inputs, or a
    function that is called with the model. It should stay the same for the whole training.
    `run`: folder and name of a new run, `runs/<time>_mine`; or the path of an existing run, which
    is resumed: rows after `start_step` are deleted. Without it, the name of the model's class.
    `labels`: a text for each position of the probe. `tokens` (B, T): token ids, for measures that
    need them; by default the probe itself, if it is ids. `tokenizer`: makes labels from the ids.
    `measures`, `real`, `softmax`: as for `neural.watch`.
    `maps_every`: every how many snapshots the maps are stored; 0 for never.
    `steps`: length of the training, for progress on the board. `settings`: your own, stored with
    the run.
    """
    check_model(model)
    if every < 1:
        raise ValueError(f"every must be at least 1, got {every}")
    opened, start = _open_run(model, run, start_step, every, steps, settings)
    return ModelTracker(
        model,
        probe,
        opened,
        every=every,
        start_step=start,
        labels=labels,
        tokens=tokens,
        tokenizer=tokenizer,
        measures=measures,
        real=real,
        maps_every=maps_every,
        steps=steps,
        softmax=softmax,
    )


class ModelTracker:
    """Writes snapshots of a model and the scalars of its training into a run; see `track`."""

    def __init__(
        self,
        model: nn.Module,
        probe: Any,
        run: Run,
        *,
        every: int,
        start_step: int = 0,
        labels: Labels | None = None,
        tokens: TokenIds | None = None,
        tokenizer: Any = None,
        measures: Iterable[str] | None = None,
        real: PaddingMask | None = None,
        maps_every: int = 1,
        steps: int | None = None,
        softmax: bool | None = None,
    ) -> None:
        self.model, self.probe, self.run = model, probe, run
        self.every, self.maps_every, self.total_steps = every, maps_every, steps
        self.current_step = start_step
        """Steps that the model was trained so far."""
        self._measures = None if measures is None else tuple(measures)
        ids = find_token_ids(probe) if tokens is None else tokens
        self._tokens = convert_positions("tokens", ids)
        self._given_tokens = None if tokens is None else self._tokens
        self._real = convert_positions("real", real)
        self._softmax = softmax
        if labels is None and tokenizer is not None and self._tokens is not None:
            labels = label_tokens(tokenizer, self._tokens)
        self._labels = labels
        self._images = self._describe_images()
        self._writer = SnapshotWriter(run)
        self._snapshot_step: int | None = None
        self._warnings: set[str] = set()
        self.is_closed = False
        try:
            # a resumed run has the snapshot of its last due step already, as if never interrupted
            if start_step % every == 0 and start_step not in _list_snapshot_steps(run):
                with self._warn_about(RunError):  # a wrong probe is an error: nothing has begun
                    self._write_snapshot(self._is_map_step())
        except BaseException as error:
            self.close("failed", str(error))
            raise

    @property
    def path(self) -> Path:
        """The run folder."""
        return self.run.path

    def __repr__(self) -> str:
        return f"<tracker of {type(self.model).__name__}, step {self.current_step}, {self.path}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error_type: type[BaseException] | None, error: Any, _: object) -> None:
        if error_type is None:
            self.close()
        elif issubclass(error_type, KeyboardInterrupt):
            self.close("stopped", "interrupted")
        else:
            self.close("failed", f"{error_type.__name__}: {error}")

    def step(self, step: int | None = None, /, **scalars: Any) -> None:
        """Count one step of training, log its scalars, and take a snapshot if one is due.

        Call it after `optimizer.step()`. `step` sets the number of steps so far, for loops that
        count themselves.
        """
        self._check_open()
        self.current_step = self.current_step + 1 if step is None else int(step)
        if scalars:
            self.log(scalars)
        with self._warn_about(RunError):
            self.run.heartbeat(self.current_step, **self._progress_facts(scalars))
        if self.current_step % self.every == 0 and self.current_step != self._snapshot_step:
            self.snapshot()

    def log(
        self, values: Mapping[str, Any] | None = None, /, *, step: int | None = None, **scalars: Any
    ) -> None:
        """Log scalars of the current step, or of another.

        `loss` is stored as `train/loss`, `eval_loss` and `val_loss` as `valid/loss`; a name with a
        slash stays as it is. Values that are no numbers are left out.
        """
        self._check_open()
        named = {**(values or {}), **scalars}
        numbers = {
            to_metric_name(name): number
            for name, value in named.items()
            if (number := to_number(value)) is not None
        }
        if not numbers:
            return
        with self._warn_about(RunError):
            self.run.log(self.current_step if step is None else step, numbers)

    def snapshot(self) -> None:
        """Take a snapshot now, whether one is due or not; a warning if that fails."""
        self._check_open()
        with self._warn_about(Exception):
            self._write_snapshot(self._is_map_step())

    def close(self, state: str = "finished", message: str = "") -> None:
        """Take the last snapshot, with maps, and finish the run. Closing twice does nothing."""
        if self.is_closed:
            return
        with self._warn_about(Exception):
            if state == "finished" and self.current_step != self._snapshot_step:
                self._write_snapshot(self.maps_every > 0)
        self.is_closed = True
        with self._warn_about(RunError):
            self.run.heartbeat(self.current_step)
        with self._warn_about(RunError):
            self.run.finish(state, message)

    @contextmanager
    def _warn_about(self, kind: type[Exception]) -> Iterator[None]:
        """A warning instead of an error of this kind: tracking must not stop a training."""
        try:
            yield
        except kind as error:
            # what could not be written must not fail again; the next snapshot has its metadata
            self.run.discard_snapshot()
            self._writer = SnapshotWriter(self.run)
            self._warn(f"tracking failed, and a snapshot is missing: {error}")

    def _warn(self, message: str) -> None:
        """Warn once, not at every snapshot."""
        if message in self._warnings:
            return
        self._warnings.add(message)
        if not self.is_closed:
            with suppress(RunError):
                self.run.log_event(self.current_step, "warning", message)
        warn_at_caller(message)

    def _write_snapshot(self, with_maps: bool) -> None:
        messages: list[str] = []
        with preserve_model_state(self.model):
            capture = Capture(self._measures)
            block = capture_calls(
                self.model,
                capture,
                tokens=self._tokens,
                real=self._real,
                softmax=self._softmax,
                on_warning=messages.append,
            )
            self._run_probe(block)
            self._check_capture(capture, messages)
            if capture:
                capture.images = self._images
                self._writer.write(
                    self.current_step,
                    capture,
                    lambda: self._find_labels(capture),
                    with_maps=with_maps,
                )
        for message in messages:
            self._warn(message)
        self._snapshot_step = self.current_step
        self.run.commit()

    def _run_probe(self, block: Any) -> None:
        """Run the model on the probe; ValueError with advice if it fails at the first snapshot."""
        if callable(self.probe):
            with block:
                self.probe(self.model)
            return
        try:
            run_probe(self.model, self.probe, block)
        except NoAttentionError:
            raise
        except (TypeError, ValueError, IndexError, RuntimeError, AttributeError) as error:
            if self._snapshot_step is not None:
                raise
            advice = _explain_probe_error(error, self.probe)
            raise ValueError(f"track: the model failed on the probe: {error}; {advice}") from error

    def _check_capture(self, capture: Capture, messages: list[str]) -> None:
        """Check that the caller's positions fit, and that there is something to measure."""
        if self._snapshot_step is None:
            check_positions("tokens", self._given_tokens, capture)
            check_positions("real", self._real, capture)
        broken = [call.path for call in capture if call.attention is None]
        if broken:
            messages.append(
                f"queries or keys of {len(broken)} modules, such as `{broken[0]}`, are not finite: "
                "the training has diverged; nothing of them is measured"
            )

    def _describe_images(self) -> list[ProbeImage]:
        """The images of the probe; found once, since training does not move patches."""
        if callable(self.probe) or find_pixels(self.probe) is None:
            return []
        images = Capture(())
        attach_images(images, self.model, self.probe, softmax=self._softmax)
        if images.image_note:
            self.run.log_event(self.current_step, "warning", images.image_note)
        if self._labels is None:
            self._labels = images.labels
        return images.images

    def _find_labels(self, capture: Capture) -> list[list[str]] | None:
        return None if self._labels is None else check_labels(self._labels, capture)

    def _is_map_step(self) -> bool:
        # computed from the step, not by counting: a resumed run stores maps at the same steps
        return self.maps_every > 0 and self.current_step // self.every % self.maps_every == 0

    def _progress_facts(self, scalars: Mapping[str, Any]) -> dict[str, Any]:
        facts: dict[str, Any] = {} if self.total_steps is None else {"steps": self.total_steps}
        loss = to_number(scalars.get("loss"))
        return facts if loss is None else {**facts, "loss": loss}

    def _check_open(self) -> None:
        if self.is_closed:
            raise RunError(f"the tracker of {self.path} is closed")


def _explain_probe_error(error: Exception, probe: Any) -> str:
    """What to do about a probe on which the model failed."""
    ids = find_token_ids(probe)
    if isinstance(error, IndexError) and ids is not None:
        return (
            f"its token ids go up to {int(ids.max()):,}, over {ids.shape[1]:,} positions: the model "
            "has fewer embeddings"
        )
    if "not implemented for" in str(error):
        return "an operation is missing in this dtype on this device: use another of both"
    return explain_input_error(probe) or (
        "the probe is one batch that the model takes: an input, a tuple or a mapping of inputs, "
        "or a function that is called with the model"
    )


def to_metric_name(name: str) -> str:
    """The name of a metric in a run: `loss` → `train/loss`, `eval_loss` → `valid/loss`."""
    if VALIDATION_PREFIX.match(name):
        return VALIDATION_PREFIX.sub("valid/", name)
    if "/" in name:
        return name
    return f"train/{re.sub(r'^train_', '', name)}"


def to_number(value: Any) -> float | None:
    """A number, also of a tensor or array with one element; None for anything else."""
    if isinstance(value, bool | str | bytes) or value is None:
        return None
    try:
        return float(value.detach() if torch.is_tensor(value) else value)
    except (TypeError, ValueError, RuntimeError):
        return None


def find_token_ids(probe: Any) -> Any:
    """The token ids (B, T) in a probe; None if it has none."""
    if isinstance(probe, Mapping):
        probe = probe.get("input_ids")
    elif isinstance(probe, tuple | list) and probe:
        probe = probe[0]
    is_ids = torch.is_tensor(probe) and probe.ndim == 2 and not probe.is_floating_point()
    return probe if is_ids else None


def label_tokens(tokenizer: Any, tokens: Any) -> list[list[str]]:
    """Texts of token ids; `tokenizer` has the methods of Hugging Face or `decode`, or is it."""
    if hasattr(tokenizer, "convert_ids_to_tokens") or hasattr(tokenizer, "decode"):
        return label_ids(tokenizer, tokens)
    return [[str(tokenizer([token])) for token in row] for row in tokens.tolist()]


def _list_snapshot_steps(run: Run) -> set[int]:
    """Steps at which a measure was recorded."""
    names = run.measure_names()
    return {int(step) for step in run.measure(names[0])[0]} if names else set()


def _open_run(
    model: nn.Module,
    run: str | Path | None,
    start_step: int | None,
    every: int,
    steps: int | None,
    settings: Mapping[str, Any] | None,
) -> tuple[Run, int]:
    """The run to write, and the step at which the training starts."""
    path = Path("runs") / type(model).__name__ if run is None else Path(run)
    if (path / ROWS_FILE).exists():
        reopened = Run.reopen(path)
        start = reopened.last_step if start_step is None else start_step
        reopened.delete_after(start)
        reopened.log_event(start, "restart", f"resumed at step {start:,}")
        return reopened, start
    start = start_step or 0
    created = Run.create(
        path.parent,
        path.name,
        settings={
            "task": TRACKED_TASK,
            "name": path.name,
            "model": type(model).__name__,
            "tracking": {"track_every": every},
            **(settings or {}),
        },
        program=None,
    )
    created.set_metadata("parameters", sum(param.numel() for param in model.parameters()))
    if steps is not None:
        created.set_metadata("steps", steps)
    return created, start

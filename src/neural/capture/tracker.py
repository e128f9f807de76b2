"""Attention snapshots during training: a fixed probe batch, every few steps, into the run folder.

The probe is a batch of fixed examples that the task chooses (`Task.probe_batch`). A measure is a
number per head or layer (capture/measures/); a map is a matrix of attention weights (queries,
keys). A snapshot is all measures, and sometimes the maps, of one step.

A snapshot changes nothing: the model's mode, the random state and the number of threads are
restored, so that training with and without snapshots is bit-identical.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from neural.capture.capture_result import Capture
from neural.capture.snapshot_writer import SnapshotWriter
from neural.capture.watch import NoAttentionError, watch
from neural.core.experiment import TrackingSettings
from neural.nn.lazy_torch import torch  # the real torch, imported at the first use
from neural.runs.run import Run
from neural.tasks.task import Task

if TYPE_CHECKING:
    from torch import nn

DEFAULT_SUMMARY_MEASURE = "relative_entropy"
"""Measure in the progress line, if it is measured; it is between 0 and 1 for every network."""


class AttentionTracker:
    """Takes attention snapshots of a model and writes them into a run."""

    def __init__(self, task: Task, run: Run | None, settings: TrackingSettings) -> None:
        """Raises UnknownNameError for an unknown measure.

        `run` is None in processes other than rank 0 of a sharded model. They capture without
        writing, because a sharded model runs in all processes or in none.
        """
        self.task, self.run, self.settings = task, run, settings
        Capture(settings.measures)  # raises on an unknown measure before training starts
        self._writer = SnapshotWriter(run) if run is not None else None
        self._probe: Any = None
        self._has_logged_warnings = False
        self._summary_measure: str | None = None
        """Measure that `capture_snapshot` returns; None before the first snapshot."""

    def capture_snapshot(
        self, model: nn.Module, step: int, *, last: bool = False
    ) -> tuple[str, float] | None:
        """Measure the model on the probe and write the results into the run.

        Returns name and mean of one measure, the same in all snapshots; None if there is none.
        The `last` snapshot of a run always stores maps, and queries and keys: it is the one that
        users open first.
        """
        with preserve_model_state(model):
            capture = self._capture_probe(model, step)
            if not capture:
                return None
            arrays = capture.measure_arrays()
            if self._writer is not None:
                self._writer.write(
                    step,
                    capture,
                    lambda: self.task.position_labels(self._probe),
                    with_maps=self._should_keep_maps(step, last),
                    with_vectors=last and self.settings.maps_every > 0,
                )
        return self._summarize(arrays)

    def _capture_probe(self, model: nn.Module, step: int) -> Capture:
        device = next((param.device for param in model.parameters()), torch.device("cpu"))
        if self._probe is None:
            batch = self.task.probe_batch()
            self._probe = {name: tensor.to(device) for name, tensor in batch.items()}
        messages: list[str] = []
        tokens, measures = self.task.token_ids(self._probe), self.settings.measures
        try:
            with watch(
                model, tokens=tokens, measures=measures, on_warning=messages.append
            ) as capture:
                self.task.forward(model, self._probe)
        except NoAttentionError as error:
            capture, messages = Capture(), [str(error)]
        else:
            messages = messages if capture else []  # a network without attention is no problem
        if self.run is not None and not self._has_logged_warnings:
            for message in messages:
                self.run.log_event(step, "warning", message)
            self._has_logged_warnings = True  # later snapshots do not repeat them
        return capture

    def _should_keep_maps(self, step: int, last: bool) -> bool:
        # computed from the step, not by counting snapshots: so a resumed run stores the same maps
        every = self.settings.maps_every
        return every > 0 and (last or step // max(1, self.settings.track_every) % every == 0)

    def _summarize(self, arrays: dict[str, np.ndarray]) -> tuple[str, float] | None:
        """Name and mean of one measure, the same in all snapshots, for the progress line."""
        means = {
            name: float(np.nanmean(array))
            for name, array in arrays.items()
            if not np.isnan(array).all()
        }
        if self._summary_measure not in means:
            default = DEFAULT_SUMMARY_MEASURE
            self._summary_measure = default if default in means else next(iter(means), None)
        name = self._summary_measure
        return None if name is None else (name, means[name])


@contextmanager
def preserve_model_state(model: nn.Module) -> Iterator[None]:
    """Block in evaluation mode, without gradients.

    Afterwards the modes of all modules, the random state and the number of threads are restored.
    """
    modes = [(module, module.training) for module in model.modules()]
    threads = torch.get_num_threads()
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    try:
        with torch.random.fork_rng(devices=devices), torch.no_grad():
            model.eval()
            yield
    finally:
        for module, training in modes:
            module.training = training
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)

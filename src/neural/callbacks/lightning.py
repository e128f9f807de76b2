"""Callback for the Trainer of PyTorch Lightning: attention snapshots as a run.

    from neural.callbacks.lightning import NeuralCallback

    callback = NeuralCallback(probe, every=50, run="runs/mine", labels=tokens)
    Trainer(…, callbacks=[callback]).fit(module, loader)

The arguments are those of `neural.track` (workflows/track.py), without the model. The watched model
is the LightningModule; `select=lambda module: module.model` chooses a part of it. Logged metrics
become the curves of the run. The state of a Lightning checkpoint contains the path of the run, so
that a resumed training continues it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from lightning.pytorch import Callback

from neural.workflows.track import ModelTracker, track


class NeuralCallback(Callback):
    """Takes attention snapshots while a Trainer trains; writes in the main process only."""

    def __init__(
        self, probe: Any, *, select: Callable[[Any], Any] = lambda module: module, **options: Any
    ) -> None:
        """`select` finds the model in the LightningModule; the rest as for `neural.track`."""
        self.probe, self.select, self.options = probe, select, options
        self.tracker: ModelTracker | None = None
        """The tracker, from the start of the training on."""
        self._resumed_path: str | None = None

    @property
    def path(self) -> Path | None:
        """The run folder; None before the training starts."""
        return None if self.tracker is None else self.tracker.path

    def state_dict(self) -> dict[str, Any]:
        """The path of the run, for checkpoints."""
        return {} if self.tracker is None else {"run": str(self.tracker.path)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue the run of a checkpoint."""
        self._resumed_path = state_dict.get("run")

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Create the run, or resume the one of the checkpoint."""
        if not trainer.is_global_zero:
            return
        options = dict(self.options)
        if trainer.max_steps and trainer.max_steps > 0:
            options.setdefault("steps", trainer.max_steps)
        if self._resumed_path:
            options["run"] = self._resumed_path
        self.tracker = track(
            self.select(pl_module), self.probe, start_step=trainer.global_step, **options
        )

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Log metrics, and take a snapshot if one is due; accumulated batches are one step."""
        if self.tracker is None or trainer.global_step == self.tracker.current_step:
            return
        scalars = dict(trainer.callback_metrics)
        if isinstance(outputs, dict) and "loss" in outputs:
            scalars.setdefault("loss", outputs["loss"])
        self.tracker.step(trainer.global_step)
        self.tracker.log({name: value for name, value in scalars.items() if "val" not in name})

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Log the metrics of the validation."""
        if self.tracker is not None and not trainer.sanity_checking:
            self.tracker.log(dict(trainer.callback_metrics))

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Finish the run as failed."""
        if self.tracker is not None:
            state = "stopped" if isinstance(exception, KeyboardInterrupt) else "failed"
            self.tracker.close(state, f"{type(exception).__name__}: {exception}")

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Take the last snapshot and finish the run."""
        if self.tracker is not None:
            self.tracker.close()

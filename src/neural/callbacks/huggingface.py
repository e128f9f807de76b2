"""Callback for the Trainer of Hugging Face transformers: attention snapshots as a run.

    from neural.callbacks.huggingface import NeuralCallback

    callback = NeuralCallback(probe, every=50, run="runs/mine", tokenizer=tokenizer)
    Trainer(model=model, …, callbacks=[callback]).train()

The arguments are those of `neural.track` (workflows/track.py), without the model. Logged values
(`loss`, `learning_rate`, `eval_loss` …) become the curves of the run.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformers import TrainerCallback

from neural.capture.watch import warn_at_caller
from neural.workflows.track import ModelTracker, track

if TYPE_CHECKING:
    from transformers import TrainerControl, TrainerState, TrainingArguments

RUN_FILE = "neural_run.txt"
"""File in the Trainer's output folder with the path of the run, so that a resumed one finds it."""


class NeuralCallback(TrainerCallback):
    """Takes attention snapshots while a Trainer trains; writes in the main process only."""

    def __init__(self, probe: Any, **options: Any) -> None:
        """`probe` and `options` are arguments of `neural.track`."""
        self.probe, self.options = probe, options
        self.tracker: ModelTracker | None = None
        """The tracker, from the start of the training on."""

    @property
    def path(self) -> Path | None:
        """The run folder; None before the training starts."""
        return None if self.tracker is None else self.tracker.path

    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        model: Any = None,
        **_: Any,
    ) -> None:
        """Create the run, or resume the one of the checkpoint that the Trainer resumes from."""
        if not state.is_world_process_zero:
            return
        if self.tracker is not None and not self.tracker.is_closed:
            return
        options: dict[str, Any] = {"steps": state.max_steps, **self.options}
        marker = Path(args.output_dir or ".") / RUN_FILE
        if state.global_step and marker.exists():
            options["run"] = marker.read_text(encoding="utf-8").strip()
        self.tracker = track(model, self.probe, start_step=state.global_step, **options)
        try:
            marker.parent.mkdir(parents=True, exist_ok=True)
            marker.write_text(f"{self.tracker.path}\n", encoding="utf-8")
        except OSError as error:  # tracking must not stop a training
            warn_at_caller(f"a resumed training will begin a new run: {error}")

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Take a snapshot if one is due."""
        if self.tracker is not None:
            self.tracker.step(state.global_step)

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """Log what the Trainer logs."""
        # the last entry has means over the whole training: `train_loss` is not the last loss
        is_summary = "train_runtime" in (logs or {})
        if self.tracker is not None and logs and not is_summary:
            self.tracker.log(logs, step=state.global_step)

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Take the last snapshot and finish the run."""
        if self.tracker is not None:
            self.tracker.close()

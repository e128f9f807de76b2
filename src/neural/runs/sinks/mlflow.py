"""MLflow: a run of the experiment `neural`, at `MLFLOW_TRACKING_URI`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from neural.core.settings import flatten_settings
from neural.runs.sink import Sink

MAX_PARAM_CHARS = 500
"""Length limit of a parameter value in MLflow."""


class Mlflow(Sink):
    """A run of the same name in MLflow."""

    package: ClassVar[str] = "mlflow"
    pip_name: ClassVar[str] = "mlflow"

    def open(self, name: str, folder: Path, settings: Mapping[str, Any]) -> None:
        """Resume the run of that name, or create one with the settings as its parameters."""
        client = self.library.MlflowClient()
        experiment = client.get_experiment_by_name("neural")
        experiment_id = (
            experiment.experiment_id if experiment else client.create_experiment("neural")
        )
        query = f"attributes.run_name = '{name}'"
        runs = client.search_runs([experiment_id], query, max_results=1)
        run = runs[0] if runs else client.create_run(experiment_id, run_name=name)
        self._client, self._run_id = client, run.info.run_id
        if not runs:
            for key, value in flatten_settings(settings).items():
                client.log_param(self._run_id, key, str(value)[:MAX_PARAM_CHARS])

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Add one point to each curve."""
        for name, value in values.items():
            self._client.log_metric(self._run_id, name, value, step=step)

    def close(self) -> None:
        """Mark the run as ended."""
        self._client.set_terminated(self._run_id)

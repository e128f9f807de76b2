"""MLflow: a run of the experiment `neural`, where `MLFLOW_TRACKING_URI` says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from neural.tracking.sink import Sink, flat

LONGEST = 500
"""Characters of a parameter that MLflow keeps."""


class Mlflow(Sink):
    """A run of that name in MLflow."""

    package: ClassVar[str] = "mlflow"
    pip: ClassVar[str] = "mlflow"

    def open(self, name: str, folder: Path, settings: Mapping[str, Any]) -> None:
        """Go on with the run of that name, or begin one with the settings as its parameters."""
        client = self.library.MlflowClient()
        found = client.get_experiment_by_name("neural")
        experiment = found.experiment_id if found else client.create_experiment("neural")
        runs = client.search_runs([experiment], f"attributes.run_name = '{name}'", max_results=1)
        run = runs[0] if runs else client.create_run(experiment, run_name=name)
        self._client, self._run = client, run.info.run_id
        if not runs:
            for key, value in flat(settings).items():
                client.log_param(self._run, key, str(value)[:LONGEST])

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """One point on each curve."""
        for name, value in values.items():
            self._client.log_metric(self._run, name, value, step=step)

    def close(self) -> None:
        """Say that it has ended."""
        self._client.set_terminated(self._run)

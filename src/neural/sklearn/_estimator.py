"""What both estimators share: the program for the data, training, outputs of the network.

A program is the text of a network in the `.neural` language. In the program of an estimator, the
names `features` and `outputs` stand for numbers that are known when the data is: columns of X, and
classes of y (1 for a regression).
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state, validation

from neural.core.diagnostics import DiagnosticCollector
from neural.core.errors import TaskError, describe_os_error
from neural.core.files import read_source_text
from neural.core.names import suggest_name
from neural.data.input_checks import reshape_rows
from neural.language.lexer import tokenize
from neural.nn.lazy_torch import torch
from neural.tasks.task import count_positions
from neural.training.cpu_threads import use_threads_for
from neural.workflows.fit import collect_history, fit
from neural.workflows.load import parse

if TYPE_CHECKING:
    from neural.language.network import Network

BATCH_SIZE = 256
"""Examples per forward pass in predictions."""
MAX_SEED = 2**31 - 1
NO_CHECKPOINTS_BEFORE_THE_END = 10**9
"""Steps between the checkpoints of a run folder that is deleted anyway."""


class NetworkEstimator(BaseEstimator):
    """Base class of both estimators."""

    default_program: str
    """The program if `network` is None."""

    def __new__(cls, *_arguments: Any, **parameters: Any) -> Self:
        """A new estimator; TypeError names the class and suggests a parameter for a misspelt one.

        `__init__` cannot do this: scikit-learn reads the parameters from its signature.
        """
        _, *names = signature(cls.__init__).parameters  # without `self`
        for name in parameters:
            if name not in names:
                hint = suggest_name(name, names) or f"its parameters are {', '.join(names)}"
                raise TypeError(f"{cls.__name__} has no parameter `{name}`; {hint}")
        return super().__new__(cls)

    def __init__(
        self,
        network: str | Path | None = None,
        *,
        epochs: float | None = None,
        steps: int | None = None,
        learning_rate: float | None = None,
        batch_size: int | None = None,
        validation_split: float = 0.0,
        random_state: Any = None,
        settings: Mapping[str, Any] | None = None,
        runs: str | Path | None = None,
        verbose: bool = False,
    ) -> None:
        self.network = network
        self.epochs = epochs
        self.steps = steps
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.validation_split = validation_split
        self.random_state = random_state
        self.settings = settings
        self.runs = runs
        self.verbose = verbose

    def _fit(self, X: np.ndarray, y: np.ndarray, outputs: int) -> Self:
        """Train on checked data; `outputs` is the number of classes, or 1."""
        program = _fill_in(self._read_program(), features=X.shape[1], outputs=outputs)
        network = parse(program).network
        _check_supported(network)
        self._check_network(network)
        rows = reshape_rows(X, network, "X")
        with self._open_runs_folder() as folder:
            result = fit(
                program,
                rows.astype(np.int64) if network.takes_token_ids else rows,
                y,
                {**self._default_settings(network), **self._collect_settings()},
                runs=folder,
                quiet=not self.verbose,
            )
            self.history_ = collect_history(result.run)
            result.run.close()
        self.program_ = program
        self.model_: Any = result.model.cpu()
        self._target_scaler = getattr(result.task, "target_scaler", None)
        self.n_iter_ = result.result.step
        self.run_ = None if self.runs is None else result.run.path
        return self

    def _open_runs_folder(self) -> AbstractContextManager[str | Path]:
        """The folder of the run folder: the user's, or one that is deleted after the training."""
        if self.runs is None:
            return tempfile.TemporaryDirectory(prefix="neural-")
        return nullcontext(self.runs)

    def _default_settings(self, network: Network) -> dict[str, Any]:
        """Settings of the experiment that `settings` may replace."""
        return {}

    def _check_network(self, network: Network) -> None:
        """TaskError if the network predicts something else than the estimator."""
        raise NotImplementedError

    def _read_program(self) -> str:
        if self.network is None:
            return self.default_program
        if "{" in str(self.network):  # every program has a brace: `network Name { … }`
            return str(self.network)
        try:
            return read_source_text(Path(self.network)).text
        except OSError as error:
            raise TaskError(
                f"the network {self.network} cannot be read: {describe_os_error(error)}"
            ) from None

    def _collect_settings(self) -> dict[str, Any]:
        """The settings of the experiment, from the parameters of the estimator."""
        settings = dict(self.settings or {})
        seed = int(check_random_state(self.random_state).randint(MAX_SEED))
        parameters = {
            "epochs": self.epochs,
            "steps": self.steps,
            "learning_rate": self.learning_rate,
            "batch_size": self.batch_size,
            "seed": seed,
        }
        training = {key: value for key, value in parameters.items() if value is not None}
        if self.runs is None:  # nobody reads the run: no attention, one checkpoint
            settings.setdefault("tracking", {"track_every": 0})
            training["checkpoint_every"] = NO_CHECKPOINTS_BEFORE_THE_END
        return {
            "validation_split": self.validation_split,
            **settings,
            "training": {**training, **settings.get("training", {})},
        }

    def _compute_outputs(self, X: Any) -> np.ndarray:
        """Outputs of the network for data that is checked here, (examples, units), float32."""
        validation.check_is_fitted(self)
        X = validate_rows(self, X, reset=False)
        network: Network = self.model_.network
        inputs = torch.tensor(reshape_rows(X, network, "X"))
        inputs = inputs.to(torch.int64) if network.takes_token_ids else inputs
        positions = count_positions([inputs[:BATCH_SIZE]])
        with torch.no_grad(), use_threads_for(self.model_, positions):
            batches = [self.model_(batch) for batch in inputs.split(BATCH_SIZE)]
            outputs = torch.cat(batches).float().numpy()
        scaler = self._target_scaler
        return outputs if scaler is None else scaler.inverse_transform(outputs)


# help() and editors show the parameters of `__init__`
vars(NetworkEstimator)["__new__"].__func__.__signature__ = signature(NetworkEstimator.__init__)


def validate_rows(estimator: NetworkEstimator, *data: Any, **options: Any) -> Any:
    """Check X, or X and y, as all estimators of scikit-learn do; X becomes float32."""
    # the type stubs of scikit-learn are older than this function
    validate_data: Any = validation.validate_data  # type: ignore[attr-defined]
    return validate_data(estimator, *data, dtype=np.float32, **options)


def _fill_in(program: str, **numbers: int) -> str:
    """Replace names in a program by numbers; comments and texts in quotes stay."""
    tokens = tokenize(program, DiagnosticCollector())
    for token in reversed(tokens):
        if token.kind == "name" and token.text in numbers:
            start, end = token.span.start, token.span.end
            program = program[:start] + str(numbers[token.text]) + program[end:]
    return program


def _check_supported(network: Network) -> None:
    if network.is_encoder_decoder:
        raise TaskError(f"{network.name} takes two sequences; train it with `neural.fit`")
    if len(network.output) != 1:
        raise TaskError(
            f"{network.name} predicts at every position; train it with `neural.fit`, or add a "
            "layer such as `GlobalAveragePooling1D()`"
        )

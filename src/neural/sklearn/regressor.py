"""`NetworkRegressor`: a network as a scikit-learn regressor."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import column_or_1d

from neural.core.errors import TaskError
from neural.data.target_scaler import has_linear_output
from neural.language.network import Network
from neural.sklearn._estimator import NetworkEstimator, validate_rows


class NetworkRegressor(RegressorMixin, NetworkEstimator):
    """A network that predicts a number, with the interface of scikit-learn.

        model = make_pipeline(StandardScaler(), NetworkRegressor(random_state=0)).fit(X, y)

    Inputs should be scaled, with StandardScaler. Targets may have any scale: they are standardised
    in training if the last layer has no activation. In a program, `features` stands for the number
    of columns of X and `outputs` for 1. All parameters are those of NetworkClassifier.

    Attributes
    ----------
    n_features_in_, feature_names_in_ : columns of X in `fit`
    model_ : the torch module with its best weights
    program_ : text of the program, with numbers filled in
    history_ : dict of lists, all metrics by step
    n_iter_ : steps trained
    run_ : path of the run folder, or None
    """

    default_program = """network Regressor {
  input: (features,)
  layers:
    Dense(32, activation="relu")
    Output(outputs, activation="linear")
  loss: "mse"
  optimizer: Adam(learning_rate=0.01)
  train { epochs: 20 batch_size: 32 }
}
"""

    def fit(self, X: Any, y: Any) -> Self:
        """Train on rows X, (examples, features), and their targets y, (examples,)."""
        X, y = validate_rows(self, X, y, y_numeric=True)
        y = column_or_1d(y, warn=True).astype(np.float32)
        return self._fit(X, y, 1)

    def _default_settings(self, network: Network) -> dict[str, Any]:
        """Standardised targets, unless an activation limits the output of the network."""
        return {"standardize_target": has_linear_output(network)}

    def _check_network(self, network: Network) -> None:
        """TaskError unless the network predicts one value."""
        if network.output_activation == "softmax" or network.output != (1,):
            raise TaskError(
                f"{network.name} must predict one value: end it with `Output(outputs)`, or use "
                "NetworkClassifier"
            )

    def predict(self, X: Any) -> np.ndarray:
        """The predicted value of every row."""
        return self._compute_outputs(X)[:, 0]

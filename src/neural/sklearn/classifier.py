"""`NetworkClassifier`: a network as a scikit-learn classifier."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.preprocessing import LabelEncoder
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from neural.core.errors import TaskError
from neural.language.network import Network
from neural.sklearn._estimator import NetworkEstimator, validate_rows


class NetworkClassifier(ClassifierMixin, NetworkEstimator):
    """A network that predicts classes, with the interface of scikit-learn.

        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        model = make_pipeline(StandardScaler(), NetworkClassifier(random_state=0)).fit(X, y)

    Parameters
    ----------
    network : path or text of a `.neural` program, default None
        In it, `features` stands for the number of columns of X and `outputs` for the number of
        classes: `input: (features,)`, `Output(outputs, activation="softmax")`. Rows of X get the
        shape of the input: 64 columns fit `input: (8, 8)`. None is a network with one hidden layer
        of 32 units, trained for 20 epochs.
    epochs, steps, learning_rate, batch_size : numbers, default None
        Training settings; None takes those of the program.
    validation_split : float, default 0.0
        Share of the rows held out to select the best checkpoint.
    random_state : int, RandomState or None
        Seed of initial weights and order of rows.
    settings : dict, default None
        Other keys of an experiment file: `{"training": {"patience": 3}}`.
    runs : path, default None
        Folder in which a run folder is kept; None keeps none.
    verbose : bool, default False
        Whether to show progress.

    Attributes
    ----------
    classes_ : array of the class labels
    n_features_in_, feature_names_in_ : columns of X in `fit`
    model_ : the torch module with its best weights
    program_ : text of the program, with numbers filled in
    history_ : dict of lists, all metrics by step
    n_iter_ : steps trained
    run_ : path of the run folder, or None
    """

    default_program = """network Classifier {
  input: (features,)
  layers:
    Dense(32, activation="relu")
    Output(outputs, activation="softmax")
  loss: "sparse_categorical_crossentropy"
  optimizer: Adam(learning_rate=0.01)
  train { epochs: 20 batch_size: 32 }
}
"""

    def fit(self, X: Any, y: Any) -> Self:
        """Train on rows X, (examples, features), and their labels y, (examples,)."""
        X, y = validate_rows(self, X, y)
        check_classification_targets(y)
        encoder = LabelEncoder()
        numbers = encoder.fit_transform(column_or_1d(y, warn=True))
        self.classes_ = encoder.classes_
        if len(self.classes_) < 2:
            raise ValueError("y has 1 class; a classifier needs at least 2 classes")
        return self._fit(X, numbers, len(self.classes_))

    def _check_network(self, network: Network) -> None:
        """TaskError unless the network predicts probabilities."""
        if network.output_activation not in ("softmax", "sigmoid"):
            raise TaskError(
                f"{network.name} predicts values, not classes: end it with "
                '`Output(outputs, activation="softmax")`, or use NetworkRegressor'
            )

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, (examples, classes); columns are those of `classes_`."""
        outputs = self._compute_outputs(X)
        if outputs.shape[1] == 1:  # one unit with a sigmoid
            return np.concatenate([1 - outputs, outputs], axis=1)
        # units beyond the classes of y were never right in training: they are left out
        outputs = outputs[:, : len(self.classes_)]
        return outputs / outputs.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> np.ndarray:
        """The most likely class of every row."""
        numbers = self.predict_proba(X).argmax(axis=1)
        return self.classes_[numbers]

"""Baselines that a network should beat: a constant prediction and a linear model.

Both are fitted on the training rows of the run. A row is one prediction (an example or a position).
The constant baseline predicts the class shares (`majority`: its most likely class is the largest
one), or the mean of the values (`mean`). The linear baseline (`linear`) is multinomial logistic
regression or ridge regression on standardised inputs, with the default regularisation of
scikit-learn. Features of a row:

- numbers: all inputs of an example, flattened; their mean over positions if the length is open
- token ids: how often each id occurs in an example
- one prediction per position: the input at that position
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from neural.data.input_checks import get_pad_id, get_vocabulary_size
from neural.language.network import Network

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy import sparse

    from neural.tasks.task import Batch

TargetKind = Literal["classes", "binary", "values"]
"""Class numbers, 0 or 1 per unit of the output, or real numbers per unit."""
MAX_TRAINING_NUMBERS = 20_000_000
"""Numbers that the linear baseline is fitted to; of larger data, a random part of the examples."""
MAX_ITERATIONS = 200
"""Iterations of logistic regression (L-BFGS)."""


@dataclass(frozen=True, eq=False)
class FittedRows:
    """Rows that baselines are fitted to."""

    features: Any
    """(rows, features), dense or sparse; None if there is no linear baseline."""
    truth: NDArray
    """Class numbers, (rows,), or 0 and 1, or values, (rows, units)."""


def extract_features(
    batch: Batch, mask: NDArray[np.bool_] | None, network: Network, position_shape: tuple[int, ...]
) -> Any:
    """Features of the rows of a batch; None for inputs that a linear model cannot take.

    `mask` is True for inputs that are not padding. With one prediction per position, there is a
    row for every position, padding included.
    """
    if network.is_encoder_decoder:
        return None
    x = batch["x"].cpu().numpy()
    if position_shape and x.shape[1 : 1 + len(position_shape)] != position_shape:
        return None
    if network.takes_token_ids:
        return _count_tokens(x, mask, network, per_position=bool(position_shape))
    if position_shape:
        return x.reshape(-1, int(np.prod(x.shape[1 + len(position_shape) :], dtype=int)))
    if mask is not None and mask.shape == x.shape[: mask.ndim]:
        x = np.where(mask.reshape(mask.shape + (1,) * (x.ndim - mask.ndim)), x, 0)
    if any(isinstance(size, str) for size in network.input):
        return x.mean(axis=1).reshape(len(x), -1)
    return x.reshape(len(x), -1)


def _count_tokens(
    ids: NDArray, mask: NDArray[np.bool_] | None, network: Network, *, per_position: bool
) -> sparse.csr_array:
    """Occurrences of each token id in a row: an example, or one position."""
    from scipy import sparse  # comes with scikit-learn

    is_counted = np.ones(ids.shape, dtype=bool) if mask is None else mask.copy()
    pad_id = get_pad_id(network)
    if pad_id is not None:
        is_counted &= ids != pad_id
    rows = np.arange(ids.size) if per_position else np.repeat(np.arange(len(ids)), ids.shape[1])
    used = is_counted.ravel()
    shape = (ids.size if per_position else len(ids), get_vocabulary_size(network))
    return sparse.coo_array(
        (np.ones(int(used.sum())), (rows[used], ids.ravel()[used])), shape=shape
    ).tocsr()


def predict_constant(
    kind: TargetKind, train: FittedRows, row_count: int, class_count: int
) -> NDArray[np.float64]:
    """Class shares of the training rows (rows, C), or shares or means by unit (rows, units).

    Shares are smoothed by one row per class, so that a class without training rows is possible.
    """
    if kind == "classes":
        counts = np.bincount(train.truth, minlength=class_count) + 1.0
        constant = counts / counts.sum()
    elif kind == "binary":
        constant = (train.truth.sum(axis=0) + 1.0) / (len(train.truth) + 2.0)
    else:
        constant = train.truth.mean(axis=0)
    return np.tile(constant, (row_count, 1))


def predict_linear(
    kind: TargetKind, train: FittedRows, features: Any, class_count: int
) -> NDArray[np.float64] | None:
    """Predictions of the linear baseline for the rows `features`, as of `predict_constant`.

    None if the training rows have a single class: there is nothing to fit.
    """
    from scipy import sparse
    from sklearn.linear_model import Ridge  # imported here: 0.5 s
    from sklearn.preprocessing import StandardScaler

    # Centring would make the counts of tokens dense; the intercept does the same for the fit.
    scaler = StandardScaler(with_mean=not sparse.issparse(train.features))
    x_train, x = scaler.fit_transform(train.features), scaler.transform(features)
    if kind == "values":
        return Ridge().fit(x_train, train.truth).predict(x).reshape(-1, train.truth.shape[1])
    if kind == "classes":
        return _predict_logistic(x_train, train.truth, x, class_count)
    units = [_predict_logistic(x_train, column, x, 2) for column in train.truth.T.astype(int)]
    if any(unit is None for unit in units):
        return None
    return np.stack([unit[:, 1] for unit in units if unit is not None], axis=1)


def _predict_logistic(
    x_train: Any, truth: NDArray, x: Any, class_count: int
) -> NDArray[np.float64] | None:
    """Class probabilities of logistic regression, (rows, C); None for a single training class."""
    from sklearn.linear_model import LogisticRegression

    if len(np.unique(truth)) < 2:
        return None
    model = LogisticRegression(max_iter=MAX_ITERATIONS)
    with warnings.catch_warnings():  # stopped before convergence: still a baseline
        warnings.simplefilter("ignore")
        model.fit(x_train, truth)
    # Classes without training rows get the share of one row each, as in `predict_constant`.
    missing = class_count - len(model.classes_)
    probabilities = np.full((x.shape[0], class_count), 1 / (len(truth) + missing))
    probabilities[:, model.classes_] = model.predict_proba(x) * (
        len(truth) / (len(truth) + missing)
    )
    return probabilities

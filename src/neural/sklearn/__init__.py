"""Networks as scikit-learn estimators: `NetworkClassifier` and `NetworkRegressor`."""

from neural.sklearn.classifier import NetworkClassifier
from neural.sklearn.regressor import NetworkRegressor

__all__ = ["NetworkClassifier", "NetworkRegressor"]

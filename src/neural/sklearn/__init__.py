"""Networks as scikit-learn estimators: `NetworkClassifier` and `NetworkRegressor`."""

from neural.core.optional_packages import import_optional

import_optional("sklearn", feature=__name__, extra="sklearn")

from neural.sklearn.classifier import NetworkClassifier  # noqa: E402  needs scikit-learn
from neural.sklearn.regressor import NetworkRegressor  # noqa: E402

__all__ = ["NetworkClassifier", "NetworkRegressor"]

"""An export format of another package: all weights in one .npz file."""

from __future__ import annotations

from copy import deepcopy
from typing import ClassVar

import numpy as np
import torch

from neural.workflows.export import Exporter


class NumpyWeights(Exporter):
    """All weights in one .npz file."""

    suffix: ClassVar[str] = ".npz"

    def write(self, bundle, path):
        with path.open("wb") as file:
            np.savez(
                file, **{name: value.numpy() for name, value in bundle.model.state_dict().items()}
            )

    def read(self, bundle, path):
        model = deepcopy(bundle.model)
        with np.load(path) as file:
            model.load_state_dict({name: torch.tensor(file[name]) for name in file.files})
        return lambda *inputs: model(*inputs).detach()

    def describe_usage(self, bundle, path):
        return f'numpy.load("{path.name}")'

"""A run in memory, for simulations that need thousands of them."""

import shutil
import tempfile
import weakref
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from neural.capture.map_encoding import encode_map
from neural.runs.errors import RunError
from neural.runs.run_reader import HALVES_PREFIX
from tests.importance_files import write_importance_file


class FakeRun:
    """The part of `Run` that analyses read.

    Arrays [step, …] and scalars [step] by name; the first snapshot is at step `every`. `importance`
    has arguments of `write_importance_file`.
    """

    def __init__(
        self,
        seed=0,
        *,
        arrays=None,
        scalars=None,
        maps=(),
        labels=None,
        heads=None,
        tensors=None,
        settings=None,
        events=(),
        metadata=None,
        importance=None,
        every=50,
    ):
        self.name, self.path, self.every = f"seed-{seed}", f"seed-{seed}", every
        if importance is not None:
            self.path = Path(tempfile.mkdtemp())
            weakref.finalize(self, shutil.rmtree, self.path)
            write_importance_file(self.path, **importance)
        self.settings = {"task": "language_model", "training": {"seed": seed}, **(settings or {})}
        self.status = SimpleNamespace(state="finished", step=1)
        self._arrays, self._scalars, self._maps = (
            dict(arrays or {}),
            dict(scalars or {}),
            list(maps),
        )
        self._events, self._tensors = list(events), tensors
        if heads is None:
            measure = next(
                (
                    values
                    for values in [*self._maps[:1], *self._arrays.values()]
                    if np.ndim(values) == 3
                ),
                None,
            )
            heads = [] if measure is None else [measure.shape[2]] * measure.shape[1]
            heads = [self._maps[0].shape[1]] * self._maps[0].shape[0] if self._maps else heads
        self._metadata = {
            "attention/heads": list(heads),
            "attention/layers": [f"layer.{layer}" for layer in range(len(heads))],
            "probe/labels": None if labels is None else [labels],
            **(metadata or {}),
        }

    def change_counter(self):
        return 0  # the data of a fake run never change

    def measure_names(self):
        return [name for name in self._arrays if "/" not in name]

    def role_names(self):
        return []

    def measure(self, name):
        if name not in self._arrays:
            raise RunError(f"no `{name}`")
        values = np.asarray(self._arrays[name])
        return self._steps(values), values

    def half_means(self, name):
        if HALVES_PREFIX + name not in self._arrays:
            return np.empty(0, dtype=int), np.empty((0, 2))
        return self.measure(HALVES_PREFIX + name)

    def scalar_names(self):
        return list(self._scalars)

    def scalars(self, name):
        if name not in self._scalars:
            raise RunError(f"no `{name}`")
        values = np.asarray(self._scalars[name], dtype=float)
        return self._steps(values), values

    def metadata(self, key, default=None):
        return self._metadata.get(key, default)

    def events(self):
        return self._events

    def map_steps(self):
        return [self.every * (index + 1) for index in range(len(self._maps))]

    def maps(self, step):
        layers = self._maps[step // self.every - 1]
        return {
            f"layer.{layer}": encode_map(maps, causal=True) for layer, maps in enumerate(layers)
        }

    def load_checkpoint(self, which="newest"):
        if self._tensors is None:
            return None
        return SimpleNamespace(tensors=self._tensors, step=self.every)

    def _steps(self, values):
        return (1 + np.arange(len(values))) * self.every

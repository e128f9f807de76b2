"""A run in memory, for simulations that need thousands of them: what analyses read, and nothing on disk."""

from types import SimpleNamespace

import numpy as np

from neural.tracking.quantised import pack
from neural.tracking.recorded import HALVES
from neural.tracking.trouble import RunError


class FakeRun:
    """Arrays [step, …] and scalars [step] by name; the first snapshot is at step `every`."""

    def __init__(
        self, seed=0, *, arrays=None, scalars=None, maps=(), labels=None, heads=None, tensors=None,
        settings=None, events=(), described=None, every=50,
    ):  # fmt: skip
        self.name, self.path, self.every = f"seed-{seed}", f"seed-{seed}", every
        self.settings = {"task": "language_model", "training": {"seed": seed}, **(settings or {})}
        self.status = SimpleNamespace(state="finished", step=1)
        self._arrays, self._scalars, self._maps = dict(arrays or {}), dict(scalars or {}), list(maps)
        self._events, self._tensors = list(events), tensors
        if heads is None:
            layered = next((one for one in [*self._maps[:1], *self._arrays.values()] if np.ndim(one) == 3), None)
            heads = [] if layered is None else [layered.shape[2]] * layered.shape[1]
            heads = [self._maps[0].shape[1]] * self._maps[0].shape[0] if self._maps else heads
        self._described = {
            "attention/heads": list(heads), "attention/layers": [f"layer.{at}" for at in range(len(heads))],
            "probe/labels": None if labels is None else [labels], **(described or {}),
        }  # fmt: skip

    def measures(self):
        return [name for name in self._arrays if "/" not in name]

    def measure(self, name):
        if name not in self._arrays:
            raise RunError(f"no `{name}`")
        values = np.asarray(self._arrays[name])
        return self._steps(values), values

    def halves(self, name):
        if HALVES + name not in self._arrays:
            return np.empty(0, dtype=int), np.empty((0, 2))
        return self.measure(HALVES + name)

    def names(self):
        return list(self._scalars)

    def scalars(self, name):
        if name not in self._scalars:
            raise RunError(f"no `{name}`")
        values = np.asarray(self._scalars[name], dtype=float)
        return self._steps(values), values

    def described(self, key, default=None):
        return self._described.get(key, default)

    def events(self):
        return self._events

    def map_steps(self):
        return [self.every * (at + 1) for at in range(len(self._maps))]

    def maps(self, step):
        layers = self._maps[step // self.every - 1]
        return {f"layer.{at}": pack(layer, causal=True) for at, layer in enumerate(layers)}

    def restore(self, which="newest"):
        return None if self._tensors is None else SimpleNamespace(tensors=self._tensors, step=self.every)

    def _steps(self, values):
        return (1 + np.arange(len(values))) * self.every

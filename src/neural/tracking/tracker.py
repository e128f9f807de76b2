"""Looks at the attention of a model that is learning: a fixed probe, every so many steps, into the run folder.

A look changes nothing: the model's mode, the random state and the number of threads are afterwards what they were
before, so that training with looks and without is the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from neural.modules.late import torch
from neural.tasks.experiment import Tracking
from neural.tasks.task import Task
from neural.tracking.measure import HeadMeasure
from neural.tracking.measures import registry
from neural.tracking.quantised import pack
from neural.tracking.recorded import HALVES, HEAD_DIVERGENCE
from neural.tracking.run import Run
from neural.tracking.seen import Seen
from neural.tracking.watch import NothingSeen, watch

if TYPE_CHECKING:
    from torch import nn

EXAMPLES = 1
"""Of the probe, whose maps are kept."""
POSITIONS = 512
"""Of a longer map only so many first queries and keys are kept."""


class Tracker:
    """Watches one model through one run."""

    def __init__(self, task: Task, run: Run | None, settings: Tracking) -> None:
        """Without a `run` it looks and writes nothing: where a model is split, all processes must run it.

        Raises UnknownName for a measure that does not exist.
        """
        self.task, self.run, self.settings = task, run, settings
        Seen(settings.measures)   # a wrong name is said now, not after the first steps
        self._probe: Any = None
        self._described: list[str] | None = None
        self._before: dict[str, float] = {}
        self._moved: dict[str, float] = {}

    def look(self, model: nn.Module, step: int, *, last: bool = False) -> tuple[str, float] | None:
        """Measure, write, and say the mean of the liveliest measure; None where there is no attention.

        The `last` look of a run keeps its maps whatever its number: it is the one that people open first.
        """
        with undisturbed(model):
            seen = self._watched(model, step)
            if not seen:
                return None
            arrays = seen.arrays()
            if self.run is not None:
                self._describe(seen)
                self.run.log_arrays(step, arrays | seen.between() | more_arrays(seen))
                if self._keeps_maps(step, last):
                    self.run.log_maps(step, packed(seen))
        return self._liveliest(arrays, seen)

    def _watched(self, model: nn.Module, step: int) -> Seen:
        device = next((one.device for one in model.parameters()), torch.device("cpu"))
        if self._probe is None:
            self._probe = {name: one.to(device) for name, one in self.task.probe().items()}
        messages: list[str] = []
        tokens, measures = self.task.tokens(self._probe), self.settings.measures
        try:
            with watch(model, tokens=tokens, measures=measures, on_warning=messages.append) as seen:
                self.task.look(model, self._probe)
        except NothingSeen as nothing:
            seen, messages = Seen(), [str(nothing)]
        else:
            messages = messages if seen else []   # networks without attention are trained too
        if self.run is not None and self._described is None:
            for message in messages:
                self.run.event(step, "warning", message)
            self._described = self._described if seen else []
        return seen

    def _keeps_maps(self, step: int, last: bool) -> bool:
        # by the step, not by counting looks: a run that goes on after a stop keeps the same ones
        every = self.settings.maps_every
        return every > 0 and (last or step // max(1, self.settings.track_every) % every == 0)

    def _describe(self, seen: Seen) -> None:
        """What the axes mean; once, and again where a model changes what it does."""
        layers = seen.layers()
        if self.run is None or layers == self._described:
            return
        self._described = layers
        self.run.describe("attention/layers", layers)
        self.run.describe("attention/heads", [call.heads for call in seen])
        measures = {name: registry.get(name) for name in (*seen.arrays(), *seen.between())}
        units = {name: {"unit": one.unit, "says": one.summary()} for name, one in measures.items()}
        self.run.describe("attention/measures", units)
        self.run.describe("attention/maps", {"examples": EXAMPLES, "positions": POSITIONS})
        self.run.describe("probe/labels", self.task.labels(self._probe))

    def _liveliest(self, arrays: dict[str, np.ndarray], seen: Seen) -> tuple[str, float] | None:
        """Of the measures of heads that have two ends, the one that has moved most of its way so far."""
        look = next((call.look for call in seen if call.look is not None), None)
        means = {name: float(np.nanmean(one)) for name, one in arrays.items() if not np.isnan(one).all()}
        for name, mean in means.items():
            measure = registry.get(name)
            if look is None or not issubclass(measure, HeadMeasure):
                continue
            low, high = measure().bounds(look.heads, look.keys)
            if name in self._before and 0 < high - low < np.inf:   # of one key, nothing can move
                moved = abs(mean - self._before[name]) / (high - low)
                self._moved[name] = self._moved.get(name, 0.0) + moved
        self._before |= means
        best = max(self._moved, key=lambda name: self._moved[name], default=next(iter(means), None))
        best = best if best in means else next(iter(means), None)
        return None if best is None else (best, means[best])


def more_arrays(seen: Seen) -> dict[str, np.ndarray]:
    """What analyses ask for beside the measures: their values on two halves of the probe, and all pairs of heads."""
    found = {f"{HALVES}{name}": values for name, values in seen.halves().items()}
    divergence = seen.head_divergence()
    return found if divergence is None else {**found, HEAD_DIVERGENCE: divergence}


def packed(seen: Seen) -> dict[str, bytes]:
    """The maps of the first examples, layer by layer: `quantised.unpack` reads them."""
    found = {}
    for name, call in zip(seen.layers(), seen, strict=True):
        if call.look is None:
            continue
        causal, start = call.look.mask.causal, call.look.start
        for example, weights in enumerate(call.maps(EXAMPLES, POSITIONS)):
            key = name if example == 0 else f"{name}@{example}"
            found[key] = pack(weights, causal=causal, first=start)
    return found


@contextmanager
def undisturbed(model: nn.Module) -> Iterator[None]:
    """Evaluation mode, no gradients; afterwards every mode, the random state and the threads are as they were."""
    modes = [(module, module.training) for module in model.modules()]
    threads = torch.get_num_threads()
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    try:
        with torch.random.fork_rng(devices=devices), torch.no_grad():
            model.eval()
            yield
    finally:
        for module, training in modes:
            module.training = training
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)

"""One head that does the work of its layer."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.tracking.run import Run
from neural.views.finding import Diagnosis, Symptom
from neural.views.heads import head_name, writing

TIMES = 4.0
"""As much as the median of the other heads of the layer."""


class DominatingHead(Diagnosis):
    """How many times as much as the median of the others a head writes, where it is four times or more.

    What a head can write is the norm of its value weights times its output weights, of the best checkpoint.
    """

    code: ClassVar[str] = "ATT005"
    claim: ClassVar[str] = "one head dominates its layer"
    unit: ClassVar[str] = "times the others"
    advice: ClassVar[str] = "drop it and see what is lost: `neural debug --run RUN --dead-heads`"

    def symptom(self, run: Run) -> Symptom | None:
        """Layer by layer."""
        found: dict[str, float] = {}
        for layer, norms in writing(run).items():
            if len(norms) > 1:
                top = int(np.argmax(norms))
                others = float(np.median(np.delete(norms, top)))
                if norms[top] >= TIMES * others:
                    found[head_name(layer, top)] = float(norms[top] / others) if others else np.inf
        if not found:
            return None
        said = ", ".join(f"{name} writes {times:.1f} times as much" for name, times in found.items())
        return Symptom(max(found.values()), said)

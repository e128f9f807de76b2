"""What `neural debug` leaves behind: all weights as arrays, or as one page.

The arrays of a .npz file: `layers` and `heads`, names and counts; `weights/0`, `weights/1`, … for each layer
(example, head, query, key), 32-bit; `measures/entropy`, … (layer, head); `queries/0`, `keys/0`, … what stands at the
positions of the first example, where that is known; `about`, where the network, its weights and its input come from.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from neural.core.files import replacing, write_atomically
from neural.debugging import Subject
from neural.report import looked
from neural.tracking.measures import registry
from neural.tracking.seen import Seen
from neural.views.report_page import page


def arrays(subject: Subject, seen: Seen) -> dict[str, np.ndarray]:
    """As the file has them."""
    found: dict[str, Any] = {
        "layers": np.array(seen.layers()), "heads": np.array([call.heads for call in seen]),
        "about": np.array([subject.name, subject.weights, subject.shown]),
    }  # fmt: skip
    for number, call in enumerate(seen):
        if call.look is None:
            continue
        found[f"weights/{number}"] = call.maps()
        for name, labels in zip(("queries", "keys"), subject.labels(call), strict=True):
            if labels is not None:
                found[f"{name}/{number}"] = np.array(labels)
    return found | {f"measures/{name}": values for name, values in seen.arrays().items()}


def write_arrays(subject: Subject, seen: Seen, path: Path) -> None:
    """Whole or not at all."""
    with replacing(path, durable=False) as file:
        every: dict[str, Any] = arrays(subject, seen)
        np.savez_compressed(file, **every)


def write_page(subject: Subject, seen: Seen, path: Path) -> None:
    """The first example's maps, head by head, as one page that needs nothing else."""
    there = [(name, call) for name, call in zip(seen.layers(), seen, strict=True) if call.look is not None]
    queries, keys = subject.labels(there[0][1]) if there else (None, None)
    measures = seen.arrays()
    data = looked(
        subject.name, {name: call.maps(1)[0] for name, call in there}, queries=queries, keys=keys, measures=measures,
        causal=all(call.look is not None and call.look.mask.causal for _, call in there),
        units={name: registry.get(name).unit for name in measures}, remarks=[subject.weights, subject.shown],
        facts={"weights": subject.weights, "input": subject.shown},
    )  # fmt: skip
    write_atomically(path, page(data, f"{subject.name}: attention"), durable=False)

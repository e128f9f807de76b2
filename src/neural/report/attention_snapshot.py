"""Attention maps of one step of a run, or of a capture, with the tokens and roles of its heads.

    snapshot = load_run_snapshot(run, step=360)      the last step with maps if None
    snapshot = load_capture_snapshot(capture)

A map is the attention weights of a layer, [head, query, key], of the first probe example of a run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from neural.capture.capture_result import Capture
from neural.capture.labels import AxisLabels
from neural.capture.map_encoding import add_map_location, decode_map, to_shares
from neural.capture.snapshot_writer import MAX_MAP_POSITIONS
from neural.findings.capture_roles import find_capture_roles
from neural.findings.head_roles import (
    ROLES_OF_NO_PATTERN,
    assign_head_roles,
    find_head_roles,
    format_head,
)
from neural.findings.run_loading import MissingDataError, finite_mean
from neural.report.image_attention import ImageAttention, load_capture_image, load_run_image
from neural.report.page_data import load_map_labels
from neural.runs.errors import RunError
from neural.runs.run import Run

MAX_LISTED_STEPS = 4
"""Steps that are listed when a run has no maps at the step asked for."""


class FigureError(RunError, ValueError):
    """A figure cannot be drawn as asked; the message says what is possible."""


@dataclass(frozen=True, eq=False)
class AttentionSnapshot:
    """Maps, labels and roles of all layers at one step."""

    name: str
    step: int | None
    """None for a capture."""
    maps: Sequence[np.ndarray]
    """[head, query, key] for each layer; NaN where a mask hides the key."""
    labels: Sequence[AxisLabels]
    """Tokens of the rows and columns of each layer's maps."""
    load_roles: Callable[[], np.ndarray | None]
    load_image: Callable[[], ImageAttention | None] = lambda: None

    @cached_property
    def image(self) -> ImageAttention | None:
        """The image that the model reads, and what attends to it; None if there is none."""
        return self.load_image()

    @cached_property
    def roles(self) -> np.ndarray | None:
        """Name of the role of every head up to this step, [layer, head]; None if unknown."""
        return self.load_roles()

    def get_role(self, layer: int, head: int) -> str:
        """The role of a head; "" if it is unknown."""
        roles = self.roles
        is_known = roles is not None and layer < roles.shape[0] and head < roles.shape[1]
        return str(roles[layer, head]) if is_known else ""

    def get_labels(self, layer: int) -> AxisLabels:
        """Labels of the layer's maps; None for an axis without as many labels as positions."""
        _, queries, keys = self.maps[layer].shape
        labels = self.labels[layer]
        return AxisLabels(
            labels.queries if labels.queries and len(labels.queries) >= queries else None,
            labels.keys if labels.keys and len(labels.keys) >= keys else None,
        )

    def select_head(self, layer: int | None, head: int | None) -> tuple[int, int]:
        """Check a layer and a head, counted from 0; choose what is None.

        Chosen is the head with a role whose weights are the most concentrated (smallest entropy);
        without any role, the most concentrated of all.
        """
        if layer is not None and not 0 <= layer < len(self.maps):
            raise FigureError(
                f"{self.name} has no layer {layer}: layers are 0 … {len(self.maps) - 1}"
            )
        if head is not None:
            layers = range(len(self.maps)) if layer is None else [layer]
            if not any(0 <= head < len(self.maps[each]) for each in layers):
                most = max(len(self.maps[each]) for each in layers) - 1
                place = "" if layer is None else f"layer {layer} of "
                raise FigureError(f"{place}{self.name} has no head {head}: heads are 0 … {most}")
        candidates = [
            (each_layer, each_head)
            for each_layer, maps in enumerate(self.maps)
            for each_head in range(len(maps))
            if layer in (None, each_layer) and head in (None, each_head)
        ]
        if len(candidates) == 1:
            return candidates[0]
        entropies = [_compute_entropies(maps) for maps in self.maps]
        return min(
            candidates,
            key=lambda place: (
                self.get_role(*place) in ROLES_OF_NO_PATTERN,
                entropies[place[0]][place[1]],
            ),
        )

    def describe_head(self, layer: int, head: int) -> str:
        """`L2 h1, previous token`."""
        role = self.get_role(layer, head)
        return format_head(layer, head) + (f", {role}" if role not in ROLES_OF_NO_PATTERN else "")


def load_run_snapshot(run: Run, step: int | None = None) -> AttentionSnapshot:
    """Maps of a run at `step`, or at the last step that has maps."""
    steps = run.map_steps()
    if not steps:
        raise FigureError(
            f"{run.name} has no attention maps: either its network does not attend, or "
            "`tracking.maps_every` was 0; `--kind curves` needs none"
        )
    if step is None:
        step = steps[-1]
    if step not in steps:
        nearest = sorted(sorted(steps, key=lambda each: abs(each - step))[:MAX_LISTED_STEPS])
        raise FigureError(
            f"{run.name} has no maps at step {step}; the nearest steps are "
            f"{', '.join(map(str, nearest))} (of {len(steps)}, {steps[0]} … {steps[-1]})"
        )
    encoded = run.maps(step)
    all_names = run.metadata("attention/layers") or ()
    layers = [layer for layer, name in enumerate(all_names) if name in encoded]
    names = [all_names[layer] for layer in layers]
    if not names:
        raise FigureError(f"{run.name}: the layers of its attention maps cannot be read")
    with add_map_location(run.path, step):
        maps = [decode_map(encoded[name], hidden=np.nan) for name in names]
    labels = load_map_labels(run) or {}
    return AttentionSnapshot(
        name=str(run.settings.get("name") or run.name),
        step=step,
        maps=maps,
        labels=[AxisLabels(labels.get("queries"), labels.get("keys"))] * len(maps),
        load_roles=lambda: _load_run_roles(run, step),
        load_image=lambda: load_run_image(run, step, layers),
    )


def load_capture_snapshot(
    capture: Capture, *, name: str = "capture", example: int = 0
) -> AttentionSnapshot:
    """Maps of a capture of `neural.watch`, limited to the first MAX_MAP_POSITIONS positions."""
    layers = [layer for layer, call in enumerate(capture) if call.attention is not None]
    if not layers:
        raise FigureError("no attention was captured, so there is nothing to draw")
    maps = []
    for layer in layers:
        attention = capture[layer].attention
        assert attention is not None
        if not 0 <= example < attention.batch:
            raise FigureError(
                f"example {example} does not exist: the batch has {attention.batch}, counted from 0"
            )
        weights = capture[layer].maps(example + 1, MAX_MAP_POSITIONS, hidden=np.nan)
        maps.append(weights[example])

    def load_roles() -> np.ndarray | None:
        roles = find_capture_roles(capture)[layers]
        return roles if roles.size else None

    return AttentionSnapshot(
        name=name,
        step=None,
        maps=maps,
        labels=[capture.axis_labels(layer, example) for layer in layers],
        load_roles=load_roles,
        load_image=lambda: load_capture_image(capture, example, layers),
    )


def _load_run_roles(run: Run, step: int) -> np.ndarray | None:
    """Roles of the heads, from snapshots up to `step`; None without data about roles."""
    try:
        roles = find_head_roles(run)
    except MissingDataError:
        return None
    until_step = {
        name: replace(role, steps=role.steps[:count], scores=role.scores[:count])
        for name, role in roles.items()
        if (count := int(np.searchsorted(role.steps, step, side="right")))
    }
    return assign_head_roles(until_step) if until_step else None


def _compute_entropies(maps: np.ndarray) -> np.ndarray:
    """Mean entropy of the rows of each head, in nats, [head]."""
    shares = to_shares(np.nan_to_num(maps))
    logs = np.log(np.where(shares > 0, shares, 1))
    return finite_mean(-(shares * logs).sum(axis=-1), axis=-1)

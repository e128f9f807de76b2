"""Pages of given maps, without a model."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from neural.capture.capture_result import Capture
from neural.capture.map_encoding import MAP_HEADER, encode_map
from neural.findings.capture_record import CaptureRecord
from neural.report.page_data import MAX_MAP_BYTES
from neural.report.run_report import PAGE_VERSION, build_run_entries


class MapsRecord(CaptureRecord):
    """A record of maps by layer, [head, query, key] or already encoded, and measures by name."""

    def __init__(
        self,
        name: str,
        maps: Mapping[str, Any],
        *,
        queries: Sequence[str] = (),
        keys: Sequence[str] = (),
        measures: Mapping[str, np.ndarray] | None = None,
        descriptions: Mapping[str, Mapping[str, str]] | None = None,
        causal: bool = False,
    ) -> None:
        encoded = {
            layer: weights if isinstance(weights, bytes) else encode_map(weights, causal=causal)
            for layer, weights in maps.items()
        }
        labels = {"queries": list(queries or keys), "keys": list(keys)}
        facts = {
            "attention/layers": list(maps),
            "attention/heads": [MAP_HEADER.unpack_from(data)[2] for data in encoded.values()],
            "attention/measures": dict(descriptions or {}),
            "attention/axis_labels": dict.fromkeys(maps, labels) if keys else None,
        }
        super().__init__({0: Capture()}, name=name, facts=facts)
        self._arrays[""] = {0: dict(measures or {})}
        self._maps[0] = encoded

    def map_steps(self) -> list[int]:
        return [0]


def build_maps_page(
    name: str, maps: Mapping[str, Any], *, roles: Any = None, **arguments: Any
) -> dict[str, Any]:
    """Page data of maps, as of a capture."""
    (run,), packed = build_run_entries([MapsRecord(name, maps, **arguments)], [name], MAX_MAP_BYTES)
    return {
        "version": PAGE_VERSION,
        "title": name,
        "kind": "snapshot",
        "runs": [run | {"roles": roles, "role_strengths": None, "role_onsets": None}],
        "groups": [{"label": name, "data": "", "runs": [name], "findings": []}],
        "experiments": [],
        "maps": packed,
    }

"""A capture of attention as a table, as JSON data, and as an xarray Dataset.

    build_table(capture)         a row per layer and head: role and all measures
    build_dict(capture)          the same as nested dicts and lists, for JSON
    build_dataset(capture)       measures [layer, head] and maps with token labels (xarray)

xarray is optional.
"""

from __future__ import annotations

from collections.abc import Hashable
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from neural.capture.capture_result import Capture, CapturedCall
from neural.capture.measures import registry
from neural.core.errors import TaskError
from neural.core.table import Column, Table
from neural.findings.capture_roles import find_capture_roles

if TYPE_CHECKING:
    from neural.capture.attention_call import AttentionCall

MAX_MAP_BYTES = 4 * 1024**3
"""Size of all maps of a Dataset; more is an error, because it would fill the memory."""
DatasetParts = tuple[dict[str, Any], dict[str, Any]]
"""Variables and coordinates of a Dataset: name → (dimensions, values) or (…, attributes)."""


def build_table(capture: Capture) -> Table:
    """A row per layer and head: layer, head, path, role, and all measures."""
    arrays = capture.measure_arrays()
    columns = [Column("layer"), Column("head"), Column("path"), Column("role")]
    for name in arrays:
        measure = registry.get(name)
        columns.append(Column(name, unit=measure.unit, meaning=measure.summary()))
    rows = [
        (
            layer,
            head,
            path,
            role,
            *(
                float(values[layer, head] if values.ndim == 2 else values[layer])
                for values in arrays.values()
            ),
        )
        for layer, (path, roles) in enumerate(
            zip(capture.layer_names(), _list_roles(capture), strict=True)
        )
        for head, role in enumerate(roles)
    ]
    return Table(tuple(columns), rows)


def build_dict(capture: Capture, name: str) -> dict[str, Any]:
    """Labels, layers, heads, roles and measures."""
    # arrays of all layers, so that every head and every layer has the same keys
    arrays = capture.measure_arrays()
    head_arrays = {key: values for key, values in arrays.items() if values.ndim == 2}
    layer_arrays = {key: values for key, values in arrays.items() if values.ndim == 1}
    layers = []
    for layer, roles in enumerate(_list_roles(capture)):
        heads = [
            {
                "role": role,
                "measures": {key: values[layer, head] for key, values in head_arrays.items()},
            }
            for head, role in enumerate(roles)
        ]
        layers.append(
            {
                "name": capture.layer_names()[layer],
                **_describe_call(capture[layer]),
                "heads": heads,
                "measures": {key: values[layer] for key, values in layer_arrays.items()},
            }
        )
    return {
        "model": name,
        "tokens": capture.labels,
        "decoder_tokens": capture.decoder_labels,
        "layers": layers,
        "between_layers": capture.compare_layers(),
        "refusals": dict(capture.refusals),
    }


def build_dataset(
    capture: Capture,
    name: str,
    *,
    maps: bool = True,
    examples: int | None = None,
    positions: int | None = None,
) -> Any:
    """An xarray Dataset; see `describe_dataset`. TaskError if xarray is not installed."""
    if find_spec("xarray") is None:
        raise TaskError("to_xarray needs xarray: pip install xarray")
    # optional, and not among the packages of this project: a type checker would not find it
    xarray = import_module("xarray")
    variables, coordinates = describe_dataset(
        capture, maps=maps, examples=examples, positions=positions
    )
    return xarray.Dataset(variables, coordinates, {"model": name})


def describe_dataset(
    capture: Capture,
    *,
    maps: bool = True,
    examples: int | None = None,
    positions: int | None = None,
) -> DatasetParts:
    """Variables and coordinates of the Dataset of a capture.

    Measures and `role` have the dimensions (layer, head), measures of a whole layer (layer,), those
    of two layers (layer, later_layer). The maps of layer 2 are `map_2` (example, head, query, key);
    `query_token` and `key_token` are their labels. Layers with the same axis share its dimension;
    another axis, such as the decoder's, is `query_2`, `key_2` …
    """
    layers, max_heads = len(capture), max((call.heads for call in capture), default=0)
    variables: dict[str, Any] = {}
    for key, values in (capture.measure_arrays() | capture.compare_layers()).items():
        measure = registry.get(key)
        dims = ("layer", "head")[: values.ndim]
        if key in capture.compare_layers():
            dims = ("layer", "later_layer")
        variables[key] = (dims, values, {"units": measure.unit, "long_name": measure.summary()})
    roles = np.full((layers, max_heads), "", dtype=object)
    for layer, names in enumerate(_list_roles(capture)):
        roles[layer, : len(names)] = names
    variables["role"] = (("layer", "head"), roles.astype(str))
    coordinates: dict[str, Any] = {
        "layer": np.arange(layers),
        "head": np.arange(max_heads),
        "path": (("layer",), np.array(capture.layer_names(), dtype=str)),
    }
    if capture.compare_layers():
        coordinates["later_layer"] = np.arange(layers)
    if maps:
        _check_map_size(capture, examples, positions)
        axes = _AxisNames(coordinates)
        for layer, call in enumerate(capture):
            if call.attention is not None:
                weights = call.maps(examples, positions)
                dims = axes.name_axes(capture, layer, weights.shape)
                missing = max_heads - call.heads
                if missing:  # the dimension `head` is that of the layer with most heads
                    padding = ((0, 0), (0, missing), (0, 0), (0, 0))
                    weights = np.pad(weights, padding, constant_values=np.nan)
                variables[f"map_{layer}"] = (dims, weights, {"path": capture.layer_names()[layer]})
    return variables, coordinates


class _AxisNames:
    """Names the dimensions of maps: equal axes of layers have one name and one coordinate."""

    def __init__(self, coordinates: dict[str, Any]) -> None:
        self.coordinates = coordinates
        self._names: dict[str, dict[Hashable, str]] = {"example": {}, "query": {}, "key": {}}

    def name_axes(
        self, capture: Capture, layer: int, shape: tuple[int, ...]
    ) -> tuple[str, str, str, str]:
        """Dimensions of the maps of a layer; adds their coordinates."""
        batch, _, queries, keys = shape
        attention = capture[layer].attention
        assert attention is not None
        labels = [
            capture.axis_labels(layer, example)
            for example in range(batch)
            if capture.labels and example < len(capture.labels)
        ]
        has_labels = len(labels) == batch
        query_labels = [axes.queries for axes in labels] if has_labels else []
        key_labels = [axes.keys for axes in labels] if has_labels else []
        example_name = self._name("example", batch, range(batch))
        first = _find_first_query(attention)
        query_range = range(first, first + queries)
        query_name = self._name_positions("query", example_name, query_range, query_labels)
        key_name = self._name_positions("key", example_name, range(keys), key_labels)
        return example_name, "head", query_name, key_name

    def _name_positions(
        self, kind: str, example_name: str, positions: range, labels: list[list[str] | None]
    ) -> str:
        rows = [tuple(row[: len(positions)]) for row in labels if row is not None]
        is_labelled = bool(rows) and len(rows) == len(labels)
        identity = (example_name, positions, tuple(rows) if is_labelled else None)
        name = self._name(kind, identity, positions)
        if is_labelled:
            token_name = name.replace(kind, f"{kind}_token")
            self.coordinates[token_name] = ((example_name, name), np.array(rows, dtype=str))
        return name

    def _name(self, kind: str, identity: Hashable, values: range) -> str:
        names = self._names[kind]
        if identity not in names:
            names[identity] = f"{kind}_{len(names) + 1}" if names else kind
            self.coordinates[names[identity]] = np.array(values)
        return names[identity]


def _find_first_query(attention: AttentionCall) -> int:
    """Position of the first query among the keys; 0 if it is not known."""
    is_known = attention.known_positions == "queries_and_keys"
    return max(attention.first_query_position, 0) if is_known else 0


def _check_map_size(capture: Capture, examples: int | None, positions: int | None) -> None:
    cells = 0
    for call in capture:
        if (attention := call.attention) is not None:
            batch = min(examples or attention.batch, attention.batch)
            queries = min(positions or attention.queries, attention.queries)
            keys = min(positions or attention.positions, attention.positions)
            cells += batch * call.heads * queries * keys
    size = cells * np.dtype(np.float32).itemsize
    if size > MAX_MAP_BYTES:
        raise ValueError(
            f"the maps of all layers have {size / 1e9:.1f} GB: pass maps=False, or fewer of them "
            "with examples=1 and positions=512"
        )


def _list_roles(capture: Capture) -> list[list[str]]:
    """The role of every head of each layer; empty texts if there are no roles."""
    roles = find_capture_roles(capture)
    return [
        [str(roles[layer, head]) if roles.size else "" for head in range(call.heads)]
        for layer, call in enumerate(capture)
    ]


def _describe_call(call: CapturedCall) -> dict[str, Any]:
    attention = call.attention
    return {
        "queries": None if attention is None else attention.queries,
        "keys": None if attention is None else attention.positions,
        "note": call.note,
    }

"""What a check found, as plain data for other programs (`neural check --format json`)."""

from __future__ import annotations

from typing import Any

from neural.core.diagnostics import Diagnostic, Source, Where
from neural.language.check import Checked
from neural.language.network import Network
from neural.language.shapes import Cost
from neural.language.summary import remarks


def as_data(checked: Checked, source: Source) -> dict[str, Any]:
    """File, verdict, networks and diagnostics."""
    return {
        "file": source.name,
        "good": not checked.mistakes,
        "networks": [_network(network) for network in ([] if checked.mistakes else checked.networks)],
        "diagnostics": [_diagnostic(one, source) for one in checked.diagnostics],
    }


def _network(network: Network) -> dict[str, Any]:
    layers = [
        {
            "name": placed.name, "layer": repr(placed.layer), "copies": placed.copies, "input": list(placed.given),
            "output": list(placed.gives), "automatic": placed.automatic, **_cost(placed.cost),
        }
        for placed in network.layers
    ]  # fmt: skip
    return {
        "name": network.name, "input": list(network.input), "output": list(network.output), **_cost(network.cost),
        "layers": layers, "remarks": list(remarks(network)), "assumed": dict(network.assumed),
        "loss": repr(network.loss) if network.loss else None,
        "optimizer": repr(network.optimizer) if network.optimizer else None,
    }  # fmt: skip


def _cost(cost: Cost) -> dict[str, int]:
    return {
        "parameters": cost.parameters, "multiply_adds": cost.multiply_adds, "activation_bytes": 4 * cost.activations
    }  # fmt: skip


def _diagnostic(one: Diagnostic, source: Source) -> dict[str, Any]:
    labels = [{"text": label.text, **_place(label.where, source)} for label in one.labels]
    return {
        "code": one.code, "severity": one.severity, "message": one.message, **_place(one.where, source),
        "labels": labels, "help": list(one.helps),
    }  # fmt: skip


def _place(where: Where, source: Source) -> dict[str, int]:
    (line, column), (end_line, end_column) = source.place(where.start), source.place(where.end)
    return {"line": line, "column": column, "end_line": end_line, "end_column": end_column}

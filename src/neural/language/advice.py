"""Advice about a network as a whole, from the guide: notes and warnings, never mistakes."""

from __future__ import annotations

from neural.core.diagnostics import Findings
from neural.language.binding import Bound
from neural.language.network import Network
from neural.language.shapes import width

HIGH_RATE = 1e-3
"""Transformers trained with Adam usually want less than this."""


def advise_network(network: Network, last: Bound, optimizer: Bound | None, findings: Findings) -> None:
    """Say what is worth knowing about a network that works."""
    head = getattr(last.made, "activation", "linear")
    contains = network.loss.fuses if network.loss else frozenset()
    if contains and head not in contains and head != "linear":
        usual = " or ".join(f'"{name}"' for name in sorted(contains))
        findings.say(
            "W0601", f'"{head}" before cross-entropy cuts the scores that the loss needs', last.place(["activation"]),
            helps=[f"use {usual}, or no activation: the loss takes scores of any sign"],
        )  # fmt: skip
    if network.loss is None:
        findings.say(
            "N0703", f"`{network.name}` has no loss: it can be built and run, not trained", last.call.name_where,
            helps=["to train it, add a `loss:`"],
        )  # fmt: skip
    if network.layers[-1].layer.uses_table and getattr(network.layers[0].layer, "init", None) == "torch":
        deviation = width(network.layers[-1].given) ** 0.5
        findings.say(
            "W0605", f"the table of a tied head begins with deviation 1: the first scores are about {deviation:.0f}",
            last.place(["tied"]), helps=['`Embedding(…, init="gpt2")` begins with 0.02'],
        )  # fmt: skip
    has_blocks = any(placed.layer.role in ("encoder", "decoder") for placed in network.layers)
    rate = getattr(network.optimizer, "learning_rate", None)
    if optimizer is not None and has_blocks and isinstance(rate, float) and rate > HIGH_RATE:
        name = type(network.optimizer).__name__
        if name in ("Adam", "AdamW"):
            findings.say(
                "W0602", f"a learning rate of {rate:g} is high for a transformer", optimizer.place(["learning_rate"]),
                helps=["1e-4 to 1e-3 is usual; attention often collapses above that"],
            )  # fmt: skip

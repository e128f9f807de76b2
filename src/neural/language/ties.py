"""What a layer takes from others of its network: a tied head the embedding's table, a block the number of blocks."""

from __future__ import annotations

from contextlib import suppress

from neural.core.diagnostics import Findings
from neural.language.flow import Step
from neural.language.shapes import Misfit


def tie(steps: list[Step], findings: Findings) -> None:
    """Tell the layers what they need to know of each other. What contradicts itself in one has been said."""
    for step in steps:
        if step.layer.uses_table:
            _to_embedding(step, steps[0], findings)
    for role in ("encoder", "decoder"):
        blocks = [step for step in steps if step.layer.role == role]
        for step in blocks:
            with suppress(Misfit):
                many = sum(one.copies for one in blocks)
                step.layer = step.layer.among(many)   # type: ignore[attr-defined]  # blocks have it


def _to_embedding(step: Step, first: Step, findings: Findings) -> None:
    if first.layer.role != "embedding":
        findings.say(
            "E0314", "a tied `Output` needs an `Embedding` whose vectors it can use", step.bound.place(["tied"]),
            helps=["leave `tied` out: the input is numbers, not token ids"],
        )  # fmt: skip
        return
    table = first.layer.input_dim, first.layer.output_dim   # type: ignore[attr-defined]  # embeddings declare them
    with suppress(Misfit):
        step.layer = step.layer.tied_to(*table)   # type: ignore[attr-defined]  # heads that use a table have it

"""Parts → Network: what the sections say together. Shapes, costs, positions, head and loss."""

from __future__ import annotations

from collections.abc import Mapping

from neural.core.diagnostics import Findings, Fix, Label, Where
from neural.language.advice import advise_network
from neural.language.catalogue import Catalogue
from neural.language.flow import Step, Walk, arrange, check_size, check_stem, place, walk
from neural.language.network import Network
from neural.language.sections import Parts
from neural.language.shapes import Shape
from neural.language.ties import tie

USUAL_LENGTH = 1024
"""Costs are computed for this many positions where a program leaves the length open."""


def assemble(
    parts: Parts, catalogue: Catalogue, findings: Findings, sizes: Mapping[str, int], before: int
) -> Network | None:
    """The network that the parts make, or None after a mistake.

    `before` is how many mistakes there were that have nothing to do with this network.
    """
    start = parts.start
    ids = bool(parts.steps) and parts.steps[0].layer.role == "embedding"
    if start is not None and ids:
        start = token_input(start, parts.steps[0], parts.input_where, findings)
    steps, two_streams = arrange(parts.steps, catalogue.layers.get("PositionalEncoding"))
    check_stem(steps, findings)
    check_places(steps, findings)
    tie(steps, findings)
    if start is None or not parts.whole:
        return None
    target = "T" if "T" not in start else "U"
    walked = walk(steps, start, findings, two_streams, target)
    head = head_of(steps[-1], parts, findings)
    if not walked.whole or findings.wrong > before:
        return None
    measured, assumed = measure(steps, start, target if two_streams else None, sizes, findings)
    if not measured.whole:
        return None
    check_size(steps, measured, findings)
    network = Network(
        name=parts.name, input=start, ids=ids, layers=place(steps, walked, measured.costs), output=walked.gives[-1],
        head=head, two_streams=two_streams, loss=parts.loss, train=parts.train, assumed=assumed,
        optimizer=parts.optimizer.made if parts.optimizer else None,
    )  # fmt: skip
    for step, given in zip(steps, measured.given, strict=True):
        if not step.automatic:
            for one in step.layer.advice(given):
                step.bound.advise(findings, one)
    advise_network(network, steps[-1].bound, parts.optimizer, findings)
    return network


def token_input(start: Shape, first: Step, where: Where, findings: Findings) -> Shape:
    """Rule 1: before an `Embedding` the input is token ids; a second size is the embedding's width, checked."""
    if len(start) != 2:
        return start
    expected = first.layer.output_dim   # type: ignore[attr-defined]  # embeddings declare it
    if start[1] != expected:
        findings.say(
            "E0305", f"`output_dim` is {expected}, but `input` says {start[1]} features",
            first.bound.place(["output_dim"]),
            labels=[Label(where, "token ids need no width")], helps=[f"write `input: ({start[0]},)`"],
        )  # fmt: skip
    else:
        findings.say(
            "N0702", f"the input is {start[0]} token ids; {start[1]} is the width after `Embedding`", where,
            helps=[f"`input: ({start[0]},)` is clearer"], fix=Fix(where, f"({start[0]},)"),
        )  # fmt: skip
    return start[:1]


def check_places(steps: list[Step], findings: Findings) -> None:
    """`Output` comes last and once, `Embedding` first."""
    for step in steps:
        if step.layer.role == "head" and (step is not steps[-1] or step.copies > 1) and not step.automatic:
            findings.say(
                "E0413", "`Output` must be the last layer", step.bound.call.name_where,
                helps=["leave the copies out" if step is steps[-1] else "`Dense` may stand anywhere"],
            )  # fmt: skip
        if step.layer.role == "embedding" and step is not steps[0]:
            findings.say(
                "E0306", "`Embedding` takes token ids, but features arrive", step.bound.call.name_where,
                helps=["it must be the first layer, after `input: (length,)`"],
            )  # fmt: skip


def head_of(last: Step, parts: Parts, findings: Findings) -> str:
    """The activation that the loss takes over from the last layer; a head it cannot judge is a mistake."""
    activation = getattr(last.layer, "activation", "linear")
    if parts.loss is None:
        return "linear"
    units = getattr(last.layer, "units", None)
    problem = parts.loss.head_problem(activation, units)
    if problem is not None:
        message, way_out = problem
        label = Label(parts.loss_where, "judged by this loss")
        where = last.bound.call.where if units == 1 else last.bound.place(["activation"])
        findings.say("E0407", message, where, labels=[label], helps=[way_out])
    return activation if activation in parts.loss.fuses else "linear"


def measure(
    steps: list[Step], start: Shape, target: str | None, sizes: Mapping[str, int], findings: Findings
) -> tuple[Walk, dict[str, int]]:
    """The costs, at values for the open sizes: as asked, else the source's length for the target, else a usual one.

    Where a layer ends earlier (learned positions), the usual length is halved until it fits.
    """
    length = next((dim for dim in start[:1] if isinstance(dim, int)), USUAL_LENGTH)
    names = [dim for dim in (*start, target) if isinstance(dim, str)]
    tried: list[tuple[Walk, dict[str, int]]] = []
    while length and not (tried and tried[-1][0].whole):
        assumed = {name: sizes.get(name, length) for name in names}
        known = tuple(assumed.get(dim, dim) if isinstance(dim, str) else dim for dim in start)
        tried.append((walk(steps, known, None, target is not None, assumed.get(target or "", 0)), assumed))
        length = length // 2 if not all(name in sizes for name in names) else 0
    if tried[-1][0].whole:
        return tried[-1]
    failed, assumed = tried[0]
    if failed.misfit is not None:
        said = ", ".join(f"{name} = {value}" for name, value in assumed.items())
        steps[len(failed.gives)].bound.report(findings, failed.misfit, f", with {said}")
    return failed, assumed

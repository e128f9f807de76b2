"""Layers in a row → where positions are added, which sequence goes where, and the shape after every layer.

Rules 2 and 3 of the language live here: positions are added once before the first transformer block unless the
program says otherwise; a decoder after an encoder reads a second sequence and looks at what the encoder made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from neural.core.diagnostics import Findings
from neural.core.names import snake
from neural.language.binding import Bound
from neural.language.layer import Layer
from neural.language.network import Placed, Stream
from neural.language.shapes import Cost, Misfit, Shape, show

MOST_PARAMETERS = 2**42


@dataclass(slots=True)
class Step:
    """A layer on its way to being placed."""

    layer: Layer
    copies: int
    bound: Bound
    stream: Stream = "source"
    automatic: bool = False


@dataclass(slots=True)
class Walk:
    """The shapes and costs along the way; not `whole` where a shape could not be known."""

    given: list[Shape]
    gives: list[Shape]
    costs: list[Cost]
    whole: bool = True
    misfit: Misfit | None = None
    """What ended a walk without findings."""


def arrange(steps: list[Step], positions: Callable[..., Layer]) -> tuple[list[Step], bool]:
    """Set the streams, add positions and final norms. Gives the steps, and whether there are two sequences."""
    steps = list(_with_norms(steps))
    encoder = next((i for i, step in enumerate(steps) if step.layer.role == "encoder"), None)
    decoder = None
    if encoder is not None:
        decoder = next((i for i in range(encoder, len(steps)) if steps[i].layer.role == "decoder"), None)
    if encoder is None or decoder is None:
        return list(_with_positions(steps, positions)), False
    stem, source, target = steps[:encoder], steps[encoder:decoder], steps[decoder:]
    for step in stem:
        step.stream = "both"
    for step in target:
        step.stream = "target"
    given = any(step.layer.role == "positions" for step in stem)
    return [*stem, *_with_positions(source, positions, given), *_with_positions(target, positions, given)], True


def _with_norms(steps: list[Step]) -> Iterator[Step]:
    """A norm behind every block that asks for one."""
    for step in steps:
        yield step
        if getattr(step.layer, "final_norm", False):
            norm = step.layer.last_norm()   # type: ignore[attr-defined]  # what has `final_norm` has it
            yield replace(step, layer=norm, copies=1, automatic=True)


def _with_positions(steps: list[Step], positions: Callable[..., Layer], given: bool = False) -> Iterator[Step]:
    """The steps of one sequence, with a positions layer before the block that wants one."""
    added: set[str] = set()
    first = True
    for step in steps:
        if step.layer.role == "positions":
            given = True
        if step.layer.role in ("encoder", "decoder"):
            wanted: Any = step.layer.positional   # type: ignore[attr-defined]  # blocks declare it
            if wanted is None and first and not given:
                layer = positions()
                yield replace(step, layer=layer, copies=1, automatic=True)
            elif wanted is not None and wanted.adds and repr(wanted) not in added:
                added.add(repr(wanted))
                yield replace(step, layer=positions(encoding_type=wanted), copies=1, automatic=True)
            first = False
        yield step


def walk(steps: list[Step], start: Shape, findings: Findings | None, two_streams: bool, target: str | int) -> Walk:
    """Follow the shape through the steps. Without `findings` the sizes are numbers and costs are added up."""
    result = Walk([], [], [])
    x: Shape | None = start
    stem_end: Shape | None = start
    memory: Shape | None = None
    decoding = False
    for step in steps:
        if two_streams and step.stream == "target" and not decoding:
            # the second sequence starts: it has been through the stem, and has a length of its own
            memory, decoding = x, True
            x = (target, *stem_end[1:]) if stem_end is not None else None
            if memory is not None and len(memory) != 2:
                _say_memory(step, memory, findings)
                memory, result.whole = None, False
        if decoding and step.layer.role == "decoder" and memory is not None:
            with suppress(Misfit):   # what contradicts itself in the decoder's arguments has been said
                step.layer = step.layer.after_encoder(memory)   # type: ignore[attr-defined]  # decoders have it
        if x is None:
            result.whole = False
            continue
        result.given.append(x)
        x, cost, result.misfit = _through(step, x, findings)
        if result.misfit is not None and findings is None:
            x, result.whole = None, False
            break
        if x is not None:
            result.gives.append(x)
            result.costs.append(cost)
        if step.stream == "both":
            stem_end = x
    result.whole = result.whole and x is not None
    return result


def _say_memory(step: Step, memory: Shape, findings: Findings | None) -> None:
    """A decoder that has no sequence to look at."""
    if findings is not None:
        findings.say(
            "E0302", f"a decoder looks at a sequence, (time, features), but {show(memory)} comes from the encoder",
            step.bound.call.name_where, helps=["between encoder and decoder, keep the time axis"],
        )  # fmt: skip


def _through(step: Step, x: Shape, findings: Findings | None) -> tuple[Shape | None, Cost, Misfit | None]:
    """The shape after all copies of a layer. Copies that change nothing more are not walked one by one."""
    total = Cost()
    for done in range(step.copies):
        try:
            y = step.layer.shape(x)
            cost = step.layer.cost(x) if findings is None else Cost()
        except Misfit as misfit:
            if findings is not None:
                said = f" (copy {done + 1} of {step.copies})" if done else ""
                step.bound.report(findings, misfit, said)
            return misfit.assume, total, misfit
        if y == x:
            return x, total + cost * (step.copies - done), None
        total, x = total + cost, y
    return x, total, None


def check_stem(steps: list[Step], findings: Findings) -> None:
    """Both sequences go through the layers before the encoder, so each must treat positions alike."""
    for step in steps:
        if step.stream == "both" and not step.layer.pointwise:
            kind = type(step.layer).__name__
            findings.say(
                "E0308", f"`{kind}` cannot stand before the encoder: the decoder's sequence goes through it as well",
                step.bound.call.name_where,
                helps=["`Dense`, `Dropout` and others that treat every position alone can stand there"],
            )  # fmt: skip
        if step.stream == "target" and step.layer.role == "encoder":
            findings.say(
                "E0309", "an encoder cannot come after a decoder", step.bound.call.name_where,
                helps=["put all `TransformerEncoder` layers before the first `TransformerDecoder`"],
            )  # fmt: skip


def check_size(steps: list[Step], walked: Walk, findings: Findings) -> None:
    """Refuse what no machine can hold, before torch overflows on it."""
    for step, cost in zip(steps, walked.costs, strict=False):
        if cost.parameters > MOST_PARAMETERS:
            message = f"`{type(step.layer).__name__}` would have {cost.parameters:,} parameters"
            helps = [f"more than {MOST_PARAMETERS:,} cannot be built"]
            findings.say("E0310", message, step.bound.call.where, helps=helps)


def place(steps: list[Step], walked: Walk, costs: list[Cost]) -> tuple[Placed, ...]:
    """The steps as parts of a network, each with a name of its own."""
    kinds = [snake(type(step.layer).__name__) for step in steps]
    total, seen = Counter(kinds), Counter[str]()
    placed = []
    for step, kind, given, gives, cost in zip(steps, kinds, walked.given, walked.gives, costs, strict=True):
        seen[kind] += 1
        name = f"{kind}_{seen[kind]}" if total[kind] > 1 else kind
        placed.append(
            Placed(
                name=name, layer=step.layer, copies=step.copies, given=given, gives=gives, cost=cost,
                stream=step.stream, automatic=step.automatic, where=step.bound.call.where,
            )
        )  # fmt: skip
    return tuple(placed)



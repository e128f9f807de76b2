"""Translate learning-rate schedules: `CosineAnnealingLR(T_max=1000)` → `CosineDecay(3e-4, 1000)`.

PyTorch and Hugging Face have them beside the optimizer, here they are its learning rate. A rate is
the number that a schedule starts from.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from neural.core.diagnostics import SourceSpan
from neural.core.names import normalize_name
from neural.language.foreign.training_names import (
    CHANGED_SCHEDULES,
    IGNORED_SCHEDULES,
    SCHEDULE_ARGUMENTS,
    SCHEDULE_ORDERS,
    SCHEDULES,
    WITH_WARMUP_ORDER,
)
from neural.language.syntax import (
    Argument,
    CallExpression,
    Literal,
    SequenceLiteral,
    Value,
    to_python,
)

DEFAULT_RATE = 0.001
"""Learning rate of the optimizers here."""
ONE_CYCLE_WARMUP = 0.3
"""Part of the steps in which PyTorch's OneCycleLR rises."""


@dataclass
class ScheduleRequest:
    """What a program of another library says about a schedule."""

    name: str = ""
    """Its name there, without case and underscores; empty if only a warm-up is given."""
    values: dict[str, Value] = field(default_factory=dict)
    """By the meanings of `SCHEDULE_ARGUMENTS`, and "warmup_ratio"."""

    def get_number(self, meaning: str) -> float | None:
        """The value of that meaning if it is a number."""
        value = self.values.get(meaning)
        number = value.value if isinstance(value, Literal) else None
        is_number = isinstance(number, int | float) and not isinstance(number, bool)
        return number if is_number else None


def read_schedule(value: Value) -> ScheduleRequest | None:
    """The schedule that a name or a call means; None if it is not one of another library."""
    if isinstance(value, Literal):
        name = value.value if isinstance(value.value, str) else ""
        request = ScheduleRequest(_normalize(name))
        return request if request.name in {*SCHEDULES, *IGNORED_SCHEDULES} else None
    if not isinstance(value, CallExpression) or value.broken:
        return None
    request = ScheduleRequest(_normalize(value.name))
    if request.name not in {*SCHEDULES, *IGNORED_SCHEDULES}:
        return None
    order = SCHEDULE_ORDERS.get(request.name, WITH_WARMUP_ORDER)
    positional = [item for item in value.arguments if item.name is None]
    # a program has no variable `optimizer`, so it is often left out
    has_optimizer = bool(positional) and get_text(positional[0].value).startswith("opt")
    if "optimizer" in order and not has_optimizer:
        order = tuple(name for name in order if name != "optimizer")
    order_by_id = {id(item): name for item, name in zip(positional, order, strict=False)}
    for argument in value.arguments:
        name = argument.name or order_by_id.get(id(argument), "")
        if name == "name" and request.name == "getscheduler":
            request.name = _normalize(get_text(argument.value)) or request.name
        elif name in SCHEDULE_ARGUMENTS:
            request.values[SCHEDULE_ARGUMENTS[name]] = argument.value
    return request


def get_text(value: Value) -> str:
    """The text of a string or of the name of a call; empty for others."""
    if isinstance(value, CallExpression):
        return value.name
    return value.value if isinstance(value, Literal) and isinstance(value.value, str) else ""


def make_schedule(
    request: ScheduleRequest, rate: Value | None, total_steps: float | None, span: SourceSpan
) -> tuple[Value | None, str]:
    """The learning rate that is meant, and what is different here; None if it stays a number.

    `rate` is the learning rate that is given beside the schedule, `total_steps` how long is trained.
    """
    start = request.values.get("peak") or request.values.get("rate") or rate
    start = start or _make_literal(DEFAULT_RATE, span)
    if request.name in IGNORED_SCHEDULES and "warmup_steps" not in request.values:
        return None, IGNORED_SCHEDULES[request.name]
    if not request.name and {"min_rate", "total_steps"} & set(request.values):
        request.name = "cosine"  # as in nanoGPT, whose keys these are
    kind = SCHEDULES.get(request.name, "Warmup")
    total = request.get_number("total_steps") or total_steps
    warmup = request.get_number("warmup_steps") or 0
    ratio = request.get_number("warmup_ratio")
    if ratio and total:
        warmup = round(ratio * total)
    elif request.name == "onecyclelr" and total:
        warmup = round(ONE_CYCLE_WARMUP * total)
    elif ratio and not total:
        return None, "a warm-up needs its number of steps: `Warmup(500, 1e-3)`"
    change = CHANGED_SCHEDULES.get(request.name, "")
    steps = request.get_number("decay_steps") or (total - warmup if total else None)
    if kind in ("CosineDecay", "LinearDecay"):
        if not steps or steps <= 0:
            change = "a decay needs its number of steps: `CosineDecay(1e-3, 10000)`"
            kind = "Warmup"
        else:
            arguments = [("", start), ("", _make_literal(int(steps), span))]
            alpha = request.get_number("alpha") or _divide(request.get_number("min_rate"), start)
            if alpha:
                arguments.append(("alpha", _make_literal(alpha, span)))
            if warmup:
                arguments.append(("warmup_steps", _make_literal(int(warmup), span)))
            return _make_call(kind, arguments, span), change
    if kind == "Warmup":
        warmup = warmup or (steps if request.name == "linearlr" else 0) or 0
        if not warmup:
            return None, change or "a number is a constant rate"
        return _make_call(kind, [("", _make_literal(int(warmup), span)), ("", start)], span), change
    factor = request.values.get("factor") or _make_literal(0.1, span)
    if kind == "ExponentialDecay":
        decay_steps = request.values.get("decay_steps") or _make_literal(1, span)
        return _make_call(kind, [("", start), ("", decay_steps), ("", factor)], span), change
    boundaries, values = request.values.get("boundaries"), request.values.get("values")
    if not isinstance(boundaries, SequenceLiteral):
        return None, "a schedule in steps needs its boundaries"
    if values is None:
        start_rate, number = to_python(start), to_python(factor)
        if not isinstance(start_rate, float) or not isinstance(number, float):
            return None, "a schedule in steps needs its values"
        rates = [float(f"{start_rate * number**i:.6g}") for i in range(len(boundaries.items) + 1)]
        items = tuple(
            Argument(name=None, value=_make_literal(item, span), span=span) for item in rates
        )
        values = SequenceLiteral(bracket="[", items=items, span=span)
    return _make_call(kind, [("", boundaries), ("", values)], span), change


def _normalize(name: str) -> str:
    """The last part of a name, without case, underscores and hyphens."""
    return normalize_name(name.rpartition(".")[2]).replace("-", "")


def _divide(lowest: float | None, rate: Value) -> float | None:
    """The lowest rate as a fraction of the highest; None without both."""
    highest = rate.value if isinstance(rate, Literal) else None
    if not lowest or not isinstance(highest, int | float) or not highest:
        return None
    return float(f"{lowest / highest:.6g}")


def _make_literal(value: float, span: SourceSpan) -> Literal:
    """A number; `span` is where messages point."""
    return Literal(value=value, text=repr(value), span=span)


def _make_call(name: str, arguments: list[tuple[str, Value]], span: SourceSpan) -> CallExpression:
    """A call with arguments, which have a name or an empty one."""
    items = tuple(Argument(name=key or None, value=value, span=span) for key, value in arguments)
    return CallExpression(name=name, name_span=span, arguments=items, span=span)

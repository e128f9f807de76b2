"""Values that stand in the wrong place, and where each of them belongs.

moves.py finds them and writes them into their places.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from neural.core.diagnostics import SourceSpan
from neural.language.declaration import ArgumentSpec
from neural.language.foreign.arguments import Reason
from neural.language.foreign.schedules import ScheduleRequest, read_schedule
from neural.language.foreign.training_names import (
    IGNORED_SECTIONS,
    OPTIMIZER_KEYS,
    OPTIMIZER_NAME_KEYS,
    SCHEDULE_ARGUMENTS,
    SCHEDULE_KEYS,
    SECTIONS,
    TRAIN_KEYS,
)
from neural.language.syntax import (
    Argument,
    CallExpression,
    Literal,
    Section,
    SequenceLiteral,
    Value,
)
from neural.language.train_options import TrainOptions

RATE_NAMES = frozenset(
    {"lr", "base_lr", "max_lr", "peak_lr", "initial_lr", "init_lr", "peak_learning_rate"}
    | {"learning_rate_init"}
)
"""Names of the learning rate beside an optimizer."""


@dataclass
class MovedValues:
    """Values that stand elsewhere here, with their sources and the errors about them."""

    train: dict[str, Value] = field(default_factory=dict)
    optimizer: list[Argument] = field(default_factory=list)
    sections: dict[str, Value] = field(default_factory=dict)
    schedule: ScheduleRequest | None = None
    sources: list[SourceSpan] = field(default_factory=list)
    reasons: list[Reason] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    """All names that were taken."""
    changes: list[str] = field(default_factory=list)
    """What is lost or different here."""

    def get_schedule(self) -> ScheduleRequest:
        """What is said about the schedule so far."""
        self.schedule = self.schedule or ScheduleRequest()
        return self.schedule

    def take(self, name: str, value: Value) -> bool:
        """Note where a value belongs; return whether that is known."""
        key = TRAIN_KEYS.get(name, name)
        meaning = SCHEDULE_KEYS.get(name)
        section = SECTIONS.get(name, name)
        if meaning == "schedule":
            return self.take_schedule(value)
        if meaning is not None:
            self.get_schedule().values[meaning] = value
        elif name in OPTIMIZER_KEYS:
            key = (
                "learning_rate" if name in RATE_NAMES else "weight_decay" if name == "wd" else name
            )
            self.optimizer.append(Argument(name=key, value=value, span=value.span))
        elif name == "callbacks":
            self.take_callbacks(value)
        elif key in get_train_specs():
            converted, _ = convert_train_value(name, key, value)
            if converted is not None:
                self.train.setdefault(key, converted)
        elif section in ("loss", "optimizer"):
            self.sections[section] = value
        elif name not in IGNORED_SECTIONS:
            return False
        self.names.add(name)
        return True

    def take_schedule(self, value: Value) -> bool:
        """Note a schedule that is given by its name or as a call."""
        request = read_schedule(value)
        if request is None:
            return False
        known = self.get_schedule()
        known.name = request.name
        known.values = {**request.values, **known.values}
        return True

    def take_callbacks(self, value: Value) -> None:
        """Take the patience of `EarlyStopping(patience=5)` among Keras' callbacks."""
        patience = find_patience(value)
        if patience is not None:
            self.train.setdefault("early_stopping_patience", patience)

    def take_pairs(self, name: str, pairs: tuple[Any, ...]) -> bool:
        """Take the keys of a block such as `compile { … }`; return whether all are known."""
        is_setting = SECTIONS.get(name, name) == "optimizer"
        is_schedule = SCHEDULE_KEYS.get(name) == "schedule"
        for pair in pairs:
            if not isinstance(pair, Section) or pair.broken:
                return False
            if pair.is_block and isinstance(pair.body, tuple):
                if not self.take_pairs(pair.name, pair.body):
                    return False
                continue
            if isinstance(pair.body, tuple):
                return False
            if pair.name in OPTIMIZER_NAME_KEYS and is_setting:
                self.sections["optimizer"] = pair.body
            elif pair.name in OPTIMIZER_NAME_KEYS and is_schedule:
                if not self.take_schedule(pair.body):
                    return False
            elif is_schedule and pair.name in SCHEDULE_ARGUMENTS:
                self.get_schedule().values[SCHEDULE_ARGUMENTS[pair.name]] = pair.body
            elif (
                is_setting
                and pair.name not in IGNORED_SECTIONS
                and not self.take(pair.name, pair.body)
            ):
                self.optimizer.append(Argument(name=pair.name, value=pair.body, span=pair.span))
            elif not is_setting and not self.take(pair.name, pair.body):
                return False
        return True


def get_train_specs() -> dict[str, ArgumentSpec]:
    """The keys of `train { … }`."""
    return TrainOptions.argument_specs()


def convert_train_value(name: str, key: str, value: Value) -> tuple[Value | None, str]:
    """The value of a key of `train` here; None, and why, if the key is left out."""
    given = value.value if isinstance(value, Literal) else None
    if key == "mixed_precision" and given is not None and not isinstance(given, bool):
        is_on = not re.search("32|64|no|off|full", str(given).lower())
        return Literal(value=is_on, text=str(is_on).lower(), span=value.span), ""
    if key in ("steps", "epochs") and isinstance(given, int | float) and given < 0:
        return None, "it has no effect"
    if key == "early_stopping_patience" and isinstance(given, bool):
        return None, "`early_stopping_patience: 5` says for how long to wait"
    if key == "clip_norm" and (given == 0 or (given is None and isinstance(value, Literal))):
        return None, "gradients are not clipped without it"
    if key == "device" and isinstance(given, str) and ":" in given:
        device = given.partition(":")[0]
        return Literal(value=device, text=f'"{device}"', span=value.span), ""
    if name == "gpu" or (key == "device" and given == "gpu"):
        return Literal(value="cuda", text='"cuda"', span=value.span), ""
    return value, ""


def find_patience(value: Value) -> Value | None:
    """The patience of `EarlyStopping(patience=5)` in a list of callbacks; None without."""
    items = [item.value for item in value.items] if isinstance(value, SequenceLiteral) else [value]
    for item in items:
        is_call = isinstance(item, CallExpression) and item.name.endswith(
            ("EarlyStopping", "EarlyStoppingCallback")
        )
        for argument in item.arguments if is_call and isinstance(item, CallExpression) else ():
            if argument.name in ("patience", "early_stopping_patience"):
                return argument.value
    return None

"""The registries that a program's names are looked up in; given to the checker, which knows none of them itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from neural.core.registry import Registry
from neural.language.layer import Layer
from neural.language.loss import Loss


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """Everything a program can name at its top level; layers and optimizers bring their own registries along."""

    layers: Registry[Layer]
    losses: Registry[Loss]
    optimizers: Registry[Any]

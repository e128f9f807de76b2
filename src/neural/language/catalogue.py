"""The registries in which the checker looks up names.

They are passed to the checker, so that `neural.language` does not import `neural.nn`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from neural.core.registry import Registry
from neural.language.layer import Layer
from neural.language.loss import Loss


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """Everything a program can name at top level. Arguments may refer to further registries."""

    layers: Registry[Layer]
    losses: Registry[Loss]
    optimizers: Registry[Any]

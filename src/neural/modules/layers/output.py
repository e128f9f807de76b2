"""The head of a network: a dense layer that says so."""

from __future__ import annotations

from typing import ClassVar

from neural.language.layer import Role
from neural.modules.layers.dense import Dense


class Output(Dense):
    """What the network predicts; nothing comes behind it."""

    role: ClassVar[Role] = "head"
    pointwise = False

"""Attention of our networks computed another way for a while: somebody stands in for the mechanism.

    with written_out(model): model(x)              weights @ v by the definition, in place of the fast way
    with without_head(model, path, 2): model(x)    as if that head had found nothing
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from neural.modules.heads import Heads

if TYPE_CHECKING:
    from torch import Tensor, nn

    from neural.modules.mask import Mask
    from neural.modules.mechanism import Mechanism


class StandIn:
    """Does everything as the mechanism does, but for what it overrides."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism

    def __getattr__(self, name: str) -> Any:
        return getattr(self.mechanism, name)


class WrittenOut(StandIn):
    """Mixes by the definition."""

    def mix(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Mask, dropout: float = 0.0, extra: Tensor | None = None
    ) -> Tensor:
        """With weights that are written out; none is dropped."""
        return self.mechanism.weights(q, k, mask, extra) @ v


class WithoutHead(StandIn):
    """One head finds nothing: zeros."""

    head = 0

    def mix(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Mask, dropout: float = 0.0, extra: Tensor | None = None
    ) -> Tensor:
        """All heads, then without that one."""
        found = self.mechanism.mix(q, k, v, mask, dropout, extra).clone()
        found[:, self.head] = 0
        return found


@contextmanager
def standing_in(heads: Heads, other: StandIn) -> Iterator[None]:
    """`other` in place of the mechanism."""
    own = heads.mechanism
    heads.mechanism = other   # type: ignore[assignment]  # it does what a mechanism does
    try:
        yield
    finally:
        heads.mechanism = own


@contextmanager
def written_out(model: nn.Module) -> Iterator[None]:
    """Every attention of ours by its definition."""
    with ExitStack() as until_then:
        for module in model.modules():
            if isinstance(module, Heads):
                until_then.enter_context(standing_in(module, WrittenOut(module.mechanism)))
        yield


@contextmanager
def without_head(model: nn.Module, path: str, head: int) -> Iterator[None]:
    """One head of the attention at `path` finds nothing."""
    heads = model.get_submodule(path)
    if not isinstance(heads, Heads):
        raise TypeError(f"`{path}` is no attention of ours")
    other = WithoutHead(heads.mechanism)
    other.head = head
    with standing_in(heads, other):
        yield

"""Replace the mechanism of attention modules of `neural` inside a block.

A mechanism (nn/mechanism.py) computes the output of attention from q, k and v: `attend`, by a fast
path, and `weights`, the definition. `extra` is a tensor that a mechanism with parameters of its own
computes from the input, such as a bias of the scores; None for the others.

    with use_dense_weights(model): model(x)      weights @ v by the definition, not the fast path
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from neural.capture.threads import SHARED_LOCK
from neural.nn.multi_head_attention import MultiHeadAttentionModule

if TYPE_CHECKING:
    from torch import Tensor, nn

    from neural.nn.mask import Mask
    from neural.nn.mechanism import Mechanism


class MechanismPatch:
    """Wraps a mechanism. Attributes that a subclass does not define are those of the mechanism."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism

    def __getattr__(self, name: str) -> Any:
        return getattr(self.mechanism, name)


class DenseWeightsPatch(MechanismPatch):
    """Computes the output from dense weights."""

    def attend(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Mask,
        dropout: float = 0.0,
        extra: Tensor | None = None,
    ) -> Tensor:
        """`weights @ v`, without dropout."""
        return self.mechanism.weights(q, k, mask, extra) @ v


@contextmanager
def patch_mechanism(module: MultiHeadAttentionModule, patch: MechanismPatch) -> Iterator[None]:
    """Use `patch`, around the present mechanism of the module, inside the block."""
    with SHARED_LOCK:
        patch.mechanism = module.mechanism
        module.mechanism = patch  # type: ignore[assignment]  # has all methods of a mechanism
    try:
        yield
    finally:
        # another thread may have put its patch around this one, and leave its block later
        with SHARED_LOCK:
            owner: Any = module
            while owner.mechanism is not patch:
                owner = owner.mechanism
            owner.mechanism = patch.mechanism


@contextmanager
def use_dense_weights(model: nn.Module) -> Iterator[None]:
    """Compute every attention module of `neural` by its definition inside the block."""
    with ExitStack() as stack:
        for module in model.modules():
            if isinstance(module, MultiHeadAttentionModule):
                patch = DenseWeightsPatch(module.mechanism)
                stack.enter_context(patch_mechanism(module, patch))
        yield

"""Takes down every attention that happens inside a model, with the module it happens in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from neural.modules.late import torch
from neural.modules.mask import Mask
from neural.tracking.look import Look
from neural.tracking.seen import Call, Seen
from neural.tracking.written import Written

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor, nn

    from neural.modules.mechanism import Mechanism

WRAPPERS = ("_orig_mod.", "_checkpoint_wrapped_module.")
"""What torch puts into paths where a module is compiled or recomputed."""


class Recorder:
    """Where calls go; knows which modules are running, and keeps silent where it must."""

    def __init__(
        self, model: nn.Module, seen: Seen, tokens: Int[Tensor, "B T"] | None = None,
        real: Bool[Tensor, "B T"] | None = None,
    ) -> None:  # fmt: skip
        self.model, self.seen, self.tokens, self.real = model, seen, tokens, real
        self.modules = {id(module): (_plain(path), module) for path, module in model.named_modules()}
        self.running: list[nn.Module] = []
        self.ran = False
        """Whether any module of the model did."""
        self.suspected: list[str] = []
        """Where something happened that looks like attention and was not taken down."""
        self._inside = 0

    @property
    def path(self) -> str:
        """Of the innermost module of the model that is running."""
        return self.modules[id(self.running[-1])][0] if self.running else ""

    @contextmanager
    def inside(self) -> Iterator[None]:
        """What is called in here belongs to an attention that is on record."""
        self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1

    @property
    def silent(self) -> bool:
        """Inside another attention, and where a backward pass computes things again."""
        return self._inside > 0 or torch._C._current_graph_task_id() != -1

    def enter(self, module: nn.Module) -> None:
        """A module of the model begins to run."""
        self.ran = True
        self.running.append(module)

    def by_mechanism(
        self, path: str, mechanism: Mechanism, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], mask: Mask,
        extra: Tensor | None, *, cross: bool,
    ) -> None:  # fmt: skip
        """Take an attention of ours down: as a softmax, or as what the mechanism makes of it."""
        with torch._C.DisableTorchFunction(), torch.no_grad():
            rules = mechanism.as_softmax(q, k, mask, extra)
        if rules is None:
            self.add(path, q, k, mask, cross=cross, mechanism=mechanism, extra=extra)
        else:
            self.add(path, q, k, rules, cross=cross)

    def add(
        self, path: str, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B G K D"], mask: Mask, *, cross: bool,
        scale: float | None = None, first: int | None = None, real: Bool[Tensor, "B Q"] | None = None,
        mechanism: Mechanism | None = None, extra: Tensor | None = None,
    ) -> None:  # fmt: skip
        """Take a call down; in a `cross` one, queries and keys are of two sequences."""
        with torch._C.DisableTorchFunction(), torch.no_grad():
            q, k, look = q.detach(), k.detach(), None
            if q.isfinite().all() and k.isfinite().all():
                real = self._real(q, mask, cross) if real is None else real
                more = {"scale": scale, "first": first, "tokens": self._tokens(k, cross), "real": real}
                if mechanism is None:
                    look = Look(q, k, mask, **more)
                else:
                    extra = None if extra is None else extra.detach()
                    look = Written(q, k, mask, **more, mechanism=mechanism, extra=extra)
            self.seen.calls.append(Call(path, q.shape[1], look, self.seen.wanted))

    def _tokens(self, k: Tensor, cross: bool) -> Tensor | None:
        if cross or self.tokens is None or tuple(self.tokens.shape) != (k.shape[0], k.shape[2]):
            return None
        return self.tokens.to(k.device)

    def _real(self, q: Tensor, mask: Mask, cross: bool) -> Tensor | None:
        shape = q.shape[0], q.shape[2]
        if self.real is not None and tuple(self.real.shape) == shape:
            return self.real.to(q.device)
        # the padding of the keys says nothing about queries of another sequence
        return torch.ones(shape, dtype=torch.bool, device=q.device) if cross and mask.keys is not None else None


def _plain(path: str) -> str:
    for wrapper in WRAPPERS:
        path = path.replace(wrapper, "").removesuffix(wrapper[:-1]).removesuffix(".")
    return path

"""Layers through the compiled loops of kernels.py, head by head."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numba
import numpy as np

from neural.modules.late import torch
from neural.tracking import kernels
from neural.tracking.look import CHUNK, Look, Part
from neural.tracking.measure import HeadMeasure, LayerMeasure, Measure, PairMeasure
from neural.tracking.measures.centred_cosine_between import UNIFORM
from neural.tracking.measures.span90 import SHARE
from neural.tracking.vectors import PANEL, ROWS


def fits(measures: Mapping[str, Measure], *looks: Look) -> bool:
    """On the CPU, for measures that say what they need, of layers under one mask."""
    first = looks[0]
    alike = all(_order(one) == _order(first) and one.mask is first.mask for one in looks)
    return alike and all(one.needs for one in measures.values()) and first.q.device.type == "cpu"


def run(measures: Mapping[str, Measure], *looks: Look) -> dict[str, torch.Tensor]:
    """The rows of each measure, by its name; one pass for each kind of them."""
    threads = torch.get_num_threads()
    numba.set_num_threads(min(threads, vars(numba.config)["NUMBA_NUM_THREADS"]))
    found: dict[str, torch.Tensor] = {}
    for kind, loop in ((HeadMeasure, _heads_alone), (LayerMeasure, _heads_together), (PairMeasure, _layers)):
        wanted = {name: one for name, one in measures.items() if isinstance(one, kind)}
        if wanted:
            columns = loop({need for one in wanted.values() for need in one.needs}, *looks)
            found |= {name: one.rows(columns) for name, one in wanted.items()}
    if torch.get_num_threads() != threads:
        torch.set_num_threads(threads)   # both use the same OpenMP, and numba's first loop sets its own number there
    return found


def _heads_alone(needs: set[str], look: Look) -> dict[str, torch.Tensor]:
    out = torch.full((len(kernels.ROWS), *look.q.shape[:3]), float("nan"))
    every, targets = np.arange(look.positions, dtype=np.float32), _after_last_time(look).numpy()
    origins = look.origins.numpy()
    far = not needs.isdisjoint({"distance", "position", "spread"})
    passes = (far, "spread" in needs, SHARE if "within" in needs else 0.0)
    for part in look.parts(heads=1, chunk=look.queries):
        (q,), (panels,), (by_key,) = _packed(look, part)
        for rows, (by_pair,), order in _chunks(look, part):
            into = out[:, part.batch.start, part.heads.start, rows].numpy()
            target, origin = targets[part.batch.start, rows], origins[part.batch.start, rows]
            kernels.rows(q[rows], panels, by_key, by_pair, origin, order, every, target, *passes, into)
    return dict(zip(kernels.ROWS, out, strict=True))


def _heads_together(needs: set[str], look: Look) -> dict[str, torch.Tensor]:
    out = torch.full((len(kernels.HEADS), look.batch, look.queries), float("nan"))
    origins = look.origins.numpy()
    for part in look.parts(heads=look.heads, chunk=look.queries):
        q, panels, by_key = _packed(look, part)
        for rows, by_pair, order in _chunks(look, part):
            origin, into = origins[part.batch.start, rows], out[:, part.batch.start, rows].numpy()
            kernels.heads(q[:, rows], panels, by_key, by_pair, origin, order, into)
    return dict(zip(kernels.HEADS, out, strict=True))


def _layers(needs: set[str], look: Look, other: Look) -> dict[str, torch.Tensor]:
    out = torch.full((len(kernels.PAIRS), *look.q.shape[:3]), float("nan"))
    origins = look.origins.numpy()
    for part in look.parts(heads=1, chunk=look.queries):
        (q,), (panels,), (by_key,) = _packed(look, part)
        (q_other,), (panels_other,), _ = _packed(other, part)
        for rows, (by_pair,), order in _chunks(look, part):
            into = out[:, part.batch.start, part.heads.start, rows].numpy()
            origin, other_q = origins[part.batch.start, rows], q_other[rows]
            kernels.pairs(q[rows], panels, by_key, by_pair, origin, order, other_q, panels_other, UNIFORM, into)
    return dict(zip(kernels.PAIRS, out, strict=True))


def _packed(look: Look, part: Part) -> tuple[Any, Any, Any]:
    """Scaled queries (heads, rows, D), keys in panels (key heads, panels, D, PANEL), what is added by key (heads, K).

    By numpy, on this thread alone: torch would wake its threads for every copy, and they would get in the loops' way.
    """
    example, group = part.batch.start, look.heads // look.k.shape[1]
    q = look.q[example, part.heads].detach().float().numpy()
    k = look.k[example, part.heads.start // group : (part.heads.stop - 1) // group + 1].detach().float().numpy()
    queries = np.zeros((len(q), _up(look.queries, ROWS), q.shape[2]), np.float32)
    np.multiply(q, np.float32(look.factor), out=queries[:, : look.queries])
    panels = np.zeros((len(k), _up(look.keys, PANEL) // PANEL, k.shape[2], PANEL), np.float32)
    whole = look.keys // PANEL
    panels[:, :whole] = k[:, : whole * PANEL].reshape(len(k), whole, PANEL, k.shape[2]).swapaxes(2, 3)
    panels[:, whole:, :, : look.keys % PANEL] = k[:, None, whole * PANEL :].swapaxes(2, 3)
    by_key, added = np.zeros((len(q), _up(look.keys, PANEL)), np.float32), look.by_key(part)
    if added is not None:
        by_key[:, : look.keys] = added[0, :, 0].detach().numpy()
    return queries, panels, by_key


def _order(look: Look) -> tuple[int, int, int, int, int, bool, bool]:
    """The order of positions as kernels.py takes it, for the first row."""
    span = look.keys, look.positions, look.start, look.before, look.after
    return *span, look.sink, look.axis == "shared"


def _chunks(look: Look, part: Part) -> Iterator[tuple[slice, Any, tuple[int | bool, ...]]]:
    """Rows, what is added by pair (heads, rows or none, K), and the order of positions.

    All rows at once, unless rules for pairs of positions have to be written out for them.
    """
    rules = any(one is not None for one in (look.mask.segments, look.mask.pairs, look.mask.bias))
    heads = part.heads.stop - part.heads.start
    none = np.empty((heads, 0, 0), np.float32)
    few = max(ROWS, CHUNK // heads // ROWS * ROWS)
    for _, _, rows in look.parts(heads=look.heads, chunk=few if rules else look.queries):
        by_pair = look.by_pair(part._replace(rows=rows))
        keys, positions, start, *rest = _order(look)
        order = (keys, positions, start + rows.start, *rest, numba.get_num_threads())
        yield rows, none if by_pair is None else by_pair[0].detach().contiguous().numpy(), order
        if rows.stop == look.queries:
            return


def _after_last_time(look: Look) -> torch.Tensor:
    """For every query, the key after the last earlier one with the same token; −1 where there is none.

    Nor where that is the query's own position: a head that looks at itself is no induction head.
    """
    if look.tokens is None:
        return torch.full((look.batch, look.queries), -1)
    order = look.tokens.argsort(dim=-1, stable=True)
    tokens = look.tokens.gather(-1, order)
    again = tokens[:, 1:] == tokens[:, :-1]
    target = torch.full_like(order, -1)
    target.scatter_(-1, order[:, 1:], torch.where(again, order[:, :-1] + 1, -1))
    target = torch.where(target == torch.arange(look.positions), -1, target)
    at = look.at()
    inside = (at >= 0) & (at < look.positions)
    return torch.where(inside, target[:, at.clamp(0, look.positions - 1)], -1)


def _up(count: int, step: int) -> int:
    return -(-count // step) * step

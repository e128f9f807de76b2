"""Heads with a role at the end of a training, counted for sentences such as "5 of 16 heads".

The roles are those of findings/head_roles.py. A uniform head has no role: it attends to everything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from neural.findings.check import FigureData, ViewLink
from neural.findings.figure_data import build_head_grid, mark_head
from neural.findings.head_roles import (
    MAX_LOCAL_DISTANCE,
    ROLE_THRESHOLDS,
    ROLES_OF_NO_PATTERN,
    RoleScores,
    assign_head_roles,
    find_head_roles,
)
from neural.findings.record import Record
from neural.findings.run_loading import MissingDataError, has_attention
from neural.report.headline import capitalize

ROLE_DESCRIPTIONS = {
    "sink": "the first position",
    "previous token": "the position before",
    "induction": "what followed the same token last time",
    "positional": "one fixed distance",
    "local": f"the nearest positions, up to {MAX_LOCAL_DISTANCE} away",
    "delimiter": "blanks and punctuation",
}
"""Role → what its heads attend to, in a few words."""


@dataclass(frozen=True)
class RoleCounts:
    """Roles of the heads of one run."""

    names: np.ndarray
    """[layer, head]: the role, "mixed", "uniform", or "" where a layer has fewer heads."""
    roles: dict[str, RoleScores]

    @property
    def head_count(self) -> int:
        """Number of heads in all layers."""
        return int((self.names != "").sum())

    @property
    def heads(self) -> list[tuple[int, int]]:
        """(layer, head) of every head with a role."""
        indices = np.argwhere(~np.isin(self.names, ROLES_OF_NO_PATTERN))
        return [(int(layer), int(head)) for layer, head in indices]

    @property
    def uniform_count(self) -> int:
        """Number of uniform heads."""
        return int((self.names == "uniform").sum())

    def count_from_start(self) -> int:
        """Number of heads that have had their role since the first recorded step."""
        return sum(
            self.roles[self.names[head]].scores[0][head] >= ROLE_THRESHOLDS[self.names[head]]
            for head in self.heads
        )

    def was_uniform(self) -> bool:
        """Whether as many heads were uniform at the first recorded step as are now."""
        role = self.roles.get("uniform")
        if role is None:
            return False
        return int((role.scores[0] >= ROLE_THRESHOLDS["uniform"]).sum()) >= self.uniform_count

    def began_uniform(self) -> bool:
        """Whether all heads were uniform at the first recorded step."""
        role, is_head = self.roles.get("uniform"), self.names != ""
        return role is not None and bool(
            (role.scores[0][is_head] >= ROLE_THRESHOLDS["uniform"]).all()
        )

    def list_onsets(self) -> dict[tuple[int, int], tuple[str, int]]:
        """Role of every head that has one, and the step since which it has it."""
        return {
            head: (name := str(self.names[head]), self.roles[name].find_onset_step(*head))
            for head in self.heads
        }

    def find_clearest_head(self) -> tuple[int, int] | None:
        """The head whose score is the largest multiple of its role's threshold."""
        return max(
            self.heads,
            key=lambda head: (
                self.roles[self.names[head]].last_levels[head] / ROLE_THRESHOLDS[self.names[head]]
            ),
            default=None,
        )

    def explain_roles(self) -> str:
        """What the roles that heads have mean, in one sentence; "" without any."""
        roles = dict.fromkeys(self.names[head] for head in self.heads)
        parts = [f"{name} ({ROLE_DESCRIPTIONS[name]})" for name in roles]
        return f"A role is what a head attends to: {', '.join(parts)}" if parts else ""

    def format_tally(self) -> str:
        """Roles with the number of their heads: "3 local, 1 previous token"."""
        tally = Counter(self.names[head] for head in self.heads)
        return ", ".join(f"{count} {name}" for name, count in tally.most_common())


def count_head_roles(run: Record) -> RoleCounts | None:
    """Roles of the heads of a run; None if its attention was not recorded."""
    if not has_attention(run):
        return None
    try:
        roles = find_head_roles(run)
    except MissingDataError:
        return None
    counts = RoleCounts(assign_head_roles(roles), roles)
    return counts if counts.head_count else None


def build_role_grid(run: Record, run_id: str, roles: RoleCounts) -> FigureData:
    """Picture of all heads, those with a role marked from its onset on."""
    marks = [
        mark_head(layer, head, name, detail=f"since step {onset:,}", onset=onset)
        for (layer, head), (name, onset) in roles.list_onsets().items()
    ]
    return {**build_head_grid(run, marks, tone="note"), "run": run_id}


def link_clearest_head(text: str, run_id: str, roles: RoleCounts) -> ViewLink:
    """The attention view at the head with the clearest role."""
    route: dict[str, str | int] = {"pane": "attention", "run": run_id}
    if (head := roles.find_clearest_head()) is not None:
        route |= {"layer": head[0], "head": head[1]}
    return ViewLink(text, route)


def describe_roles(counts: Sequence[RoleCounts]) -> str:
    """One sentence about the roles of the heads of one setting, with one item per seed."""
    head_count = counts[0].head_count
    heads_with_role = [len(each.heads) for each in counts]
    if len(counts) > 1:
        if not any(heads_with_role):
            return f"No head found a role with any of {len(counts)} seeds"
        if min(heads_with_role) == max(heads_with_role):
            return f"{heads_with_role[0]} of {head_count} heads found a role with each of {len(counts)} seeds"
        mean = sum(heads_with_role) / len(heads_with_role)
        return (
            f"On average {mean:.3g} of {head_count} heads found a role: {min(heads_with_role)} to "
            f"{max(heads_with_role)} with {len(counts)} seeds"
        )
    (single,), (number,) = counts, heads_with_role
    if all(len(role.steps) == 1 for role in single.roles.values()):
        return _describe_snapshot(single)
    if head_count == 1:
        if number:
            return f"Its only head found a role: {single.format_tally().removeprefix('1 ')}"
        return (
            "The attention of its only head is uniform"
            if single.uniform_count
            else "Its only head found no role"
        )
    if number:
        from_start = single.count_from_start()
        subject = (
            f"all {head_count} heads" if number == head_count else f"{number} of {head_count} heads"
        )
        if not from_start:
            start = "From uniform attention, " if single.began_uniform() else ""
            return f"{capitalize(start + subject)} found a role"
        owns = f"{capitalize(subject)} {'has' if number == 1 else 'have'} a role"
        if from_start == number:
            return f"{owns}, as {'it' if number == 1 else 'they'} had from the start"
        return f"{owns}, {from_start} of them from the start"
    if single.uniform_count:
        verb = "stayed" if single.was_uniform() else "became"
        if single.uniform_count == head_count:
            return f"No head found a role: the attention of all {head_count} {verb} uniform"
        return (
            f"No head found a role: the attention of {single.uniform_count} of {head_count} heads "
            f"{verb} uniform"
        )
    return f"None of {head_count} heads found a role"


def _describe_snapshot(counts: RoleCounts) -> str:
    """The sentence about one capture, without a training: what the heads do, not how it came."""
    number, head_count = len(counts.heads), counts.head_count
    if number:
        verb = "has" if number == 1 else "have"
        return f"{number} of {head_count} heads {verb} a role: {counts.format_tally()}"
    if counts.uniform_count:
        return f"The attention of {counts.uniform_count} of {head_count} heads is uniform"
    return f"None of {head_count} heads has a role"

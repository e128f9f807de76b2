"""Roles of a run's heads as page data: names, how clear each role is, and since which step.

The roles are those of findings/head_roles.py. Computing them reads all maps of a run, so the page
data of a training that is still running have none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from neural.findings.head_roles import ROLE_THRESHOLDS, ROLES_OF_NO_PATTERN, TOO_SHORT, RoleScores
from neural.findings.record import Record
from neural.report.role_counts import count_head_roles

NO_ROLE_DATA: dict[str, Any] = {"roles": None, "role_strengths": None, "role_onsets": None}
"""Page data of a run without roles."""


def collect_role_data(run: Record) -> dict[str, Any]:
    """Page data of the roles at the end: three tables, [layer][head], or None in their place.

    `roles` has the names: "mixed" without a role, "" where a layer has fewer heads.
    `role_strengths` has the score of the role as a multiple of its threshold, `role_onsets` the
    step since which the head has had it; both are None for heads without a role.
    """
    counts = count_head_roles(run)
    if counts is None:
        return NO_ROLE_DATA
    names, roles = counts.names, counts.roles
    return {
        # pages know "mixed" as the name of no role
        "roles": np.where(names == TOO_SHORT, "mixed", names).tolist(),
        "role_strengths": list_role_strengths(names, roles),
        "role_onsets": [
            [
                roles[name].find_onset_step(layer, head) if has_role(name) else None
                for head, name in enumerate(row)
            ]
            for layer, row in enumerate(names.tolist())
        ],
    }


def list_role_strengths(
    names: np.ndarray, roles: Mapping[str, RoleScores]
) -> list[list[float | None]]:
    """Score of each head's role as a multiple of its threshold, [layer][head]."""
    return [
        [
            float(roles[name].last_levels[layer, head]) / ROLE_THRESHOLDS[name]
            if has_role(name)
            else None
            for head, name in enumerate(row)
        ]
        for layer, row in enumerate(names.tolist())
    ]


def has_role(name: str) -> bool:
    """Whether the name of `assign_head_roles` is that of a role."""
    return name not in ROLES_OF_NO_PATTERN

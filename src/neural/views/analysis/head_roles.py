"""What each head has become: previous token, induction, positional, local, sink, delimiter, or none."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.tracking.run import Run
from neural.views.finding import Diagnosis, Kind, Symptom
from neural.views.heads import chief, head_name, roles


class HeadRoles(Diagnosis):
    """Share of heads with a role at the end; views/heads.py says what each role is.

    A head that looks at everything alike has none: `uniform_attention` tells of those.
    """

    code: ClassVar[str] = "ATT008"
    claim: ClassVar[str] = "heads have roles"
    unit: ClassVar[str] = "of the heads"
    kind: ClassVar[Kind] = "note"

    def symptom(self, run: Run) -> Symptom | None:
        """Every head with a role, its score then and now, and when it took it up."""
        found = roles(run)
        names = chief(found)
        said = []
        for layer, head in np.argwhere(~np.isin(names, ["mixed", "uniform", ""])):
            role = found[names[layer, head]]
            scores, since = role.scores[:, layer, head], role.since(layer, head)
            said.append(
                f"{head_name(layer, head)} {role.name} ({scores[0]:.2f} → {scores[-1]:.2f}, since step {since:,})"
            )
        if not said:
            return None
        more = f" and {len(said) - 12} more" if len(said) > 12 else ""
        return Symptom(len(said) / int((names != "").sum()), ", ".join(said[:12]) + more)


"""What went wrong with a focus that the accuracy does not tell: each with its number and an experiment to try."""

from __future__ import annotations

import math
from dataclasses import dataclass

from neural.views.focus_results import Groups, estimate

GOOD, SURE, BLIND, LATE = 0.9, 0.8, 0.6, 0.6
"""An accuracy to be proud of, a weight to be sure of, a class that is not found, a switch that came too late."""


@dataclass(frozen=True)
class Warned:
    """A finding about one paradigm at one m."""

    code: str
    paradigm: str
    segments: int
    evidence: str
    advice: str

    def __str__(self) -> str:
        return f"{self.code}  {self.paradigm}, m = {self.segments}: {self.evidence} → {self.advice}"


def warnings(groups: Groups) -> list[Warned]:
    """All that there is to warn of, by code."""
    found: list[Warned] = []
    for (name, m), group in groups.items():
        score = {key: estimate(group, key).value for key in sorted({key for one in group for key in one.scores})}
        if "focus_accuracy" not in score:
            continue
        told: list[tuple[str, str, str]] = []
        right, sure, looked = score["accuracy"], score["focus_confidence"], score["focus_accuracy"]
        if right >= GOOD and sure < SURE:
            vague = f"right in {right:.0%}, but its largest weight is {sure:.2f} on average: it does not commit"
            told.append(("FOC001", vague, 'go on with `hybrid(then="hard")`'))
        if sure >= SURE and looked < BLIND:
            wrong = f"sure of its focus ({sure:.2f}), which is wrong in {1 - looked:.0%}"
            told.append(("FOC002", wrong, "begin with lvml, or with another seed"))
        classes = {key: value for key, value in score.items() if key.startswith("focus_accuracy_class_")}
        blind = {key: value for key, value in classes.items() if value < BLIND}
        if blind and score["cell_ft"] > 1 - GOOD:
            worst = min(blind, key=lambda key: blind[key])
            label = group[0].classes[int(worst.rpartition("_")[2])]
            shortcut = (f"class {label} is found in {blind[worst]:.0%} only, and {score['cell_ft']:.0%} are right with "
                        "a wrong focus: background is taken for it")  # fmt: skip
            told.append(("FOC003", shortcut, "`background: 0.5`"))
        switch = score.get("switched", math.nan)
        if name.startswith("hybrid") and (math.isnan(switch) or switch > LATE):
            when = "never" if math.isnan(switch) else f"after {switch:.0%} of the steps"
            told.append(("FOC004", f"it switched {when}", 'set the time: `hybrid(switch="step", value=…)`'))
        found += [Warned(code, name, m, evidence, advice) for code, evidence, advice in told]
    return sorted(found, key=lambda one: one.code)

"""Which heads a model needs, since when, and which replace each other: decisions with error rates.

The importance of a head is the change of the loss when the head is removed, measured on the same
examples with and without it, at every kept checkpoint (`neural ablate`, runs/importance_file.py).
Positive means that the head helps. What the model has learned is the loss of guessing by the
frequencies of the data (the chance loss) minus its own loss. Changes at all steps are compared with
MIN_LEARNED_SHARE of the most that it has learned at any step, the smallest relevant change: a bound
that grew with the model would call a head necessary as soon as anything was learned.

    necessary          the change is above 0 (t test over examples, Holm's correction for the number
                       of heads) and at least the smallest relevant change
    without effect     the change lies within ± the smallest relevant change (two one-sided tests,
                       corrected likewise); not the same as "not necessary", which may be too few
                       examples
    redundant pair     each head alone is without effect, both together are necessary
    takeover           one head stops being necessary when another becomes necessary

Nothing is decided at steps at which the model is not better than chance. Error rates and power are
simulated in tests/validity/test_head_necessity.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from neural.findings.head_roles import ROLES_OF_NO_PATTERN, assign_head_roles, find_head_roles
from neural.findings.record import Record
from neural.findings.run_loading import MissingDataError
from neural.runs.importance_file import IMPORTANCE_FILE, ImportanceRecord, load_importance
from neural.stats.change_points import MAD_TO_STD, estimate_last_level, find_onset
from neural.stats.comparisons import SIGNIFICANCE_LEVEL, adjust_p_values, compute_t_tail

MIN_LEARNED_SHARE = 0.01
"""Smallest relevant change of the loss, as a share of what the model has learned.

Far below an equal share of the heads, which is 3 % for 6 × 6 heads and 12 % for 2 × 4, so that a
head that does its part is not overlooked; and a loss that differs by less is the same for most
purposes. "Necessary" and "without effect" use the same bound, so that no head can be both.
"""
MIN_NECESSARY_ERRORS = 4.0
"""A necessary head's change is at least this many standard errors, whatever the t test says.

The t test finds changes too often if few examples have large negative changes: at a skewness of −1,
64 examples and 36 heads, in 13 % of models without any effect; with this bound in 2 %.
"""
MIN_EQUIVALENCE_ERRORS = 3.0
"""The change of a head without effect is this many standard errors away from both bounds."""
MIN_EXAMPLES = 16
"""Fewer examples decide nothing: t tests of skewed changes are not reliable then."""
CHANCE_STANDARD_ERRORS = 2.0
"""A model is better than chance if its loss is below the chance loss by this many of its errors."""
MIN_HELD_STEPS = 2
"""Steps that a head must have been necessary before another one took over, and that one after."""
MAX_TAKEOVER_DISTANCE = 1
"""Steps, in measured checkpoints, between the end of one head's necessity and the other's start."""
MAX_TAKEOVER_SIZE_RATIO = 2.0
"""Largest ratio of the importance of both heads of a takeover."""
MAX_CHANCE = 0.2
"""Largest expected number of takeovers by chance, if heads rise and fall at independent times.

It is falls × rises / steps, three times that for neighbouring steps: a few checkpoints cannot show
a takeover.
"""
MIN_TAKEOVER_RATIO = 3.0
"""Smallest change of both heads of a takeover, in smallest relevant changes."""
MAX_TAKEOVER_REST = 0.5
"""Largest share of its importance that remains with the first head after a takeover.

The same is the largest share of its new importance that the second head had before.
"""

MIN_TAKEOVER_DRIFTS = 3.0
"""Smallest jump of both heads of a takeover, in typical changes between neighbouring steps.

Where the importance of all heads drifts like a random walk by 1 % or more of what was learned per
step, a takeover would otherwise be found in about 10 % of runs of 16 heads and 20 steps.
"""

HeadIndex = tuple[int, int]
"""Layer and head."""


@dataclass(frozen=True, eq=False)
class HeadNecessity:
    """Decisions about every head at every measured step; [step, layer, head] unless said otherwise.

    All are False where a layer has fewer heads, and where the model is not better than chance.
    """

    record: ImportanceRecord
    learned: np.ndarray
    """Chance loss minus loss, [step]; NaN where the model is not better than chance."""
    is_necessary: np.ndarray
    """After smoothing over steps: a decision that differs from both neighbours is replaced."""
    is_without_effect: np.ndarray
    """Not smoothed."""

    @property
    def smallest_change(self) -> float:
        """Smallest relevant change of the loss; NaN if nothing was learned at any step."""
        return _find_smallest_change(self.learned)

    def find_onset_index(self, layer: int, head: int) -> int | None:
        """Index of the step since which a head has been necessary; None if it is not at the end."""
        decisions = self.is_necessary[:, layer, head]
        if not len(decisions) or not decisions[-1]:
            return None
        pauses = np.flatnonzero(~decisions)
        return int(pauses[-1]) + 1 if len(pauses) else 0

    def find_onset_step(self, layer: int, head: int) -> int | None:
        """The step since which a head has been necessary; None if it is not at the end."""
        index = self.find_onset_index(layer, head)
        return None if index is None else int(self.record.steps[index])

    def find_half_step(self, layer: int, head: int) -> int | None:
        """The step since which a necessary head has had half of its importance at the end.

        Early signs may come long before; this is when most of the change happened. It is not before
        the head is necessary. None if the head is not necessary at the end.
        """
        onset = self.find_onset_step(layer, head)
        if onset is None:
            return None
        change = self.record.change[:, layer, head]
        finite = np.isfinite(change)
        half = estimate_last_level(change[finite]) / 2
        index = find_onset(change[finite], half) if half > 0 else None
        return onset if index is None else max(onset, int(self.record.steps[finite][index]))

    def list_necessary_heads(self) -> list[HeadIndex]:
        """Heads that are necessary at the last step, the most important first."""
        heads = [(int(layer), int(head)) for layer, head in np.argwhere(self.is_necessary[-1])]
        return sorted(heads, key=lambda head: -self.record.change[-1, *head])


class RedundantPair(NamedTuple):
    """Two heads of which each can replace the other, at the last step."""

    first: HeadIndex
    second: HeadIndex
    both: float
    """Change of the loss without both."""
    both_error: float
    """Its standard error over examples."""


class Jump(NamedTuple):
    """A sudden change of a head's importance."""

    index: int
    """Index of the first step after it."""
    before: float
    """Mean change of the loss at the two steps before."""
    after: float
    """The same at the two steps from it on."""
    error: float
    """Standard error of the difference."""


class Takeover(NamedTuple):
    """A head that became necessary when another one stopped being necessary."""

    earlier: HeadIndex
    later: HeadIndex
    step: int
    """The step since which the later head is necessary."""
    fall: Jump
    """Of the earlier head."""
    rise: Jump
    """Of the later head."""
    chance: float
    """Expected number of such pairs if heads rose and fell at independent times."""


class HeadRole(NamedTuple):
    """The role of a head at the end of training."""

    name: str
    onset: int
    """The step since which it has had the role."""
    is_onset_observed: bool
    """Whether an earlier snapshot shows the head without the role."""

    @property
    def noun(self) -> str:
        """As a noun with its article: "an induction head"."""
        article = "an" if self.name[0] in "aeiou" else "a"
        return f"{article} {self.name.replace(' ', '-')} head"

    def describe(self) -> str:
        """Since when, as a clause about the head: "it became an induction head at step 700"."""
        if not self.is_onset_observed:
            return f"it is {self.noun}"
        return f"it became {self.noun} at step {self.onset:,}"


def has_importance(run: Record) -> bool:
    """Whether the importance of the run's heads was measured."""
    return run.path is not None and (Path(run.path) / IMPORTANCE_FILE).is_file()


_DECISIONS: WeakKeyDictionary[Record, tuple[tuple[int, int], HeadNecessity]] = WeakKeyDictionary()
"""Open run → time and size of its file, and the decisions: a page needs them several times."""


def load_necessity(run: Record) -> HeadNecessity:
    """Decisions about the heads of a run; MissingDataError without a valid `importance.json`."""
    folder = None if run.path is None else Path(run.path)
    version = None if folder is None else _read_file_version(folder / IMPORTANCE_FILE)
    if version is not None and run in _DECISIONS and _DECISIONS[run][0] == version:
        return _DECISIONS[run][1]
    try:
        record = load_importance(folder) if folder is not None and version is not None else None
    except ValueError as error:
        raise MissingDataError(f"{run.name} has no importance of heads: {error}") from None
    if record is None or version is None:
        raise MissingDataError(
            f"{run.name} has no importance of heads; measure it with `neural ablate RUN --over-training`"
        )
    necessity = decide_necessity(record, run.metadata("data/chance_loss"))
    _DECISIONS[run] = version, necessity
    return necessity


def _read_file_version(path: Path) -> tuple[int, int] | None:
    """Time of change and size of a file; None if it does not exist."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size


def load_roles(run: Record) -> dict[HeadIndex, HeadRole]:
    """Heads that have a role at the end; none if the run recorded nothing about roles."""
    try:
        roles = find_head_roles(run)
    except MissingDataError:
        return {}
    names = assign_head_roles(roles)
    heads = {}
    for layer, head in np.argwhere(~np.isin(names, ROLES_OF_NO_PATTERN)).tolist():
        role = roles[names[layer, head]]
        onset = role.find_onset_step(layer, head)
        heads[layer, head] = HeadRole(role.name, onset, onset > int(role.steps[0]))
    return heads


def find_roles_without_effect(
    necessity: HeadNecessity, roles: dict[HeadIndex, HeadRole]
) -> list[HeadIndex]:
    """Heads that have a role and are without effect at the last step.

    Heads of redundant pairs are left out: another head does their work while they are removed.
    """
    redundant = {
        head for pair in find_redundant_pairs(necessity) for head in (pair.first, pair.second)
    }
    without_effect = necessity.is_without_effect[-1]
    layers, heads = without_effect.shape
    return [
        head
        for head in sorted(roles)
        if head[0] < layers and head[1] < heads and without_effect[head] and head not in redundant
    ]


def format_change(change: float, error: float, unit: str = "") -> str:
    """A change of the loss with its standard error: "0.41 ± 0.02 nats"."""
    if not math.isfinite(error):
        return f"{change:.3g} {unit}".replace("-", "−").strip()
    # one digit of the error, two if it begins with 1
    decimals = 2
    if error > 0:
        exponent = math.floor(math.log10(error))
        decimals = min(6, max(0, (1 if error < 2 * 10.0**exponent else 0) - exponent))
    text = f"{change:.{decimals}f}".replace("-", "−")
    return f"{text} ± {error:.{decimals}f} {unit}".strip()


def decide_necessity(record: ImportanceRecord, chance_loss: float | None = None) -> HeadNecessity:
    """Decide at every step which heads are necessary and which are without effect.

    `chance_loss` is used if the record has none. Without any, the loss at the first step stands for
    it, if there are several steps: nothing is decided at that step itself.
    """
    learned = _measure_learning(record, chance_loss)
    if record.examples < MIN_EXAMPLES:
        learned = np.full_like(learned, np.nan)
    change, error = record.change, record.se
    smallest = _find_smallest_change(learned)
    necessary, without_effect = np.zeros((2, *change.shape), bool)
    for step, learned_there in enumerate(learned):
        if not math.isfinite(learned_there):
            continue
        p_above = _test_above(change[step], error[step], record.examples)
        necessary[step] = _reject_jointly(p_above) & (change[step] >= smallest)
        p_within = _test_within(change[step], error[step], smallest, record.examples)
        without_effect[step] = _reject_jointly(p_within)
    return HeadNecessity(
        record=record,
        learned=learned,
        is_necessary=_smooth_over_steps(necessary),
        is_without_effect=without_effect,
    )


def find_redundant_pairs(necessity: HeadNecessity) -> list[RedundantPair]:
    """Pairs of which each head alone is without effect and both are necessary, at the last step.

    Both together must also cost more than the sum of each alone (their interaction), because two
    small effects that add up are no redundancy. All of this must hold, so the largest p-value is
    that of the pair; Holm's correction is for the number of measured pairs.
    """
    record, learned = necessity.record, necessity.learned
    pairs = record.pairs[-1] if len(record.pairs) else []
    if not pairs or not math.isfinite(learned[-1]):
        return []
    smallest = necessity.smallest_change
    p_within = _test_within(record.change[-1], record.se[-1], smallest, record.examples)

    def test_gain(value: float, error: float) -> float:
        p = float(_test_above(np.array(value), np.array(error), record.examples))
        return p if value >= smallest and math.isfinite(p) else 1.0

    p_values = [
        max(
            float(np.nan_to_num(p_within[pair.first], nan=1.0)),
            float(np.nan_to_num(p_within[pair.second], nan=1.0)),
            test_gain(pair.both, pair.both_se),
            test_gain(pair.interaction, pair.interaction_se),
        )
        for pair in pairs
    ]
    adjusted = adjust_p_values(p_values)
    redundant = [
        RedundantPair(pair.first, pair.second, pair.both, pair.both_se)
        for pair, p in zip(pairs, adjusted, strict=True)
        if p <= SIGNIFICANCE_LEVEL
    ]
    return sorted(redundant, key=lambda pair: -pair.both)


def find_takeovers(necessity: HeadNecessity) -> list[Takeover]:
    """Heads that took over from others, in the order of steps.

    The earlier head was necessary at two steps or more and is not any more from some step on; the
    later one has been necessary since that step, the one before or the one after, and not before.
    The importance of both jumps: by more than half, by more than its error and its usual drift, and
    from or to three times the smallest relevant change. Neither is more than twice the other.
    Of several earlier heads that fit, the one with the most similar importance is named.
    """
    heads = _list_heads(necessity.record)
    falls = {head: jump for head in heads if (jump := _find_fall(necessity, head)) is not None}
    rises = {head: jump for head in heads if (jump := _find_rise(necessity, head)) is not None}
    possible_steps = max(1, len(necessity.record.steps) - 2 * MIN_HELD_STEPS + 1)
    takeovers = []
    for later, rise in rises.items():
        candidates = []
        for earlier, fall in falls.items():
            distance = abs(fall.index - rise.index)
            chance = len(falls) * len(rises) * (2 * distance + 1) / possible_steps
            sizes = sorted((fall.before, rise.after))
            if (
                distance <= MAX_TAKEOVER_DISTANCE
                and chance <= MAX_CHANCE
                and sizes[1] <= MAX_TAKEOVER_SIZE_RATIO * sizes[0]
            ):
                step = int(necessity.record.steps[rise.index])
                candidates.append(Takeover(earlier, later, step, fall, rise, chance))
        if candidates:
            takeovers.append(min(candidates, key=_compare_sizes))
    return sorted(takeovers, key=lambda takeover: (takeover.step, takeover.later))


def _compare_sizes(takeover: Takeover) -> float:
    """How different the importance of both heads is, 0 for equal ones."""
    return abs(math.log(takeover.rise.after / takeover.fall.before))


def _find_fall(necessity: HeadNecessity, head: HeadIndex) -> Jump | None:
    """The end of a head's necessity, if its importance jumps there."""
    decisions = necessity.is_necessary[:, *head]
    held = np.flatnonzero(decisions)
    if not len(held):
        return None
    end = int(held[-1]) + 1
    is_held = end >= MIN_HELD_STEPS and decisions[end - MIN_HELD_STEPS : end].all()
    if not is_held or len(decisions) - end < MIN_HELD_STEPS:
        return None
    jump = _measure_jump(necessity.record, head, end)
    return jump if _is_jump(necessity, head, jump, high=jump.before, low=jump.after) else None


def _find_rise(necessity: HeadNecessity, head: HeadIndex) -> Jump | None:
    """The start of a head's necessity, if its importance jumps there."""
    start = necessity.find_onset_index(*head)
    if start is None or not MIN_HELD_STEPS <= start <= len(necessity.learned) - MIN_HELD_STEPS:
        return None
    jump = _measure_jump(necessity.record, head, start)
    return jump if _is_jump(necessity, head, jump, high=jump.after, low=jump.before) else None


def _measure_jump(record: ImportanceRecord, head: HeadIndex, index: int) -> Jump:
    """Levels of a head's importance before and after a step.

    The steps of a level share their examples, so its error is no smaller than that of one step.
    """
    before = np.s_[index - MIN_HELD_STEPS : index, head[0], head[1]]
    after = np.s_[index : index + MIN_HELD_STEPS, head[0], head[1]]
    return Jump(
        index,
        float(record.change[before].mean()),
        float(record.change[after].mean()),
        math.hypot(float(record.se[before].mean()), float(record.se[after].mean())),
    )


def _is_jump(
    necessity: HeadNecessity, head: HeadIndex, jump: Jump, *, high: float, low: float
) -> bool:
    """Whether the change from one level to the other exceeds its error and the usual drift.

    The drift is the typical change between neighbouring steps; the median ignores the jump itself.
    """
    changes = np.abs(np.diff(necessity.record.change[:, *head]))
    drift = MAD_TO_STD * float(np.median(changes[np.isfinite(changes)]))
    return (
        high >= MIN_TAKEOVER_RATIO * necessity.smallest_change
        and low < MAX_TAKEOVER_REST * high
        and high - low > CHANCE_STANDARD_ERRORS * jump.error
        and high - low > MIN_TAKEOVER_DRIFTS * drift
    )


def _measure_learning(record: ImportanceRecord, chance_loss: float | None) -> np.ndarray:
    """Chance loss minus loss, [step]; NaN where the model is not better than chance."""
    reference = record.chance_loss if record.chance_loss is not None else chance_loss
    if reference is None:
        reference = float(record.loss[0]) if len(record.loss) else math.nan
    learned = reference - record.loss
    error = np.nan_to_num(record.loss_se, nan=0.0)
    return np.where(learned > CHANCE_STANDARD_ERRORS * error, learned, np.nan)


def _find_smallest_change(learned: np.ndarray) -> float:
    finite = learned[np.isfinite(learned)]
    return MIN_LEARNED_SHARE * float(finite.max()) if len(finite) else math.nan


def _test_above(
    change: np.ndarray,
    error: np.ndarray,
    examples: int,
    *,
    bound: float = 0.0,
    min_errors: float = MIN_NECESSARY_ERRORS,
) -> np.ndarray:
    """One-sided p-values of a mean above `bound`; NaN where nothing was measured.

    1 below `min_errors` standard errors.
    """
    excess = change - bound
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(error > 0, excess / error, np.where(excess > 0, np.inf, -np.inf))
    p, is_far = np.ones_like(t), t >= min_errors
    p[is_far] = compute_t_tail(t[is_far], max(1, examples - 1))
    return np.where(np.isfinite(change) & np.isfinite(error), p, np.nan)


def _test_within(change: np.ndarray, error: np.ndarray, bound: float, examples: int) -> np.ndarray:
    """p-values of the equivalence test: a mean within ± `bound` (two one-sided tests)."""
    sides = (
        _test_above(side, error, examples, bound=-bound, min_errors=MIN_EQUIVALENCE_ERRORS)
        for side in (change, -change)
    )
    return np.maximum(*sides)


def _reject_jointly(p_values: np.ndarray) -> np.ndarray:
    """Where Holm's corrected p-values are significant; False for NaN."""
    adjusted = np.array(adjust_p_values(p_values.ravel().tolist())).reshape(p_values.shape)
    return adjusted <= SIGNIFICANCE_LEVEL


def _smooth_over_steps(decisions: np.ndarray) -> np.ndarray:
    """Replace decisions that differ from both neighbours in time; the first and last stay."""
    smooth = decisions.copy()
    if len(decisions) > 2:
        smooth[1:-1] = decisions[:-2].astype(int) + decisions[1:-1] + decisions[2:] >= 2
    return smooth


def _list_heads(record: ImportanceRecord) -> list[HeadIndex]:
    is_measured = np.isfinite(record.change).any(axis=0)
    return [(int(layer), int(head)) for layer, head in np.argwhere(is_measured)]

"""Headlines of focus experiments: which paradigm puts its focus most surely on the foreground.

A paradigm (tasks/focus) is the loss that trains a focus model. Paradigms are ranked by their mean
SAIF over seeds, or by accuracy where the foreground is unknown. What the sentence may say is
decided by paired tests over seeds:

    "most surely"        the first is better than each of the others, p ≤ .05 for each
    "more surely than"   each of the first few is better than each of the rest; also corrected for
                         all pairs of paradigms, because where to cut is chosen by the same scores
    "undecided"          otherwise. Equal results are never claimed.

p has Holm's correction for all tests of the report (`evaluate_superiority`), as the claims in the
pane `focus` and in `neural dynamics` have: the headline is one of these claims or one more, and
never says more than they do.

tests/report/headlines/test_focus.py simulates how often a sentence claims a difference if there is
none. Only finished runs count, and fewer than MIN_SEEDS paired seeds decide nothing. Of several
numbers of segments, the headline is about the largest that has most paradigms.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from neural.findings.check import FigureData, ViewLink
from neural.findings.focus_claims import evaluate_superiority
from neural.findings.focus_results import (
    FocusGroups,
    FocusResult,
    estimate_score,
    list_segment_counts,
    pair_by_seed,
)
from neural.report.focus_data import (
    FocusComparison,
    build_focus_data,
    build_mosaics,
    describe_left_out,
    load_comparison,
    name_paradigm,
)
from neural.report.headline import ExperimentGroup, Headline, HeadlineWriter
from neural.stats.comparisons import SIGNIFICANCE_LEVEL, format_p_value, mean_test
from neural.stats.means import MIN_SEEDS, estimate_mean

MAX_LISTED_PARADIGMS = 4
"""Paradigms in a sentence; further ones are only counted."""
MAX_CARD_ROWS = 3
"""Paradigms in the pictures of the headline."""


class Focus(HeadlineWriter):
    """Writes which paradigm finds the foreground most surely."""

    def write(self, groups: Sequence[ExperimentGroup]) -> Headline:
        """The headline; that of any task until a run has finished."""
        comparison = _load_comparison(groups)
        if comparison is None:
            return super().write(groups)
        rankings = rank_paradigms(comparison.groups)
        main = select_main(rankings)
        among = len(rankings) > 1
        noun = comparison.segment_noun
        details = [describe_score(comparison, main.score)]
        details += expand_abbreviations(main)
        details += describe_test(main)
        details += [
            f"{write_sentence(ranking, noun, among=among)}."
            for ranking in rankings
            if ranking is not main
        ]
        details += [f"{note}." for note in describe_left_out(comparison)]
        first_run = comparison.run_id(main.results[main.paradigms[0]][0])
        return Headline(
            text=write_sentence(main, noun, among=among),
            details=details,
            figures=_build_figures(comparison, main),
            link=ViewLink("focus, claims and curves", {"pane": "focus", "run": first_run}),
        )

    def build_data(self, groups: Sequence[ExperimentGroup]) -> dict[str, Any]:
        """The comparison of the paradigms, for the pane `focus`."""
        comparison = _load_comparison(groups)
        if comparison is None:
            return {}
        test = describe_test(select_main(rank_paradigms(comparison.groups)))
        return {"focus": {**build_focus_data(comparison), "headline_test": " ".join(test)}}


def _load_comparison(groups: Sequence[ExperimentGroup]) -> FocusComparison | None:
    return load_comparison(
        [run for group in groups for run in group.runs],
        [run_id for group in groups for run_id in group.run_ids],
    )


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """Paradigms with one number of segments, the largest mean score first."""

    segments: int
    score: str
    """`saif` or `accuracy`."""
    paradigms: list[str]
    results: dict[str, list[FocusResult]]
    """By paradigm, one result per seed."""
    p_values: dict[tuple[str, str], float]
    """By (better, worse) pair: two-sided p that the first is better, without correction.

    NaN without a test.
    """
    paired_seeds: int
    """The smallest number of seeds that two paradigms share."""
    groups: FocusGroups
    """All results of the report, also of other numbers of segments: the correction counts them."""

    def mean(self, paradigm: str) -> float:
        """Mean score over seeds."""
        return estimate_score(self.results[paradigm], self.score).value

    @cached_property
    def leaders(self) -> int:
        """How many of the first paradigms are better than all others; 0 if that is undecided."""
        for cut in range(1, len(self.paradigms)):
            # a correction only raises p, so most cuts are decided without it
            if self._pairs_p(cut) <= SIGNIFICANCE_LEVEL and self._evaluate(cut)[0]:
                return cut
        return 0

    @cached_property
    def corrected_p(self) -> float:
        """p of the statement of the sentence: `leaders`, or of the first one if it is undecided.

        Corrected for all tests of the report; NaN without a test.
        """
        cut = self.leaders or 1
        return max(self._pairs_p(cut), self._evaluate(cut)[1])

    def _pairs_p(self, cut: int) -> float:
        """The largest p of a pair of a leader and another one, corrected for where the cut is."""
        count = len(self.paradigms)
        tests = 1 if cut == 1 else count * (count - 1) // 2
        p_values = [
            self.p_values[first, second]
            for first in self.paradigms[:cut]
            for second in self.paradigms[cut:]
        ]
        if any(map(math.isnan, p_values)):
            return math.nan
        return min(1.0, tests * max(p_values))

    def _evaluate(self, cut: int) -> tuple[bool, float]:
        """Whether the first `cut` are better than the others, and p, by the tests of claims."""
        return evaluate_superiority(
            self.groups,
            self.paradigms[:cut],
            self.paradigms[cut:],
            score=self.score,
            segments=self.segments,
        )


def rank_paradigms(groups: FocusGroups) -> list[Ranking]:
    """A ranking for each number of segments, ascending."""
    rankings = []
    for m in list_segment_counts(groups):
        results = {name: group for (name, size), group in groups.items() if size == m}
        has_saif = all("saif" in result.scores for group in results.values() for result in group)
        score = "saif" if has_saif else "accuracy"
        means = {name: estimate_score(group, score).value for name, group in results.items()}
        # a paradigm with failed seeds is last: its mean is that of the seeds that did not fail
        paradigms = sorted(
            results, key=lambda name: (results[name][0].failed_seeds > 0, -means[name])
        )
        p_values, paired_seeds = {}, min(map(len, results.values()))
        for index, first in enumerate(paradigms):
            for second in paradigms[index + 1 :]:
                differences = [
                    better.scores.get(score, math.nan) - worse.scores.get(score, math.nan)
                    for better, worse in pair_by_seed(groups, first, second, m)
                ]
                finite = [value for value in differences if math.isfinite(value)]
                paired_seeds = min(paired_seeds, len(finite))
                failed = results[first][0].failed_seeds + results[second][0].failed_seeds
                p_values[first, second] = (
                    2 * mean_test(finite).above
                    if len(finite) >= MIN_SEEDS and not failed
                    else math.nan
                )
        rankings.append(
            Ranking(
                segments=m,
                score=score,
                paradigms=paradigms,
                results=results,
                p_values=p_values,
                paired_seeds=paired_seeds,
                groups=groups,
            )
        )
    return rankings


def select_main(rankings: Sequence[Ranking]) -> Ranking:
    """The ranking that the headline is about: of most paradigms, then of most segments."""
    return max(rankings, key=lambda ranking: (len(ranking.paradigms), ranking.segments))


def write_sentence(ranking: Ranking, noun: str, *, among: bool = False) -> str:
    """The result of a ranking in one sentence; `noun` is what a segment is.

    `among` adds the number of segments.
    """
    prefix = f"Among {ranking.segments:,} {noun}s, " if among else ""
    names = [name_paradigm(paradigm) for paradigm in ranking.paradigms]
    numbers = format_shares([ranking.mean(paradigm) for paradigm in ranking.paradigms])
    title = "SAIF" if ranking.score == "saif" else "accuracy"
    finds, find, surely = (
        (f"finds the right {noun}", f"find the right {noun}", "surely")
        if ranking.score == "saif"
        else ("classifies", "classify", "accurately")
    )
    if len(names) == 1:
        seeds = len(ranking.results[ranking.paradigms[0]])
        over = f", mean of {seeds} seeds" if seeds > 1 else ""
        return f"{prefix}{names[0]} {finds}: {title} {numbers[0]}{over}"
    leaders = ranking.leaders
    listed = [f"{name} {number}" for name, number in zip(names, numbers, strict=True)]
    more = len(listed) - MAX_LISTED_PARADIGMS
    if leaders == 1 and len(names) == 2:
        return (
            f"{prefix}{names[0]} {finds} more {surely} than {names[1]}: "
            f"{title} {numbers[0]} against {numbers[1]}"
        )
    rest = f" and {more} more down to {numbers[-1]}" if more > 0 else ""
    if leaders == 1:
        others = ", ".join(listed[1:MAX_LISTED_PARADIGMS])
        return f"{prefix}{names[0]} {finds} most {surely}: {title} {numbers[0]}, {others}{rest}"
    if leaders:
        better, worse = _join(names[:leaders]), _join(names[leaders:])
        return (
            f"{prefix}{better} {find} more {surely} than {worse}: "
            f"{title} {_join(numbers[:leaders])} against {_join(numbers[leaders:])}"
        )
    shown = ", ".join(listed[:MAX_LISTED_PARADIGMS]) + rest
    if ranking.paired_seeds < MIN_SEEDS:
        text = f"{title} of {shown}: a verdict needs {MIN_SEEDS} seeds, has {ranking.paired_seeds}"
    else:
        text = f"which paradigm {finds} most {surely} is undecided: {title} of {shown}"
    text = prefix + text
    return text[:1].upper() + text[1:]


def describe_score(comparison: FocusComparison, score: str) -> str:
    """What the score is, in plain words."""
    data, noun = comparison.data, comparison.segment_noun
    if score != "saif":
        return f"Accuracy on {data} examples; which {noun} is the right one is unknown."
    threshold = comparison.threshold
    share = "a threshold" if threshold is None else f"{100 * threshold:g} %"
    return (
        f"SAIF: share of {data} examples with more than {share} of the focus on the right {noun} "
        f"and more than {share} probability of the right class. Bars: 95 % intervals over seeds."
    )


def expand_abbreviations(ranking: Ranking) -> list[str]:
    """What LVML stands for, if the sentence has it."""
    if not any("LVML" in name_paradigm(paradigm) for paradigm in ranking.paradigms):
        return []
    return ["LVML: latent variable marginal likelihood, a loss that sums over all segments."]


def describe_test(ranking: Ranking) -> list[str]:
    """The weakest difference that the sentence rests on, and the corrected p of the sentence."""
    cut = ranking.leaders or 1
    if len(ranking.paradigms) < 2 or ranking.paired_seeds < MIN_SEEDS:
        return []
    pairs = [
        (first, second)
        for first in ranking.paradigms[:cut]
        for second in ranking.paradigms[cut:]
        if math.isfinite(ranking.p_values[first, second])
    ]
    if not pairs:
        return []
    first, second = max(pairs, key=lambda pair: ranking.p_values[pair])
    by_seed = {result.seed: result.scores for result in ranking.results[second]}
    difference = estimate_mean(
        result.scores[ranking.score] - by_seed[result.seed][ranking.score]
        for result in ranking.results[first]
        if result.seed in by_seed
    )
    p = ranking.corrected_p
    p_text = "" if math.isnan(p) else f", p = {format_p_value(p)} after correction for all tests"
    return [
        f"{name_paradigm(first)} − {name_paradigm(second)}: {difference} over "
        f"{ranking.paired_seeds} seeds{p_text}."
    ]


def format_shares(shares: Sequence[float]) -> list[str]:
    """Shares as ".89", with a third digit where two digits would make different ones equal."""
    for digits in (2, 3):
        texts = [_format_share(share, digits) for share in shares]
        if len(set(texts)) == len(set(shares)):
            return texts
    return [_format_share(share, 3) for share in shares]


def _format_share(share: float, digits: int) -> str:
    if not math.isfinite(share):
        return "unknown"
    return f"{share:.{digits}f}".removeprefix("0")


def _join(texts: Sequence[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def _build_figures(comparison: FocusComparison, ranking: Ranking) -> list[FigureData]:
    """A mosaic with the focus of a few paradigms, and the scores as dots with intervals."""
    names = ranking.paradigms
    if len(names) > MAX_CARD_ROWS:  # the best ones, and the last
        names = [*names[: MAX_CARD_ROWS - 1], names[-1]]
    figures: list[FigureData] = []
    mosaics = build_mosaics(comparison, ranking.segments)
    if mosaics is not None:
        figures += _build_mosaic_figure(comparison, mosaics, names)
    if len(names) > 1:
        unit = "SAIF" if ranking.score == "saif" else "accuracy"
        estimates = {name: estimate_score(ranking.results[name], ranking.score) for name in names}
        rows = [
            {
                "label": name_paradigm(name),
                "number": estimate.to_dict("seeds"),
                "text": str(estimate),
            }
            for name, estimate in estimates.items()
        ]
        # the line is at the best mean: from 0, the differences would hardly be visible
        reference = estimates[names[0]].value
        figures.append({"kind": "estimates", "unit": unit, "rows": rows, "reference": reference})
    return figures


def _build_mosaic_figure(
    comparison: FocusComparison, mosaics: dict[str, Any], paradigms: Sequence[str]
) -> list[FigureData]:
    """One example in runs of one seed: where the first and the last paradigm differ most.

    Empty if no seed has all paradigms.
    """
    runs = mosaics["runs"]
    seeds = [
        {focus["seed"] for focus in runs.values() if focus["paradigm"] == name}
        for name in paradigms
    ]
    shared = sorted(set.intersection(*seeds))
    if not shared:
        return []
    count = len(mosaics["examples"])
    shown = {
        name: (run_id, focus, _decode_last(focus["weights"], len(focus["steps"]), count))
        for name in paradigms
        for run_id, focus in runs.items()
        if (focus["paradigm"], focus["seed"]) == (name, shared[0])
    }
    first, last = (
        [
            _sum_foreground(example, weights)
            for example, weights in zip(mosaics["examples"], shown[name][2], strict=True)
        ]
        for name in (paradigms[0], paradigms[-1])
    )
    index = max(range(count), key=lambda number: first[number] - last[number])
    rows = [
        {
            "label": name_paradigm(name),
            "run": run_id,
            "weights": weights[index],
            "predicted": focus["predicted"][-1][index],
            "probability": _decode_last(focus["probability"], len(focus["steps"]), count)[index][0],
        }
        for name, (run_id, focus, weights) in shown.items()
    ]
    return [
        {
            "kind": "mosaics",
            "classes": list(next(iter(comparison.groups.values()))[0].classes),
            "noun": comparison.segment_noun,
            "image_shape": mosaics["image_shape"],
            "example": mosaics["examples"][index],
            "rows": rows,
        }
    ]


def _sum_foreground(example: dict[str, Any], weights: Sequence[float]) -> float:
    """Weight of the segments that decide the class; 0 where they are unknown."""
    tiles = example["tiles"]
    return sum(
        weight
        for tile, weight in zip(tiles, weights[: len(tiles)], strict=True)
        if tile in example["foreground"]
    )


def _decode_last(text: str, steps: int, examples: int) -> list[list[float]]:
    """Shares of the last step by example, of bytes in base64."""
    levels = base64.b64decode(text)
    size = len(levels) // steps // examples
    last = levels[-size * examples :]
    return [
        [level / 255 for level in last[start : start + size]]  # the page rounds, once
        for start in range(0, size * examples, size)
    ]

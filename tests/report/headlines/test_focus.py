"""Headlines of focus experiments: what they may claim, and how often they claim what is not so."""

import base64

import numpy as np
import pytest

from neural.findings.focus_claims import FOCUS_CLAIMS, evaluate_claims
from neural.findings.focus_results import FocusResult, group_results
from neural.report.headlines.focus import (
    _decode_last,
    describe_test,
    format_shares,
    rank_paradigms,
    write_sentence,
)
from neural.stats.comparisons import format_p_value

SEED_STD, OWN_STD = 0.01, 0.008
"""Standard deviations of the effect of a seed on all paradigms, and on one of them."""


def create_results(scores, m=10, name="saif"):
    """Results by seed: `scores` are lists by paradigm."""
    return [
        FocusResult(
            run=f"{paradigm}-{m}-{seed}",
            paradigm=paradigm,
            segments=m,
            seed=seed,
            classes=("a", "b"),
            scores={name: value},
            heat_map=np.zeros((1, 1)),
            examples={},
        )
        for paradigm, values in scores.items()
        for seed, value in enumerate(values)
    ]


def write(scores, **options):
    (ranking,) = rank_paradigms(group_results(create_results(scores, **options)))
    return write_sentence(ranking, "picture")


def around(mean, spread=0.004):
    """Five seeds with exactly this mean; the deviations of different means are independent."""
    deviations = np.random.default_rng(round(10_000 * mean)).uniform(-1, 1, size=5)
    return list(mean + spread * (deviations - deviations.mean()))


def test_a_winner_that_all_tests_agree_on_is_named():
    scores = {"soft": around(0.8), "hard": around(0.87), "lvml": around(0.89)}
    assert write(scores) == "LVML finds the right picture most surely: SAIF .89, hard .87, soft .80"


def test_of_two_paradigms_one_is_better_than_the_other():
    scores = {"soft": around(0.8), "hard": around(0.87)}
    assert (
        write(scores) == "hard finds the right picture more surely than soft: SAIF .87 against .80"
    )


def test_paradigms_that_cannot_be_told_apart_lead_together():
    scores = {"soft": around(0.7), "hard": around(0.875, 0.01), "lvml": around(0.876, 0.01)}
    text = "LVML and hard find the right picture more surely than soft: SAIF .876 and .875 against .700"
    assert write(scores) == text


def test_without_a_decision_nothing_is_claimed():
    scores = {"soft": around(0.88, 0.02), "hard": around(0.87, 0.02), "lvml": around(0.89, 0.02)}
    text = (
        "Which paradigm finds the right picture most surely is undecided: "
        "SAIF of LVML .89, soft .88, hard .87"
    )
    assert write(scores) == text


def test_equal_scores_are_no_winner():
    scores = {"soft": [0.9] * 5, "hard": [0.9] * 5}
    assert "undecided" in write(scores)
    # differences without variance have no test
    assert "undecided" in write({"soft": [0.5] * 5, "hard": [0.9] * 5})


@pytest.mark.parametrize("seeds", [1, 4])
def test_few_seeds_decide_nothing(seeds):
    scores = {"soft": around(0.2)[:seeds], "lvml": around(0.9)[:seeds]}
    assert write(scores).startswith("SAIF of LVML .") and write(scores).endswith(
        f": a verdict needs 5 seeds, has {seeds}"
    )


def test_one_paradigm_has_its_score():
    assert write({"lvml": [0.9]}) == "LVML finds the right picture: SAIF .90"
    text = "LVML finds the right picture: SAIF .90, mean of 5 seeds"
    assert write({"lvml": around(0.9)}) == text


def test_without_a_foreground_the_headline_is_about_accuracy():
    scores = {"soft": around(0.8), "hard": around(0.87), "lvml": around(0.89)}
    text = "LVML classifies most accurately: accuracy .89, hard .87, soft .80"
    assert write(scores, name="accuracy") == text


def test_every_number_of_segments_has_a_sentence():
    results = create_results({"soft": around(0.8), "lvml": around(0.9)})
    results += create_results({"soft": around(0.6), "lvml": around(0.5)}, m=1000)
    few, many = rank_paradigms(group_results(results))
    assert write_sentence(few, "picture", among=True).startswith("Among 10 pictures, LVML finds")
    assert write_sentence(many, "word", among=True) == (
        "Among 1,000 words, soft finds the right word more surely than LVML: SAIF .60 against .50"
    )


def test_many_paradigms_are_counted():
    scores = {f"p{index}": around(0.9 - index / 10) for index in range(7)}
    assert write(scores) == (
        "p0 finds the right picture most surely: SAIF .90, p1 .80, p2 .70, p3 .60 "
        "and 3 more down to .30"
    )


def test_seeds_are_paired_and_missing_ones_left_out():
    results = create_results({"soft": around(0.8), "lvml": around(0.9)})
    results = [result for result in results if (result.paradigm, result.seed) != ("soft", 2)]
    (ranking,) = rank_paradigms(group_results(results))
    assert ranking.paired_seeds == 4
    assert write_sentence(ranking, "picture").endswith("needs 5 seeds, has 4")


def test_the_test_behind_the_sentence_is_the_weakest_one():
    scores = {"soft": around(0.8), "hard": around(0.87), "lvml": around(0.89)}
    (ranking,) = rank_paradigms(group_results(create_results(scores)))
    (text,) = describe_test(ranking)
    assert text.startswith("LVML − hard: 0.020 (") and "over 5 seeds, p = " in text


BARELY_BETTER = {
    "lvml": [0.902, 0.911, 0.894, 0.905, 0.899],
    "hard": [0.885, 0.899, 0.890, 0.885, 0.893],
    "soft": [0.882, 0.897, 0.888, 0.891, 0.877],
}
"""LVML is better than each at p = .05 without correction, but not after it."""


def find_verdict(groups, start):
    (verdict,) = [verdict for verdict in evaluate_claims(groups) if verdict.claim.startswith(start)]
    return verdict


def test_what_the_claims_leave_undecided_is_undecided_in_the_headline():
    groups = group_results(create_results(BARELY_BETTER))
    (ranking,) = rank_paradigms(groups)
    verdict = find_verdict(groups, "LVML has the best of both")
    assert max(ranking.p_values["lvml", other] for other in ("soft", "hard")) < 0.05 < verdict.p
    assert verdict.supported == "undecided"
    assert write_sentence(ranking, "picture").startswith(
        "Which paradigm finds the right picture most surely is undecided: SAIF of LVML"
    )


@pytest.mark.parametrize("is_decided", [True, False])
def test_the_p_value_of_the_headline_is_that_of_the_claim(is_decided):
    clearly_better = {"soft": around(0.8), "hard": around(0.87), "lvml": around(0.89)}
    groups = group_results(create_results(clearly_better if is_decided else BARELY_BETTER))
    (ranking,) = rank_paradigms(groups)
    assert bool(ranking.leaders) == is_decided
    p = find_verdict(groups, "LVML has the best of both").p
    assert f"p = {format_p_value(p)} after correction for all tests." in describe_test(ranking)[0]


def test_a_headline_about_two_paradigms_has_the_p_value_of_their_claim():
    groups = group_results(create_results({"soft": around(0.8), "lvml": around(0.9)}))
    (ranking,) = rank_paradigms(groups)
    assert ranking.corrected_p == find_verdict(groups, "soft then stalls").p


def test_no_headline_claims_what_the_claims_do_not_support():
    """Each pair that a sentence orders is supported wherever a claim is about this pair."""
    random = np.random.default_rng(5)
    claimed = 0
    for _ in range(200):
        means = dict(
            zip(("soft", "hard", "lvml", "auto"), random.normal(0.9, 0.02, 4), strict=True)
        )
        study = {name: list(random.normal(mean, 0.012, 6)) for name, mean in means.items()}
        groups = group_results(create_results(study))
        (ranking,) = rank_paradigms(groups)
        supported = {verdict.claim: verdict.supported for verdict in evaluate_claims(groups)}
        cut = ranking.leaders
        pairs = {
            (first, second)
            for first in ranking.paradigms[:cut]
            for second in ranking.paradigms[cut:]
            if cut
        }
        for claim in FOCUS_CLAIMS:
            if claim.score == "saif" and claim.statement in supported and not claim.margin:
                ordered = {(claim.paradigm, other) for other in claim.others}
                if claim.sign < 0:
                    ordered = {(second, first) for first, second in ordered}
                if ordered <= pairs:
                    claimed += 1
                    assert supported[claim.statement] == "yes"
    assert claimed > 30


def test_shares_differ_where_their_values_do():
    assert format_shares([0.9, 0.884, 0.5]) == [".90", ".88", ".50"]
    assert format_shares([0.901, 0.899]) == [".901", ".899"]
    assert format_shares([1.0, 0.2]) == ["1.00", ".20"]


def simulate(draw, means, seeds=5, kind="normal"):
    """Ranking of a sweep whose true mean scores are known."""
    noise = {
        "normal": lambda size: draw.normal(size=size),
        "heavy tails": lambda size: draw.standard_t(5, size=size) / np.sqrt(5 / 3),
        "skewed": lambda size: (draw.gamma(4, size=size) - 4) / 2,
    }[kind]
    shared = SEED_STD * noise(seeds)
    scores = {name: mean + shared + OWN_STD * noise(seeds) for name, mean in means.items()}
    (ranking,) = rank_paradigms(group_results(create_results(scores)))
    return ranking


@pytest.mark.parametrize("kind", ["normal", "heavy tails", "skewed"])
@pytest.mark.parametrize("count", [2, 3, 5])
def test_where_nothing_differs_a_difference_is_claimed_in_at_most_5_percent(count, kind):
    means = {f"p{index}": 0.85 for index in range(count)}
    rankings = [simulate(np.random.default_rng(seed), means, kind=kind) for seed in range(400)]
    claimed = np.mean([ranking.leaders > 0 for ranking in rankings])
    # 400 sweeps: a rate of .05 gives less than .076 in 99 % of cases
    assert claimed < 0.076


def test_a_false_winner_of_two_equal_leaders_is_claimed_in_at_most_5_percent():
    """The least favourable case: the third paradigm is far below."""
    means = {"lvml": 0.9, "hard": 0.9, "soft": 0.8}
    rankings = [simulate(np.random.default_rng(seed), means) for seed in range(400)]
    assert np.mean([ranking.leaders == 1 for ranking in rankings]) < 0.076
    assert np.mean([ranking.leaders == 2 for ranking in rankings]) > 0.8


def test_a_true_winner_is_found_and_never_a_wrong_one():
    means = {"lvml": 0.9, "hard": 0.87, "soft": 0.8}
    rankings = [simulate(np.random.default_rng(seed), means) for seed in range(200)]
    assert np.mean([ranking.leaders == 1 for ranking in rankings]) > 0.8
    assert all(ranking.paradigms[0] == "lvml" for ranking in rankings if ranking.leaders == 1)


def test_weights_of_the_card_are_rounded_once_by_the_page():
    levels = base64.b64encode(bytes([0, 255, 42, 213])).decode()
    (weights,) = _decode_last(levels, 2, 1)  # .165 would become .17 on the page
    assert [f"{weight:.2f}" for weight in weights] == ["0.16", "0.84"]
    assert weights == [42 / 255, 213 / 255]

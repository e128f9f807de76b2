"""Quality measures on texts whose quality is known: real text is best, loops are not better."""

import math
import random
from functools import cache

import numpy as np
import pytest

from neural.data.sources.handbook import read_handbook
from neural.findings.checks.balanced_entropy import (
    BITS_METRIC,
    QUALITY_METRIC,
    REPETITION_METRIC,
    BalancedEntropy,
    load_quality_curve,
)
from neural.findings.quality import registry
from neural.findings.quality_measure import ReferenceTexts
from neural.findings.sample_quality import REAL_TEXT_KEY, measure_quality

SAMPLE_COUNT, LENGTH = 10, 300
DISTANCE = registry.get("distance_from_real")()
COMMON_LOOP = ("of the object " * LENGTH)[:LENGTH]


@cache
def references():
    """Held-out text from the start of the handbook, training text from its middle."""
    text = read_handbook()
    return ReferenceTexts(training=text[100_000:300_000], held_out=text[:100_000])


@cache
def unseen_text():
    return read_handbook()[300_000:]


def real_samples(draw):
    text = unseen_text()
    starts = [draw.randrange(len(text) - LENGTH) for _ in range(SAMPLE_COUNT)]
    return [text[start : start + LENGTH] for start in starts]


def shuffle_words(text, draw):
    words = text.split(" ")
    draw.shuffle(words)
    return " ".join(words)


def shuffle_characters(text, draw):
    return "".join(draw.sample(text, len(text)))


def loop_like_real_bits(draw):
    """A loop of a phrase whose bits per character are those of real text."""
    target = float(np.mean(references().compute_real_text_statistics(LENGTH).bits))
    text = unseen_text()
    starts = [draw.randrange(len(text) - 40) for _ in range(40)]
    loops = [(text[start : start + 40] * LENGTH)[:LENGTH] for start in starts]
    return min(loops, key=lambda loop: abs(references().ngrams.bits_per_character(loop) - target))


CONSTRUCTED = {
    "one loop of common words": lambda draw: [COMMON_LOOP] * SAMPLE_COUNT,
    "loops with the bits of real text": lambda draw: [loop_like_real_bits(draw)] * SAMPLE_COUNT,
    "real text that falls into a loop": lambda draw: [
        text[: LENGTH // 2] + COMMON_LOOP[LENGTH // 2 :] for text in real_samples(draw)
    ],
    "half loops, half noise": lambda draw: [
        *[COMMON_LOOP] * (SAMPLE_COUNT // 2),
        *(shuffle_characters(text, draw) for text in real_samples(draw)[SAMPLE_COUNT // 2 :]),
    ],
    "shuffled words": lambda draw: [shuffle_words(text, draw) for text in real_samples(draw)],
    "shuffled characters": lambda draw: [
        shuffle_characters(text, draw) for text in real_samples(draw)
    ],
}


def distance(samples):
    return DISTANCE.compute_scores(samples, references())["distance_from_real"]


@cache
def real_text_limit(sets=60):
    """95 % of sets of real samples are closer to real text than this distance."""
    return float(
        np.quantile([distance(real_samples(random.Random(1000 + i))) for i in range(sets)], 0.95)
    )


def share_beyond_limit(create_samples, repeats, sets=60):
    return float(
        np.mean(
            [
                distance(create_samples(random.Random(i))) > real_text_limit(sets)
                for i in range(repeats)
            ]
        )
    )


class FakeTextRun:
    """The data of a run that check EVO009 reads."""

    name = "run"

    def __init__(self, entropy, scalars, real=None):
        self.steps = np.arange(1, len(entropy) + 1) * 25
        self.entropy, self.rows, self.real = entropy, scalars, real or {}

    def measure(self, name):
        return self.steps, self.entropy[:, None, None]

    def scalar_names(self):
        return list(self.rows)

    def scalars(self, name):
        return self.steps, self.rows[name]

    def metadata(self, name, default=None):
        return self.real if name == REAL_TEXT_KEY else default


SNAPSHOTS, SEEDS = 60, 5
REAL_BITS, REAL_REPEATED = 2.9, 0.2
FALL = np.exp(-np.linspace(0, 4, SNAPSHOTS))


def simulate_verdict(repeat, *, relation, is_loop=False):
    """Verdict on five runs whose text improves, or becomes loops, related to balance or not."""
    draw = np.random.default_rng(repeat)
    runs = []
    for _ in range(SEEDS):
        related, independent = np.cumsum(0.05 * draw.normal(size=(2, SNAPSHOTS)), axis=1)
        # below one half balance grows with entropy
        entropy = 0.3 - 0.1 * FALL + 0.2 * related / 2
        pace = relation * related + math.sqrt(1 - relation**2) * independent
        if is_loop:
            bits, repeated = (
                1.0 + 1.9 * FALL - 0.5 * pace,
                np.clip(1 - 0.8 * FALL + 0.3 * pace, 0.2, 1),
            )
        else:
            bits, repeated = REAL_BITS + 0.5 + 3 * FALL - pace, np.full(SNAPSHOTS, REAL_REPEATED)
        real = {BITS_METRIC: REAL_BITS, REPETITION_METRIC: REAL_REPEATED}
        runs.append(
            FakeTextRun(
                np.clip(entropy, 0, 0.49), {BITS_METRIC: bits, REPETITION_METRIC: repeated}, real
            )
        )
    return BalancedEntropy().check_runs(runs).supported


def verdict_share(verdict, repeats, **scenario):
    return float(
        np.mean([simulate_verdict(repeat, **scenario) == verdict for repeat in range(repeats)])
    )


def rates(repeats=200):
    """Power of `distance_from_real` and error rates of EVO009, for docs/analysis.md."""
    rows = [
        {
            "what": "distance_from_real beyond 95 % of real text",
            "null": "real text: 5 % by definition",
            "truth": name,
            "power": share_beyond_limit(create_samples, max(5, repeats // 10), sets=4 * repeats),
            "repeats": max(5, repeats // 10),
        }
        for name, create_samples in CONSTRUCTED.items()
    ]
    return [
        *rows,
        {
            "code": "EVO009",
            "null": "balance and text unrelated beyond the trend: yes or no",
            "false_positive_rate": 1 - verdict_share("undecided", repeats, relation=0.0),
            "truth": "text gets closer to real text as balance grows: yes",
            "power": verdict_share("yes", repeats, relation=1.0),
            "repeats": repeats,
        },
        {
            "code": "EVO009",
            "null": "text becomes loops as balance grows: yes",
            "false_positive_rate": verdict_share("yes", repeats, relation=1.0, is_loop=True),
            "truth": "the same: no",
            "power": verdict_share("no", repeats, relation=1.0, is_loop=True),
            "repeats": repeats,
        },
    ]


@pytest.mark.parametrize("name", CONSTRUCTED)
def test_real_text_scores_better_than_constructed_text(name):
    assert share_beyond_limit(CONSTRUCTED[name], 5) == 1


def test_other_real_text_scores_like_real_text():
    assert share_beyond_limit(real_samples, 40) <= 0.15  # 5 % and three standard errors


def test_fewer_bits_are_not_better():
    """The loop has fewer bits than real text and is farther from it."""
    loop, real = (
        measure_quality(samples, references())
        for samples in ([COMMON_LOOP] * 3, real_samples(random.Random(0)))
    )
    assert loop["generation/bits"] < real["generation/bits"]
    assert loop["generation/distance_from_real"] > 2 * real["generation/distance_from_real"]
    assert loop["generation/segment_similarity"] > 0.9


def test_text_that_improves_with_balance_supports_the_claim():
    assert verdict_share("yes", 10, relation=1.0) >= 0.9


def test_text_that_becomes_loops_with_balance_refutes_the_claim():
    assert verdict_share("yes", 10, relation=1.0, is_loop=True) == 0
    assert verdict_share("no", 10, relation=1.0, is_loop=True) >= 0.9


def test_unrelated_text_is_rarely_called_related():
    assert verdict_share("yes", 40, relation=0.0) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 40)


def test_older_runs_are_measured_by_bits_and_repetition():
    rows = {BITS_METRIC: np.array([4.9, 1.9]), REPETITION_METRIC: np.array([0.2, 0.7])}
    older_run = FakeTextRun(np.ones(2), rows, {BITS_METRIC: 2.9, REPETITION_METRIC: 0.2})
    assert load_quality_curve(older_run).values == pytest.approx([2.0, 1.0 + 2.9 * 0.5])
    newer_run = FakeTextRun(
        np.ones(2),
        {**rows, QUALITY_METRIC: np.array([1.0, 2.0])},
        {BITS_METRIC: 2.9, REPETITION_METRIC: 0.2},
    )
    assert load_quality_curve(newer_run).values == pytest.approx([1.0, 2.0])

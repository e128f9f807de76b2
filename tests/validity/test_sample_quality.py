"""Scores of generated text on texts whose quality is known: real text is best, and loops are no better than it."""

import math
import random
from functools import cache

import numpy as np
import pytest

from neural.tasks.data.sources.handbook import handbook_text
from neural.views.analysis.balanced_entropy import BITS, QUALITY, REAL, REPEATED, BalancedEntropy, quality_curve
from neural.views.judge import judge
from neural.views.quality import registry
from neural.views.quality_measure import References

NUMBER, LENGTH = 10, 300
DISTANCE = registry.get("distance_from_real")()
COMMON_LOOP = ("of the object " * LENGTH)[:LENGTH]


@cache
def references():
    """The beginning of the text judges, the middle is what was learned, the end is nobody's."""
    text = handbook_text()
    return References(training=text[100_000:300_000], held_out=text[:100_000])


@cache
def unseen_text():
    return handbook_text()[300_000:]


def real_samples(draw):
    text = unseen_text()
    starts = [draw.randrange(len(text) - LENGTH) for _ in range(NUMBER)]
    return [text[start : start + LENGTH] for start in starts]


def shuffle_words(text, draw):
    words = text.split(" ")
    draw.shuffle(words)
    return " ".join(words)


def shuffle_characters(text, draw):
    return "".join(draw.sample(text, len(text)))


def loop_like_real_bits(draw):
    """A loop of a phrase whose bits are those of real text: by bits alone nobody could tell."""
    wanted = float(np.mean(references().real_text(LENGTH).bits))
    text = unseen_text()
    starts = [draw.randrange(len(text) - 40) for _ in range(40)]
    loops = [(text[start : start + 40] * LENGTH)[:LENGTH] for start in starts]
    return min(loops, key=lambda loop: abs(references().ngrams.bits(loop) - wanted))


CONSTRUCTED = {
    "one loop of common words": lambda draw: [COMMON_LOOP] * NUMBER,
    "loops with the bits of real text": lambda draw: [loop_like_real_bits(draw)] * NUMBER,
    "real text that falls into a loop": lambda draw: [
        text[: LENGTH // 2] + COMMON_LOOP[LENGTH // 2 :] for text in real_samples(draw)
    ],
    "half loops, half noise": lambda draw: [
        *[COMMON_LOOP] * (NUMBER // 2),
        *(shuffle_characters(text, draw) for text in real_samples(draw)[NUMBER // 2 :]),
    ],
    "shuffled words": lambda draw: [shuffle_words(text, draw) for text in real_samples(draw)],
    "shuffled characters": lambda draw: [shuffle_characters(text, draw) for text in real_samples(draw)],
}


def distance(samples):
    return DISTANCE.scores(samples, references())["distance_from_real"]


@cache
def border(sets=60):
    """95 % of the sets of real samples are nearer to real text."""
    return float(np.quantile([distance(real_samples(random.Random(1000 + i))) for i in range(sets)], 0.95))


def share_beyond(make, repeats, sets=60):
    return float(np.mean([distance(make(random.Random(i))) > border(sets) for i in range(repeats)]))


class WrittenRun:
    """What EVO009 reads of a run, without a folder."""

    name = "run"

    def __init__(self, entropy, scalars, real=None):
        self.steps = np.arange(1, len(entropy) + 1) * 25
        self.entropy, self.rows, self.real = entropy, scalars, real or {}

    def measure(self, name):
        return self.steps, self.entropy[:, None, None]

    def names(self):
        return list(self.rows)

    def scalars(self, name):
        return self.steps, self.rows[name]

    def described(self, name, default=None):
        return self.real if name == REAL else default


LOOKS, SEEDS = 60, 5
REAL_BITS, REAL_REPEATED = 2.9, 0.2
FALL = np.exp(-np.linspace(0, 4, LOOKS))


def evo009(repeat, *, relation, is_loop=False):
    """The verdict about five runs whose text gets better (or falls into loops), with or without a tie to balance."""
    draw = np.random.default_rng(repeat)
    runs = []
    for _ in range(SEEDS):
        tied, own = np.cumsum(0.05 * draw.normal(size=(2, LOOKS)), axis=1)
        # below one half balance grows with entropy
        entropy = 0.3 - 0.1 * FALL + 0.2 * tied / 2
        pace = relation * tied + math.sqrt(1 - relation**2) * own
        if is_loop:
            bits, repeated = 1.0 + 1.9 * FALL - 0.5 * pace, np.clip(1 - 0.8 * FALL + 0.3 * pace, 0.2, 1)
        else:
            bits, repeated = REAL_BITS + 0.5 + 3 * FALL - pace, np.full(LOOKS, REAL_REPEATED)
        real = {BITS: REAL_BITS, REPEATED: REAL_REPEATED}
        runs.append(WrittenRun(np.clip(entropy, 0, 0.49), {BITS: bits, REPEATED: repeated}, real))
    return BalancedEntropy().examine(runs).supported


def share_said(answer, repeats, **scenario):
    return float(np.mean([evo009(repeat, **scenario) == answer for repeat in range(repeats)]))


def rates(repeats=200):
    """How often constructed texts are told from real text, and EVO009, for the table in docs/analysis.md."""
    rows = [
        {
            "what": "distance_from_real beyond 95 % of real text",
            "null": "real text: 5 % by definition",
            "truth": name,
            "power": share_beyond(make, max(5, repeats // 10), sets=4 * repeats),
            "repeats": max(5, repeats // 10),
        }
        for name, make in CONSTRUCTED.items()
    ]
    return [
        *rows,
        {
            "code": "EVO009",
            "null": "balance and text unrelated beyond the trend: yes or no",
            "false_positive_rate": 1 - share_said("undecided", repeats, relation=0.0),
            "truth": "text gets nearer to real as balance grows: yes",
            "power": share_said("yes", repeats, relation=1.0),
            "repeats": repeats,
        },
        {
            "code": "EVO009",
            "null": "text falls into loops as balance grows: yes",
            "false_positive_rate": share_said("yes", repeats, relation=1.0, is_loop=True),
            "truth": "the same: no",
            "power": share_said("no", repeats, relation=1.0, is_loop=True),
            "repeats": repeats,
        },
    ]


@pytest.mark.parametrize("name", CONSTRUCTED)
def test_real_text_scores_better_than_what_is_not(name):
    assert share_beyond(CONSTRUCTED[name], 5) == 1


def test_other_real_text_scores_like_real_text():
    assert share_beyond(real_samples, 40) <= 0.15  # 5 % and three standard errors


def test_fewer_bits_are_not_better():
    """The loop has fewer bits than real text and is farther from it."""
    loop, real = (judge(samples, references()) for samples in ([COMMON_LOOP] * 3, real_samples(random.Random(0))))
    assert loop["generation/bits"] < real["generation/bits"]
    assert loop["generation/distance_from_real"] > 2 * real["generation/distance_from_real"]
    assert loop["generation/segment_similarity"] > 0.9


def test_text_that_nears_real_text_with_balance_supports_the_claim():
    assert share_said("yes", 10, relation=1.0) >= 0.9


def test_text_that_falls_into_loops_with_balance_does_not():
    assert share_said("yes", 10, relation=1.0, is_loop=True) == 0
    assert share_said("no", 10, relation=1.0, is_loop=True) >= 0.9


def test_unrelated_text_is_rarely_called_related():
    assert share_said("yes", 40, relation=0.0) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 40)


def test_runs_of_before_are_judged_by_their_bits_and_repetition():
    rows = {BITS: np.array([4.9, 1.9]), REPEATED: np.array([0.2, 0.7])}
    old = WrittenRun(np.ones(2), rows, {BITS: 2.9, REPEATED: 0.2})
    assert quality_curve(old).values == pytest.approx([2.0, 1.0 + 2.9 * 0.5])
    new = WrittenRun(np.ones(2), {**rows, QUALITY: np.array([1.0, 2.0])}, {BITS: 2.9, REPEATED: 0.2})
    assert quality_curve(new).values == pytest.approx([1.0, 2.0])

"""Leaving out documents and shared sources in turn: by hand, undecided where nothing varies, and how it reads."""

import math

import numpy as np
import pytest
from scipy.stats import t

from neural.tasks.cutting.jackknife import Estimate, Grouping, Interval, Sums, estimates


def mean_of(sums):
    return estimates(sums, lambda totals: {"mean": totals[..., 0] / totals[..., 1]})["mean"]


def rows_of(values):
    return np.stack([values, np.ones(len(values))], axis=1)


def grouped_mean(values, document, sources):
    def add(members, groups, count):
        return np.stack([
            np.bincount(groups, values[members], minlength=count),
            np.bincount(groups, minlength=count),
        ], axis=1).astype(float)  # fmt: skip

    return mean_of(Grouping(document, int(document.max()) + 1, sources).sums(add))


def test_of_a_mean_it_is_students_interval():
    values = np.random.default_rng(0).normal(0.4, 0.1, 12)
    interval = mean_of(Sums(rows_of(values))).interval()
    low, high = t.interval(0.95, 11, values.mean(), values.std(ddof=1) / np.sqrt(12))
    assert (interval.low, interval.value, interval.high) == pytest.approx((low, values.mean(), high))


def test_a_share_and_a_loss_stay_where_they_can_be():
    values = np.array([0.0, 0.0, 0.0, 0.02, 0.3])
    plain, positive, share = (
        mean_of(Sums(rows_of(values))).interval(scale) for scale in ("plain", "positive", "share")
    )
    assert plain.low < 0 < positive.low < share.value < share.high < 1


def test_sources_in_one_document_each_change_nothing():
    values = np.random.default_rng(1).normal(size=40)
    document, source = np.arange(40) // 10, np.arange(40) // 5
    alone = grouped_mean(values, document, None).interval()
    assert grouped_mean(values, document, (source, source)).interval() == alone


def test_sources_that_differ_widen_the_interval_and_equal_ones_do_not():
    random = np.random.default_rng(2)
    source, document = np.tile(np.repeat(np.arange(6), 5), 20), np.repeat(np.arange(20), 30)
    noise = random.normal(size=600)
    widths = {}
    for name, effect in (("equal", 0.0), ("different", 2.0)):
        values = noise + effect * random.normal(size=6)[source]
        for kind, sources in (("documents", None), ("sources", (source, source))):
            interval = grouped_mean(values, document, sources).interval()
            widths[name, kind] = interval.high - interval.low
    assert widths["different", "sources"] > 4 * widths["different", "documents"]
    assert widths["equal", "sources"] < 1.6 * widths["equal", "documents"]


def test_a_boundary_between_two_sources_goes_with_either():
    first = np.array([0, 0, 1, 1, 2, 0, 1, 1, 2, 2])
    last = np.array([0, 1, 1, 2, 2, 0, 1, 2, 2, 0])
    values, document = np.arange(10.0), np.repeat([0, 1], 5)
    estimate = grouped_mean(values, document, (first, last))
    single, touches = first == last, (first == 1) | (last == 1)
    without = sum(  # rows with one and with two sources keep their shares
        values[kind & ~touches].mean() * kind.sum() for kind in (single, ~single)
    )
    assert estimate.sources[1] == pytest.approx(values.mean() - without / 10)


def test_a_difference_is_that_of_each_document():
    first, second = np.random.default_rng(3).normal(size=(2, 9))
    both = mean_of(Sums(rows_of(first))) - mean_of(Sums(rows_of(second)))
    interval, paired = both.interval(), mean_of(Sums(rows_of(first - second))).interval()
    assert (interval.low, interval.high) == pytest.approx((paired.low, paired.high))


@pytest.mark.parametrize("values", [[0.3], [0.3, 0.3, 0.3]])
def test_where_nothing_varies_nothing_is_said_about_other_documents(values):
    interval = mean_of(Sums(rows_of(np.array(values)))).interval()
    assert interval.value == pytest.approx(0.3)
    assert math.isnan(interval.low)
    assert str(interval) == "0.300"


def test_two_shared_sources_are_too_few():
    values, source = np.random.default_rng(4).normal(size=20), np.tile([0, 1], 10)
    interval = grouped_mean(values, np.repeat(np.arange(5), 4), (source, source)).interval()
    assert math.isnan(interval.low)


def test_an_interval_reads_well():
    assert str(Interval(value=-0.25, low=-0.5, high=0.125)) == "−0.250 (−0.500 … 0.125)"
    assert str(Interval(value=math.nan, low=math.nan, high=math.nan)) == "none"
    assert math.isnan(Estimate(value=math.nan, documents=np.ones(3)).interval().high)

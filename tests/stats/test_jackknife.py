"""Jackknife over documents and shared sources: by hand, without variance, and as text."""

import math

import numpy as np
import pytest
from scipy.stats import t

from neural.stats.jackknife import GroupSums, JackknifeScore, RowGrouping, jackknife


def estimate_mean(sums):
    return jackknife(sums, lambda totals: {"mean": totals[..., 0] / totals[..., 1]})["mean"]


def make_rows(values):
    return np.stack([values, np.ones(len(values))], axis=1)


def estimate_grouped_mean(values, document, sources):
    def add(members, groups, count):
        return np.stack(
            [
                np.bincount(groups, values[members], minlength=count),
                np.bincount(groups, minlength=count),
            ],
            axis=1,
        ).astype(float)

    return estimate_mean(RowGrouping(document, int(document.max()) + 1, sources).sum_groups(add))


def test_the_interval_of_a_mean_is_students():
    values = np.random.default_rng(0).normal(0.4, 0.1, 12)
    interval = estimate_mean(GroupSums(make_rows(values))).estimate()
    low, high = t.interval(0.95, 11, values.mean(), values.std(ddof=1) / np.sqrt(12))
    assert (interval.low, interval.value, interval.high) == pytest.approx(
        (low, values.mean(), high)
    )


def test_intervals_of_shares_and_losses_stay_in_range():
    values = np.array([0.0, 0.0, 0.0, 0.02, 0.3])
    plain, positive, share = (
        estimate_mean(GroupSums(make_rows(values))).estimate(scale)
        for scale in ("plain", "positive", "share")
    )
    assert plain.low < 0 < positive.low < share.value < share.high < 1


def test_sources_of_one_document_each_change_nothing():
    values = np.random.default_rng(1).normal(size=40)
    document, source = np.arange(40) // 10, np.arange(40) // 5
    alone = estimate_grouped_mean(values, document, None).estimate()
    assert estimate_grouped_mean(values, document, (source, source)).estimate() == alone


def test_sources_that_differ_widen_the_interval_and_equal_ones_do_not():
    rng = np.random.default_rng(2)
    source, document = np.tile(np.repeat(np.arange(6), 5), 20), np.repeat(np.arange(20), 30)
    noise = rng.normal(size=600)
    widths = {}
    for name, effect in (("equal", 0.0), ("different", 2.0)):
        values = noise + effect * rng.normal(size=6)[source]
        for kind, sources in (("documents", None), ("sources", (source, source))):
            interval = estimate_grouped_mean(values, document, sources).estimate()
            widths[name, kind] = interval.high - interval.low
    assert widths["different", "sources"] > 4 * widths["different", "documents"]
    assert widths["equal", "sources"] < 1.6 * widths["equal", "documents"]


def test_a_boundary_between_two_sources_is_left_out_with_either():
    first = np.array([0, 0, 1, 1, 2, 0, 1, 1, 2, 2])
    last = np.array([0, 1, 1, 2, 2, 0, 1, 2, 2, 0])
    values, document = np.arange(10.0), np.repeat([0, 1], 5)
    estimate = estimate_grouped_mean(values, document, (first, last))
    is_single, is_left_out = first == last, (first == 1) | (last == 1)
    sum_without = sum(  # rows with one and with two sources keep their shares
        values[kind & ~is_left_out].mean() * kind.sum() for kind in (is_single, ~is_single)
    )
    assert estimate.sources[1] == pytest.approx(values.mean() - sum_without / 10)


def test_a_difference_is_paired_by_document():
    first, second = np.random.default_rng(3).normal(size=(2, 9))
    difference = estimate_mean(GroupSums(make_rows(first))) - estimate_mean(
        GroupSums(make_rows(second))
    )
    interval = difference.estimate()
    paired = estimate_mean(GroupSums(make_rows(first - second))).estimate()
    assert (interval.low, interval.high) == pytest.approx((paired.low, paired.high))


@pytest.mark.parametrize("values", [[0.3], [0.3, 0.3, 0.3]])
def test_without_variance_there_is_no_interval(values):
    interval = estimate_mean(GroupSums(make_rows(np.array(values)))).estimate()
    assert interval.value == pytest.approx(0.3)
    assert math.isnan(interval.low)
    assert str(interval) == "0.3"


def test_two_shared_sources_are_too_few():
    values, source = np.random.default_rng(4).normal(size=20), np.tile([0, 1], 10)
    interval = estimate_grouped_mean(
        values, np.repeat(np.arange(5), 4), (source, source)
    ).estimate()
    assert math.isnan(interval.low)


def test_a_score_that_is_unknown_has_no_interval():
    assert not JackknifeScore(value=math.nan, documents=np.ones(3)).estimate().has_interval

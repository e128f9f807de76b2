"""Training, validation and test examples: shares and folds, by class and by group."""

import numpy as np
import pytest

from neural.core.errors import TaskError
from neural.data.sampler import split_indices
from neural.data.splits import Fold, split_examples

LABELS = np.repeat([0, 1, 2], [60, 30, 10])
GROUPS = np.repeat(np.arange(20), 5)


def count_labels(indices):
    return np.bincount(LABELS[indices], minlength=3).tolist()


def all_folds(count, **options):
    return [
        split_examples(100, validation_split=0, fold=Fold(number, count), **options)
        for number in range(1, count + 1)
    ]


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.35])
def test_without_new_settings_the_split_is_the_one_it_always_was(share, ordered):
    split = split_examples(100, validation_split=share, seed=3, ordered=ordered)
    train, valid = split_indices(100, share, seed=3, ordered=ordered)
    assert np.array_equal(split.train, train)
    assert np.array_equal(split.valid, valid)
    assert len(split.test) == 0


@pytest.mark.parametrize("options", [{}, {"labels": LABELS}, {"groups": GROUPS}])
def test_the_parts_are_disjoint_and_complete(options):
    split = split_examples(100, validation_split=0.2, test_split=0.3, **options)
    assert sorted(np.concatenate(split).tolist()) == list(range(100))
    assert len(split.test) == 30
    assert len(split.valid) == pytest.approx(14, abs=1)  # of the other 70
    other = split_examples(100, validation_split=0.2, test_split=0.3, seed=1, **options)
    assert not np.array_equal(split.test, other.test)


def test_test_examples_do_not_depend_on_the_fold():
    splits = all_folds(4, test_split=0.2)
    assert all(np.array_equal(split.test, splits[0].test) for split in splits)
    assert sorted(np.concatenate([split.valid for split in splits]).tolist()) == sorted(
        set(range(100)) - set(splits[0].test.tolist())
    )


def test_a_stratified_share_has_the_same_part_of_every_class():
    split = split_examples(100, validation_split=0.1, labels=LABELS)
    assert count_labels(split.valid) == [6, 3, 1]
    rare = np.array([0] * 9 + [1])
    split = split_examples(10, validation_split=0.4, labels=rare)
    assert 9 in split.train  # the only example of its class


@pytest.mark.parametrize("options", [{}, {"labels": LABELS}, {"groups": GROUPS}])
def test_every_example_is_held_out_in_exactly_one_fold(options):
    splits = all_folds(5, **options)
    assert sorted(np.concatenate([split.valid for split in splits]).tolist()) == list(range(100))
    for split in splits:
        assert len(split.valid) == 20
        assert sorted(np.concatenate(split).tolist()) == list(range(100))


def test_stratified_folds_differ_by_at_most_one_example_of_a_class():
    counts = np.array([count_labels(split.valid) for split in all_folds(7, labels=LABELS)])
    assert np.ptp(counts, axis=0).max() <= 1
    assert np.ptp(counts.sum(axis=1)) <= 1


@pytest.mark.parametrize("labels", [None, LABELS])
def test_groups_are_never_split(labels):
    parts = [split_examples(100, validation_split=0.2, groups=GROUPS, labels=labels)]
    for train, valid, _ in parts + all_folds(4, groups=GROUPS, labels=labels):
        assert not set(GROUPS[train]) & set(GROUPS[valid])
        assert len(valid)


def test_stratified_groups_keep_the_share_of_every_class():
    random = np.random.default_rng(0)
    groups = random.integers(0, 40, size=400)
    labels = (random.random(400) < np.where(groups < 10, 0.9, 0.1)).astype(int)
    shares = [
        labels[
            split_examples(
                400, validation_split=0, fold=Fold(number, 4), groups=groups, labels=labels
            ).valid
        ].mean()
        for number in (1, 2, 3, 4)
    ]
    assert max(shares) - min(shares) < 0.06
    assert labels.mean() == pytest.approx(np.mean(shares), abs=0.03)


def test_one_large_group_does_not_leave_the_validation_empty():
    groups = np.array(["a"] * 90 + ["b"] * 9 + ["c"])
    split = split_examples(100, validation_split=0.01, groups=groups)
    assert set(groups[split.valid]) == {"c"}


def test_ordered_folds_are_contiguous():
    splits = all_folds(4, ordered=True)
    assert [(split.valid[0], split.valid[-1]) for split in splits] == [
        (0, 24),
        (25, 49),
        (50, 74),
        (75, 99),
    ]


def test_too_few_examples_or_groups_for_the_folds_are_refused():
    with pytest.raises(TaskError, match="shop: 3 examples are too few for 5 folds"):
        split_examples(3, validation_split=0, fold=Fold(1, 5), data_name="shop")
    groups = np.array([0, 0, 1, 1, 0, 1])
    with pytest.raises(TaskError, match="2 groups are too few for 5 folds"):
        split_examples(6, validation_split=0, fold=Fold(1, 5), groups=groups)


@pytest.mark.parametrize("text", ["0/5", "6/5", "1/1", "a/b", "1", "1/5/2", "-1/5", "", "None"])
def test_a_text_that_names_no_fold(text):
    assert Fold.parse(text) is None


def test_a_text_that_names_a_fold():
    assert Fold.parse("2/5") == Fold(2, 5)

"""The table: every score of every segmenter, and what the model adds to the best baseline."""

import json
import math

import numpy as np
import pytest

from neural.tasks.cutting.masses import boundaries_of
from neural.tasks.cutting.metrics.pk import Pk
from neural.tasks.cutting.scores import baseline_answers, plain_scores, scores

TRUTHS = [boundaries_of(one) for one in ([3, 4, 5], [6, 6], [4, 4, 4], [2, 7, 3], [5, 5, 2])]
NEARLY = [boundaries_of(one) for one in ([3, 5, 4], [6, 6], [4, 4, 4], [2, 7, 3], [5, 4, 3])]
NOTHING = [np.zeros(12, bool)] * 5
WORSE = [boundaries_of([1] * 12)] * 5
WORSE_OF_20 = [boundaries_of([1 + at % 3, 19 - at % 3]) for at in range(30)]


def test_the_model_stands_beside_every_baseline():
    table = scores(TRUTHS, NEARLY, baselines={"nothing": NOTHING, "worse": WORSE}, resamples=200)
    assert list(table.rows) == ["model", "nothing", "worse"]
    own = table.rows["model"]["pk"]
    assert own.value == pytest.approx(np.mean([Pk().of(*pair) for pair in zip(TRUTHS, NEARLY, strict=True)]))
    assert own.low <= own.value <= own.high
    assert "label_f1" not in table.rows["model"]


def test_a_lift_is_over_the_best_baseline_and_positive_when_better():
    table = scores(TRUTHS, NEARLY, baselines={"nothing": NOTHING, "worse": WORSE}, resamples=200)
    for score, direction in table.better.items():
        values = {one: table.rows[one][score].value for one in ("nothing", "worse")}
        best = (min if direction == "low" else max)(values, key=values.__getitem__)
        lift = table.lifts[score]
        assert lift.over == best
        assert lift.difference.value == pytest.approx(abs(table.rows["model"][score].value - values[best]))
        assert lift.difference.value > 0
    pk = table.lifts["pk"]
    assert pk.relative.value == pytest.approx(pk.difference.value / table.rows[pk.over]["pk"].value)


def test_a_model_that_is_its_baseline_has_no_lift_and_no_interval():
    lift = scores(TRUTHS, NEARLY, baselines={"itself": NEARLY}, resamples=200).lifts["pk"]
    assert lift.difference.value == 0
    assert math.isnan(lift.difference.low)


def test_a_paired_interval_is_narrower_than_the_two_apart():
    other = [*NEARLY[:4], WORSE[4]]
    table = scores(TRUTHS, NEARLY, baselines={"other": other}, resamples=500)
    both = [table.rows[one]["boundary_similarity"] for one in ("model", "other")]
    apart = sum(each.high - each.low for each in both)
    paired = table.lifts["boundary_similarity"].difference
    assert paired.high - paired.low <= apart


def test_the_choice_among_equal_baselines_is_made_again():
    """The best of several looks better than it is: the lift over it may be higher than it looks."""
    random = np.random.default_rng(0)
    truths = [boundaries_of([4] * 5) for _ in range(30)]
    equal = {str(at): [truth ^ (random.random(20) < 0.2) for truth in truths] for at in range(5)}
    model, *_ = equal.values()
    best = scores(truths, model, baselines=equal).lifts["pk"].over
    alone = scores(truths, WORSE_OF_20, baselines={best: equal[best]}).lifts["pk"].difference
    chosen = scores(truths, WORSE_OF_20, baselines=equal).lifts["pk"].difference
    assert chosen.value == alone.value
    assert chosen.low == alone.low
    assert chosen.high > alone.high + 0.002


def test_a_relative_lift_over_nothing_is_none():
    lift = scores(TRUTHS, NEARLY, baselines={"nothing": NOTHING}, resamples=50).lifts["boundary_f1"]
    assert lift.difference.value > 0
    assert math.isnan(lift.relative.value)


def test_the_same_seed_gives_the_same_table():
    baselines = {"nothing": NOTHING, "worse": WORSE, "nearly": [*NEARLY[:4], WORSE[4]]}
    one, again = (scores(TRUTHS, NEARLY, baselines=baselines, resamples=100, seed=1).lifts for _ in range(2))
    assert str(one) == str(again)


def test_labels_are_scored_where_there_are_any():
    labels = [np.cumsum(one) for one in TRUTHS], [np.cumsum(one) for one in NEARLY]
    table = scores(TRUTHS, NEARLY, baselines={"nothing": NOTHING}, labels=labels, resamples=50)
    assert 0 < table.rows["model"]["label_f1"].value < 1
    assert "label_f1" not in table.rows["nothing"]
    assert "label_f1" not in table.lifts
    assert plain_scores(TRUTHS, NEARLY, labels=labels)["label_f1"] == table.rows["model"]["label_f1"].value


def test_plain_scores_are_the_values_of_the_table():
    table = scores(TRUTHS, NEARLY, resamples=50)
    assert plain_scores(TRUTHS, NEARLY) == {score: one.value for score, one in table.rows["model"].items()}


def test_every_baseline_answers_every_document():
    documents = [["one two", "two three", "four", "five"], ["single"]]
    answers = baseline_answers(documents, TRUTHS)
    assert {"nothing", "every_k", "c99"} <= set(answers)
    assert all([len(one) for one in found] == [4, 1] for found in answers.values())


def test_the_table_is_read_by_people_and_machines():
    table = scores(TRUTHS, NEARLY, baselines={"nothing": NOTHING}, name="ours", resamples=50)
    shown = str(table)
    assert "ours" in shown and "nothing" in shown and "low is better" in shown
    assert "95 % intervals over 5 documents, each left out in turn" in shown
    assert "the best baseline is chosen again in 50 resamples (seed 0)" in shown
    assert json.loads(json.dumps(table.to_dict()))["rows"]["ours"]["pk"]["value"] == table.rows["ours"]["pk"].value


def test_one_document_has_no_interval():
    assert math.isnan(scores(TRUTHS[:1], NEARLY[:1], resamples=20).rows["model"]["pk"].low)


def test_answers_to_other_documents_are_refused():
    with pytest.raises(ValueError, match="no documents"):
        scores([], [])
    with pytest.raises(ValueError, match="5 documents, but worse has answers to 4"):
        scores(TRUTHS, NEARLY, baselines={"worse": WORSE[:4]}, resamples=20)

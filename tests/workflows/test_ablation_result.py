"""The result of `neural ablate` as tables, rows and JSON data."""

import json
import math
from dataclasses import replace
from decimal import Decimal

import numpy as np

from neural.runs.importance_file import (
    ClassImportance,
    ImportanceHeader,
    ImportanceStep,
    PairImportance,
)
from neural.workflows.ablation_result import AblationResult

HEADER = ImportanceHeader("7 windows", "mean", 7, ("a", "b"), (2, 1), chance_loss=3.0)


def make_result(steps=(10,)):
    def make_step(step):
        change = np.array([[0.01, 0.5], [-0.02 * step, math.nan]])
        strong = ClassImportance(0.3, change + np.array([[0, 1], [0, 0]]), np.full((2, 2), 0.1))
        weak = ClassImportance(0.2, change + 0.1, np.full((2, 2), 0.1))
        pair = PairImportance((0, 0), (1, 0), 0.31, 0.02, 0.29, 0.02)
        error = np.full((2, 2), 0.01)
        classes = {"digits": weak, "repeated tokens": strong}
        return ImportanceStep(step, 2.0, 0.1, change, error, change * 2, classes, (pair,))

    roles = np.array([["mixed", "induction"], ["first", ""]], dtype=object)
    return AblationResult("mine", HEADER, tuple(map(make_step, steps)), roles, ("a note",))


def test_heads_are_listed_by_importance_with_role_and_token_class():
    heads, pairs = make_result().to_sections(80)
    assert [row[0] for row in heads.table_rows] == ["L0 h1", "L0 h0", "L1 h0"]
    # clearly more for repeated tokens; for digits the difference is within two standard errors
    assert heads.table_rows[0] == (
        *("L0 h1", "+0.5000", "0.0100", "+1.0000", "induction"),
        "repeated tokens +1.5000",
    )
    assert heads.table_rows[1][4:] == ("", "") and "note: a note" in heads.text
    assert "loss 2.0000 ± 0.1000 at step 10; chance 3.0000" in heads.text
    assert pairs.table_rows == [("L0 h0, L1 h0", "+0.3100", "+0.0200", "+0.2900", "0.0200")]
    assert "1 measured pairs of 3" in pairs.text


def test_heads_that_raise_or_lower_a_score_are_listed_by_the_size_of_their_change():
    """Without its strongest head, a cosine may rise: minus the cosine falls."""
    result = make_result(steps=(30,))
    scored = replace(result, header=replace(HEADER, metric="−cosine", unit=""))
    rows = scored.to_sections(80)[0].table_rows
    assert [row[:2] for row in rows[:2]] == [("L1 h0", "−0.6000"), ("L0 h1", "+0.5000")]


def test_pairs_of_a_score_are_not_said_to_do_the_same_thing():
    """Two heads that lower a norm may both raise it: their interaction is below 0 if one is enough."""
    result = make_result()
    scored = replace(result, header=replace(HEADER, metric="−norm", unit=""))
    assert "stand in for" in result.to_sections(80)[-1].text
    text = scored.to_sections(80)[-1].text
    assert "stand in for" not in text and "the same thing" not in text
    assert "removing one raises −norm more when the other is removed, too" in text


def test_both_minus_the_sum_of_singles_is_the_interaction_in_every_printed_row():
    # measured on other examples than the changes of single heads, and rounded
    result = make_result()
    pairs = (
        PairImportance((0, 0), (0, 1), 0.04654, 0.02, 0.00426, 0.02),
        PairImportance((0, 1), (1, 0), 0.03374, 0.02, -0.00176, 0.02),
    )
    step = replace(result.last, pairs=pairs)
    section = replace(result, steps=(step,)).to_sections(80)[-1]
    for row in section.table_rows:
        both, singles, interaction = (Decimal(cell.replace("−", "-")) for cell in row[1:4])
        assert both - singles == interaction


def test_several_steps_are_a_table_of_the_most_important_heads():
    _, series, _ = make_result((10, 20)).to_sections(80)
    assert series.table_head == ("step", "loss", "L0 h1", "L0 h0", "L1 h0")
    assert [row[-1] for row in series.table_rows] == ["−0.2000", "−0.4000"]


def test_rows_and_json_have_every_head_once_per_step():
    result = make_result((10, 20))
    rows = result.tables["heads"].to_records()
    places = [(row["step"], row["layer"], row["head"]) for row in rows]
    assert places == [(step, *head) for step in (10, 20) for head in ((0, 0), (0, 1), (1, 0))]
    assert rows[4]["role"] == "induction" and rows[1]["role"] == ""  # of the last step only
    assert rows[1]["repeated tokens"] == 1.5 and rows[1]["repeated tokens, se"] == 0.1
    assert len(result.to_dataframe()) == 6
    data = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert data["roles"] == [["mixed", "induction"], ["first"]]
    assert data["steps"][1]["change"] == [[0.01, 0.5], [-0.4]]

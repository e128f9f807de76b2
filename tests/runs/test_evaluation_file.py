"""`evaluation.json` in a run folder."""

import json
import math

import pytest

from neural.core.page_section import PageSection
from neural.runs.evaluation_file import (
    load_evaluation_sections,
    load_evaluation_summary,
    save_evaluation,
)

SECTIONS = [
    PageSection(title="run", text="on 3 examples", table_head=("", "a"), table_rows=[("x", 1.5)]),
    PageSection(title="", table_rows=[("y", None)]),
]


def test_sections_come_back_as_they_were_saved(tmp_path):
    assert load_evaluation_sections(tmp_path) == []
    path = save_evaluation(tmp_path, {"accuracy": 0.5}, SECTIONS)
    assert path.name == "evaluation.json"
    assert [section.to_dict() for section in load_evaluation_sections(tmp_path)] == [
        section.to_dict() for section in SECTIONS
    ]
    assert json.loads(path.read_text())["evaluation"] == {"accuracy": 0.5}


def test_nan_and_infinity_become_null(tmp_path):
    rows = [PageSection(title="run", table_rows=[("x", math.inf)])]
    path = save_evaluation(tmp_path, {"r2": [math.nan, 1.0]}, rows)
    assert json.loads(path.read_text())["evaluation"] == {"r2": [None, 1.0]}
    assert load_evaluation_sections(tmp_path)[0].table_rows == [("x", None)]


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        '{"version": 9, "sections": []}',
        '{"version": 1}',
        '{"version": 1, "sections": {"title": "x"}}',
        '{"version": 1, "sections": [{"title": 1, "text": "", "table_head": [], "table_rows": []}]}',
        '{"version": 1, "sections": [{"title": "", "text": "", "table_head": [], '
        '"table_rows": [[{"html": "<script>"}]]}]}',
    ],
)
def test_a_damaged_file_is_an_error_with_a_way_out(tmp_path, content):
    (tmp_path / "evaluation.json").write_text(content)
    with pytest.raises(ValueError, match=r"is not a valid evaluation: .*; evaluate the run again"):
        load_evaluation_sections(tmp_path)


@pytest.mark.parametrize(
    ("evaluation", "scores"),
    [
        (
            {"data": "9 examples", "scores": {"loss": 1.5, "perplexity": None}},
            {"loss": {"value": 1.5, "low": None, "high": None}},
        ),
        (
            {
                "data": "9 examples",
                "rows": {
                    "this run": {"accuracy": {"value": 0.9, "low": 0.8, "high": None}},
                    "chance": {"accuracy": {"value": 0.1, "low": 0.0, "high": 0.2}},
                },
            },
            {"accuracy": {"value": 0.9, "low": 0.8, "high": None}},
        ),
    ],
)
def test_a_summary_has_the_scores_of_the_run_alone(tmp_path, evaluation, scores):
    assert load_evaluation_summary(tmp_path) is None
    save_evaluation(tmp_path, evaluation, [])
    summary = load_evaluation_summary(tmp_path)
    assert summary.data == "9 examples" and summary.scores == scores and summary.time > 0


def test_an_evaluation_without_scores_has_no_summary(tmp_path):
    save_evaluation(tmp_path, {"note": "nothing was scored"}, [])
    assert load_evaluation_summary(tmp_path) is None


@pytest.mark.parametrize("scores", ['{"loss": "low"}', '{"loss": [1]}', "[1]", '{"loss": true}'])
def test_a_summary_of_other_types_is_refused(tmp_path, scores):
    text = '{"version": 1, "time": 1, "evaluation": {"scores": %s}, "sections": []}'
    (tmp_path / "evaluation.json").write_text(text % scores)
    with pytest.raises(ValueError, match="evaluate the run again"):
        load_evaluation_summary(tmp_path)

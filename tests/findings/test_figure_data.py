"""Pictures of findings: data of every kind, from runs with the symptoms of all checks."""

import json
from pathlib import Path

import numpy as np
import pytest

import neural
from neural.findings.check import DiagnosticCheck
from neural.findings.checks import registry
from neural.findings.figure_data import build_curve, build_head_grid, mark_head
from neural.findings.findings import FindingList, add_figures, analyze_runs
from neural.findings.phases import name_phase
from tests.findings.symptomatic_runs import (
    LABELS,
    UNIFORM,
    T,
    write_attention_run,
    write_training_runs,
)
from tests.findings.synthetic_runs import (
    create_head_divergence,
    write_seeds,
    write_synthetic_run,
)
from tests.findings.test_focus_checks import write_run as write_focus_run

FIGURES = Path(neural.__file__).parents[2] / "web" / "src" / "figures"
DIAGNOSTIC_CODES = {
    registry.get(name).code
    for name in registry.names()
    if issubclass(registry.get(name), DiagnosticCheck)
}


def analyze_with_figures(runs, run_ids=None):
    return {
        finding.code: finding
        for finding in add_figures(analyze_runs(runs), runs, run_ids)
        if finding.supported != "undecided"
    }


@pytest.fixture(scope="module")
def attention(tmp_path_factory):
    """The findings of a run with all symptoms of attention, under the id "page id"."""
    return analyze_with_figures(
        [write_attention_run(tmp_path_factory.mktemp("attention"))], ["page id"]
    )


@pytest.fixture(scope="module")
def all_findings(attention, tmp_path_factory):
    root = tmp_path_factory.mktemp("others")
    runs = [
        *write_training_runs(root),
        write_focus_run(root, "soft", focus_confidence=0.5),
        write_focus_run(root, "hard", focus_accuracy=0.4),
        write_focus_run(root, focus_accuracy_class_1=0.1, cell_ft=0.3),
        write_focus_run(root, "hybrid", switch=90),
    ]
    findings = list(attention.values())
    for run in runs:
        findings += analyze_with_figures([run]).values()
    return FindingList(findings)


def test_every_warning_and_note_has_a_picture(all_findings):
    pictured = {finding.code for finding in all_findings if finding.figure is not None}
    assert pictured == DIAGNOSTIC_CODES
    assert all(finding.figure is not None for finding in all_findings)


def test_the_page_can_draw_every_kind_and_findings_are_json(all_findings):
    kinds = {finding.figure["kind"] for finding in all_findings}
    drawn = {path.stem for path in FIGURES.glob("*.tsx")}
    assert kinds == {"head_grid", "phases", "rows", "curve", "estimates"}
    assert kinds <= drawn
    json.dumps([finding.to_dict() for finding in all_findings], allow_nan=False)


def test_figures_and_links_name_the_run_by_its_id_on_the_page(attention):
    figure = attention["ATT008"].figure
    assert figure["run"] == "page id"
    assert attention["TRN001"].figure["rows"][0]["run"] == "page id"
    assert [(link.text, link.route) for link in attention["ATT008"].links] == [
        (
            format_head(mark),
            {
                "pane": "attention",
                "run": "page id",
                "step": 1000,
                "layer": mark["layer"],
                "head": mark["head"],
            },
        )
        for mark in figure["marks"]
    ]


def format_head(mark):
    return f"L{mark['layer']} h{mark['head']}"


def test_heads_with_a_role_are_marked_with_their_onset(attention):
    marks = {format_head(mark): mark for mark in attention["ATT008"].figure["marks"]}
    assert "L0 h0" not in marks, "uniform is no role"
    head = marks["L2 h2"]
    assert (head["label"], head["onset"], head["map_steps"]) == (
        "previous token",
        550,
        [50, 550, 1000],
    )
    assert attention["ATT008"].figure["tone"] == "note"
    assert attention["ATT008"].figure["heads"] == [4, 4, 4]


@pytest.mark.parametrize(
    ("code", "labels"),
    [
        ("ATT002", {"L1 h0": "sink"}),
        ("ATT003", {"L1 h0": "dead"}),
        ("ATT004", {"L1 h1": "= h2", "L1 h2": "= h1"}),
        ("ATT006", {"L1 h3": "83 nats"}),
    ],
)
def test_heads_with_a_problem_are_marked(attention, code, labels):
    figure = attention[code].figure
    assert (figure["kind"], figure["tone"]) == ("head_grid", "warning")
    marks = {format_head(mark): mark["label"] for mark in figure["marks"]}
    assert labels.items() <= marks.items()


def test_the_dominating_head_is_marked_with_its_ratio(attention):
    (mark,) = attention["ATT005"].figure["marks"]
    assert (mark["layer"], mark["head"]) == (2, 1)
    assert mark["label"] == f"{attention['ATT005'].number.value:.1f} ×"


def test_uniformity_is_one_row_of_weights(attention):
    figure = attention["ATT001"].figure
    assert figure["kind"] == "rows"
    assert (figure["layer"], figure["head"], figure["query"]) == (0, 0, T - 1)
    assert (figure["keys"], figure["key_count"]) == (LABELS, T)
    np.testing.assert_allclose(figure["weights"], UNIFORM[-1], atol=0.003)
    assert attention["ATT001"].formatted_estimate == "4 of 12 heads"


def test_a_row_of_padding_is_not_shown(tmp_path):
    """A query that sees itself alone says nothing about uniformity."""
    weights = np.zeros((4, 4))
    weights[:3, :3], weights[3, 3] = 1 / 3, 1
    maps = np.tril(weights)
    maps /= maps.sum(axis=1, keepdims=True)
    entropy = np.full((2, 1, 2), 0.99)
    run = write_synthetic_run(
        tmp_path, 0, arrays={"relative_entropy": entropy}, maps=[np.array([[maps, maps]])] * 2
    )
    figure = analyze_with_figures([run])["ATT001"].figure
    assert (figure["query"], figure["key_count"]) == (2, 3)


def test_phases_have_a_row_per_seed_and_words_for_losses(tmp_path):
    runs = [write_attention_run(tmp_path, seed) for seed in range(2)]
    figure = analyze_with_figures(runs)["TRN001"].figure
    assert (figure["kind"], figure["metric"]) == ("phases", "valid/loss")
    assert [row["seed"] for row in figure["rows"]] == [0, 1]
    for row in figure["rows"]:
        bands = {band["name"]: band for band in row["bands"]}
        assert bands["best"]["label"] == "lowest"
        assert bands["best"]["first"] == bands["best"]["last"] == 650
        assert bands["after"]["last"] == 1000
    assert name_phase("dip", larger_is_better=True) == "dip"
    assert name_phase("best", larger_is_better=True) == "highest"


def test_curves_mark_the_steps_of_their_finding(attention, all_findings):
    overfitting = attention["TRN003"]
    assert overfitting.figure["metrics"] == ["valid/loss", "train/loss"]
    assert overfitting.figure["marks"] == [{"step": 650, "label": "lowest"}]
    figures = {finding.code: finding.figure for finding in all_findings}
    assert figures["TRN004"]["levels"] == [{"value": 0.69, "label": "chance"}]
    assert figures["TRN007"]["interval"] == {"first": 750, "last": 1000, "label": "last quarter"}
    assert figures["FOC004"]["marks"] == [{"step": 90, "label": "switch"}]
    assert [series["label"] for series in figures["ATT009"]["series"]] == ["L0", "L1", "L2"]
    assert attention["ATT009"].formatted_estimate.endswith("at step 550 of 1,000")


def test_claims_are_estimates_against_zero_with_the_numbers_of_the_finding(tmp_path):
    def create_data(random):
        level = 3 - np.linspace(0, 1, 11)[:, None, None]
        return {"arrays": {"entropy": level + 0.01 * random.normal(size=(11, 2, 2))}}

    finding = analyze_with_figures(write_seeds(tmp_path, 5, create_data))["EVO001"]
    assert finding.supported == "yes"
    assert finding.figure == {
        "kind": "estimates",
        "unit": "nats",
        "reference": 0,
        "rows": [{"label": "mean of 5 seeds", "number": finding.number.to_dict("seeds")}],
    }


def test_one_run_has_no_interval_over_seeds(attention, tmp_path):
    run = write_attention_run(tmp_path)
    for finding in analyze_runs([run]):
        assert finding.number.to_dict()["low"] is None, finding.code
        if finding.kind == "claim":
            assert finding.missing == "needs 5 seeds, has 1" or " has no " in finding.evidence


def test_one_run_is_counted_in_heads_and_steps_not_in_percent(tmp_path):
    spans = np.array([[[20.0, 20.0]], [[2.0, 20.0]]])
    run = write_synthetic_run(tmp_path, 0, arrays={"span90": spans})
    finding = next(item for item in analyze_runs([run]) if item.code == "EVO003")
    assert finding.formatted_estimate == "1 of 2 heads, 1 seed"
    levels = 0.2 + 0.5 * (np.arange(20) >= 8)
    matrices = [create_head_divergence([2, 2], lambda i, j, level=level: level) for level in levels]
    run = write_synthetic_run(
        tmp_path, 1, arrays={"heads/divergence": np.array(matrices)}, heads=[2, 2]
    )
    finding = next(item for item in analyze_runs([run]) if item.code == "EVO005")
    assert finding.formatted_estimate == "step 450 of 1,000, 1 seed"
    assert "no clear rise" not in finding.evidence


def test_claims_about_layers_and_generated_text_need_them(tmp_path):
    one_layer = write_synthetic_run(tmp_path, 0, arrays={"entropy": np.ones((3, 1, 4))})
    codes = {finding.code for finding in analyze_runs([one_layer])}
    assert {"EVO001", "EVO003"} <= codes
    assert not codes & {"EVO002", "EVO004", "EVO005", "EVO008", "EVO009", "EVO010", "EVO011"}
    assert not codes & {"ATT007", "ATT009"}
    scored = write_synthetic_run(
        tmp_path,
        1,
        arrays={"entropy": np.ones((3, 4, 4))},
        scalars={"generation/distance_from_real": np.ones(3)},
    )
    codes = {finding.code for finding in analyze_runs([scored])}
    assert {"EVO002", "EVO004", "EVO005", "EVO008", "EVO009", "EVO010", "EVO011"} <= codes


def test_marks_and_curves_by_hand(tmp_path):
    run = write_synthetic_run(tmp_path, 0, heads=[2, 3])
    figure = build_head_grid(run, [mark_head(1, 2, "sink", onset=70)])
    assert (figure["heads"], figure["step"]) == ([2, 3], None)
    assert figure["marks"][0]["map_steps"] == [], "a run without maps"
    curve = build_curve(series=[("a", np.array([1, 2]), np.array([0.5, np.nan]))])
    assert curve["series"] == [{"label": "a", "steps": [1, 2], "values": [0.5, None]}]
    assert curve["interval"] is None

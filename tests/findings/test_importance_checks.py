"""Findings about the importance of heads, codes CAU…"""

import numpy as np
import pytest

from neural.findings.findings import add_figures, analyze_runs
from tests.findings.symptomatic_runs import write_attention_run
from tests.findings.synthetic_runs import write_synthetic_run
from tests.importance_files import create_story, write_importance_file


def find_causal(run):
    return {
        finding.code: finding
        for finding in analyze_runs([run])
        if finding.code.startswith("CAU") and finding.supported == "yes"
    }


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_attention_run(tmp_path_factory.mktemp("run"))


def test_findings_say_what_happened_and_since_when(run):
    findings = find_causal(run)
    assert list(findings) == ["CAU001", "CAU002", "CAU003", "CAU004"]
    necessary = findings["CAU001"]
    assert necessary.formatted_estimate == "2 of 12 heads"
    assert necessary.evidence.startswith(
        "L2 h2 is necessary: without it the loss rises by 0.409 ± 0.004 nats, since step 550, and "
        "it became a previous-token head at step 550; L1 h3 is necessary"
    )
    assert findings["CAU002"].evidence.startswith(
        "L1 h0 is a sink head, but without it the loss changes by −0.001 ± 0.004 nats"
    )
    assert findings["CAU003"].evidence == (
        "L1 h1 and L1 h2: either alone changes the loss by less than 0.02 nats, both together cost "
        "0.310 ± 0.010 nats"
    )
    assert "L1 h3 took over from L0 h1 at step 650" in findings["CAU004"].evidence
    assert "0.22 → 0.00" in findings["CAU004"].evidence
    assert all(finding.importance == "none" for finding in findings.values())


def test_findings_link_to_the_view_of_importance_and_mark_heads(run):
    findings = {
        finding.code: finding for finding in add_figures(analyze_runs([run]), [run], ["id"])
    }
    for code in ("CAU001", "CAU002", "CAU003", "CAU004"):
        assert findings[code].links[-1].route == {"pane": "importance", "run": "id"}
    marks = findings["CAU001"].figure["marks"]
    assert [(mark["layer"], mark["head"], mark["onset"]) for mark in marks] == [
        (2, 2, 550),
        (1, 3, 650),
    ]
    assert [series["label"] for series in findings["CAU004"].figure["series"]] == ["L0 h1", "L1 h3"]


def test_nothing_is_said_about_runs_that_were_not_measured(tmp_path):
    run = write_synthetic_run(tmp_path, 0)
    assert not any(finding.code.startswith("CAU") for finding in analyze_runs([run]))


def test_a_model_that_did_not_learn_has_no_finding(tmp_path):
    run = write_synthetic_run(tmp_path, 0)
    change = 0.01 * np.random.default_rng(0).normal(size=(1, 2, 4))
    write_importance_file(run.path, change, loss=[3.6])
    assert not any(finding.code.startswith("CAU") for finding in analyze_runs([run]))


def test_few_examples_leave_the_checks_undecided_with_a_reason(tmp_path):
    run = write_synthetic_run(tmp_path, 0)
    write_importance_file(run.path, create_story(), examples=8)
    findings = [finding for finding in analyze_runs([run]) if finding.code.startswith("CAU")]
    assert [finding.supported for finding in findings] == ["undecided"] * 4
    assert "16 examples or more, but of 8" in findings[0].evidence


def test_a_single_checkpoint_says_nothing_about_time(tmp_path):
    run = write_synthetic_run(tmp_path, 0)
    write_importance_file(run.path, create_story()[-1:], loss=[1.3])
    findings = find_causal(run)
    assert set(findings) == {"CAU001"}
    assert "since" not in findings["CAU001"].evidence


def test_a_head_that_was_necessary_at_the_first_checkpoint_says_so(tmp_path):
    run = write_synthetic_run(tmp_path, 0)
    write_importance_file(run.path, np.full((3, 1, 1), 0.3))
    assert "since step 50, the first measured" in find_causal(run)["CAU001"].evidence

"""Captures in memory are read as the run that they are saved as."""

import numpy as np
import pytest
import torch
from torch import nn

import neural
from neural.findings.capture_record import CaptureRecord
from neural.findings.findings import analyze_runs, select_checks
from neural.report.capture_page import write_record_page
from neural.runs.errors import RunError
from neural.runs.run import Run
from neural.workflows.watch_models import save_record


def capture_encoder(seed, layers):
    torch.manual_seed(seed)
    block = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    model = nn.TransformerEncoder(block, layers, enable_nested_tensor=False)
    labels = [f"token {index}" for index in range(12)]
    return neural.watch(model, torch.randn(2, 12, 16), labels=labels)


@pytest.fixture(scope="module")
def record():
    """Two checkpoints of an encoder, on two examples."""
    captures = {step: capture_encoder(step, layers=2) for step in (10, 0)}
    return CaptureRecord(captures, name="encoder", facts={"parameters": 7}, notes=[(0, "a note")])


@pytest.fixture(scope="module")
def run(record, tmp_path_factory):
    with Run.open(save_record(record, tmp_path_factory.mktemp("runs"))) as run:
        yield run


def test_it_has_the_arrays_of_its_run(record, run):
    names = [
        *run.measure_names(),
        "heads/divergence",
        *(f"roles/{role}" for role in run.role_names()),
    ]
    assert sorted(record.measure_names()) == sorted(run.measure_names())
    assert sorted(record.role_names()) == sorted(run.role_names())
    for name in names:
        for (steps, values), stored in [
            (record.measure(name), run.measure(name)),
            (record.measure(name, after=0), run.measure(name, after=0)),
            (record.half_means(name), run.half_means(name)),
        ]:
            assert values.dtype == stored[1].dtype
            np.testing.assert_array_equal(steps, stored[0])
            np.testing.assert_array_equal(values, stored[1])


def test_it_has_the_maps_and_facts_of_its_run(record, run):
    assert record.map_steps() == run.map_steps() == [0, 10]
    assert record.maps(10) == run.maps(10)
    for key in (*record.facts, "attention/vectors", "no such key"):
        assert record.metadata(key) == run.metadata(key)
    assert record.settings == run.settings
    assert [event[:3] for event in record.events()] == [event[:3] for event in run.events()]


def test_it_has_no_training(record):
    assert record.scalar_names() == [] and record.load_checkpoint() is None
    for read in (record.scalars, record.measure):
        with pytest.raises(RunError, match="encoder has no"):
            read("valid/loss")


def test_findings_are_those_of_its_run(record, run):
    def describe(source):
        return [
            str(finding.to_dict()).replace(source.name, "NAME")
            for finding in analyze_runs([source])
        ]

    assert describe(record) == describe(run)


def test_models_of_different_depth_are_compared_as_far_as_they_can_be():
    captures = {step: capture_encoder(step, layers) for step, layers in ((0, 2), (1, 3))}
    findings = {f.code: f for f in analyze_runs([CaptureRecord(captures, name="two models")])}
    assert findings["ATT007"].supported == "undecided"
    assert "does not fit its layers" in findings["ATT007"].evidence


def test_checks_of_trainings_say_nothing_about_it(record):
    codes = {check.code for check in select_checks([record])}
    assert codes >= {"ATT001", "ATT008"} and not codes & {"ATT003", "TRN001", "TRN007", "FOC001"}


def test_a_series_has_a_page_without_a_run(record, tmp_path):
    page = write_record_page(record, tmp_path / "series.html", title="a series").read_text("utf-8")
    assert "a series" in page and "token 3" in page
    assert [path.name for path in tmp_path.iterdir()] == ["series.html"]

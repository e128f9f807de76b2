"""`neural.check` from Python."""

import pytest

import neural
from tests.programs import CLASSIFIER


def test_a_correct_program_has_a_table_and_is_true():
    report = neural.check(CLASSIFIER)
    assert report.ok
    assert report
    assert "TransformerEncoder" in repr(report)
    assert report.data["networks"][0]["name"] == "Classifier"


def test_a_wrong_program_lists_its_diagnostics():
    report = neural.check(CLASSIFIER.replace("num_heads=3", "num_heads=5"))
    assert not report.ok
    assert [diagnostic.code for diagnostic in report] == ["E0203"]
    assert "error[E0203]" in str(report)
    assert report._repr_html_().startswith("<pre>error[E0203]")


def test_a_file_and_a_fragment_are_checked(tmp_path):
    path = tmp_path / "net.neural"
    path.write_text(CLASSIFIER)
    assert neural.check(path).name == neural.check(str(path)).name == str(path)
    assert repr(neural.check("Dense(10)", fragment=True)) == "<text>: no errors"
    assert not neural.check("Dens(10)", fragment=True).ok
    with pytest.raises(FileNotFoundError):
        neural.check(tmp_path / "missing.neural")


def test_an_experiment_is_checked_with_its_network(tmp_path):
    (tmp_path / "net.neural").write_text(CLASSIFIER)
    path = tmp_path / "experiment.yaml"
    path.write_text("task: supervised\nnetwork: net.neural\n")
    report = neural.check(path)
    assert not report.ok
    assert "has no data" in str(report)
    path.write_text("task: supervised\nnetwork: net.neural\nlearning_rate: 1\n")
    assert "error[E0801]" in str(neural.check(path))
    path.write_text("task: language_model\ndata: handbook\npreset: tiny\n")
    assert neural.check(path).ok

"""`neural report`, as it is invoke."""

import pytest
from click.testing import CliRunner

from neural.cli.main import main
from tests.report_runs import write_run


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    for seed in range(2):
        write_run(root, f"small-{seed}", layers=2, heads=2, positions=5, seed=seed)
    return root


@pytest.fixture
def report(tmp_path, monkeypatch, root):
    monkeypatch.chdir(tmp_path)
    return lambda *args: CliRunner().invoke(main, ["report", *map(str, args), "--runs", str(root)])


def test_the_newest_run_is_reported_when_none_is_named(report, tmp_path):
    result = report()
    assert result.exit_code == 0, result.output
    assert result.output.startswith("report.html  ") and "1 run; open it" in result.output
    assert "small-1</title>" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_run_named_twice_is_reported_once(report):
    assert "2 runs; open it" in report("small-0", "small-1", "small-0").output


def test_the_named_plots_are_written(report, tmp_path):
    result = report("small-0", "small-1", "--plots", "plots", "-o", "both.html", "--title", "both")
    assert result.exit_code == 0, result.output
    for name in ("train_loss", "val_loss", "attention_metrics", "layer_similarity"):
        for kind in ("svg", "png"):
            assert (tmp_path / "plots" / f"{name}_handbook.{kind}").stat().st_size > 1000
    assert "<title>both</title>" in (tmp_path / "both.html").read_text(encoding="utf-8")


def test_plots_that_cannot_be_drawn_are_named(report, tmp_path, root):
    from neural.runs.run import Run

    run = Run.create(tmp_path, "bare", settings={}, program=None, environment={})
    run.finish("finished")
    result = report(run.path, "--plots", "plots")
    assert result.exit_code == 0 and "not drawn: train_loss_data" in result.output


def test_an_unknown_run_is_a_message(report, tmp_path):
    result = report("smull")
    assert result.exit_code == 2 and "there is no run `smull`" in result.output
    assert not (tmp_path / "report.html").exists()


def test_an_unwritable_path_is_a_message(report):
    result = report("-o", "missing/report.html")
    assert result.exit_code == 2 and "missing/report.html cannot be written" in result.output


def test_without_a_browser_a_pdf_is_refused_before_any_work(report, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    result = report("--pdf")
    assert (
        result.exit_code == 2
        and "no browser that can print was found" in result.output
        and "print" in result.output
    )
    assert not (tmp_path / "report.html").exists()

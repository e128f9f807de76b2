"""The package without its extras: a first session works, and what needs an extra names it.

tests/light_session.py runs the commands in a process that cannot import the packages of the extras
`figures`, `images`, `sklearn` and `theory`. The other tests hide one package from one feature.
"""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

import neural
from neural.cli.main import main
from neural.core.distribution import format_install_command
from neural.core.errors import TaskError
from neural.core.optional_packages import MissingPackageError, import_optional
from neural.data.sources.images import Images
from neural.report.attribution_page import render_attribution_page
from neural.tasks.focus.paradigms.auto import Auto
from neural.workflows import study_report
from neural.workflows.caption import Caption, write_caption_plot
from neural.workflows.watch_images import _load_image
from tests.tasks.networks import build_network

EXTRA_BY_REFUSED_COMMAND = {
    "report --plots plots": "figures",
    "figure": "figures",
    "dynamics --theory C=3 m=10": "theory",
}
EXTRA_BY_NOTE = {
    "evaluate": "sklearn",
    "calibrate songs/run": "figures",
    "figure --help": "figures",
}
"""Commands that do most of their work without an extra, and say what is missing."""


def test_a_first_session_needs_no_extra(tmp_path):
    script = Path(__file__).with_name("light_session.py")
    done = subprocess.run([sys.executable, script, tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    session = json.loads(done.stdout.splitlines()[-1])
    assert session["imported"] == []
    assert len(session["board"]) == 1
    for line, result in session["commands"].items():
        assert not result["traceback"], (line, result["traceback"])
        assert result["exit_code"] == (2 if line in EXTRA_BY_REFUSED_COMMAND else 0), (line, result)
    for line, extra in (EXTRA_BY_REFUSED_COMMAND | EXTRA_BY_NOTE).items():
        words = " ".join(session["commands"][line]["output"].split())
        assert format_install_command(extra) in words, (line, words)
    assert (tmp_path / "report.html").stat().st_size > 100_000
    assert not (tmp_path / "plots").exists()


@pytest.fixture
def hide(monkeypatch):
    """Hide a package from imports that come after."""
    return lambda name: monkeypatch.setitem(sys.modules, name, None)


def expect_message(extra):
    return pytest.raises(MissingPackageError, match=rf"pip install .neural-lab\[{extra}\]")


def test_the_error_is_an_import_error_and_a_message(hide):
    hide("matplotlib")
    for kind in (ImportError, TaskError):
        with pytest.raises(kind, match="drawing needs a package that is not installed: run `pip"):
            import_optional("matplotlib", feature="drawing", extra="figures")


def test_an_import_that_fails_inside_an_installed_package_is_not_hidden(tmp_path, monkeypatch):
    (tmp_path / "broken_extra.py").write_text("import no_such_module_at_all\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_module_at_all"):
        import_optional("broken_extra", feature="drawing", extra="figures")


def test_a_missing_package_whose_name_begins_alike_is_not_hidden(tmp_path, monkeypatch):
    (tmp_path / "no_such_extra.py").write_text("import no_such\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="'no_such'"):
        import_optional("no_such_extra", feature="drawing", extra="figures")


def test_the_page_of_an_explanation_has_a_note_instead_of_the_figure(hide):
    hide("matplotlib")
    data = {
        "model": "m",
        "source": "",
        "answer": {"text": "b", "probability": 0.5, "logit": 0.0},
        "predicted": {"text": "b", "probability": 0.5},
        "notes": [],
        "tokens": ["a"],
        "methods": {"direct": {"label": "direct", "scores": [1.0], "faithfulness": None}},
        "logit_attribution": None,
        "lens": None,
    }
    page = render_attribution_page(data)
    assert "neural-lab[figures]" in page and "attribution-figure" not in page


def test_figures_and_plots_of_runs_name_the_extra_before_they_search_for_runs(hide, tmp_path):
    hide("matplotlib")
    with expect_message("figures"):
        neural.figure("no such run", runs=tmp_path)
    with expect_message("figures"):
        neural.write_report(
            "no such run", tmp_path / "r.html", plots=tmp_path / "plots", runs=tmp_path
        )
    assert not (tmp_path / "r.html").exists()


def test_a_study_skips_its_plots(hide, tmp_path):
    hide("matplotlib")
    files, skipped = study_report._draw_plots([], tmp_path)
    assert files == [] and "neural-lab[figures]" in skipped[0]


def test_plots_of_captions_name_the_extra(hide, tmp_path):
    hide("matplotlib")
    attention = SimpleNamespace(words=["red"], focus=np.ones((1, 1)))
    with expect_message("figures"):
        write_caption_plot(Caption(0, attention, None), tmp_path)
    result = CliRunner().invoke(main, ["caption", "-o", str(tmp_path), "--runs", str(tmp_path)])
    assert result.exit_code == 2 and "neural-lab[figures]" in result.output


def test_images_name_the_extra(hide, tmp_path):
    for name in ("PIL", "PIL.Image"):
        hide(name)
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.png").write_bytes(b"")
    network = build_network("(8, 8, 3)", 'Flatten() | Output(2, activation="softmax")')
    with expect_message("images"):
        Images.read(tmp_path, network)
    with expect_message("images"):
        _load_image(tmp_path / "cat" / "1.png")


def test_the_automatic_schedule_names_the_extra(hide):
    hide("scipy")
    with expect_message("theory"):
        Auto().choose_schedule(classes=3, segments=10, steps=100)


def test_the_estimators_name_the_extra():
    code = "import sys; sys.modules['sklearn'] = None; import neural.sklearn"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert 'pip install "neural-lab[sklearn]"' in done.stderr.splitlines()[-1]

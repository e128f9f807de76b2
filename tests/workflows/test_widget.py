"""The attention view as a notebook widget."""

import builtins
import json

import pytest
import torch

import neural
from neural.runs.run import Run
from neural.workflows import widget as widget_module
from tests.programs import CLASSIFIER
from tests.report_runs import write_run


@pytest.fixture(scope="module")
def run_path(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("runs"), layers=2, heads=2, positions=7)


def test_a_run_is_a_widget_with_its_page_data_and_selection(run_path):
    view = neural.widget(run_path, layer=1, head=0)
    data = json.loads(view.data)
    assert data["kind"] == "report" and len(data["maps"]) == 1
    assert (view.step, view.layer, view.head, view.query) == (None, 1, 0, None)
    assert "render" in view._esm


def test_the_selection_can_be_observed(run_path):
    with Run.open(run_path) as run:
        view = neural.widget(run)
    changes = []
    view.observe(lambda change: changes.append(change["new"]), names="step")
    view.step = 20
    assert changes == [20]
    with pytest.raises(Exception, match="head"):
        view.head = -1


def test_a_capture_is_a_widget():
    network = neural.parse(CLASSIFIER).build()
    capture = neural.watch(network, torch.randn(2, 13, 12))
    assert json.loads(neural.widget(capture).data)["kind"] == "snapshot"


def test_a_notebook_also_saves_the_static_page(run_path):
    contents, _ = neural.widget(run_path)._repr_mimebundle_()
    assert {"application/vnd.jupyter.widget-view+json", "text/html"} <= set(contents)
    assert contents["text/html"].startswith("<iframe sandbox=")


def test_without_anywidget_it_is_the_static_page(run_path, monkeypatch):
    real_import = builtins.__import__

    def import_without_anywidget(name, *args, **kwargs):
        if name == "anywidget":
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", import_without_anywidget)
    widget_module._define_widget_class.cache_clear()
    page = neural.widget(run_path)
    assert page._repr_html_().startswith("<iframe sandbox=")
    assert "neural-lab[notebook]" in repr(page)


def test_a_run_without_maps_is_an_error_with_a_way_out(tmp_path):
    run = Run.create(tmp_path, "none", settings={"task": "supervised"}, program=None)
    with run, pytest.raises(ValueError, match=r"no attention maps; set `tracking\.maps_every`"):
        neural.widget(run)


def test_an_unknown_selection_is_named(run_path):
    with pytest.raises(TypeError, match="unknown selection `heads`; there are step, layer"):
        neural.widget(run_path, heads=2)

"""What a notebook shows."""

import html
import re

import pytest

import neural
from neural.notebook import DRESSES, dress, network_html, run_html, seen_html
from neural.tracking.run import Run
from tests.report_runs import write_run

TEXT = """network Small {
  input: (5, 8)
  layers:
    TransformerEncoder(num_heads=2, d_model=8, dff=16)
    Output(3, activation="softmax")
  loss: "sparse_categorical_crossentropy"
}
"""


@pytest.fixture(autouse=True)
def undressed():
    """Other tests see the classes as they are."""
    yield
    import sys

    for module, (name, _) in DRESSES.items():
        kind = getattr(sys.modules.get(module), name, None)
        if kind is not None and "_repr_html_" in vars(kind):
            del kind._repr_html_


def framed(shown):
    (inside,) = re.findall(r'srcdoc="([^"]*)"', shown)
    return html.unescape(inside)


def test_a_run_is_its_report_in_a_frame(tmp_path):
    run = Run.open(write_run(tmp_path, layers=1, heads=2, positions=5))
    dress()
    shown = framed(run._repr_html_())
    assert f"<title>{run.name}</title>" in shown and '"kind":"report"' in shown and shown == framed(run_html(run))


def test_watched_attention_is_its_maps_and_measures():
    import torch

    network = neural.parse(TEXT).build()
    seen = neural.watch(network, torch.randn(2, 5, 8), measures=("entropy",))
    shown = framed(seen_html(seen))
    assert '"kind":"look"' in shown and '"entropy":{"unit":"nats"' in shown
    assert seen.layers()[0] in shown


def test_a_network_is_its_table():
    shown = network_html(neural.parse(TEXT))
    assert shown.count("<tr>") == 1 + 3 and "(B, 5, 3)" in shown   # positions are added by themselves
    assert "&quot;" not in shown and 'activation="softmax"' in shown
    assert "network Small: 3 layers" in shown

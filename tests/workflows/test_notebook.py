"""HTML representations of runs, captures and networks in notebooks."""

import html
import re

import pytest

import neural
from neural.runs.run import Run
from neural.workflows.notebook import (
    HTML_REPRS,
    register_html_reprs,
    render_capture,
    render_network,
    render_run,
)
from tests.hugging_face_folders import build_t5, train_tokenizer
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
def without_html_reprs():
    """Remove the methods again, so that other tests are not affected."""
    yield
    for cls in HTML_REPRS:
        if "_repr_html_" in vars(cls):
            del cls._repr_html_


def extract_frame(page):
    (content,) = re.findall(r'srcdoc="([^"]*)"', page)
    return html.unescape(content)


def test_a_run_is_shown_as_its_report_in_a_frame(tmp_path):
    run = Run.open(write_run(tmp_path, layers=1, heads=2, positions=5))
    register_html_reprs()
    page = extract_frame(run._repr_html_())
    assert (
        "<title>six</title>" in page
        and '"kind":"report"' in page
        and page == extract_frame(render_run(run))
    )


def test_a_capture_is_shown_as_maps_and_measures():
    import torch

    network = neural.parse(TEXT).build()
    capture = neural.watch(network, torch.randn(2, 5, 8), measures=("entropy",))
    page = extract_frame(render_capture(capture))
    assert '"kind":"snapshot"' in page and '"entropy":{"unit":"nats"' in page
    assert capture.layer_names()[0] in page


def test_a_capture_of_two_sequences_shows_the_tokens_of_both():
    tokenizer = train_tokenizer()
    model = build_t5(tokenizer)
    capture = neural.watch(model, "the cat sat", "a dog", tokenizer=tokenizer)
    page = extract_frame(render_capture(capture))
    assert "<title>T5ForConditionalGeneration: attention</title>" in page
    source, target = '["the","cat","sat"]', '["[PAD]","a"]'
    for queries, keys in ((source, source), (target, target), (target, source)):
        assert f'"queries":{queries},"keys":{keys}' in page
    assert not re.search(r'(?:src|href)="(?:https?:)?//', page)  # works offline


def test_a_network_is_shown_as_its_table():
    page = render_network(neural.parse(TEXT))
    # header, positional encoding (added by default), encoder, output
    assert page.count("<tr>") == 1 + 3 and "(B, 5, 3)" in page
    assert "&quot;" not in page and 'activation="softmax"' in page
    assert "network Small: 3 layers" in page

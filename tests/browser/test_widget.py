"""The notebook widget in a real Chromium without a network, with a stand-in for anywidget's model."""

import json

import pytest

import neural
from tests.report_runs import write_run

NOTEBOOK = """<!doctype html><html><body data-jp-theme-light="true">
<style>main {{ display: none }} button {{ font-size: 40px }}</style>
<div id="cell"></div>
<script type="application/json" id="state">{state}</script>
<script type="module">
{module}
const state = JSON.parse(document.getElementById("state").textContent)
const listeners = {{}}
window.saved = []
window.model = {{
  get: (name) => state[name] ?? null,
  set(name, value) {{ state[name] = value; (listeners[`change:${{name}}`] ?? []).forEach((f) => f()) }},
  save_changes: () => window.saved.push({{ ...state, data: undefined }}),
  on: (event, listener) => (listeners[event] ??= []).push(listener),
  off: () => {{}},
}}
window.remove = widget.render({{ model: window.model, el: document.getElementById("cell") }})
</script></body></html>"""


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    """A page that draws the widget of a run, as a notebook does."""
    root = tmp_path_factory.mktemp("runs")
    view = neural.widget(write_run(root, layers=2, heads=3, positions=9, snapshots=4))
    state = json.dumps({"data": view.data, "layer": 0, "head": 1}).replace("<", "\\u003c")
    # the export as a name, because the module is a part of the page
    module = view._esm[: view._esm.rindex("export{")]
    default = view._esm[view._esm.rindex("export{") :]
    name = default.split("{")[1].split(" as default")[0]
    page = root / "notebook.html"
    module = module.replace("</script", "<\\/script")
    text = NOTEBOOK.format(state=state, module=f"{module}\nconst widget = {name}")
    page.write_text(text, encoding="utf-8")
    return page.as_uri()


def test_the_widget_draws_all_heads_in_its_own_style(tab, notebook):
    tab.goto(notebook)
    tab.locator(".heads canvas").first.wait_for()
    assert tab.locator(".heads canvas").count() == 6
    # the notebook hides every <main> and enlarges buttons; neither reaches the widget
    button = tab.locator(".heads button").first
    assert float(button.evaluate("e => parseFloat(getComputedStyle(e).fontSize)")) < 20


def test_selecting_a_head_changes_the_model_and_the_model_changes_the_view(tab, notebook):
    tab.goto(notebook)
    title = tab.locator(".detail-card h2")
    title.get_by_text("L0 h1").wait_for()
    tab.locator(".heads button").nth(5).click()
    title.get_by_text("L1 h2").wait_for()
    assert tab.evaluate("[window.model.get('layer'), window.model.get('head')]") == [1, 2]
    assert tab.evaluate("window.saved.length") >= 1
    tab.evaluate("window.model.set('head', 0)")
    title.get_by_text("L1 h0").wait_for()
    tab.evaluate("window.model.set('step', 10)")
    tab.locator("output", has_text="step 10").wait_for()


def test_the_widget_follows_the_theme_of_the_notebook_and_can_be_removed(tab, notebook):
    tab.goto(notebook)
    tab.locator(".heads canvas").first.wait_for()
    colour = "getComputedStyle(document.getElementById('cell')).getPropertyValue('--text')"
    light = tab.evaluate(colour)
    tab.evaluate("document.body.dataset.jpThemeLight = 'false'")
    tab.wait_for_function(f"before => {colour} !== before", arg=light)
    tab.evaluate("window.remove()")
    assert tab.locator(".heads canvas").count() == 0

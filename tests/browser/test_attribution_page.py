"""The page of `neural attribute` in a real Chromium."""

from click.testing import CliRunner

from neural.cli.main import main
from tests.circuits import build_induction, build_tokenizer, format_tokens
from tests.hugging_face_folders import save_folder


def test_the_strips_show_the_source_of_the_answer(tab, tmp_path):
    circuit = build_induction("gpt2")
    folder = save_folder(tmp_path / "induction", circuit.model, build_tokenizer())
    batch = circuit.draw(1, seed=1)
    position = int(batch.has_target[0].nonzero()[-1])
    words = format_tokens(batch.tokens[0, : position + 1]).split()
    page = tmp_path / "why.html"
    options = ["--input", " ".join(words), "--faithfulness", "--examples", "2", "-o", str(page)]
    result = CliRunner().invoke(main, ["attribute", str(folder), *options])
    assert result.exit_code == 0, result.output
    tab.goto(page.as_uri())
    strips = tab.locator("[data-method]")
    assert strips.count() == 8
    tokens = tab.locator('[data-method="direct"] .strip span')
    assert tokens.all_inner_texts() == words
    shades = [
        float(token.evaluate("span => span.style.getPropertyValue('--s')").rstrip("%"))
        for token in tokens.all()
    ]
    source = shades.index(max(shades))
    # the token after the earlier occurrence of the last one
    assert words[source - 1] == words[-1]
    assert shades[source] == 100
    assert "faithfulness" in tab.locator('[data-method="direct"] h3').inner_text()
    # the darkest token is painted, others are transparent
    background = tokens.nth(source).evaluate("span => getComputedStyle(span).backgroundColor")
    other = tokens.nth(0).evaluate("span => getComputedStyle(span).backgroundColor")
    assert background != other
    figure = tab.locator("#attribution-figure svg")
    assert figure.bounding_box()["width"] > 300
    assert "deletion" in figure.text_content()
    # no horizontal scrolling of the page itself
    assert tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    # on a phone the figure scrolls, so that its text stays large enough
    tab.set_viewport_size({"width": 390, "height": 844})
    sizes = figure.locator("text").evaluate_all(
        """texts => texts.map(text => {
          const {a, b} = text.getScreenCTM()
          return parseFloat(getComputedStyle(text).fontSize) * Math.hypot(a, b)
        })"""
    )
    assert len(sizes) > 10 and min(sizes) >= 7.5
    assert tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth")

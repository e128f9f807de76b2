"""The page of `neural patch` in a real Chromium: heat maps with tooltips, without errors."""

import neural
from tests import circuits


def test_the_page_shows_heads_at_positions(tab, tmp_path):
    pairs = circuits.draw_pairs(5, seed=1)
    rows = zip(pairs.clean, pairs.corrupted, pairs.answer, pairs.foil, strict=True)
    entries = [
        {
            "clean": circuits.format_tokens(clean),
            "corrupted": circuits.format_tokens(corrupted),
            "answer": int(answer),
            "wrong": int(wrong),
        }
        for clean, corrupted, answer, wrong in rows
    ]
    model, tokenizer = circuits.build_zoo("gpt2").model, circuits.build_tokenizer()
    result = neural.patch(model, entries, tokenizer=tokenizer)
    result.save(tmp_path / "page.html")
    tab.goto((tmp_path / "page.html").as_uri())
    maps = tab.locator("svg.heat-map")
    assert maps.count() == 2
    length = pairs.clean.shape[1]
    assert maps.first.locator("rect.cell").count() == 8 * length
    effects = maps.first.locator("rect.effect")
    titles = [title.strip() for title in effects.locator("title").all_text_contents()]
    assert [title.split(" `")[0] for title in titles] == [
        f"L{layer} h{head} at {position}"
        for (layer, head), position in sorted(pairs.important.items())
    ]
    # the cells are where the labels say: the last column has the induction head
    cell, label = (
        maps.first.locator(selector).bounding_box()
        for selector in ("rect.cell >> nth=-1", "text >> nth=0")
    )
    assert cell["x"] > label["x"]
    assert effects.first.bounding_box()["width"] > 10
    words = circuits.format_tokens(pairs.clean[0]).split()
    labels = maps.first.locator("text").all_text_contents()
    assert words[0] in labels
    tab.goto(result.save(tmp_path / "map.svg").as_uri())
    assert tab.locator("rect.cell").count() == 8 * length

"""The attention pane in a real Chromium: views of a head, tokens, order of heads, labels."""

import numpy as np
import pytest

import tests.report_runs
from neural.capture.map_encoding import decode_map, encode_map
from neural.report.html_page import render_page
from neural.report.run_report import write_run_page
from neural.runs.run import Run
from tests.map_pages import build_maps_page
from tests.report_runs import random_causal_maps, write_run

LAYERS, HEADS, POSITIONS, STEPS = 3, 3, 12, (0, 10, 20, 30)
POSITIONAL = [(2, 1), (0, 0)]
"""Heads that attend to the previous token in all snapshots but the first."""
SENTENCES = [f"Element {i} of a list, which is counted from its first one on." for i in range(24)]
ENGLISH = ["the", "old", "bridge", "<pad>"]
GERMAN = ["die", "alte", "Brücke", "über", "den", "Fluss"]


@pytest.fixture(scope="module")
def run_path(tmp_path_factory):
    previous = np.eye(POSITIONS, k=-1)
    previous[0, 0] = 1
    calls = iter(range(LAYERS * len(STEPS)))

    def maps_with_roles(random, heads, positions):
        """Called for every layer of every snapshot, in order."""
        snapshot, layer = divmod(next(calls), LAYERS)
        maps = random_causal_maps(random, heads, positions)
        for role_layer, head in POSITIONAL if snapshot else ():
            if layer == role_layer:
                # the first of the two heads is clearer
                share = 0.9 if (role_layer, head) == POSITIONAL[0] else 0.7
                maps[head] = share * previous + (1 - share) * maps[head]
        return maps

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tests.report_runs, "random_causal_maps", maps_with_roles)
        return write_run(
            tmp_path_factory.mktemp("runs"),
            "tokens",
            layers=LAYERS,
            heads=HEADS,
            positions=POSITIONS,
            snapshots=len(STEPS),
        )


@pytest.fixture(scope="module")
def report(run_path):
    return write_run_page([run_path], run_path.parent / "report.html").as_uri()


@pytest.fixture(scope="module")
def weights(run_path):
    """Stored weights by step, [layer, head, query, key]."""
    with Run.open(run_path) as run:
        names = run.metadata("attention/layers")
        return {
            step: np.stack([decode_map(run.maps(step)[name]) for name in names]) for step in STEPS
        }


def write_page(folder, maps, name="capture", **arguments):
    path = folder / f"{name}.html"
    data = build_maps_page(name, maps, **arguments)
    path.write_text(render_page(data, name), encoding="utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def cross_page(tmp_path_factory):
    """Cross-attention: 4 queries, the last is padding, and 6 other keys."""
    maps = np.random.default_rng(3).dirichlet(np.full(6, 0.5), (2, 4))
    return maps, write_page(
        tmp_path_factory.mktemp("cross"), {"cross": maps}, queries=ENGLISH, keys=GERMAN
    )


@pytest.fixture(scope="module")
def sentence_page(tmp_path_factory):
    maps = np.random.default_rng(4).dirichlet(np.full(24, 0.3), (4, 24))
    return write_page(tmp_path_factory.mktemp("sentences"), {"attention": maps}, keys=SENTENCES)


def read_weights(tab, selector, *attributes):
    """The numbers in the data attributes of all matching elements."""
    rows = tab.eval_on_selector_all(
        selector,
        "(all, names) => all.map(one => names.map(name => Number(one.dataset[name])))",
        list(attributes),
    )
    return [tuple(row) for row in rows]


def read_top(tab):
    return read_weights(tab, ".beside .ranked-tokens li", "token", "weight")


def rank(row, count=8):
    """Keys with the largest weights, equal ones in order."""
    visible = np.trim_zeros(row, "b")
    order = np.argsort(-np.abs(visible), kind="stable")[:count]
    return [(int(key), row[key]) for key in order]


def assert_ranked(found, expected):
    assert [key for key, _ in found] == [key for key, _ in expected]
    assert np.allclose([weight for _, weight in found], [weight for _, weight in expected], 0, 1e-5)


def wait_for_title(tab, text):
    tab.locator(".detail-card h2", has_text=text).wait_for()


def test_the_page_starts_at_the_head_with_the_clearest_role(tab, report):
    tab.goto(f"{report}#/attention")
    wait_for_title(tab, "L2 h1")
    assert tab.locator(".heads .selected .role-badge").inner_text() == "positional"
    assert "3 layers × 3 heads" in tab.locator(".grid-card h2").inner_text()


def test_roles_appear_while_the_slider_moves(tab, report):
    tab.goto(f"{report}#/attention?step=0")
    wait_for_title(tab, "positional from step 10")
    badges = tab.locator(".heads .role-badge:not(.plain)")
    assert badges.count() == 0
    assert tab.locator(".heads .selected .role-badge").inner_text().split() == [
        "from",
        "step",
        "10",
    ]
    assert "0 of 9 heads have a role at step 0, 2 at the end:" in tab.locator(".roles").inner_text()
    assert tab.locator(".roles button").first.inner_text() == "positional 0 of 2"
    tab.evaluate("location.hash = '#/attention?step=10'")
    wait_for_title(tab, "positional since step 10")
    assert badges.all_inner_texts() == ["positional", "positional"]
    assert "2 of 9 heads have a role:" in tab.locator(".roles").inner_text()


def test_a_role_that_comes_later_filters_the_heads_at_every_step(tab, report):
    tab.goto(f"{report}#/attention?step=0&role=positional")
    tab.locator(".heads canvas").first.wait_for()
    assert tab.locator(".heads button").count() == 2


def test_the_address_and_a_click_select_a_head(tab, report):
    tab.goto(f"{report}#/attention?layer=1&head=2")
    wait_for_title(tab, "L1 h2")
    tab.locator(".heads button[data-layer='2'][data-head='2']").click()
    wait_for_title(tab, "L2 h2")
    tab.wait_for_function("() => /layer=2&head=2/.test(location.hash)")


def test_lines_between_tokens_are_the_stored_weights(tab, report, weights):
    tab.goto(f"{report}#/attention?view=lines&layer=1&head=0&step=20")
    tab.locator(".lines line").first.wait_for(state="attached")
    drawn = np.zeros((POSITIONS, POSITIONS))
    for query, key, weight in read_weights(tab, ".lines line", "query", "key", "weight"):
        drawn[int(query), int(key)] = weight
    assert np.abs(drawn - weights[20][1, 0]).max() < 0.01
    assert (drawn > 0).sum() > POSITIONS


def test_lines_of_a_layer_have_a_colour_for_each_head(tab, report, weights):
    tab.goto(f"{report}#/attention?view=lines&layer=1&head=0&step=20&heads=layer-each")
    tab.locator(".line-legend").wait_for()
    assert tab.locator(".line-legend").inner_text().split() == ["L1", "h0", "L1", "h1", "L1", "h2"]
    lines = tab.eval_on_selector_all(
        ".lines line",
        "all => all.map(({dataset: {head, query, key, weight}}) => [head, query, key, weight])",
    )
    for name, query, key, weight in lines:
        stored = weights[20][1, int(name[-1]), int(query), int(key)]
        assert abs(float(weight) - stored) < 0.01
    assert {line[0] for line in lines} == {"L1 h0", "L1 h1", "L1 h2"}


def test_pointing_at_a_token_of_the_lines_leaves_only_its_lines(tab, report, weights):
    tab.goto(f"{report}#/attention?view=lines&layer=1&head=0&step=20")
    tab.locator(".line-token[data-side=query][data-token='7']").hover()
    assert_ranked(read_top(tab), rank(weights[20][1, 0, 7]))
    lines = read_weights(tab, ".lines line", "query", "key")
    assert sorted(lines) == [(7, key) for key in range(8)]
    tab.locator(".line-token[data-side=key][data-token='10']").hover()
    assert sorted(read_weights(tab, ".lines line", "query", "key")) == [(10, 10), (11, 10)]


def test_pointing_at_a_token_lists_its_top_keys_in_order(tab, report, weights):
    tab.goto(f"{report}#/attention?layer=0&head=1&step=30")
    tokens = tab.locator(".token-strip button")
    tokens.first.wait_for()
    assert_ranked(read_top(tab), rank(weights[30][0, 1, POSITIONS - 1]))
    tokens.nth(5).hover()
    assert_ranked(read_top(tab), rank(weights[30][0, 1, 5]))
    assert tab.locator(".token-strip .masked").count() == POSITIONS - 6
    tokens.nth(5).click()
    tab.wait_for_function("() => location.hash.includes('query=5')")
    tab.mouse.move(5, 5)
    assert_ranked(read_top(tab), rank(weights[30][0, 1, 5]))


def test_tokens_are_reached_and_moved_between_with_the_keyboard(tab, report, weights):
    tab.goto(f"{report}#/attention?layer=0&head=1&step=30&query=4")
    current = tab.locator(".token-strip button.current")
    current.focus()
    assert tab.locator(".token-strip button[tabindex='0']").count() == 1
    tab.keyboard.press("ArrowLeft")
    assert tab.evaluate("document.activeElement.dataset.token") == "3"
    assert_ranked(read_top(tab), rank(weights[30][0, 1, 3]))
    tab.keyboard.press("Enter")
    tab.wait_for_function("() => location.hash.includes('query=3')")
    assert tab.locator("output", has_text="step 30").count() == 1  # the step did not move
    tab.keyboard.press("End")
    assert tab.evaluate("document.activeElement.dataset.token") == str(POSITIONS - 1)


def test_directions_mean_and_maximum_are_those_of_the_weights(tab, report, weights):
    layer = weights[30][1]
    for heads, expected in [
        ("layer-mean", layer.mean(axis=0)),
        ("layer-maximum", layer.max(axis=0)),
        ("all-mean", weights[30].mean(axis=(0, 1))),
    ]:
        tab.goto(f"{report}#/attention?layer=1&head=0&step=30&query=9&heads={heads}")
        wait_for_title(tab, "he " + heads.split("-")[1])
        assert_ranked(read_top(tab), rank(expected[9]))
    tab.goto(f"{report}#/attention?layer=1&head=0&step=30&query=2&direction=keys")
    tab.get_by_text("Queries that attend most to this key").wait_for()
    column = layer[0, :, 2]
    order = np.argsort(-column, kind="stable")[:8]
    assert_ranked(read_top(tab), [(int(query), column[query]) for query in order])


def test_the_difference_from_the_start_has_both_signs(tab, report, weights):
    tab.goto(f"{report}#/attention?layer=2&head=1&step=30&minus=0&query=8")
    wait_for_title(tab, "minus step 0")
    difference = weights[30][2, 1, 8] - weights[0][2, 1, 8]
    found = read_top(tab)
    assert_ranked(found, rank(difference))
    assert min(weight for _, weight in found) < 0 < max(weight for _, weight in found)
    tab.get_by_text("difference of weights").wait_for()


def test_small_multiples_show_the_head_at_several_steps(tab, report):
    tab.goto(f"{report}#/attention?layer=2&head=1&view=steps")
    tab.locator(".step-maps canvas").nth(3).wait_for()
    assert [step for (step,) in read_weights(tab, ".step-maps button", "step")] == list(STEPS)
    pictures = tab.eval_on_selector_all(".step-maps canvas", "all => all.map(c => c.toDataURL())")
    assert len(set(pictures)) == len(STEPS)
    tab.locator(".step-maps button").nth(1).click()
    tab.locator("output", has_text="step 10").wait_for()


def test_colours_can_be_linear_or_logarithmic(tab, report):
    pictures = set()
    for name in ("square root", "linear", "logarithmic"):
        tab.goto(f"{report}#/attention?layer=1&head=1&step=30&colours={name.replace(' ', '+')}")
        tab.locator(".attention-map canvas").wait_for()
        pictures.add(tab.locator(".attention-map canvas").evaluate("canvas => canvas.toDataURL()"))
    assert len(pictures) == 3
    tab.get_by_text("weight; the middle is 0.01").wait_for()


def test_heads_are_sorted_by_a_measure_and_filtered_by_role(tab, report, run_path):
    with Run.open(run_path) as run:
        entropy = run.measure("entropy")[1][-1]
    order = [divmod(int(index), HEADS) for index in np.argsort(-entropy.ravel(), kind="stable")]
    tab.goto(f"{report}#/attention?sort=entropy")
    tab.locator(".heads.flat button").first.wait_for()
    assert read_weights(tab, ".heads button", "layer", "head") == order
    tab.locator(".roles button", has_text="positional").click()
    tab.wait_for_function("() => document.querySelectorAll('.heads button').length === 2")
    assert set(read_weights(tab, ".heads button", "layer", "head")) == set(POSITIONAL)
    tab.wait_for_function("() => location.hash.includes('role=positional')")
    tab.get_by_label("sort by").select_option("layer")
    tab.locator(".roles button.selected").click()
    tab.wait_for_function("() => document.querySelectorAll('.heads button').length === 9")


def test_cross_attention_has_the_labels_of_both_sequences(tab, cross_page):
    maps, url = cross_page
    tab.goto(f"{url}#/attention?layer=0&head=1")
    strips = tab.locator(".token-strip")
    strips.nth(1).wait_for()
    assert strips.nth(0).locator("button").all_inner_texts() == ENGLISH
    assert strips.nth(1).locator("button").all_inner_texts() == GERMAN
    # the last query is padding: the one before it is selected
    assert strips.nth(0).locator(".current").inner_text() == "bridge"
    assert [key for key, _ in read_top(tab)] == np.argsort(-maps[1, 2]).tolist()
    strips.nth(0).locator("button").first.hover()
    assert [key for key, _ in read_top(tab)] == np.argsort(-maps[1, 0]).tolist()
    tab.goto(f"{url}#/attention?layer=0&head=1&view=lines")
    tab.locator(".attention-lines").wait_for()
    for side, words in (("query", ENGLISH), ("key", GERMAN)):
        texts = tab.locator(f".line-token[data-side={side}] text").evaluate_all(
            "all => all.map(text => text.firstChild.textContent)"
        )
        assert texts == words


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("view", ["map", "lines", "list"])
def test_every_label_is_inside_its_card(tab, sentence_page, width, view):
    tab.set_viewport_size({"width": width, "height": 900})
    tab.goto(f"{sentence_page}#/attention?view={view}")
    labels = ".attention-list .token" if view == "list" else ".detail svg text"
    tab.locator(labels).first.wait_for()
    outside = tab.eval_on_selector_all(
        f"{labels}, .token-strip button",
        """all => {
          const card = document.querySelector(".detail-card").getBoundingClientRect()
          const picture = document.querySelector(".detail figure").getBoundingClientRect()
          return all.filter(label => {
            const box = label.getBoundingClientRect()
            const limit = label.closest("figure") ? picture : card
            return box.left < limit.left - 0.5 || box.right > limit.right + 0.5
              || (label.tagName === "text" && box.top < limit.top - 0.5)
          }).map(label => label.textContent)
        }""",
    )
    assert outside == []
    assert tab.evaluate("document.documentElement.scrollWidth") <= width


def test_a_list_has_the_full_text_of_long_tokens(tab, sentence_page):
    tab.goto(f"{sentence_page}#/attention?view=list")
    tab.locator(".attention-list li").first.wait_for()
    queries = tab.locator(".attention-list > li > button").all_inner_texts()
    assert [text.split(" ", 1)[1] for text in queries] == [
        sentence.replace(" ", "␣") for sentence in SENTENCES
    ]


def test_a_list_that_is_cut_off_has_an_edge(tab, sentence_page):
    tab.set_viewport_size({"width": 1280, "height": 500})
    tab.goto(f"{sentence_page}#/attention?view=list")
    tab.locator(".attention-list li").first.wait_for()
    is_cut, width, style = tab.locator(".attention-list").evaluate(
        """list => {
          const {borderBottomWidth, borderBottomStyle} = getComputedStyle(list)
          return [list.scrollHeight > list.clientHeight, parseFloat(borderBottomWidth), borderBottomStyle]
        }"""
    )
    assert is_cut and width > 0 and style == "solid"


def test_masked_pairs_are_transparent_and_weight_0_is_not(tab, tmp_path):
    maps = np.tril(np.ones((1, 4, 4)))
    maps[0, 3] = [0.5, 0, 0, 0.5]  # a 0 between keys that the query sees
    data = {"block": encode_map(maps / maps.sum(axis=-1, keepdims=True), causal=True)}
    tab.goto(write_page(tmp_path, data, keys=list("abcd")))
    tab.locator(".attention-map canvas").wait_for()
    alphas = tab.locator(".attention-map canvas").evaluate(
        """canvas => [...canvas.getContext("2d").getImageData(0, 0, 4, 4).data]
          .filter((_, index) => index % 4 === 3)"""
    )
    assert np.array_equal(np.reshape(alphas, (4, 4)) > 0, np.tri(4, dtype=bool))


def test_products_of_query_and_key_sum_to_the_scores(tab, tmp_path):
    import torch
    from torch import nn

    import neural

    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 8, batch_first=True)
    capture = neural.watch(layer.eval(), torch.randn(1, 5, 8), labels=list("abcde"))
    page = capture.save(tmp_path / "heads.html").as_uri()
    call = capture[0].attention
    scores = (call.q[0, 1, 3] @ call.k[0, 1].T * call.score_scale).detach().numpy()
    tab.goto(f"{page}#/attention?view=products&layer=0&head=1&query=3")
    tab.locator(".products .number[data-key]").nth(4).wait_for()
    found = read_weights(tab, ".products .number[data-key]", "key", "score")
    assert [key for key, _ in found] == [0, 1, 2, 3, 4]
    assert np.allclose([score for _, score in found], scores, atol=1e-3)


def test_the_pointer_has_a_tooltip_with_both_tokens_and_the_weight(tab, report):
    tab.goto(f"{report}#/attention?layer=1&head=0")
    tab.locator(".attention-map canvas").hover(position={"x": 5, "y": 5})
    text = tab.locator(".map-tooltip text").inner_html()
    assert "(0) → " in text
    assert text.endswith("1.00")  # the first query sees only the first key


def test_a_role_selects_its_first_head(tab, report):
    tab.goto(f"{report}#/attention?layer=1&head=2")
    wait_for_title(tab, "L1 h2")
    tab.locator(".roles button", has_text="positional").click()
    wait_for_title(tab, "L0 h0")


def test_a_tab_is_printed_in_the_light_theme(tab, report):
    tab.emulate_media(color_scheme="dark")
    tab.goto(f"{report}#/attention?layer=1&head=0")
    tab.locator(".attention-map canvas").wait_for()
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    pixel = tab.locator(".attention-map canvas").evaluate(
        """canvas => [...canvas.getContext("2d").getImageData(0, 11, 1, 1).data]"""
    )
    assert min(pixel[:3]) > 100, "a small weight is bright on paper"
    assert tab.evaluate("document.documentElement.dataset.theme") == "light"
    tab.evaluate("dispatchEvent(new Event('afterprint'))")
    assert tab.evaluate("document.documentElement.dataset.theme") is None


def test_on_a_phone_nothing_stands_beside_the_heatmap_or_is_cut_in_the_toolbar(tab, report):
    tab.set_viewport_size({"width": 390, "height": 844})
    tab.goto(f"{report}#/measures")
    assert tab.locator(".heatmap-canvas canvas").bounding_box()["width"] > 300
    tab.goto(f"{report}#/attention")
    select = tab.get_by_label("rows", exact=True)
    assert select.bounding_box()["width"] > 150

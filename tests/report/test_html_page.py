"""Pages around the bundle."""

import base64
import hashlib
import json
import re

from neural.report.html_page import (
    BUNDLE_DIR,
    PLACEHOLDER,
    embed_in_iframe,
    render_board_page,
    render_page,
)

HOSTILE = "</script><img src=x onerror=alert(1)><!-- \u2028 &amp;"


def test_hostile_data_are_escaped_and_unchanged():
    html = render_page({"name": HOSTILE, "number": 1.5}, "a page")
    (json_text,) = re.findall(r'id="neural-data">(.*?)</script>', html, re.S)
    assert json.loads(json_text) == {"name": HOSTILE, "number": 1.5}
    assert not set("<>&") & set(json_text)


def test_a_title_stays_text():
    assert "<title>&lt;/title&gt;&lt;b&gt;</title>" in render_page({}, "</title><b>")


def test_the_policy_allows_exactly_the_script_and_style_of_the_page():
    html = render_page({}, "a page")
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', html)
    for tag, name in (("script", "neural.js"), ("style", "neural.css")):
        text = (BUNDLE_DIR / name).read_text(encoding="utf-8")
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
        assert f"<{tag}>{text}</{tag}>" in html
    assert (
        policy.startswith("default-src 'none'") and "unsafe" not in policy and "http" not in policy
    )


def test_the_bundle_has_no_end_tag_of_a_script_and_no_url():
    text = (BUNDLE_DIR / "neural.js").read_text(encoding="utf-8")
    assert "</script" not in text.lower() and "<!--" not in text
    assert not re.findall(r"https?://(?!www\.w3\.org/)", text)


def test_the_page_of_the_board_has_no_inline_script():
    html = render_board_page("<runs>")
    assert "&lt;runs&gt;" in html
    assert re.findall(r"<script[^>]*>", html) == ['<script src="bundle/neural.js" defer>']


def test_an_embedded_page_is_one_escaped_attribute():
    framed = embed_in_iframe('<p title="a">&amp;</p>')
    assert framed.count('"') == 12 and "&lt;p title=&quot;a&quot;&gt;&amp;amp;" in framed
    assert 'sandbox="allow-scripts allow-downloads"' in framed


def test_a_placeholder_precedes_everything_that_takes_time():
    html = render_page({"name": "x" * 1000}, "a page")
    assert html.index(PLACEHOLDER) < html.index('id="neural-data"') < html.rindex("<script>")
    board = render_board_page("runs")
    assert board.index(PLACEHOLDER) < board.index("<script")

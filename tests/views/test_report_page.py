"""The page that holds everything it needs."""

import base64
import hashlib
import json
import re

from neural.views.report_page import BUNDLE, board_page, embedded, page

HOSTILE = "</script><img src=x onerror=alert(1)><!-- \u2028 &amp;"


def test_the_data_come_back_whatever_is_in_them():
    written = page({"name": HOSTILE, "number": 1.5}, "a page")
    (found,) = re.findall(r'id="neural-data">(.*?)</script>', written, re.S)
    assert json.loads(found) == {"name": HOSTILE, "number": 1.5}
    assert not set("<>&") & set(found)


def test_a_title_stays_text():
    assert "<title>&lt;/title&gt;&lt;b&gt;</title>" in page({}, "</title><b>")


def test_the_policy_lets_this_script_and_this_style_run_and_nothing_else():
    written = page({}, "a page")
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', written)
    for tag, name in (("script", "neural.js"), ("style", "neural.css")):
        text = (BUNDLE / name).read_text(encoding="utf-8")
        own = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{own}'" in policy
        assert f"<{tag}>{text}</{tag}>" in written
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy and "http" not in policy


def test_the_bundle_holds_nothing_that_ends_a_script_or_asks_the_network():
    text = (BUNDLE / "neural.js").read_text(encoding="utf-8")
    assert "</script" not in text.lower() and "<!--" not in text
    assert not re.findall(r"https?://(?!www\.w3\.org/)", text)


def test_the_page_of_the_board_has_no_script_of_its_own():
    written = board_page("<runs>")
    assert "&lt;runs&gt;" in written
    assert re.findall(r"<script[^>]*>", written) == ['<script src="bundle/neural.js" defer>']


def test_a_page_in_a_frame_is_one_attribute():
    framed = embedded('<p title="a">&amp;</p>')
    assert framed.count('"') == 12 and "&lt;p title=&quot;a&quot;&gt;&amp;amp;" in framed
    assert 'sandbox="allow-scripts"' in framed

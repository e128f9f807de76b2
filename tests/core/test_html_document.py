"""A self-contained HTML page: text cannot break out of it, nothing is fetched."""

import base64

from neural.core.html_document import (
    Html,
    render_document,
    render_images,
    render_paragraph,
    render_preformatted,
    render_section,
    render_table,
    render_verdict,
    render_with_detail,
)

MALICIOUS = '<script>alert("&")</script>'


def test_text_is_escaped_everywhere():
    sections = [
        render_section(MALICIOUS, render_paragraph(MALICIOUS), render_preformatted(MALICIOUS)),
        render_table((MALICIOUS,), [(MALICIOUS,), (render_with_detail(MALICIOUS, MALICIOUS),)]),
    ]
    page = render_document(MALICIOUS, MALICIOUS, sections)
    assert "<script" not in page
    assert page.count("&lt;script&gt;") == 10


def test_html_is_not_escaped():
    table = render_table(("",), [(render_verdict("yes"),), (Html("<b>x</b>"),)])
    assert '<td><span class="yes">yes</span></td>' in table
    assert "<td><b>x</b></td>" in table


def test_images_are_embedded(tmp_path):
    (tmp_path / "a.svg").write_text("<svg/>")
    (tmp_path / "b.png").write_bytes(b"\x89PNG")
    html = render_images([tmp_path / "a.svg", tmp_path / "b.png"])
    assert f'src="data:image/svg+xml;base64,{base64.b64encode(b"<svg/>").decode()}"' in html
    assert 'alt="b" src="data:image/png;base64,' in html


def test_the_page_has_a_dark_mode():
    assert "prefers-color-scheme: dark" in render_document("a", "b", [])


def test_a_document_allows_no_script_and_nothing_from_elsewhere():
    page = render_document("a title", "a lead", [])
    assert "default-src 'none'" in page
    assert "script-src" not in page

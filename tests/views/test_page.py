"""A page that is one file: nothing of what is shown can break out of it, nothing is fetched."""

import base64

from neural.views.page import Html, block, page, paragraph, part, pictures, table, verdict, with_small

EVIL = '<script>alert("&")</script>'


def test_text_is_shown_as_it_is_written_wherever_it_stands():
    pieces = [part(EVIL, paragraph(EVIL), block(EVIL)), table((EVIL,), [(EVIL,), (with_small(EVIL, EVIL),)])]
    whole = page(EVIL, EVIL, pieces)
    assert "<script" not in whole
    assert whole.count("&lt;script&gt;") == 10


def test_markup_of_our_own_is_kept():
    whole = table(("",), [(verdict("yes"),), (Html("<b>x</b>"),)])
    assert '<td><span class="yes">yes</span></td>' in whole
    assert "<td><b>x</b></td>" in whole


def test_pictures_are_inside(tmp_path):
    (tmp_path / "a.svg").write_text("<svg/>")
    (tmp_path / "b.png").write_bytes(b"\x89PNG")
    whole = pictures([tmp_path / "a.svg", tmp_path / "b.png"])
    assert f'src="data:image/svg+xml;base64,{base64.b64encode(b"<svg/>").decode()}"' in whole
    assert 'alt="b" src="data:image/png;base64,' in whole


def test_the_page_fits_light_and_dark_screens():
    assert "prefers-color-scheme: dark" in page("a", "b", [])

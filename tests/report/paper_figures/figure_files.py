"""Runs to draw, and readers of the written figures."""

import re
import zlib
from xml.etree import ElementTree

import pytest

SVG = "{http://www.w3.org/2000/svg}"
MIN_FONT_SIZE = 6


def read_texts(path):
    """Texts of an SVG file."""
    return ["".join(text.itertext()) for text in ElementTree.parse(path).iter(f"{SVG}text")]


def read_font_sizes(path):
    """Sizes of all texts of an SVG file, in points."""
    styles = [text.get("style") for text in ElementTree.parse(path).iter(f"{SVG}text")]
    return [float(re.search(r"([\d.]+)px", style)[1]) for style in styles]


def read_size(path):
    """Width and height of an SVG file as they are written, such as `234pt`."""
    root = ElementTree.parse(path).getroot()
    return root.get("width"), root.get("height")


def read_pdf(path):
    """All objects of a PDF file as text, streams decompressed."""
    data = path.read_bytes()
    streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", data, re.S)
    texts = [data.decode("latin-1")]
    for stream in streams:
        try:
            texts.append(zlib.decompress(stream).decode("latin-1"))
        except zlib.error:
            continue
    return "\n".join(texts)


def check_figure(figure, folder, width=234):
    """SVG and PDF are written at their size, with text as text, readable, and the same twice."""
    path = figure.save(folder / "figure.svg")
    assert float(read_size(path)[0].removesuffix("pt")) == pytest.approx(width)
    assert min(read_font_sizes(path)) >= MIN_FONT_SIZE
    assert "glyph" not in path.read_text()
    pdf = figure.save(folder / "figure.pdf")
    assert "/CreationDate" not in read_pdf(pdf)
    assert "/Subtype /TrueType" in read_pdf(pdf) or "/CIDFontType2" in read_pdf(pdf)
    assert "/Type3" not in read_pdf(pdf)
    for file in (path, pdf):
        again = figure.save(folder / f"again{file.suffix}")
        assert again.read_bytes() == file.read_bytes()
    return path

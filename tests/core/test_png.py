"""PNG files are read back by Pillow with the same pixels, and are not larger than its own."""

import io

import numpy as np
import pytest
from PIL import Image

from neural.core.png import encode_png


def draw_gradient():
    rows, columns = np.mgrid[0:97, 0:61]
    return np.stack([rows * 2, columns * 4, rows + columns], axis=2).astype(np.uint8)


PICTURES = {
    "gradient": draw_gradient(),
    "noise": np.random.default_rng(0).integers(0, 256, (23, 17, 3), np.uint8),
    "one pixel": np.array([[[1, 2, 255]]], np.uint8),
    "black": np.zeros((8, 8, 3), np.uint8),
}


@pytest.mark.parametrize("name", PICTURES)
def test_pillow_reads_the_same_pixels(name):
    with Image.open(io.BytesIO(encode_png(PICTURES[name]))) as image:
        image.load()
        assert (image.format, image.mode) == ("PNG", "RGB")
        np.testing.assert_array_equal(np.asarray(image), PICTURES[name])


def test_smooth_pictures_are_compressed_by_their_differences():
    picture = draw_gradient()
    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, "PNG", optimize=True)
    assert len(encode_png(picture)) < 2 * len(buffer.getvalue())
    assert len(encode_png(picture)) < picture.size / 20

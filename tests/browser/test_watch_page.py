"""Pages of `neural watch` in a real Chromium: a model on disk, and a series of its checkpoints."""

import re

import pytest
from click.testing import CliRunner

from neural.cli.main import main
from tests.hugging_face_folders import (
    TEXTS,
    build_gpt2,
    plant_previous_token_head,
    save_folder,
    train_tokenizer,
)

TEXT = TEXTS[0]
CHECKPOINTS = 30
ONSET = 12
"""Number of the checkpoint at which the planted head appears."""


def watch(*arguments):
    result = CliRunner().invoke(main, ["watch", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer()


def test_the_page_of_a_folder_has_its_tokens_and_names_the_planted_head(tab, tmp_path, tokenizer):
    model = plant_previous_token_head(build_gpt2(tokenizer))
    folder = save_folder(tmp_path / "planted", model, tokenizer)
    watch(folder, "--input", TEXT, "-o", tmp_path / "page.html")
    tab.goto((tmp_path / "page.html").as_uri())
    tab.locator(".heads canvas").first.wait_for()
    # it opens at the head with the clearest role
    assert tab.locator(".detail-card h2").inner_text().startswith("L1 h0")
    assert "previous token" in tab.locator(".detail-card h2").inner_text()
    tokens = tab.locator(".token-strip > *").all_inner_texts()
    assert [token.strip() for token in tokens] == TEXT.split()


@pytest.fixture(scope="module")
def series(tmp_path_factory, tokenizer):
    """Page and printed text of 30 checkpoints; the head appears at one of them."""
    root = tmp_path_factory.mktemp("series")
    folders = []
    for number in range(CHECKPOINTS):
        sharpness = 12.0 if number >= ONSET else 0.05
        model = plant_previous_token_head(build_gpt2(tokenizer), sharpness=sharpness)
        folders.append(save_folder(root / f"checkpoint-{100 * number}", model, tokenizer))
    page = root / "series.html"
    output = watch(*folders, "--input", TEXT, "-o", page, "--save", "--runs", root / "runs")
    return page, output


def test_findings_say_since_when_the_head_has_its_role(series):
    _, output = series
    (since,) = re.findall(r"L1 h0 previous token \([^)]*since step ([\d,]+)\)", output)
    assert int(since.replace(",", "")) == 100 * ONSET


def test_the_slider_moves_over_the_checkpoints(tab, series):
    page, _ = series
    tab.goto(f"{page.as_uri()}#/attention?layer=1&head=0")
    tab.locator(".heads canvas").first.wait_for()
    slider = tab.locator("input[type=range][aria-label=step]")
    assert slider.get_attribute("max") == str(CHECKPOINTS - 1)

    def read_previous_token_mass(position):
        slider.fill(str(position))
        tab.locator("output", has_text=f"step {100 * position:,}").wait_for()
        text = tab.locator(".detail-card").inner_text()
        return float(re.search(r"previous token mass\s+([\d.]+)", text).group(1))

    assert read_previous_token_mass(ONSET - 1) < 0.5 < read_previous_token_mass(ONSET)

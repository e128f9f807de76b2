"""`neural watch --image`: vision transformers, their pictures and runs."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from click.testing import CliRunner
from PIL import Image

import neural
from neural.capture.probe_image import IMAGE_KEY, ROLLOUT_ARRAY, ROWS_ARRAY, ProbeImage
from neural.cli.main import main
from neural.interpret.images import prepare_images, select_vision_part
from neural.interpret.subject import Subject, load_subject
from neural.runs.run import Run
from tests.hugging_face_folders import build_gpt2, save_folder, train_tokenizer
from tests.vision_folders import (
    SHAPE,
    SIZE,
    build_swin,
    build_vision_model,
    draw_image,
    plant_patch_head,
    save_vision_folder,
)


def run_command(*arguments):
    return CliRunner().invoke(main, ["watch", *map(str, arguments)])


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """A picture that is not square."""
    return draw_image(tmp_path_factory.mktemp("images") / "cat.png", size=(50, 40))


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """A ViT whose head L1 h0 attends to the patch 2,3."""
    folder = tmp_path_factory.mktemp("hf") / "vit"
    return save_vision_folder(folder, plant_patch_head(build_vision_model(), (2, 3)))


def test_a_run_keeps_the_image_and_the_planted_head_is_at_its_patch(planted, image, tmp_path):
    result = run_command(planted, "--image", image, "--save", "--runs", tmp_path, "--json")
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    assert data["input"] == "1 image of 32 × 32 pixels"
    assert data["tokens"][0][:3] == ["CLS", "0,0", "0,1"]
    (path,) = tmp_path.iterdir()
    with Run.open(path) as run:
        stored = ProbeImage.from_metadata(run.metadata(IMAGE_KEY))
        _, rows = run.measure(ROWS_ARRAY)
        _, rollout = run.measure(ROLLOUT_ARRAY)
        assert ROWS_ARRAY not in run.measure_names()
    assert (stored.rows, stored.columns, stored.first_patch) == (4, 4, 1)
    for weights in (rows[0, 1, 0], rollout[0, 1]):
        grid = stored.to_grid(weights)
        assert np.unravel_index(grid.argmax(), grid.shape) == (2, 3)
    for command in ("report", "analyze"):
        arguments = ["-o", str(tmp_path / "r.html")] if command == "report" else []
        done = CliRunner().invoke(main, [command, str(path), *arguments])
        assert done.exit_code == 0, done.output


def test_the_picture_is_what_the_model_sees(planted, image):
    subject = load_subject(str(planted))
    prepared = prepare_images(subject, [image])
    (capture,) = [neural.watch(subject.model, prepared.batch)]
    from neural.interpret.images import paint_pictures

    paint_pictures(capture, prepared)
    shown = np.asarray(Image.open(io.BytesIO(capture.images[0].png)), float)
    resized = np.asarray(Image.open(image).resize((SIZE, SIZE), Image.Resampling.BILINEAR), float)
    assert np.abs(shown - resized).max() <= 2


@pytest.mark.parametrize(("kind", "prefix"), [("DeiT", 2), ("CLIPVision", 1)])
def test_other_models_have_their_own_positions(kind, prefix, image, tmp_path):
    folder = save_vision_folder(tmp_path / kind, build_vision_model(kind))
    result = run_command(folder, "--image", image, "--image", image, "--json")
    data = json.loads(result.stdout)
    assert data["input"].startswith("2 images")
    assert data["tokens"][1].index("0,0") == prefix


def test_only_the_vision_part_of_clip_reads_the_image(image, tmp_path):
    text = {**SHAPE, "vocab_size": 50, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    del text["patch_size"]
    torch.manual_seed(0)
    config = transformers.CLIPConfig(
        text_config=text, vision_config={**SHAPE, "image_size": SIZE}, projection_dim=8
    )
    folder = save_vision_folder(tmp_path / "clip", transformers.CLIPModel(config))
    subject = select_vision_part(load_subject(str(folder)))
    assert type(subject.model).__name__.startswith("CLIPVision")
    data = json.loads(run_command(folder, "--image", image, "--json").stdout)
    assert len(data["layers"]) == 2 and data["tokens"][0][0] == "CLS"


def test_without_a_processor_the_configuration_gives_the_size(image, tmp_path):
    model = build_vision_model(image_size=[24, 48])
    folder = save_vision_folder(tmp_path / "vit", model, processor=False)
    result = run_command(folder, "--image", image, "--json")
    data = json.loads(result.stdout)
    assert data["input"] == "1 image of 24 × 48 pixels"
    assert data["tokens"][0][-1] == "2,5"
    assert any("no image processor" in note for note in data["notes"])
    batch = prepare_images(Subject("vit", model), [image]).batch["pixel_values"]
    assert batch.min() >= -1 and batch.max() <= 1 and batch.std() > 0.3


def test_windows_are_measured_but_not_drawn(image, tmp_path):
    folder = save_vision_folder(tmp_path / "swin", build_swin())
    result = run_command(folder, "--image", image, "--json")
    data = json.loads(result.stdout)
    assert len(data["layers"]) == 3
    assert any("windows of 4 × 4 patches" in note for note in data["notes"])
    refused = run_command(folder, "--image", image, "--overlay", tmp_path / "x.png")
    assert refused.exit_code == 2 and "has no image" in refused.output
    assert not (tmp_path / "x.png").exists()


def test_a_series_of_checkpoints_has_rows_at_every_step(image, tmp_path):
    folders = [
        save_vision_folder(
            tmp_path / f"checkpoint-{step}",
            plant_patch_head(build_vision_model(), (1, 0), sharpness=sharpness),
        )
        for step, sharpness in ((10, 0.0), (20, 8.0))
    ]
    result = run_command(*folders, "--image", image, "--save", "--runs", tmp_path / "runs")
    assert result.exit_code == 0, result.output
    (path,) = (tmp_path / "runs").iterdir()
    with Run.open(path) as run:
        steps, rows = run.measure(ROWS_ARRAY)
        stored = ProbeImage.from_metadata(run.metadata(IMAGE_KEY))
    assert steps.tolist() == [10, 20]
    weights = [stored.to_grid(step[1, 0])[1, 0] for step in rows]
    assert weights[0] == pytest.approx(1 / 17, abs=0.01) and weights[1] > 0.9


def test_track_keeps_the_image_and_does_not_change_the_training(tmp_path):
    def train(track):
        model = build_vision_model().train()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        torch.manual_seed(5)
        pixels = torch.randn(2, 3, SIZE, SIZE)
        tracker = None
        if track:
            tracker = neural.track(
                model,
                {"pixel_values": pixels},
                every=2,
                run=tmp_path / "mine",
                measures=["entropy"],
            )
        losses = []
        for _ in range(4):
            loss = model(pixels + torch.randn_like(pixels)).last_hidden_state.square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            if tracker:
                tracker.step(loss=loss)
        if tracker:
            tracker.close()
        return losses, tracker

    plain, _ = train(False)
    tracked, tracker = train(True)
    assert tracked == plain
    with Run.open(tracker.path) as run:
        assert run.measure(ROWS_ARRAY)[0].tolist() == [0, 2, 4]
        assert ProbeImage.from_metadata(run.metadata(IMAGE_KEY)) is not None
        assert run.metadata("probe/labels")[0][:2] == ["CLS", "0,0"]


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_an_overlay_is_written(planted, image, tmp_path, suffix):
    path = tmp_path / f"overlay.{suffix}"
    result = run_command(planted, "--image", image, "--overlay", path, "--layer", 1, "--head", 0)
    assert result.exit_code == 0, result.output
    assert path.stat().st_size > 1000


def test_bad_inputs_are_messages_with_a_way_out(planted, image, tmp_path):
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"no image")
    tokenizer = train_tokenizer()
    text_model = save_folder(tmp_path / "gpt2", build_gpt2(tokenizer), tokenizer)
    huge = save_vision_folder(tmp_path / "huge", build_vision_model(), size=64)
    for words, message in (
        ([planted], "reads images: give one with --image"),
        ([planted, "--image", tmp_path / "none.png"], "there is no file"),
        ([planted, "--image", broken], "no image that Pillow can read"),
        ([text_model, "--image", image], "reads no images: give a text with --input"),
        ([huge, "--image", image], "failed on this input"),
        ([planted, "--image", image, "--input", "cat"], "give one of them"),
        ([planted, "--overlay", "x.png"], "needs --image"),
        (
            [planted, "--image", image, "--overlay", tmp_path / "x.png", "--patch", 4, 0],
            "there is no patch 4,0: rows are 0 … 3",
        ),
        ([planted, "--image", image, "--overlay", tmp_path / "x.gif"], "svg, pdf, png"),
    ):
        result = run_command(*words)
        assert result.exit_code == 2, (words, result.output)
        assert message in " ".join(result.output.split()), result.output
        assert "Traceback" not in result.output
    assert not list(Path(tmp_path).glob("x.*"))

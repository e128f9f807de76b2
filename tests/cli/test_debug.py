"""`neural debug`, as a user types it."""

import shutil

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from neural.capture.watch import watch
from neural.cli import _attention_maps
from neural.cli.main import main
from neural.optim.catalogue import CATALOGUE
from neural.runs.run import Run
from neural.tasks.language_model.task import LanguageModel
from neural.training.engine import fit
from neural.training.load_model import load_best_model
from neural.workflows.train import create_run
from tests.programs import CLASSIFIER, TRANSLATOR


def invoke(*words):
    return CliRunner().invoke(main, ["debug", *(str(word) for word in words)])


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A language model of seven steps, with its data."""
    folder = tmp_path_factory.mktemp("debug")
    task = LanguageModel.example(folder, CATALOGUE)
    run = create_run(task, folder / "runs", folder=str(folder))
    fit(task, run)
    return run.path


@pytest.fixture
def program(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.neural").write_text(CLASSIFIER)
    return "net.neural"


def test_random_weights_are_labelled_as_random(program):
    result = invoke(program, "--attention-weights")
    assert result.exit_code == 0, result.output
    for text in (
        "random weights (seed 0): nothing was trained",
        "random numbers (seed 0)",
        "entropy",
        "L1 h2",
        "attends to",
        "L0  transformer_encoder.0.attention",
        "largest difference",
    ):
        assert text in result.output
    assert max(map(len, result.output.splitlines())) <= 90


def test_trained_weights_run_on_the_probe_of_their_run(trained):
    result = invoke("--run", trained)
    assert result.exit_code == 0, result.output
    assert "the probe of the run: 4 examples" in result.output
    assert "step 7" in result.output
    assert "random" not in result.output


def test_the_table_has_the_measured_values(trained):
    text = "one two "
    result = invoke("--run", trained, "--input", text).output
    model = load_best_model(trained)
    ids = [list(load_characters(trained)).index(character) for character in text]
    capture = watch(model, torch.tensor([ids]))
    row = next(line.split() for line in result.splitlines() if line.startswith("  L0 h1"))
    assert float(row[2]) == pytest.approx(float(capture[0].measures["entropy"][1]), abs=0.006)


def load_characters(path):
    return Run.open(path).metadata("vocabulary")


def test_one_head_is_drawn_in_full_with_its_labels(trained):
    result = invoke("--run", trained, "--input", "one two", "--layer", 0, "--head", 1)
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    title = next(index for index, line in enumerate(lines) if line.startswith("L0 h1, queries"))
    assert lines[title + 1].split() == list("one␣two")
    assert [line.split()[-1] for line in lines[title + 2 : title + 9]] == list("one␣two")
    assert "L0 h0" not in result.output


def test_all_weights_are_in_the_arrays(trained, tmp_path):
    result = invoke("--run", trained, "--input", "one two", "--npz", tmp_path / "weights.npz")
    assert result.exit_code == 0, result.output
    with np.load(tmp_path / "weights.npz") as file:
        arrays = dict(file)
    weights = arrays["weights/0"]
    assert weights.shape == (1, 2, 7, 7)
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
    assert (weights[..., np.triu_indices(7, 1)[0], np.triu_indices(7, 1)[1]] == 0).all()
    assert "".join(arrays["keys/0"]) == "one␣two"
    assert arrays["measures/entropy"].shape == (1, 2)
    assert arrays["layers"].tolist() == ["transformer_decoder.attention.sublayer"]


def test_the_page_has_the_maps_and_their_origin(trained, tmp_path):
    result = invoke("--run", trained, "--input", "one two", "-o", tmp_path / "maps.html")
    assert result.exit_code == 0, result.output
    page = (tmp_path / "maps.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "neural-data" in page
    assert "transformer_decoder.attention.sublayer" in page
    assert "the given text" in page


def test_gradients_dead_heads_and_anomalies_can_be_shown_alone(trained):
    result = invoke("--run", trained, "--gradients", "--dead-heads", "--anomalies")
    assert result.exit_code == 0, result.output
    for text in (
        "of the loss of the first training batch",
        "transformer_decoder.attention",
        "no head is dead",
    ):
        assert text in result.output
    assert "anomalies" in result.output
    assert "strongest pairs" not in result.output


def test_two_sequences_take_two_inputs(tmp_path):
    (tmp_path / "two.neural").write_text(TRANSLATOR)
    np.save(tmp_path / "source.npy", np.arange(1, 12))
    np.save(tmp_path / "target.npy", np.array([5, 6, 7]))
    result = invoke(
        tmp_path / "two.neural",
        "--input",
        tmp_path / "source.npy",
        "--input",
        tmp_path / "target.npy",
        "--layer",
        3,
        "--head",
        0,
    )
    assert result.exit_code == 0, result.output
    assert "2 “7” attends to" in result.output
    once = invoke(tmp_path / "two.neural", "--input", tmp_path / "source.npy")
    assert "as source and as target" in once.output


def test_a_text_file_is_read_and_truncated_to_the_context(trained, tmp_path):
    (tmp_path / "words.txt").write_text("one two three thre")
    result = invoke("--run", trained, "--input", tmp_path / "words.txt")
    assert "its first 8 of 18 positions" in result.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "there is no run in runs: create one with `neural train FILE`"),
        (["nowhere.neural"], "no such file"),
        (["net.neural", "--input", "hello"], "Classifier takes features"),
        (["net.neural", "--input", "gone.npy"], "there is no file gone.npy"),
        (
            ["net.neural", "--input", "wrong.npy"],
            "wrong.npy is (2, 2, 2, 2), but Classifier takes (B, 13, 12)",
        ),
        (["net.neural", "--input", "nan.npy"], "not finite"),
        (["net.neural", "--input", "pickle.npy"], "it holds Python objects"),
        (["net.neural", "--layer", "2"], "there is no layer 2: 2 have attention"),
        (["net.neural", "--layer", "1", "--head", "3"], "there is no head 3: layer 1 has 3"),
        (["net.neural", "--step", "5"], "selects a checkpoint of a run: add --run"),
        (["net.neural", "--npz", "x.txt"], "x.txt should end in .npz"),
        (["net.neural", "-o", "nowhere/x.html"], "there is no folder nowhere"),
        (["--run", "RUN", "--step", "3"], "has no checkpoint of step 3"),
        (["--run", "RUN", "--input", "ONE"], "character 1 of --input, 'O', does not occur"),
        (["--run", "RUN", "--input", "a", "--input", "b"], "takes 1 input, got 2"),
        (["--run", "RUN", "--input", ""], "--input is empty"),
        (["net.neural", "--run", "RUN"], "do not fit Classifier in net.neural"),
    ],
)
def test_an_error_is_a_message_with_exit_code_2(program, trained, words, message):
    np.save("wrong.npy", np.zeros((2, 2, 2, 2)))
    np.save("nan.npy", np.full((13, 12), np.nan))
    np.save("pickle.npy", np.array([{}]), allow_pickle=True)
    result = invoke(*(str(trained) if word == "RUN" else word for word in words))
    assert result.exit_code == 2, result.output
    assert message in result.output
    assert "Traceback" not in result.output


def test_a_run_whose_data_are_gone_uses_other_input_with_a_note(trained, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(trained, copy)
    settings = copy / "settings.json"
    settings.write_text(settings.read_text().replace("numbers.txt", "gone.txt"))
    result = invoke("--run", copy)
    assert result.exit_code == 0, result.output
    assert "the run's own data cannot be read" in result.output


def test_a_network_without_attention_gets_a_message(tmp_path):
    (tmp_path / "dense.neural").write_text("network A {\n  input: (5,)\n  layers:\n    Dense(3)\n}")
    assert "this network has no attention" in invoke(tmp_path / "dense.neural").output
    result = invoke(tmp_path / "dense.neural", "--gradients", "--anomalies")
    assert result.exit_code == 0, result.output
    assert "dense" in result.output


def test_groups_of_queries_and_keys_keep_the_mass_of_their_rows():
    weights = np.random.default_rng(0).dirichlet(np.ones(10), size=7)
    cells = _attention_maps.pool_weights(weights, 3, 4)
    assert cells.shape == (3, 4)
    np.testing.assert_allclose(cells.sum(axis=1), 1)
    np.testing.assert_allclose(_attention_maps.pool_weights(weights, 16, 16), weights)
    np.testing.assert_allclose(cells[0, 0], weights[:3, :3].sum() / 3)


def test_colours_show_two_rows_in_a_line_and_shades_the_larger_of_two(monkeypatch):
    cells = np.array([[0.0, 1.0], [0.25, 1.0], [1.0, 0.0]])
    assert _attention_maps.render_cells(cells) == ["░█", "█ "]
    monkeypatch.setenv("FORCE_COLOR", "1")
    first, second = _attention_maps.render_cells(cells)
    assert first.count("▀") == 2
    assert (
        f"38;5;{_attention_maps.COLOUR_RAMP[-1]}" in first
        and f"48;5;{_attention_maps.COLOUR_RAMP[7]}" in first
    )
    assert "48;5" not in second  # there is no row below the last


def test_small_weights_of_many_keys_are_as_visible_as_those_of_few():
    few = np.array([[0.1, 0.4, 0.4, 0.1]])
    many = np.repeat(few / 25, 25, axis=1)  # 100 keys
    assert _attention_maps.render_cells(many) == ["░" * 25 + "█" * 50 + "░" * 25]
    assert _attention_maps.render_cells(few) == ["░██░"]
    assert _attention_maps.render_cells(np.zeros((1, 3))) == ["   "], "a row without a weight"


def test_negative_weights_are_marked_and_have_colours_of_their_own(monkeypatch):
    cells = np.array([[0.0, -1.0], [0.25, -1.0], [-1.0, 0.0], [0.25, 1.0]])
    assert _attention_maps.render_cells(cells) == ["░-", "-█"]
    monkeypatch.setenv("FORCE_COLOR", "1")
    first, _ = _attention_maps.render_cells(cells)
    assert f"38;5;{_attention_maps.NEGATIVE_RAMP[-1]}" in first
    weights = np.array([[0.4, -0.9, 0.5], [0.6, -0.1, 0.5], [0, 0, 1]])
    assert _attention_maps.format_strongest_pairs(weights, list("abc"), list("abc"), 5) == [
        "0 “a” attends to 1 “b” (-0.90)",
        "1 “b” attends to 0 “a” (0.60)",
    ]


def test_the_strongest_pairs_leave_out_rows_without_a_choice():
    weights = np.array([[1.0, 0, 0], [0.4, 0.6, 0], [0.9, 0.1, 0.0]])
    assert _attention_maps.format_strongest_pairs(weights, list("abc"), list("abc"), 5) == [
        "2 “c” attends to 0 “a” (0.90)",
        "1 “b” attends to itself (0.60)",
    ]

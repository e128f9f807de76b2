"""`neural debug`, as a user types it."""

import shutil

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from neural.cli import _maps
from neural.cli.main import main
from neural.experiments import best_model, new_run
from neural.standard import CATALOGUE
from neural.tasks.language_model import LanguageModel
from neural.tracking.run import Run
from neural.tracking.watch import watch
from neural.training.engine import fit
from tests.programs import CLASSIFIER, TRANSLATOR


def typed(*words):
    return CliRunner().invoke(main, ["debug", *(str(word) for word in words)])


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A language model of seven steps, with its data."""
    folder = tmp_path_factory.mktemp("debug")
    task = LanguageModel.tiny(folder, CATALOGUE)
    run = new_run(task, folder / "runs", folder=str(folder))
    fit(task, run)
    return run.path


@pytest.fixture
def program(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.neural").write_text(CLASSIFIER)
    return "net.neural"


def test_random_weights_are_said_to_be_random(program):
    shown = typed(program, "--attention-weights")
    assert shown.exit_code == 0, shown.output
    for text in (
        "random weights (seed 0): nothing was trained", "random numbers (seed 0)", "entropy", "L1 h2", "looks at",
        "L0  transformer_encoder.0.attention", "largest difference",
    ):  # fmt: skip
        assert text in shown.output
    assert max(map(len, shown.output.splitlines())) <= 90


def test_trained_weights_see_the_probe_of_their_run(trained):
    shown = typed("--run", trained)
    assert shown.exit_code == 0, shown.output
    assert "the probe of the run: 4 examples" in shown.output
    assert "step 7" in shown.output
    assert "random" not in shown.output


def test_the_table_says_what_was_measured(trained):
    text = "one two "
    shown = typed("--run", trained, "--input", text).output
    model = best_model(trained)
    ids = [list(characters_of(trained)).index(one) for one in text]
    seen = watch(model, torch.tensor([ids]))
    row = next(line.split() for line in shown.splitlines() if line.startswith("  L0 h1"))
    assert float(row[2]) == pytest.approx(float(seen[0].measures["entropy"][1]), abs=0.006)


def characters_of(path):
    return Run.open(path).described("vocabulary")


def test_one_head_is_drawn_in_full_with_its_letters(trained):
    shown = typed("--run", trained, "--input", "one two", "--layer", 0, "--head", 1)
    assert shown.exit_code == 0, shown.output
    lines = shown.output.splitlines()
    head = next(at for at, line in enumerate(lines) if line.startswith("L0 h1, queries"))
    assert lines[head + 1].split() == list("one␣two")
    assert [line.split()[-1] for line in lines[head + 2 : head + 9]] == list("one␣two")
    assert "L0 h0" not in shown.output


def test_all_weights_are_in_the_arrays(trained, tmp_path):
    shown = typed("--run", trained, "--input", "one two", "--npz", tmp_path / "seen.npz")
    assert shown.exit_code == 0, shown.output
    with np.load(tmp_path / "seen.npz") as file:
        arrays = dict(file)
    weights = arrays["weights/0"]
    assert weights.shape == (1, 2, 7, 7)
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
    assert (weights[..., np.triu_indices(7, 1)[0], np.triu_indices(7, 1)[1]] == 0).all()
    assert "".join(arrays["keys/0"]) == "one␣two"
    assert arrays["measures/entropy"].shape == (1, 2)
    assert arrays["layers"].tolist() == ["transformer_decoder.attention.part"]


def test_the_page_holds_the_maps_and_says_where_they_come_from(trained, tmp_path):
    shown = typed("--run", trained, "--input", "one two", "-o", tmp_path / "seen.html")
    assert shown.exit_code == 0, shown.output
    page = (tmp_path / "seen.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "neural-data" in page
    assert "transformer_decoder.attention.part" in page
    assert "the text that was given" in page


def test_gradients_dead_heads_and_anomalies_can_be_asked_for_alone(trained):
    shown = typed("--run", trained, "--gradients", "--dead-heads", "--anomalies")
    assert shown.exit_code == 0, shown.output
    for text in ("of the loss of the first training batch", "transformer_decoder.attention", "no head is dead"):
        assert text in shown.output
    assert "anomalies" in shown.output
    assert "strongest pairs" not in shown.output


def test_two_sequences_take_two_inputs(tmp_path):
    (tmp_path / "two.neural").write_text(TRANSLATOR)
    np.save(tmp_path / "source.npy", np.arange(1, 12))
    np.save(tmp_path / "target.npy", np.array([5, 6, 7]))
    shown = typed(tmp_path / "two.neural", "--input", tmp_path / "source.npy", "--input", tmp_path / "target.npy",
                  "--layer", 3, "--head", 0)  # fmt: skip
    assert shown.exit_code == 0, shown.output
    assert "2 “7” looks at" in shown.output
    once = typed(tmp_path / "two.neural", "--input", tmp_path / "source.npy")
    assert "as source and as target" in once.output


def test_a_text_file_is_read_and_cut_to_the_window(trained, tmp_path):
    (tmp_path / "words.txt").write_text("one two three thre")
    shown = typed("--run", trained, "--input", tmp_path / "words.txt")
    assert "its first 8 of 18 positions" in shown.output


@pytest.mark.parametrize(("words", "said"), [
    ([], "name a program, or a run with --run"),
    (["nowhere.neural"], "no such file"),
    (["net.neural", "--input", "hello"], "Classifier takes features"),
    (["net.neural", "--input", "gone.npy"], "there is no file gone.npy"),
    (["net.neural", "--input", "wrong.npy"], "wrong.npy is (2, 2, 2, 2), but Classifier takes (B, 13, 12)"),
    (["net.neural", "--input", "nan.npy"], "not finite"),
    (["net.neural", "--input", "pickle.npy"], "it holds Python objects"),
    (["net.neural", "--layer", "2"], "there is no layer 2: 2 have attention"),
    (["net.neural", "--layer", "1", "--head", "3"], "there is no head 3: layer 1 has 3"),
    (["net.neural", "--step", "5"], "name it with --run"),
    (["net.neural", "--npz", "x.txt"], "x.txt should end in .npz"),
    (["net.neural", "-o", "nowhere/x.html"], "there is no folder nowhere"),
    (["--run", "RUN", "--step", "3"], "has no checkpoint of step 3"),
    (["--run", "RUN", "--input", "ONE"], "character 1 of --input, 'O', does not occur"),
    (["--run", "RUN", "--input", "a", "--input", "b"], "takes 1 input, got 2"),
    (["--run", "RUN", "--input", ""], "--input is empty"),
    (["net.neural", "--run", "RUN"], "do not fit Classifier in net.neural"),
])  # fmt: skip
def test_a_mistake_is_said_with_exit_code_2(program, trained, words, said):
    np.save("wrong.npy", np.zeros((2, 2, 2, 2)))
    np.save("nan.npy", np.full((13, 12), np.nan))
    np.save("pickle.npy", np.array([{}]), allow_pickle=True)
    shown = typed(*(str(trained) if word == "RUN" else word for word in words))
    assert shown.exit_code == 2, shown.output
    assert said in shown.output
    assert "Traceback" not in shown.output


def test_a_run_whose_data_are_gone_is_shown_something_else_and_says_so(trained, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(trained, copy)
    settings = copy / "settings.json"
    settings.write_text(settings.read_text().replace("numbers.txt", "gone.txt"))
    shown = typed("--run", copy)
    assert shown.exit_code == 0, shown.output
    assert "the run's own data cannot be read" in shown.output


def test_a_network_without_attention_has_nothing_to_show(tmp_path):
    (tmp_path / "dense.neural").write_text("network A {\n  input: (5,)\n  layers:\n    Dense(3)\n}")
    assert "no attention to look at" in typed(tmp_path / "dense.neural").output
    shown = typed(tmp_path / "dense.neural", "--gradients", "--anomalies")
    assert shown.exit_code == 0, shown.output
    assert "dense" in shown.output


def test_groups_of_queries_and_keys_keep_the_mass_of_their_rows():
    weights = np.random.default_rng(0).dirichlet(np.ones(10), size=7)
    cells = _maps.pooled(weights, 3, 4)
    assert cells.shape == (3, 4)
    np.testing.assert_allclose(cells.sum(axis=1), 1)
    np.testing.assert_allclose(_maps.pooled(weights, 16, 16), weights)
    np.testing.assert_allclose(cells[0, 0], weights[:3, :3].sum() / 3)


def test_colours_show_two_rows_in_a_line_and_shades_the_larger_of_two(monkeypatch):
    cells = np.array([[0.0, 1.0], [0.25, 0.0], [1.0, 0.0]])
    assert _maps.lines_of(cells) == ["░█", "█ "]
    monkeypatch.setenv("FORCE_COLOR", "1")
    first, second = _maps.lines_of(cells)
    assert first.count("▀") == 2
    assert f"38;5;{_maps.RAMP[-1]}" in first and f"48;5;{_maps.RAMP[7]}" in first
    assert "48;5" not in second   # there is no row below the last


def test_the_strongest_pairs_leave_out_rows_without_a_choice():
    weights = np.array([[1.0, 0, 0], [0.4, 0.6, 0], [0.9, 0.1, 0.0]])
    assert _maps.strongest(weights, list("abc"), list("abc"), 5) == [
        "2 “c” looks at 0 “a” (0.90)", "1 “b” looks at itself (0.60)",
    ]  # fmt: skip

"""What comes next: the text, the network and the windows together."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from neural.core.diagnostics import Source
from neural.core.settings import SettingsError, read_settings
from neural.experiments import new_run, task_of, task_of_run
from neural.standard import CATALOGUE
from neural.tasks.block_means import block_mean
from neural.tasks.experiment import Tracking, Training
from neural.tasks.language_model import LanguageModel, LanguageModelSettings
from neural.tasks.task import TaskError, split_scores
from neural.training.engine import fit, steps_of
from tests.tasks.networks import program

TEXT = "the quick brown fox jumps over the lazy dog\n" * 40   # 28 characters
DECODER = "TransformerDecoder(num_heads=2, d_model=8, dff=16)"


def own(characters=28, context="(16,)", middle=DECODER, more="train { steps: 20 batch_size: 5 }"):
    layers = f'Embedding(input_dim={characters}, output_dim=8) | {middle} | Output({characters}, activation="softmax")'
    return program(context, layers, more=more)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "book.txt").write_text(TEXT)
    return tmp_path


def model_of(task):
    torch.manual_seed(0)
    return task.build().eval()


def task_in(folder, **said):
    said = {"data": "book.txt", "network": own(), **said}
    return LanguageModel(LanguageModelSettings(**said), folder, CATALOGUE)


def test_windows_are_text(folder):
    task = task_in(folder)
    batch = task.batch(2)
    assert batch["x"].shape == (5, 16)
    characters = task.vocabulary.characters
    for x, y in zip(batch["x"].tolist(), batch["y"].tolist(), strict=True):
        written = "".join(characters[one] for one in [*x, y[-1]])
        assert written in TEXT


def test_the_loss_of_a_validation_is_the_mean_over_every_character_held_out(folder):
    task = task_in(folder, validation_windows=0)
    model = model_of(task)
    with torch.no_grad():
        found = task.evaluate(model)
        start, losses = int(len(TEXT) * 0.9), []
        ids = torch.tensor([sorted(set(TEXT)).index(one) for one in TEXT])
        while start + 17 <= len(TEXT):
            guessed = model(ids[None, start : start + 16])[0].log()
            losses.append([-guessed[place, ids[start + place + 1]].item() for place in range(16)])
            start += 16
    means = torch.tensor(losses, dtype=torch.float64).mean(dim=1)
    assert len(means) == 10
    assert found["valid/loss"] == pytest.approx(means.mean().item(), rel=1e-5)
    assert found["valid/bits"] == pytest.approx(found["valid/loss"] / math.log(2))
    np.testing.assert_allclose(found["valid/window_losses"], means, rtol=1e-5)
    assert found["valid/standard_error"] == pytest.approx(block_mean(means.numpy()).standard_error, rel=1e-4)


def test_validation_never_smooths_and_does_not_depend_on_how_much_is_read_at_once(folder, monkeypatch):
    plain, smooth = task_in(folder), task_in(folder, training=Training(label_smoothing=0.3))
    model = model_of(plain)
    with torch.no_grad():
        whole, windows = split_scores(plain.evaluate(model))
        monkeypatch.setattr("neural.tasks.language_model.CHARACTERS_AT_ONCE", 1)
        scores, arrays = split_scores(smooth.evaluate(model))
        assert scores == pytest.approx(whole, rel=1e-6)
        np.testing.assert_allclose(arrays["valid/window_losses"], windows["valid/window_losses"], rtol=1e-6)
        assert smooth.loss(model, plain.batch(0))[0] != plain.loss(model, plain.batch(0))[0]


def test_one_window_has_no_standard_error(folder):
    task = task_in(folder, validation_windows=1)
    with torch.no_grad():
        assert set(split_scores(task.evaluate(model_of(task)))[0]) == {"valid/loss", "valid/bits"}


def test_without_validation_the_probe_is_the_beginning(folder):
    task = task_in(folder, validation_split=0.0)
    assert task.evaluate(model_of(task)) == {}
    assert "".join(task.labels(task.probe())[0]) == "the␣quick␣brown␣"


def test_the_probe_is_held_out_and_spread(folder):
    task = task_in(folder, tracking=Tracking(probe_size=3))
    starts = [int(one) for one in task.judged]
    probe = task.probe()["x"]
    assert torch.equal(probe[0], task.windows.take(task.judged[:1])["x"][0])
    assert torch.equal(probe[2], task.windows.take(task.judged[-1:])["x"][0])
    assert min(starts) >= task.windows.end
    assert task.tokens(task.probe()).shape == (3, 16)


def test_labels_show_what_cannot_be_seen(folder):
    (folder / "book.txt").write_text("a\tb\nc d\x00é" * 50, encoding="utf-8")
    characters = task_in(folder, network=own(9))
    shown = {one for row in characters.labels(characters.batch(0)) for one in row}
    assert shown == {"a", "b", "c", "d", "x09", "⏎", "␣", "x00", "é"}
    raw = task_in(folder, network=own(256), units="bytes")
    assert {"xc3", "xa9", "⏎", "a"} < {one for row in raw.labels(raw.batch(0)) for one in row}


def test_what_a_run_must_know_to_write_without_the_text(folder):
    assert task_in(folder).facts()["vocabulary"] == sorted(set(TEXT))
    assert task_in(folder, network=own(256), units="bytes").facts()["vocabulary"] == "bytes"
    assert task_in(folder).experiment.vocabulary == "".join(sorted(set(TEXT)))


def test_the_handbook_is_learned_where_nothing_is_said():
    task = LanguageModel(LanguageModelSettings(network=own(256)), None, CATALOGUE)
    assert task.experiment.data == "handbook"
    assert task.epoch > 1000


def test_the_program_may_name_the_text_and_what_is_held_out(folder):
    text = own(more='train { data: "book.txt" validation_split: 0.5 steps: 3 }')
    task = LanguageModel(LanguageModelSettings(network=text), folder, CATALOGUE)
    assert task.experiment.data == str(folder / "book.txt")
    assert task.windows.end == len(TEXT) // 2
    said = LanguageModelSettings(network=text, validation_split=0.25)
    assert LanguageModel(said, folder, CATALOGUE).windows.end == len(TEXT) * 3 // 4


def test_a_network_of_any_length_learns_the_context_that_is_said(folder):
    for said, wanted in ((None, 128), (19, 19)):
        task = task_in(folder, network=own(context="(None,)"), context=said, validation_split=0.2)
        assert task.batch(0)["x"].shape[1] == task.experiment.context == wanted


def test_a_published_split_stays_the_same_when_the_run_goes_on(folder, monkeypatch):
    for place in ("neural.tasks._windows.PUBLISHED", "neural.tasks.language_model.PUBLISHED"):
        monkeypatch.setattr(place, {len(TEXT): (800, 1000)})
    task = task_in(folder)
    again = LanguageModel(task.experiment, folder, CATALOGUE)
    assert [(one.windows.end, one.windows.last) for one in (task, again)] == [(800, 1000)] * 2


def test_a_vocabulary_of_ones_own_gives_the_ids(folder):
    turned = "".join(sorted({*TEXT, "Z"}, reverse=True))
    task = task_in(folder, vocabulary=turned, network=own(29))
    row = task.windows.take(torch.tensor([0]).numpy())["x"][0]
    assert "".join(turned[one] for one in row) == TEXT[:16]


def test_characters_that_training_never_sees_are_remarked(folder):
    (folder / "book.txt").write_text(TEXT + "ß", encoding="utf-8")
    said, _ = task_in(folder, network=own(29)).remarks
    assert said == "book.txt: only in what is held out, so never learned: 'ß'"
    assert not any("never learned" in note for note in task_in(folder, network=own(256), units="bytes").remarks)


def test_a_repeated_text_is_noted_and_the_run_keeps_the_share(folder):
    task = task_in(folder)
    (note,) = task.remarks
    assert note.startswith("book.txt: 100% of the text held out stands in the training text as well")
    assert task.facts()["data/shared_ngrams"] == 1
    random = np.random.default_rng(0)
    (folder / "book.txt").write_text("".join(random.choice(list(set(TEXT)), 2000)))
    task = task_in(folder)
    assert task.remarks == ()
    assert task.facts()["data/shared_ngrams"] == 0


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"data": "gone.txt"}, "there is no data `gone.txt`"),
        ({"data": "empty.txt"}, "empty.txt is empty"),
        ({"network": own(27)}, "book.txt has 28 characters, but `Embedding` of Small 27; write 28"),
        ({"network": own(200), "units": "bytes"}, "book.txt has 256 characters, but `Embedding` of Small 200"),
        ({"network": own().replace("Output(28", "Output(12")}, "`Output` of Small 12; write 28"),
        ({"network": own(context="(None,)"), "context": 300}, "176 of them held out; a context of 300 needs"),
        ({"context": 9000}, "book.txt has 1,760 characters; a context of 9,000 needs at least 9,001"),
        ({"vocabulary": "the quick"}, "book.txt: 'b' at character 10 is not among the 9 of `vocabulary`, nor are"),
        ({"network": own(middle="TransformerEncoder(num_heads=2, d_model=8, dff=16)")}, "Small looks ahead"),
        ({"network": own(middle="GlobalAveragePooling1D()")}, "it must predict at every place, not once for a text"),
        ({"network": own().replace("output_dim=8", "output_dim=8, pad_id=3")}, "`pad_id=3` of Small would hide"),
        ({"network": own().replace('"softmax"', '"linear"')}, "Small does not give probabilities"),
        ({"network": program("(16, 4)", DECODER.replace("8", "4"))}, "Small takes numbers, not text"),
        ({"network": "gone.neural"}, "the network `gone.neural` cannot be read"),
    ],
)
def test_what_cannot_be_learned_is_refused_before_anything_starts(folder, said, message):
    (folder / "empty.txt").write_text("")
    with pytest.raises(TaskError) as refused:
        task_in(folder, **said)
    assert message in str(refused.value)


def test_a_context_beyond_the_learned_positions_is_refused(folder):
    network = own(middle='TransformerDecoder(num_heads=2, d_model=8, dff=16, positional="learned")')
    assert task_in(folder, network=network, context=9).batch(0)["x"].shape == (5, 9)
    with pytest.raises(TaskError, match="`context` is 17, but a sequence of 17 is longer than the 16 learned"):
        task_in(folder, network=network, context=17)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("vocabulary: abca", "'a' stands in it twice"),
        ("vocabulary: abc\nunits: bytes", "bytes need no vocabulary"),
        ("preset: tinny", "did you mean `tiny`?"),
        ("network: own.neural\npreset: tiny", "so `preset` would have no effect"),
        ("network: own.neural\narchitecture: modern", "so `architecture` would have no effect"),
        ("context: 0", "`context`"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(lines, message):
    with pytest.raises(SettingsError) as refused:
        read_settings(LanguageModelSettings, Source("a.yaml", lines))
    assert message in str(refused.value)


@pytest.mark.parametrize("architecture", ["classic", "modern"])
def test_a_preset_trains_as_the_experiment_says_and_else_as_the_preset(folder, architecture):
    task = task_in(folder, network=None, architecture=architecture, training=Training(steps=60, seed=3))
    told = task.experiment
    assert (told.training.steps, told.training.seed, told.training.batch_size) == (60, 3, 16)
    assert (told.context, task.batch(0)["x"].shape) == (64, (16, 64))
    assert told.training.clip_norm == 1.0
    assert ", 54, " in told.training.optimizer   # the rate falls over the steps that are left after the warm-up
    epochs = task_in(folder, network=None, architecture=architecture, training=Training(epochs=40.0, batch_size=4))
    assert f", {40 * epochs.epoch * 9 // 10}, " in epochs.experiment.training.optimizer
    warm = task_in(folder, network=None, architecture=architecture, training=Training(steps=60, warmup_steps=20))
    assert ", 40, " in warm.experiment.training.optimizer
    assert "warmup_steps" not in warm.experiment.training.optimizer   # only one of the two rises
    model = model_of(task)
    loss, _ = task.loss(model, task.batch(0))
    assert loss.item() == pytest.approx(math.log(28), abs=0.5)   # it begins by knowing nothing


def test_a_run_goes_on_with_the_same_text_or_not_at_all(folder, tmp_path_factory):
    task = task_in(folder, training=Training(steps=3, batch_size=2), tracking=Tracking(track_every=0))
    run = new_run(task, tmp_path_factory.mktemp("runs"))
    fit(task, run)
    again = task_of_run(run)
    assert again.experiment == task.experiment
    assert torch.equal(again.batch(7)["x"], task.batch(7)["x"])
    (folder / "book.txt").write_text(TEXT.upper())
    with pytest.raises(TaskError, match=r"book.txt is not the text any more that the run was begun with"):
        task_of_run(run)
    (folder / "book.txt").unlink()
    with pytest.raises(TaskError, match=r"the text that the run was begun with is gone: there is no data .*book.txt"):
        task_of_run(run)


def test_a_file_deleted_under_the_run_does_not_stop_it(folder, monkeypatch):
    monkeypatch.setenv("NEURAL_CACHE", str(folder / "cache"))
    monkeypatch.setattr("neural.tasks._encoded.LONG", 1)
    task = task_in(folder)
    before = task.batch(3)["x"].clone()
    (folder / "book.txt").unlink()
    for kept in (folder / "cache/texts").iterdir():
        kept.unlink()
    assert torch.equal(task.batch(3)["x"], before)


def test_a_small_network_learns_a_small_text(folder):
    task = task_in(folder, network=own(more="optimizer: AdamW(learning_rate=0.02)\n  train { batch_size: 16 }"))
    torch.manual_seed(0)
    model = task.build()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    for step in range(150):
        loss, _ = task.loss(model, task.batch(step))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        assert task.evaluate(model.eval())["valid/loss"] < 0.5 < math.log(28)


@pytest.mark.parametrize("name", ["tiny", "nanogpt_cpu", "full"])
def test_the_examples_say_how_to_run_them_and_can_be_run(folder, monkeypatch, name):
    path = Path(__file__).parents[2] / "examples" / "language_model" / f"{name}.yaml"
    text = path.read_text()
    assert text.startswith(f"# neural train examples/language_model/{name}.yaml\n")
    (folder / "shakespeare_char.txt").write_text(TEXT * 9)
    monkeypatch.setenv("NEURAL_DATA", str(folder))
    task = task_of(path)
    assert isinstance(task, LanguageModel)
    assert task.experiment.preset == name


@pytest.mark.parametrize(("accumulation", "processes"), [(2, 1), (1, 2), (2, 2)])
def test_the_rate_of_a_preset_falls_over_the_steps_of_all_processes(
    folder, monkeypatch, accumulation, processes
):
    monkeypatch.setenv("WORLD_SIZE", str(processes))
    training = Training(epochs=40.0, batch_size=4, gradient_accumulation_steps=accumulation)
    task = task_in(folder, network=None, training=training)
    steps = steps_of(task, processes)
    assert steps == math.ceil(40 * task.epoch / (accumulation * processes))
    assert f", {steps - steps // 10}, " in task.experiment.training.optimizer


@pytest.mark.parametrize("change", ["preset=full", "architecture=classic"])
def test_a_run_that_goes_on_refuses_another_preset(folder, tmp_path_factory, change):
    task = task_in(folder, network=None, training=Training(steps=3))
    run = new_run(task, tmp_path_factory.mktemp("runs"))
    assert task_of_run(run).experiment == task.experiment
    with pytest.raises(TaskError, match="cannot change in a resumed run; start a new run with it"):
        task_of_run(run, [change])

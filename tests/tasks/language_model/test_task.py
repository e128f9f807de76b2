"""Language modelling task: text, network, windows, presets and resumed runs."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from neural.core.diagnostics import SourceText
from neural.core.errors import TaskError
from neural.core.experiment import TrackingSettings, TrainingSettings
from neural.core.settings import SettingsError, read_settings
from neural.optim.catalogue import CATALOGUE
from neural.tasks.language_model.task import LanguageModel, LanguageModelSettings
from neural.tasks.language_model.text_windows import PUBLISHED_SPLITS
from neural.tasks.task import split_scores
from neural.training.engine import count_steps, fit
from neural.training.load_task import load_task, restore_task
from neural.workflows.train import create_run
from tests.tasks.networks import program

TEXT = "the quick brown fox jumps over the lazy dog\n" * 40  # 28 characters
DECODER = "TransformerDecoder(num_heads=2, d_model=8, dff=16)"


def write_network(
    characters=28,
    context="(16,)",
    middle=DECODER,
    extra_lines="train { steps: 20 batch_size: 5 }",
):
    layers = (
        f"Embedding(input_dim={characters}, output_dim=8) | {middle} | "
        f'Output({characters}, activation="softmax")'
    )
    return program(context, layers, extra_lines=extra_lines)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "book.txt").write_text(TEXT)
    return tmp_path


def build_model(task):
    torch.manual_seed(0)
    return task.build().eval()


def create_task(folder, **settings):
    settings = {"data": "book.txt", "network": write_network(), **settings}
    return LanguageModel(LanguageModelSettings(**settings), folder, CATALOGUE)


def test_windows_are_text(folder):
    task = create_task(folder)
    batch = task.batch(2)
    assert batch["x"].shape == (5, 16)
    characters = task.vocabulary.characters
    for x, y in zip(batch["x"].tolist(), batch["y"].tolist(), strict=True):
        window_text = "".join(characters[token_id] for token_id in [*x, y[-1]])
        assert window_text in TEXT


def test_the_validation_loss_is_the_mean_over_all_held_out_characters(folder):
    task = create_task(folder, validation_windows=0)
    model = build_model(task)
    with torch.no_grad():
        scores = task.evaluate(model)
        start, losses = int(len(TEXT) * 0.9), []
        ids = torch.tensor([sorted(set(TEXT)).index(character) for character in TEXT])
        while start + 17 <= len(TEXT):
            log_probs = model(ids[None, start : start + 16])[0].log()
            losses.append(
                [-log_probs[position, ids[start + position + 1]].item() for position in range(16)]
            )
            start += 16
    means = torch.tensor(losses, dtype=torch.float64).mean(dim=1)
    assert len(means) == 10
    assert scores["valid/loss"] == pytest.approx(means.mean().item(), rel=1e-5)
    assert scores["valid/bits"] == pytest.approx(scores["valid/loss"] / math.log(2))
    np.testing.assert_allclose(scores["valid/window_losses"], means, rtol=1e-5)
    assert "valid/standard_error" not in scores  # ten windows do not tell it


def test_validation_never_smooths_and_does_not_depend_on_the_batch_size(folder, monkeypatch):
    plain, smooth = (
        create_task(folder),
        create_task(folder, training=TrainingSettings(label_smoothing=0.3)),
    )
    model = build_model(plain)
    with torch.no_grad():
        plain_scores, plain_arrays = split_scores(plain.evaluate(model))
        monkeypatch.setattr(
            "neural.tasks.language_model.text_windows.VALIDATION_BATCH_CHARACTERS", 1
        )
        scores, arrays = split_scores(smooth.evaluate(model))
        assert scores == pytest.approx(plain_scores, rel=1e-6)
        np.testing.assert_allclose(
            arrays["valid/window_losses"], plain_arrays["valid/window_losses"], rtol=1e-6
        )
        assert smooth.loss(model, plain.batch(0))[0] != plain.loss(model, plain.batch(0))[0]


def test_one_window_has_no_standard_error(folder):
    task = create_task(folder, validation_windows=1)
    with torch.no_grad():
        assert set(split_scores(task.evaluate(build_model(task)))[0]) == {
            "valid/loss",
            "valid/bits",
        }


def test_without_validation_the_probe_is_the_start_of_the_text(folder):
    task = create_task(folder, validation_split=0.0)
    assert task.evaluate(build_model(task)) == {}
    assert "".join(task.position_labels(task.probe_batch())[0]) == "the␣quick␣brown␣"


def test_the_probe_is_held_out_and_evenly_spaced(folder):
    task = create_task(folder, tracking=TrackingSettings(probe_size=3))
    window_starts = task.validation_starts.tolist()
    probe = task.probe_batch()["x"]
    assert torch.equal(probe[0], task.windows.take(task.validation_starts[:1])["x"][0])
    assert torch.equal(probe[2], task.windows.take(task.validation_starts[-1:])["x"][0])
    assert min(window_starts) >= task.windows.train_end
    assert task.token_ids(task.probe_batch()).shape == (3, 16)


def test_labels_show_invisible_characters(folder):
    (folder / "book.txt").write_text("a\tb\nc d\x00é" * 50, encoding="utf-8")
    character_task = create_task(folder, network=write_network(9))
    labels = {
        label for row in character_task.position_labels(character_task.batch(0)) for label in row
    }
    assert labels == {"a", "b", "c", "d", "x09", "⏎", "␣", "x00", "é"}
    byte_task = create_task(folder, network=write_network(256), units="bytes")
    assert {"xc3", "xa9", "⏎", "a"} < {
        label for row in byte_task.position_labels(byte_task.batch(0)) for label in row
    }


def test_the_vocabulary_is_saved_in_metadata_and_settings(folder):
    assert create_task(folder).metadata()["vocabulary"] == sorted(set(TEXT))
    assert (
        create_task(folder, network=write_network(256), units="bytes").metadata()["vocabulary"]
        == "bytes"
    )
    assert create_task(folder).experiment.vocabulary == "".join(sorted(set(TEXT)))


def test_the_handbook_is_the_default_text():
    task = LanguageModel(LanguageModelSettings(network=write_network(256)), None, CATALOGUE)
    assert task.experiment.data == "handbook"
    assert task.batches_per_epoch > 1000


def test_the_program_may_name_the_text_and_what_is_held_out(folder):
    text = write_network(extra_lines='train { data: "book.txt" validation_split: 0.5 steps: 3 }')
    task = LanguageModel(LanguageModelSettings(network=text), folder, CATALOGUE)
    assert task.experiment.data == str(folder / "book.txt")
    assert task.windows.train_end == len(TEXT) // 2
    settings = LanguageModelSettings(network=text, validation_split=0.25)
    assert LanguageModel(settings, folder, CATALOGUE).windows.train_end == len(TEXT) * 3 // 4


def test_a_network_of_any_length_uses_the_requested_context(folder):
    for settings, expected in ((None, 128), (19, 19)):
        task = create_task(
            folder, network=write_network(context="(None,)"), context=settings, validation_split=0.2
        )
        assert task.batch(0)["x"].shape[1] == task.experiment.context == expected


def test_a_resumed_run_keeps_the_published_split(folder, monkeypatch):
    monkeypatch.setitem(PUBLISHED_SPLITS, len(TEXT), (800, 1000))
    task = create_task(folder)
    restored = LanguageModel(task.experiment, folder, CATALOGUE)
    for windows in (task.windows, restored.windows):
        assert (windows.train_end, windows.valid_end) == (800, 1000)


def test_a_given_vocabulary_defines_the_ids(folder):
    reversed_vocabulary = "".join(sorted({*TEXT, "Z"}, reverse=True))
    task = create_task(folder, vocabulary=reversed_vocabulary, network=write_network(29))
    row = task.windows.take(torch.tensor([0]).numpy())["x"][0]
    assert "".join(reversed_vocabulary[token_id] for token_id in row) == TEXT[:16]


def test_characters_only_in_the_validation_text_are_noted(folder):
    (folder / "book.txt").write_text(TEXT + "ß", encoding="utf-8")
    settings, _ = create_task(folder, network=write_network(29)).notes
    assert settings == "book.txt: characters only in the validation text, never trained: 'ß'"
    assert not any(
        "never trained" in note
        for note in create_task(folder, network=write_network(256), units="bytes").notes
    )


def test_a_repeated_text_is_noted_and_its_overlap_is_saved(folder):
    task = create_task(folder)
    (note,) = task.notes
    assert note.startswith("book.txt: 100% of the validation text also occurs in the training text")
    assert task.metadata()["data/ngram_overlap"] == 1
    random = np.random.default_rng(0)
    (folder / "book.txt").write_text("".join(random.choice(list(set(TEXT)), 2000)))
    task = create_task(folder)
    assert task.notes == ()
    assert task.metadata()["data/ngram_overlap"] == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"data": "gone.txt"}, "there is no data `gone.txt`"),
        ({"data": "empty.txt"}, "empty.txt is empty"),
        (
            {"network": write_network(27)},
            "book.txt has 28 characters, but `Embedding` of Small has 27; write 28",
        ),
        (
            {"network": write_network(200), "units": "bytes"},
            "book.txt has 256 characters, but `Embedding` of Small has 200",
        ),
        (
            {"network": write_network().replace("Output(28", "Output(12")},
            "`Output` of Small has 12; write 28",
        ),
        (
            {"network": write_network(context="(None,)"), "context": 300},
            "176 of them held out; a context of 300 needs",
        ),
        (
            {"context": 9000},
            "book.txt has 1,760 characters; a context of 9,000 needs at least 9,001",
        ),
        (
            {"vocabulary": "the quick"},
            "book.txt: 'b' at character 10 is not one of the 9 characters of `vocabulary`, nor are",
        ),
        (
            {"network": write_network(middle="TransformerEncoder(num_heads=2, d_model=8, dff=16)")},
            "Small is not causal",
        ),
        (
            {"network": write_network(middle="GlobalAveragePooling1D()")},
            "it must predict at every position, not once per text",
        ),
        (
            {"network": write_network().replace("output_dim=8", "output_dim=8, pad_id=3")},
            "`pad_id=3` of Small would mask",
        ),
        (
            {"network": write_network().replace('"softmax"', '"linear"')},
            "Small does not output probabilities",
        ),
        (
            {"network": program("(16, 4)", DECODER.replace("8", "4"))},
            "Small takes features, not text",
        ),
        ({"network": "gone.neural"}, "the network `gone.neural` cannot be read"),
    ],
)
def test_unusable_texts_and_networks_are_refused_before_training(folder, settings, message):
    (folder / "empty.txt").write_text("")
    with pytest.raises(TaskError) as caught:
        create_task(folder, **settings)
    assert message in str(caught.value)


def test_a_context_beyond_the_learned_positions_is_refused(folder):
    network = write_network(
        middle='TransformerDecoder(num_heads=2, d_model=8, dff=16, positional="learned")'
    )
    assert create_task(folder, network=network, context=9).batch(0)["x"].shape == (5, 9)
    with pytest.raises(
        TaskError, match="`context` is 17, but a sequence of 17 is longer than the 16 learned"
    ):
        create_task(folder, network=network, context=17)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("vocabulary: abca", "'a' appears twice"),
        ("vocabulary: abc\nunits: bytes", "bytes have no vocabulary"),
        ("preset: tinny", "did you mean `tiny`?"),
        ("network: own.neural\npreset: tiny", "so `preset` would have no effect"),
        ("network: own.neural\narchitecture: modern", "so `architecture` would have no effect"),
        ("context: 0", "`context`"),
    ],
)
def test_conflicting_settings_are_refused(lines, message):
    with pytest.raises(SettingsError) as caught:
        read_settings(LanguageModelSettings, SourceText("a.yaml", lines))
    assert message in str(caught.value)


@pytest.mark.parametrize("architecture", ["classic", "modern"])
def test_the_experiment_overrides_the_training_settings_of_a_preset(folder, architecture):
    task = create_task(
        folder, network=None, architecture=architecture, training=TrainingSettings(steps=60, seed=3)
    )
    resolved = task.experiment
    assert (resolved.training.steps, resolved.training.seed, resolved.training.batch_size) == (
        60,
        3,
        16,
    )
    assert (resolved.context, task.batch(0)["x"].shape) == (64, (16, 64))
    assert resolved.training.clip_norm == 1.0
    # The learning rate decays over the steps after the warm-up.
    assert ", 54, " in resolved.training.optimizer
    epochs = create_task(
        folder,
        network=None,
        architecture=architecture,
        training=TrainingSettings(epochs=40.0, batch_size=4),
    )
    assert f", {40 * epochs.batches_per_epoch * 9 // 10}, " in epochs.experiment.training.optimizer
    warmed_up = create_task(
        folder,
        network=None,
        architecture=architecture,
        training=TrainingSettings(steps=60, warmup_steps=20),
    )
    assert ", 40, " in warmed_up.experiment.training.optimizer
    assert (
        "warmup_steps" not in warmed_up.experiment.training.optimizer
    )  # only one of the two warms up
    model = build_model(task)
    loss, _ = task.loss(model, task.batch(0))
    assert loss.item() == pytest.approx(math.log(28), abs=0.5)  # untrained: nearly uniform


def test_a_run_resumes_only_with_the_same_text(folder, tmp_path_factory):
    task = create_task(
        folder,
        training=TrainingSettings(steps=3, batch_size=2),
        tracking=TrackingSettings(track_every=0),
    )
    run = create_run(task, tmp_path_factory.mktemp("runs"))
    fit(task, run)
    restored = restore_task(run)
    assert restored.experiment == task.experiment
    assert torch.equal(restored.batch(7)["x"], task.batch(7)["x"])
    (folder / "book.txt").write_text(TEXT.upper())
    with pytest.raises(TaskError, match=r"book.txt has changed since the run was started"):
        restore_task(run)
    (folder / "book.txt").unlink()
    with pytest.raises(
        TaskError,
        match=r"the text of the run is missing: there is no data .*book.txt",
    ):
        restore_task(run)


def test_deleting_the_text_does_not_affect_a_loaded_task(folder, monkeypatch):
    monkeypatch.setenv("NEURAL_CACHE", str(folder / "cache"))
    monkeypatch.setattr("neural.tasks.language_model.corpus.MIN_CACHED_BYTES", 1)
    task = create_task(folder)
    before = task.batch(3)["x"].clone()
    (folder / "book.txt").unlink()
    for path in (folder / "cache/texts").iterdir():
        path.unlink()
    assert torch.equal(task.batch(3)["x"], before)


def test_a_small_network_learns_a_small_text(folder):
    task = create_task(
        folder,
        network=write_network(
            extra_lines="optimizer: AdamW(learning_rate=0.02)\n  train { batch_size: 16 }"
        ),
    )
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
def test_the_example_files_name_their_command_and_load(folder, monkeypatch, name):
    path = Path(__file__).parents[3] / "examples" / "language_model" / f"{name}.yaml"
    text = path.read_text()
    assert text.startswith(f"# neural train examples/language_model/{name}.yaml\n")
    (folder / "shakespeare_char.txt").write_text(TEXT * 9)
    monkeypatch.setenv("NEURAL_DATA", str(folder))
    task = load_task(path)
    assert isinstance(task, LanguageModel)
    assert task.experiment.preset == name


@pytest.mark.parametrize(("accumulation", "processes"), [(2, 1), (1, 2), (2, 2)])
def test_the_learning_rate_of_a_preset_decays_over_the_steps_of_all_processes(
    folder, monkeypatch, accumulation, processes
):
    monkeypatch.setenv("WORLD_SIZE", str(processes))
    training = TrainingSettings(epochs=40.0, batch_size=4, gradient_accumulation_steps=accumulation)
    task = create_task(folder, network=None, training=training)
    steps = count_steps(task, processes)
    assert steps == math.ceil(40 * task.batches_per_epoch / (accumulation * processes))
    assert f", {steps - steps // 10}, " in task.experiment.training.optimizer


@pytest.mark.parametrize("change", ["preset=full", "architecture=classic"])
def test_a_resumed_run_refuses_another_preset(folder, tmp_path_factory, change):
    task = create_task(folder, network=None, training=TrainingSettings(steps=3))
    run = create_run(task, tmp_path_factory.mktemp("runs"))
    assert restore_task(run).experiment == task.experiment
    with pytest.raises(TaskError, match="cannot change in a resumed run; start a new run with it"):
        restore_task(run, [change])

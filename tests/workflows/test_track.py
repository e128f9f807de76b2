"""Tracking of any model in any training loop."""

import errno
import sqlite3
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch
from torch import nn

import neural
from neural.capture.watch import AttentionWarning
from neural.runs.errors import RunError
from neural.runs.run import Run
from neural.runs.store import RunWriter
from neural.workflows.track import label_tokens, to_metric_name

VOCABULARY = 11


class SmallModel(nn.Module):
    """Embedding, one torch encoder layer with dropout, output."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 8)
        self.encoder = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
        self.output = nn.Linear(8, VOCABULARY)

    def forward(self, ids):
        return self.output(self.encoder(self.embedding(ids)))


def build(seed=0):
    torch.manual_seed(seed)
    model = SmallModel()
    return model, torch.optim.AdamW(model.parameters(), lr=0.01)


def train(model, optimizer, steps, on_step=lambda loss: None):
    """Copy random tokens; returns the losses."""
    losses = []
    for _ in range(steps):
        ids = torch.randint(0, VOCABULARY, (4, 7))
        loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        on_step(loss)
    return losses


PROBE = torch.arange(14).reshape(2, 7) % VOCABULARY


def test_the_run_has_snapshots_scalars_and_labels(tmp_path):
    model, optimizer = build()
    labels = list("abcdefg")
    with neural.track(
        model, PROBE, every=4, run=tmp_path / "mine", labels=labels, steps=10
    ) as tracker:
        train(model, optimizer, 10, lambda loss: tracker.step(loss=loss))
        tracker.log(eval_loss=1.5, accuracy=torch.tensor(0.5), note="text is left out")
    with Run.open(tracker.path) as run:
        assert run.status.state == "finished" and run.status.step == 10
        steps, entropy = run.measure("entropy")
        assert list(steps) == [0, 4, 8, 10] and entropy.shape == (4, 1, 2)
        assert run.map_steps() == [0, 4, 8, 10]
        assert run.metadata("probe/labels") == [labels, labels]
        assert len(run.scalars("train/loss")[0]) == 10
        assert set(run.scalar_names()) == {"train/loss", "valid/loss", "train/accuracy"}
        assert run.metadata("attention/layers") == ["encoder.self_attn"]


def test_training_is_bit_identical_with_and_without(tmp_path):
    model, optimizer = build()
    torch.manual_seed(1)
    plain = train(model, optimizer, 12)
    tracked_model, optimizer = build()
    torch.manual_seed(1)
    with neural.track(tracked_model, PROBE, every=3, run=tmp_path / "same") as tracker:
        tracked = train(tracked_model, optimizer, 12, lambda loss: tracker.step(loss=loss))
    assert plain == tracked
    for first, second in zip(model.parameters(), tracked_model.parameters(), strict=True):
        assert torch.equal(first, second)
    assert tracked_model.training


def test_rows_equal_those_of_our_own_tracker(tmp_path):
    from neural.capture.tracker import AttentionTracker
    from neural.core.experiment import TrackingSettings

    model, _ = build()

    class ProbeTask:
        def probe_batch(self):
            return {"x": PROBE}

        def token_ids(self, batch):
            return batch["x"]

        def forward(self, model, batch):
            return model(batch["x"])

        def position_labels(self, batch):
            return [list("abcdefg")] * 2

    with Run.create(tmp_path, "engine", settings={}, program=None) as own:
        settings = TrackingSettings(track_every=5, maps_every=1)
        AttentionTracker(ProbeTask(), own, settings).capture_snapshot(model, 0)
        own.commit()
        tracker = neural.track(model, PROBE, run=tmp_path / "any", labels=list("abcdefg"))
        tracker.close()
        with Run.open(tracker.path) as run:
            assert run.measure_names() == own.measure_names()
            for name in own.measure_names():
                np.testing.assert_array_equal(run.measure(name)[1], own.measure(name)[1])
            assert run.maps(0) == own.maps(0)
            for key in ("attention/layers", "attention/heads", "probe/labels"):
                assert run.metadata(key) == own.metadata(key)


def test_a_resumed_tracker_continues_the_run_from_its_checkpoint(tmp_path):
    model, optimizer = build()
    tracker = neural.track(model, PROBE, every=2, run=tmp_path / "long")
    train(model, optimizer, 9, lambda loss: tracker.step(loss=loss))
    tracker.close("stopped")
    # the training loop resumes from its own checkpoint of step 5
    with neural.track(model, PROBE, every=2, run=tracker.path, start_step=5) as resumed:
        assert resumed.current_step == 5
        train(model, optimizer, 3, lambda loss: resumed.step(loss=loss))
    with Run.open(tracker.path) as run:
        assert list(run.scalars("train/loss")[0]) == [1, 2, 3, 4, 5, 6, 7, 8]
        assert list(run.measure("entropy")[0]) == [0, 2, 4, 6, 8]
        assert run.status.state == "finished"
        assert [kind for _, kind, _, _ in run.events()] == ["restart"]


def test_a_killed_training_leaves_a_readable_run(tmp_path):
    code = f"""
    import os, torch, neural
    from tests.workflows.test_track import build, train, PROBE
    model, optimizer = build()
    tracker = neural.track(model, PROBE, every=2, run={str(tmp_path / "killed")!r})
    train(model, optimizer, 5, lambda loss: tracker.step(loss=loss))
    os._exit(9)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)])
    assert done.returncode == 9
    (path,) = tmp_path.iterdir()
    model, optimizer = build()
    with Run.open(path) as run:
        assert list(run.measure("entropy")[0]) == [0, 2, 4]
    with neural.track(model, PROBE, every=2, run=path) as tracker:
        train(model, optimizer, 2, lambda loss: tracker.step(loss=loss))
    with Run.open(path) as run:
        assert run.status.state == "finished"


def test_an_error_in_the_loop_is_the_state_of_the_run(tmp_path):
    model, _ = build()
    with (
        pytest.raises(ZeroDivisionError),
        neural.track(model, PROBE, run=tmp_path / "bad") as tracker,
    ):
        _ = 1 / 0
    with Run.open(tracker.path) as run:
        assert run.status.state == "failed" and "ZeroDivisionError" in run.status.message
    with pytest.raises(RunError, match="is closed"):
        tracker.step()


def test_analyze_and_report_work_on_the_run(tmp_path):
    model, optimizer = build()
    with neural.track(model, PROBE, every=5, run=tmp_path / "mine") as tracker:
        train(model, optimizer, 20, lambda loss: tracker.step(loss=loss))
    assert neural.analyze(tracker.path) is not None
    page = neural.write_report(tracker.path, tmp_path / "report.html")
    assert "encoder.self_attn" in page.read_text(encoding="utf-8")


def test_a_probe_may_be_a_function_and_needs_no_labels(tmp_path):
    model, _ = build()
    tracker = neural.track(model, lambda model: model(PROBE), run=tmp_path / "function")
    tracker.close()
    with Run.open(tracker.path) as run:
        assert run.map_steps() == [0] and run.metadata("probe/labels") is None


def test_a_wrong_probe_is_an_error_and_the_run_says_so(tmp_path):
    model, _ = build()
    with pytest.raises(ValueError, match="track: the model failed on the probe"):
        neural.track(model, torch.randn(2, 7), run=tmp_path / "wrong")
    (path,) = tmp_path.iterdir()
    with Run.open(path) as run:
        assert run.status.state == "failed"
    with pytest.raises(ValueError, match="every must be at least 1"):
        neural.track(model, PROBE, every=0, run=tmp_path / "never")


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("loss", "train/loss"),
        ("train_loss", "train/loss"),
        ("eval_loss", "valid/loss"),
        ("valid_accuracy", "valid/accuracy"),
        ("val_loss", "valid/loss"),
        ("val/accuracy", "valid/accuracy"),
        ("validation_f1", "valid/f1"),
        ("my/own", "my/own"),
        ("valid/loss", "valid/loss"),
        ("value", "train/value"),
    ],
)
def test_metrics_have_the_names_that_pages_know(name, stored):
    assert to_metric_name(name) == stored


def test_labels_of_a_tokenizer_have_blanks_for_its_marks():
    class Marked:
        def convert_ids_to_tokens(self, ids):
            return [f"Ġ{token}" for token in ids]

    ids = torch.tensor([[3, 5]])
    assert label_tokens(Marked(), ids) == [[" 3", " 5"]]
    assert label_tokens(lambda ids: f"<{ids[0]}>", ids) == [["<3>", "<5>"]]


@pytest.mark.parametrize(
    ("probe", "options", "message"),
    [
        ("the cat", {}, "the model failed on the probe: .* a text is no tensor: tokenize it"),
        ([[1, 2, 3]], {}, "lists hold several inputs: pass one tensor"),
        ({"words": PROBE}, {}, "the probe is one batch that the model takes"),
        (PROBE + 50, {}, "its token ids go up to 60, over 7 positions: the model has fewer"),
        (PROBE, {"tokens": PROBE[:, :3]}, r"tokens has the shape \(2, 3\), but the attention has"),
        (PROBE, {"labels": ["a"]}, "give one label per position"),
    ],
)
def test_bad_probes_are_messages_before_training(tmp_path, probe, options, message):
    model, _ = build()
    with pytest.raises(ValueError, match=message):
        neural.track(model, probe, run=tmp_path / "mine", **options)
    (path,) = tmp_path.iterdir()
    with Run.open(path) as run:
        assert run.status.state == "failed"


def test_a_model_without_attention_is_a_warning_once(tmp_path):
    model = nn.Sequential(nn.Embedding(VOCABULARY, 4), nn.Linear(4, 4))
    with (
        pytest.warns(AttentionWarning, match="no attention was recognised") as warned,
        neural.track(model, PROBE, every=1, run=tmp_path / "mine") as tracker,
    ):
        tracker.step(loss=1.0)
        tracker.step(loss=1.0)
    assert len(warned) == 1


def test_weights_that_become_nan_are_a_warning_and_training_goes_on(tmp_path):
    model, _ = build()
    with neural.track(model, PROBE, every=1, run=tmp_path / "mine") as tracker:
        tracker.step(loss=1.0)
        model.embedding.weight.data.fill_(float("nan"))
        with pytest.warns(AttentionWarning, match=r"not finite: the training has diverged"):
            tracker.step(loss=float("nan"))
        tracker.step(loss=float("nan"))
    with Run.open(tracker.path) as run:
        steps, entropy = run.measure("entropy")
        assert run.status.state == "finished" and steps.tolist() == [0, 1, 2, 3]
        assert np.isfinite(entropy[:2]).all() and np.isnan(entropy[2:]).all()


def test_a_missing_operation_is_a_message(tmp_path):
    class NeedsWide(SmallModel):
        def forward(self, ids):
            raise RuntimeError("\"some_kernel\" not implemented for 'Half'")

    with pytest.raises(ValueError, match="missing in this dtype on this device"):
        neural.track(NeedsWide(), PROBE, run=tmp_path / "mine")


# --- tracking never stops a training ---


def make_sqlite_error(kind, code, message):
    error = kind(message)
    error.sqlite_errorcode = code
    return error


FULL = make_sqlite_error(sqlite3.OperationalError, sqlite3.SQLITE_FULL, "no space")
TOO_BIG = make_sqlite_error(sqlite3.DataError, sqlite3.SQLITE_TOOBIG, "string or blob too big")


def fail_to_write(monkeypatch, is_broken, error=FULL):
    """Every transaction fails while `is_broken()`."""
    insert = RunWriter._insert_rows

    def insert_or_fail(self, sql, rows):
        if is_broken():
            raise error
        insert(self, sql, rows)

    monkeypatch.setattr(RunWriter, "_insert_rows", insert_or_fail)


@pytest.mark.parametrize("error", [FULL, TOO_BIG, OSError(errno.EIO, "disk")], ids=str)
@pytest.mark.parametrize("first", [0, 3])
def test_what_cannot_be_written_is_a_warning_and_a_missing_snapshot(
    tmp_path, monkeypatch, first, error
):
    model, optimizer = build()
    seen = []
    fail_to_write(monkeypatch, lambda: first <= len(seen) < 5, error)
    with (
        pytest.warns(AttentionWarning, match="tracking failed, and a snapshot is missing: "),
        neural.track(model, PROBE, every=2, run=tmp_path / "mine") as tracker,
    ):

        def on_step(loss):
            seen.append(loss)
            tracker.step(loss=loss)

        assert len(train(model, optimizer, 8, on_step)) == 8
    with Run.open(tracker.path) as run:
        assert run.status.state == "finished"
        assert run.measure("entropy")[0].tolist() == ([6, 8] if first == 0 else [0, 2, 6, 8])
        assert run.map_steps()[-2:] == [6, 8] and run.metadata("attention/layers")


def test_an_error_of_a_later_probe_is_a_warning(tmp_path):
    model, optimizer = build()
    probes = iter([PROBE, PROBE[:, :3] + 1000, PROBE])

    with (
        pytest.warns(AttentionWarning, match="a snapshot is missing: index out of range"),
        neural.track(
            model, lambda model: model(next(probes)), every=2, run=tmp_path / "mine"
        ) as tracker,
    ):
        train(model, optimizer, 4, lambda loss: tracker.step())
    with Run.open(tracker.path) as run:
        assert run.measure("entropy")[0].tolist() == [0, 4]


def test_a_run_that_cannot_be_finished_is_a_warning(tmp_path, monkeypatch):
    model, _ = build()
    tracker = neural.track(model, PROBE, run=tmp_path / "mine")
    tracker.log(loss=1.0)
    fail_to_write(monkeypatch, lambda: True)
    with pytest.warns(AttentionWarning, match="tracking failed"):
        tracker.close()
    tracker.close()
    with Run.open(tracker.path) as run:
        assert run.status.state == "failed"


def test_a_long_probe_is_stored(tmp_path):
    """Its maps are larger than the file of a new run."""
    torch.manual_seed(0)
    model = nn.TransformerEncoderLayer(64, 64, 8, batch_first=True)
    with neural.track(model, torch.randn(1, 300, 64), run=tmp_path / "mine") as tracker:
        pass
    with Run.open(tracker.path) as run:
        (encoded,) = run.maps(0).values()
        assert len(encoded) > 2**20

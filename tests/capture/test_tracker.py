"""Attention snapshots during training: written to the run folder, without changing the training."""

import numpy as np
import pytest
import torch

import neural
from neural.capture.map_encoding import decode_map
from neural.capture.snapshot_writer import MAX_MAP_POSITIONS
from neural.capture.tracker import AttentionTracker, preserve_model_state
from neural.capture.vector_encoding import VECTORS_KEY, decode_vectors
from neural.capture.watch import watch
from neural.core.experiment import Experiment, TrackingSettings
from neural.runs.run import Run
from neural.tasks.task import Task

B, T, TOKENS = 3, 11, 19


class Counting(Task):
    """Predict the next token of sequences that count; the test passes the layers."""

    def __init__(
        self,
        layers: str = "TransformerDecoder(num_heads=2, d_model=12, dff=17, dropout_rate=0.2) * 2",
    ):
        self.layers = layers

    def build(self):
        text = (
            f"Embedding(input_dim={TOKENS}, output_dim=12)\n    {self.layers}\n    Dense({TOKENS})"
        )
        return neural.parse(f"network A {{\n  input: (None,)\n  layers:\n    {text}\n}}").build()

    @property
    def batches_per_epoch(self):
        return 10

    def batch(self, index):
        generator = torch.Generator().manual_seed(index)
        start = torch.randint(0, TOKENS, (B, 1), generator=generator)
        return {"x": (start + torch.arange(T + 1)) % TOKENS}

    def loss(self, model, batch):
        scores = model(batch["x"][:, :-1])
        return torch.nn.functional.cross_entropy(
            scores.flatten(0, 1), batch["x"][:, 1:].flatten()
        ), {}

    def evaluate(self, model):
        return {}

    def probe_batch(self):
        return {"x": self.batch(10_000)["x"][:2, :-1]}

    def forward(self, model, batch):
        return model(batch["x"])

    def token_ids(self, batch):
        return batch["x"]

    def position_labels(self, batch):
        return [[str(int(token)) for token in row] for row in batch["x"]]

    @classmethod
    def example(cls, folder, catalogue):
        return cls()


def create_run(folder) -> Run:
    return Run.create(
        folder, "test", settings=Experiment(task="counting").model_dump(mode="json"), program=None
    )


def train(task: Task, tracker: AttentionTracker | None, steps: int = 6, every: int = 2):
    """Train a few steps, with snapshots if there is a tracker; returns losses and the model."""
    torch.manual_seed(0)
    model = task.build()
    optimizer, losses = torch.optim.AdamW(model.parameters(), lr=1e-2), []
    for step in range(1, steps + 1):
        loss, _ = task.loss(model, task.batch(step))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if tracker is not None and step % every == 0:
            tracker.capture_snapshot(model, step)
    return losses, model


def test_a_snapshot_is_written_to_the_run_folder(tmp_path):
    task, run = Counting(), create_run(tmp_path)
    tracker = AttentionTracker(task, run, TrackingSettings(track_every=2, maps_every=1))
    _, model = train(task, tracker)
    run.commit()
    reader = Run.open(run.path)
    assert reader.metadata("attention/layers") == [
        "transformer_decoder.0.attention.sublayer",
        "transformer_decoder.1.attention.sublayer",
    ]
    assert reader.metadata("attention/heads") == [2, 2]
    assert reader.metadata("attention/measures")["entropy"]["unit"] == "nats"
    assert reader.metadata("probe/labels")[1] == [
        str(int(token)) for token in task.probe_batch()["x"][1]
    ]
    steps, entropy = reader.measure("entropy")
    assert list(steps) == [2, 4, 6]
    assert entropy.shape == (3, 2, 2)
    assert not np.isnan(entropy).any()
    expected = watch(model.eval(), task.probe_batch()["x"])
    np.testing.assert_array_equal(entropy[-1], expected.measure_arrays()["entropy"])
    assert reader.measure("head_diversity")[1].shape == (3, 2)
    assert "induction_mass" in reader.measure_names()
    between = reader.measure("js_between")[1]
    assert between.shape == (3, 2, 2)
    assert np.isnan(between[-1]).tolist() == [[True, False], [True, True]]


def test_the_last_snapshot_stores_queries_and_keys_of_the_first_example(tmp_path):
    task, run = Counting(), create_run(tmp_path)
    tracker = AttentionTracker(task, run, TrackingSettings(track_every=2, maps_every=1))
    _, model = train(task, tracker)
    run.commit()
    assert run.metadata(VECTORS_KEY) is None
    tracker.capture_snapshot(model, 7, last=True)
    run.commit()
    stored = run.metadata(VECTORS_KEY)
    assert stored["step"] == 7
    expected = watch(model.eval(), task.probe_batch()["x"])
    for name, call in zip(expected.layer_names(), expected, strict=True):
        queries, keys = decode_vectors(stored["layers"][name])
        np.testing.assert_allclose(queries, call.attention.q[0].detach(), atol=1e-3)
        np.testing.assert_allclose(keys, call.attention.k[0].detach(), atol=1e-3)


def test_maps_are_stored_every_few_snapshots_and_can_be_decoded(tmp_path):
    task, run = Counting(), create_run(tmp_path)
    _, model = train(
        task, AttentionTracker(task, run, TrackingSettings(track_every=1, maps_every=3)), every=1
    )
    run.commit()
    assert list(run.map_steps()) == [3, 6]
    maps = run.maps(6)
    expected = watch(model.eval(), task.probe_batch()["x"])
    assert list(maps) == expected.layer_names()
    for call in expected:
        decoded = decode_map(bytes(maps[call.path]))
        assert decoded.shape == (2, T, T)
        assert np.abs(decoded - call.maps()[0]).max() <= 0.004
        assert (decoded[:, np.tri(T) == 0] == 0).all()


def test_the_last_snapshot_always_stores_maps(tmp_path):
    task, run = Counting(), create_run(tmp_path)
    tracker, model = (
        AttentionTracker(task, run, TrackingSettings(track_every=1, maps_every=3)),
        task.build(),
    )
    for step in (3, 4, 5):
        tracker.capture_snapshot(model, step, last=step == 5)
    run.commit()
    assert list(run.map_steps()) == [3, 5]


def test_maps_every_0_stores_no_maps(tmp_path):
    task, run = Counting(), create_run(tmp_path)
    train(task, AttentionTracker(task, run, TrackingSettings(track_every=1, maps_every=0)))
    run.commit()
    assert list(run.map_steps()) == []
    assert "entropy" in run.measure_names()


def test_a_long_map_is_cut_to_the_first_positions(tmp_path):
    class Long(Counting):
        def probe_batch(self):
            return {"x": torch.arange(MAX_MAP_POSITIONS + 29).unsqueeze(0) % TOKENS}

    task, run = Long("TransformerDecoder(num_heads=2, d_model=12, dff=17)"), create_run(tmp_path)
    model = task.build()
    AttentionTracker(task, run, TrackingSettings(track_every=1, maps_every=1)).capture_snapshot(
        model, 0
    )
    run.commit()
    (encoded,) = run.maps(0).values()
    decoded = decode_map(bytes(encoded))
    assert decoded.shape == (2, MAX_MAP_POSITIONS, MAX_MAP_POSITIONS)
    np.testing.assert_allclose(
        decoded.sum(axis=-1), 1, atol=0.1
    )  # a causal row sees nothing that was cut off


@pytest.mark.parametrize(
    "layers",
    [
        "TransformerDecoder(num_heads=2, d_model=12, dff=17, dropout_rate=0.2) * 2",
        'TransformerDecoder(num_heads=2, d_model=12, dff=17, attention="hard", sampled=true, '
        "dropout_rate=0.2)",
        'TransformerEncoder(num_heads=2, d_model=12, dff=17, attention="sparsemax")\n'
        "    BatchNormalization()",
    ],
    ids=["dropout", "sampled", "running averages"],
)
def test_training_with_and_without_snapshots_is_bit_identical(layers, tmp_path):
    task = Counting(layers)
    losses, model = train(task, None)
    tracked_losses, tracked_model = train(
        task,
        AttentionTracker(task, create_run(tmp_path), TrackingSettings(track_every=1, maps_every=1)),
        every=1,
    )
    assert tracked_losses == losses
    tracked_state = tracked_model.state_dict()
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, tracked_state[name]), name


def test_modes_random_state_and_threads_are_restored():
    model = Counting().build().train()
    model.transformer_decoder[0].eval()
    modes = [module.training for module in model.modules()]
    torch.manual_seed(3)
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    with pytest.raises(ZeroDivisionError), preserve_model_state(model):
        assert not any(module.training for module in model.modules())
        assert not torch.is_grad_enabled()
        torch.rand(7)
        torch.set_num_threads(threads + 1)
        _ = 1 / 0
    assert [module.training for module in model.modules()] == modes
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads
    assert torch.is_grad_enabled()


def test_accumulated_gradients_survive_a_snapshot(tmp_path):
    task = Counting()
    model = task.build()
    task.loss(model, task.batch(0))[0].backward()
    before = [param.grad.clone() for param in model.parameters()]
    AttentionTracker(task, create_run(tmp_path), TrackingSettings()).capture_snapshot(model, 0)
    after = [param.grad for param in model.parameters()]
    assert all(torch.equal(new, old) for new, old in zip(after, before, strict=True))


@pytest.mark.parametrize(
    ("measures", "reported"),
    [
        (("entropy", "relative_entropy", "largest_weight"), "relative_entropy"),
        (("largest_weight", "entropy"), "largest_weight"),
    ],
)
def test_the_reported_measure_is_the_same_in_all_snapshots(measures, reported, tmp_path):
    task = Counting()
    tracker, model = (
        AttentionTracker(task, create_run(tmp_path), TrackingSettings(measures=measures)),
        task.build(),
    )
    before = compute_mean(task, model, reported)
    assert tracker.capture_snapshot(model, 0) == (reported, pytest.approx(before))
    with torch.no_grad():
        for module in model.modules():
            if hasattr(module, "mechanism"):
                module.query.weight.mul_(1e4)  # every query attends to one key
    after = compute_mean(task, model, reported)
    assert after != pytest.approx(before)
    assert tracker.capture_snapshot(model, 1) == (reported, pytest.approx(after))


def compute_mean(task, model, name):
    return float(np.nanmean(watch(model.eval(), task.probe_batch()["x"]).measure_arrays()[name]))


def test_a_network_without_attention_gives_no_warning(tmp_path):
    task, run = Counting("Dense(12)"), create_run(tmp_path)
    assert AttentionTracker(task, run, TrackingSettings()).capture_snapshot(task.build(), 0) is None
    run.commit()
    assert run.measure_names() == []
    assert run.events() == []


def test_unrecognised_attention_is_logged_once_as_a_warning(tmp_path):
    class SelfAttention(torch.nn.Module):
        def forward(self, x):
            return (x @ x.mT).sigmoid() @ x

    class Odd(Counting):
        def build(self):
            return torch.nn.Sequential(
                torch.nn.Embedding(TOKENS, 12), SelfAttention(), torch.nn.Linear(12, TOKENS)
            )

    task, run = Odd(), create_run(tmp_path)
    tracker, model = AttentionTracker(task, run, TrackingSettings()), task.build()
    assert tracker.capture_snapshot(model, 0) is None
    assert tracker.capture_snapshot(model, 50) is None
    run.commit()
    ((step, kind, text, _),) = run.events()
    assert (step, kind) == (0, "warning")
    assert "`1`" in text


def test_partly_recognised_attention_is_measured_and_logged_once_as_a_warning(tmp_path):
    class GatedAttention(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.gate, self.value = torch.nn.Linear(12, 12), torch.nn.Linear(12, 12)

        def forward(self, x):
            return self.gate(x).sigmoid() * self.value(x).cumsum(dim=1)

    class Softmax(torch.nn.Module):
        def forward(self, x):
            x = x.unsqueeze(1)
            return torch.nn.functional.scaled_dot_product_attention(x, x, x).squeeze(1)

    class Hybrid(Counting):
        def build(self):
            layers = GatedAttention(), Softmax(), torch.nn.Linear(12, TOKENS)
            return torch.nn.Sequential(torch.nn.Embedding(TOKENS, 12), *layers)

    task, run = Hybrid(), create_run(tmp_path)
    tracker, model = AttentionTracker(task, run, TrackingSettings()), task.build()
    assert tracker.capture_snapshot(model, 0) is not None
    assert tracker.capture_snapshot(model, 50) is not None
    run.commit()
    ((step, kind, text, _),) = run.events()
    assert (step, kind) == (0, "warning")
    assert "`1`" in text and "GatedAttention" in text
    assert run.metadata("attention/layers") == ["2"]


def test_a_diverged_model_is_still_measured(tmp_path):
    task, run = Counting(), create_run(tmp_path)
    model = task.build()
    with torch.no_grad():
        for param in model.parameters():
            param.fill_(float("nan"))
    AttentionTracker(task, run, TrackingSettings(track_every=1, maps_every=1)).capture_snapshot(
        model, 0
    )
    run.commit()
    assert np.isnan(run.measure("entropy")[1]).all()
    assert list(run.map_steps()) == []


def test_an_unknown_measure_is_refused_before_anything_runs(tmp_path):
    with pytest.raises(LookupError, match="did you mean `span90`"):
        AttentionTracker(Counting(), create_run(tmp_path), TrackingSettings(measures=("spam90",)))


def test_without_a_run_a_snapshot_is_measured_and_not_written():
    task = Counting()
    name, value = AttentionTracker(task, None, TrackingSettings()).capture_snapshot(task.build(), 0)
    assert isinstance(name, str)
    assert np.isfinite(value)


def test_attention_to_a_single_key_can_be_measured_twice(tmp_path):
    """The range of some measures is empty then: relative changes are not defined."""
    task, model = Counting(), Counting().build()
    tracker = AttentionTracker(task, create_run(tmp_path), TrackingSettings(track_every=1))
    tracker._probe = {"x": torch.zeros(2, 1, dtype=torch.long)}
    assert tracker.capture_snapshot(model, 0) is not None
    assert tracker.capture_snapshot(model, 1) is not None

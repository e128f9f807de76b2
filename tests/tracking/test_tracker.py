"""Looking at a model while it learns: into the run folder, and without leaving a trace in the training."""

import numpy as np
import pytest
import torch

import neural
from neural.tasks.experiment import Experiment, Tracking
from neural.tasks.task import Task
from neural.tracking.quantised import unpack
from neural.tracking.run import Run
from neural.tracking.tracker import POSITIONS, Tracker, undisturbed
from neural.tracking.watch import watch

B, T, WORDS = 3, 11, 19


class Counting(Task):
    """What follows the last token, of sequences that count; every test says with which network."""

    def __init__(self, layers: str = "TransformerDecoder(num_heads=2, d_model=12, dff=17, dropout_rate=0.2) * 2"):
        self.layers = layers

    def build(self):
        text = f"Embedding(input_dim={WORDS}, output_dim=12)\n    {self.layers}\n    Dense({WORDS})"
        return neural.parse(f"network A {{\n  input: (None,)\n  layers:\n    {text}\n}}").build()

    @property
    def epoch(self):
        return 10

    def batch(self, index):
        generator = torch.Generator().manual_seed(index)
        start = torch.randint(0, WORDS, (B, 1), generator=generator)
        return {"x": (start + torch.arange(T + 1)) % WORDS}

    def loss(self, model, batch):
        scores = model(batch["x"][:, :-1])
        return torch.nn.functional.cross_entropy(scores.flatten(0, 1), batch["x"][:, 1:].flatten()), {}

    def evaluate(self, model):
        return {}

    def probe(self):
        return {"x": self.batch(10_000)["x"][:2, :-1]}

    def look(self, model, batch):
        return model(batch["x"])

    def tokens(self, batch):
        return batch["x"]

    def labels(self, batch):
        return [[str(int(one)) for one in row] for row in batch["x"]]

    @classmethod
    def tiny(cls, folder):
        return cls()


def run_of(folder) -> Run:
    return Run.create(folder, "test", settings=Experiment(task="counting").model_dump(mode="json"), program=None)


def trained(task: Task, tracker: Tracker | None, steps: int = 6, every: int = 2):
    """Losses and weights after a few steps; looks on the way if there is a tracker."""
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
            tracker.look(model, step)
    return losses, model


def test_a_look_goes_into_the_run_folder(tmp_path):
    task, run = Counting(), run_of(tmp_path)
    tracker = Tracker(task, run, Tracking(track_every=2, maps_every=1))
    _, model = trained(task, tracker)
    run.commit()
    read = Run.open(run.path)
    assert read.described("attention/layers") == [
        "transformer_decoder.0.attention.part", "transformer_decoder.1.attention.part"
    ]  # fmt: skip
    assert read.described("attention/heads") == [2, 2]
    assert read.described("attention/measures")["entropy"]["unit"] == "nats"
    assert read.described("probe/labels")[1] == [str(int(one)) for one in task.probe()["x"][1]]
    steps, entropy = read.measure("entropy")
    assert list(steps) == [2, 4, 6]
    assert entropy.shape == (3, 2, 2)
    assert not np.isnan(entropy).any()
    wanted = watch(model.eval(), task.probe()["x"])
    np.testing.assert_array_equal(entropy[-1], wanted.arrays()["entropy"])
    assert read.measure("head_diversity")[1].shape == (3, 2)
    assert "induction_mass" in read.measures()
    between = read.measure("js_between")[1]
    assert between.shape == (3, 2, 2)
    assert np.isnan(between[-1]).tolist() == [[True, False], [True, True]]


def test_maps_are_kept_every_so_many_looks_and_can_be_read(tmp_path):
    task, run = Counting(), run_of(tmp_path)
    _, model = trained(task, Tracker(task, run, Tracking(track_every=1, maps_every=3)), every=1)
    run.commit()
    assert list(run.map_steps()) == [3, 6]
    maps = run.maps(6)
    wanted = watch(model.eval(), task.probe()["x"])
    assert list(maps) == wanted.layers()
    for call in wanted:
        found = unpack(bytes(maps[call.path]))
        assert found.shape == (2, T, T)
        assert np.abs(found - call.maps()[0]).max() <= 0.004
        assert (found[:, np.tri(T) == 0] == 0).all()


def test_the_last_look_keeps_its_maps_whatever_its_number(tmp_path):
    task, run = Counting(), run_of(tmp_path)
    tracker, model = Tracker(task, run, Tracking(track_every=1, maps_every=3)), task.build()
    for step in (3, 4, 5):
        tracker.look(model, step, last=step == 5)
    run.commit()
    assert list(run.map_steps()) == [3, 5]


def test_without_maps_every_there_are_none(tmp_path):
    task, run = Counting(), run_of(tmp_path)
    trained(task, Tracker(task, run, Tracking(track_every=1, maps_every=0)))
    run.commit()
    assert list(run.map_steps()) == []
    assert "entropy" in run.measures()


def test_of_a_long_map_the_first_positions_are_kept(tmp_path):
    class Long(Counting):
        def probe(self):
            return {"x": torch.arange(POSITIONS + 29).unsqueeze(0) % WORDS}

    task, run = Long("TransformerDecoder(num_heads=2, d_model=12, dff=17)"), run_of(tmp_path)
    model = task.build()
    Tracker(task, run, Tracking(track_every=1, maps_every=1)).look(model, 0)
    run.commit()
    (packed,) = run.maps(0).values()
    found = unpack(bytes(packed))
    assert found.shape == (2, POSITIONS, POSITIONS)
    np.testing.assert_allclose(found.sum(axis=-1), 1, atol=0.1)   # a causal row sees nothing that was cut off


@pytest.mark.parametrize("layers", [
    "TransformerDecoder(num_heads=2, d_model=12, dff=17, dropout_rate=0.2) * 2",
    'TransformerDecoder(num_heads=2, d_model=12, dff=17, attention="hard", sampled=true, dropout_rate=0.2)',
    'TransformerEncoder(num_heads=2, d_model=12, dff=17, attention="sparsemax")\n    BatchNormalization()',
], ids=["dropout", "drawn", "running averages"])  # fmt: skip
def test_training_is_the_same_to_the_last_bit_with_looks_and_without(layers, tmp_path):
    task = Counting(layers)
    without, plain = trained(task, None)
    with_looks, looked = trained(task, Tracker(task, run_of(tmp_path), Tracking(track_every=1, maps_every=1)), every=1)
    assert with_looks == without
    for (name, one), (_, other) in zip(plain.state_dict().items(), looked.state_dict().items(), strict=True):
        assert torch.equal(one, other), name


def test_modes_random_state_and_threads_are_afterwards_what_they_were():
    model = Counting().build().train()
    model.transformer_decoder[0].eval()
    modes = [module.training for module in model.modules()]
    torch.manual_seed(3)
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    with pytest.raises(ZeroDivisionError), undisturbed(model):
        assert not any(module.training for module in model.modules())
        assert not torch.is_grad_enabled()
        torch.rand(7)
        torch.set_num_threads(threads + 1)
        _ = 1 / 0
    assert [module.training for module in model.modules()] == modes
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads
    assert torch.is_grad_enabled()


def test_gradients_on_the_way_survive_a_look(tmp_path):
    task = Counting()
    model = task.build()
    task.loss(model, task.batch(0))[0].backward()
    before = [one.grad.clone() for one in model.parameters()]
    Tracker(task, run_of(tmp_path), Tracking()).look(model, 0)
    assert all(torch.equal(one.grad, old) for one, old in zip(model.parameters(), before, strict=True))


def test_the_liveliest_measure_is_the_one_that_moved_most_of_its_way(tmp_path):
    task, scales = Counting(), {"position_spread": (T - 1) / 2, "entropy": np.log(T), "largest_weight": 1 - 1 / T}
    tracker, model = Tracker(task, run_of(tmp_path), Tracking(measures=tuple(scales))), task.build()
    before = {name: mean_of(task, model, name) for name in scales}
    assert tracker.look(model, 0) == ("position_spread", pytest.approx(before["position_spread"]))
    with torch.no_grad():
        for module in model.modules():
            if hasattr(module, "mechanism"):
                module.query.weight.mul_(1e4)   # every query looks at one key
    after = {name: mean_of(task, model, name) for name in scales}
    liveliest = max(scales, key=lambda name: abs(after[name] - before[name]) / scales[name])
    assert liveliest != "position_spread", "a test of nothing"
    assert tracker.look(model, 1) == (liveliest, pytest.approx(after[liveliest]))


def mean_of(task, model, name):
    return float(np.nanmean(watch(model.eval(), task.probe()["x"]).arrays()[name]))


def test_a_network_without_attention_is_trained_in_peace(tmp_path):
    task, run = Counting("Dense(12)"), run_of(tmp_path)
    assert Tracker(task, run, Tracking()).look(task.build(), 0) is None
    run.commit()
    assert run.measures() == []
    assert run.events() == []


def test_attention_that_is_not_recognised_is_a_warning_in_the_run_once(tmp_path):
    class SelfAttention(torch.nn.Module):
        def forward(self, x):
            return (x @ x.mT).sigmoid() @ x

    class Odd(Counting):
        def build(self):
            return torch.nn.Sequential(torch.nn.Embedding(WORDS, 12), SelfAttention(), torch.nn.Linear(12, WORDS))

    task, run = Odd(), run_of(tmp_path)
    tracker, model = Tracker(task, run, Tracking()), task.build()
    assert tracker.look(model, 0) is None
    assert tracker.look(model, 50) is None
    run.commit()
    ((step, kind, text, _),) = run.events()
    assert (step, kind) == (0, "warning")
    assert "`1`" in text


def test_attention_that_is_recognised_in_part_is_measured_and_a_warning_in_the_run_once(tmp_path):
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
            layers = GatedAttention(), Softmax(), torch.nn.Linear(12, WORDS)
            return torch.nn.Sequential(torch.nn.Embedding(WORDS, 12), *layers)

    task, run = Hybrid(), run_of(tmp_path)
    tracker, model = Tracker(task, run, Tracking()), task.build()
    assert tracker.look(model, 0) is not None
    assert tracker.look(model, 50) is not None
    run.commit()
    ((step, kind, text, _),) = run.events()
    assert (step, kind) == (0, "warning")
    assert "`1`" in text and "GatedAttention" in text
    assert run.described("attention/layers") == ["2"]


def test_a_model_that_has_diverged_is_still_looked_at(tmp_path):
    task, run = Counting(), run_of(tmp_path)
    model = task.build()
    with torch.no_grad():
        for one in model.parameters():
            one.fill_(float("nan"))
    Tracker(task, run, Tracking(track_every=1, maps_every=1)).look(model, 0)
    run.commit()
    assert np.isnan(run.measure("entropy")[1]).all()
    assert list(run.map_steps()) == []


def test_a_wrong_measure_is_said_before_anything_runs(tmp_path):
    with pytest.raises(LookupError, match="did you mean `span90`"):
        Tracker(Counting(), run_of(tmp_path), Tracking(measures=("spam90",)))


def test_without_a_run_nothing_is_written_and_the_model_runs():
    task = Counting()
    name, value = Tracker(task, None, Tracking()).look(task.build(), 0)
    assert isinstance(name, str)
    assert np.isfinite(value)


def test_attention_to_a_single_key_can_be_looked_at_again(tmp_path):
    """Its measures have two ends that are one: nothing moves between them."""
    task, model = Counting(), Counting().build()
    tracker = Tracker(task, run_of(tmp_path), Tracking(track_every=1))
    tracker._probe = {"x": torch.zeros(2, 1, dtype=torch.long)}
    assert tracker.look(model, 0) is not None
    assert tracker.look(model, 1) is not None

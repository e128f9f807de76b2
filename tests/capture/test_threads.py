"""Blocks of `watch` and `intervene` hold for their own model, in the thread that opened them."""

import _thread
import queue
import threading
from contextlib import contextmanager

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

import neural
from neural.capture.interventions import InterventionError
from tests.hugging_face_folders import build_gpt2, train_tokenizer

zero, zero_mlp = neural.interventions.zero, neural.interventions.zero_mlp
KINDS = ("sdpa", "softmax", "attend", "encoder", "neural", "gpt2 sdpa", "gpt2 eager")


class Attention(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, self.qkv, self.out = kind, nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x):
        q, k, v = (y.unflatten(-1, (4, 4)).transpose(1, 2) for y in self.qkv(x).chunk(3, dim=-1))
        if self.kind == "sdpa":
            z = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        elif self.kind == "softmax":
            z = torch.softmax(q @ k.mT / 2, dim=-1) @ v
        else:
            z = neural.attend(q, k, v)
        return x + self.out(z.transpose(1, 2).flatten(2))


class Model(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.embedding = nn.Embedding(23, 16)
        if kind == "encoder":
            layers = [nn.TransformerEncoderLayer(16, 4, 24, batch_first=True) for _ in range(2)]
            self.blocks = nn.ModuleList(layers)
        elif kind == "neural":
            program = "TransformerDecoder(num_heads=4, d_model=16, dff=24) * 2"
            source = f"network A {{\n  input: (None, 16)\n  layers:\n    {program}\n}}"
            self.blocks = nn.ModuleList([neural.parse(source).build()])
        else:
            self.blocks = nn.ModuleList(Attention(kind) for _ in range(2))

    def forward(self, ids):
        x = self.embedding(ids)
        for block in self.blocks:
            x = block(x)
        return x


def build(kind: str, seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    if kind.startswith("gpt2"):
        model = build_gpt2(train_tokenizer())
        model.set_attn_implementation(kind.removeprefix("gpt2 "))
        return model
    return Model(kind).eval()


def run(model):
    with torch.no_grad():
        output = model(torch.arange(14).view(2, 7))
    return getattr(output, "logits", output)


def change(model, head="L0 h0"):
    is_softmax = getattr(model, "blocks", [None])[0]
    softmax = True if getattr(is_softmax, "kind", None) == "softmax" else None
    return neural.intervene(model, zero(head), softmax=softmax)


def run_changed(model, head="L0 h0"):
    with change(model, head):
        return run(model)


class Worker:
    """Runs functions one after the other in a thread of its own."""

    def __init__(self) -> None:
        self.calls, self.results = queue.Queue(), queue.Queue()
        self.thread = threading.Thread(target=self._work)
        self.thread.start()

    def _work(self) -> None:
        while (function := self.calls.get()) is not None:
            try:
                self.results.put((function(), None))
            except BaseException as error:
                self.results.put((None, error))

    def __call__(self, function, *args):
        self.calls.put(lambda: function(*args))
        result, error = self.results.get(timeout=60)
        if error is not None:
            raise error
        return result


@contextmanager
def open_worker():
    worker = Worker()
    try:
        yield worker
    finally:
        worker.calls.put(None)
        worker.thread.join(60)


@pytest.mark.parametrize("kind", KINDS)
def test_another_model_and_a_plain_call_are_neither_changed_nor_counted(kind):
    model, other = build(kind), build(kind, seed=1)
    plain, changed, q = run(other), run_changed(model), torch.randn(1, 3, 5, 4)
    attended = functional.scaled_dot_product_attention(q, q, q)
    with change(model):
        assert torch.equal(functional.scaled_dot_product_attention(q, q, q), attended)
        # torch's encoder layers have no fast path, which rounds differently, inside a block
        assert torch.allclose(run(other), plain, atol=1e-6)
        assert torch.equal(run(model), changed)
        assert torch.allclose(run(other), plain, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_nested_blocks_of_two_models_change_their_own_model(kind):
    model, other = build(kind), build(kind, seed=1)
    changed, other_changed = run_changed(model), run_changed(other, "L1 h1")
    with change(model), change(other, "L1 h1"):
        assert torch.equal(run(other), other_changed)
        assert torch.equal(run(model), changed)


@pytest.mark.parametrize("kind", ["sdpa", "attend", "encoder"])
def test_the_layers_of_a_submodule_are_counted_from_its_own_calls(kind):
    model = build(kind)
    expected = run_changed(model, "L1 h2")
    with change(model.blocks[1], "L0 h2"):
        assert torch.equal(run(model), expected)


@pytest.mark.parametrize("kind", ["sdpa", "attend", "encoder", "gpt2 sdpa"])
def test_only_the_watched_model_is_captured(kind):
    model, other = build(kind), build(kind, seed=1)
    with neural.watch(model) as capture:
        run(other)
        run(model)
    alone = neural.watch(model, torch.arange(14).view(2, 7))
    assert [call.path for call in capture] == [call.path for call in alone]


@pytest.mark.parametrize("kind", KINDS)
def test_a_block_does_not_reach_other_threads(kind):
    model = build(kind)
    plain, changed = run(model), run_changed(model)
    with open_worker() as worker, change(model):
        assert torch.equal(worker(run, model), plain)
        assert torch.equal(run(model), changed)


@pytest.mark.parametrize("kind", KINDS)
def test_threads_may_close_their_blocks_in_any_order(kind):
    model = build(kind)
    plain, changed = run(model), [run_changed(model, head) for head in ("L0 h0", "L1 h1")]
    blocks = change(model), change(model, "L1 h1")
    function = functional.multi_head_attention_forward
    with open_worker() as first, open_worker() as second:
        first(blocks[0].__enter__)
        second(blocks[1].__enter__)
        assert torch.equal(first(run, model), changed[0])
        first(blocks[0].__exit__, None, None, None)
        assert torch.equal(second(run, model), changed[1])
        assert torch.equal(first(run, model), plain)
        second(blocks[1].__exit__, None, None, None)
        assert torch.equal(second(run, model), plain)
    assert functional.multi_head_attention_forward is function


def test_a_change_of_blocks_does_not_reach_other_threads():
    model = build("gpt2 sdpa")
    plain = run(model)
    with open_worker() as worker, neural.intervene(model, zero_mlp(0)):
        assert torch.equal(worker(run, model), plain)
        assert not torch.equal(run(model), plain)


@pytest.mark.parametrize("kind", KINDS)
def test_ablating_a_model_and_running_it_in_another_thread_do_not_disturb_each_other(kind):
    model, ids = build(kind), torch.arange(12).view(3, 4)
    plain, outputs, totals = run(model), [], [0]

    def compute_losses(model, batch):
        output = model(batch["ids"])
        return getattr(output, "logits", output).square().mean(-1)

    def compute_beside_another_thread(model, batch):
        # The other thread begins after a study of the model, which finds out what can be skipped.
        outputs.extend(worker(run, model) for _ in range(totals[-1] > 0))
        losses = compute_losses(model, batch)
        outputs.extend(worker(run, model) for _ in range(totals[-1] > 0))
        return losses

    softmax = True if kind == "softmax" else None
    options = {"batches": [{"ids": ids}], "pairs": False, "softmax": softmax}
    alone = neural.ablate(model, objective=compute_losses, **options).last
    options["on_progress"] = lambda label, done, total: totals.append(total)
    with open_worker() as worker:
        beside = neural.ablate(model, objective=compute_beside_another_thread, **options).last
    assert len(outputs) > 4 and all(torch.equal(output, plain) for output in outputs)
    assert (beside.change == alone.change).all() and (beside.gradient == alone.gradient).all()


def test_a_model_that_ran_in_other_threads_only_is_an_error():
    model = build("sdpa")
    with (
        open_worker() as worker,
        pytest.raises(InterventionError, match="the model ran in other threads only"),
        change(model),
    ):
        worker(run, model)
    with (
        open_worker() as worker,
        pytest.warns(UserWarning, match="did not run in the thread that opened the block"),
        neural.watch(model),
    ):
        worker(run, model)


def test_a_pass_that_a_thread_of_autograd_repeats_is_changed():
    """On a GPU, autograd has threads that Python did not start; here, one is started by hand."""
    model = build("encoder").train()
    for dropout in (module for module in model.modules() if isinstance(module, nn.Dropout)):
        dropout.p = 0.0
    for block in model.blocks:
        block.self_attn.dropout = 0.0
    x, weight = torch.randn(2, 7, 16), model.blocks[0].self_attn.out_proj.weight
    gradients, is_done = [], threading.Event()
    with neural.intervene(model.blocks[0], zero("L0 h1")):
        (expected,) = torch.autograd.grad(model.blocks[0](x).square().sum(), weight)
        loss = checkpoint(model.blocks[0], x, use_reentrant=False).square().sum()

        def call_backward() -> None:
            try:
                gradients.extend(torch.autograd.grad(loss, weight))
            finally:
                is_done.set()

        _thread.start_new_thread(call_backward, ())
        assert is_done.wait(60)
    assert torch.equal(gradients[0], expected)
    assert expected[:, 4:8].abs().max() == 0  # the input of these weights is zero

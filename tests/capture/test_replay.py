"""Repeated forward passes give the losses of complete passes, for every kind of model."""

import copy

import pytest
import torch
import transformers
from torch import nn
from torch.nn import functional

import neural
from neural.capture.intervene import intervene
from neural.capture.interventions import InterventionError, replace_pattern, scale, zero
from neural.capture.replay import Replay
from tests.hugging_face_folders import build_gpt2, train_tokenizer

VOCABULARY, LENGTH, EXAMPLES = 13, 11, 5
DECODER = """network Tiny {
  input: (11,)
  layers:
    Embedding(input_dim=17, output_dim=12)
    TransformerDecoder(num_heads=3, d_model=12, dff=13) * 3
    Output(17, activation="softmax")
  loss: "sparse_categorical_crossentropy"
}"""


def make_batch(vocabulary=VOCABULARY):
    ids = torch.randint(
        vocabulary, (EXAMPLES, LENGTH + 1), generator=torch.Generator().manual_seed(3)
    )
    return {"x": ids[:, :-1].contiguous(), "y": ids[:, 1:].contiguous()}


def next_token_losses(model, batch):
    if isinstance(model, transformers.PreTrainedModel):
        logits = model(batch["x"], use_cache=False).logits
    else:
        logits = model.logits(batch["x"]) if hasattr(model, "logits") else model(batch["x"])
    return functional.cross_entropy(logits.transpose(1, 2), batch["y"], reduction="none")


def build_decoder():
    torch.manual_seed(0)
    return neural.parse(DECODER).build().eval()


def build_llama(implementation="sdpa"):
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=24,
        intermediate_size=16,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        attn_implementation=implementation,
    )
    return transformers.LlamaForCausalLM(config).eval()


class AttendingBlock(nn.Module):
    """Attention and residual addition in one module: its projection's output is not its own."""

    def __init__(self):
        super().__init__()
        self.qkv, self.output = nn.Linear(12, 36), nn.Linear(12, 12)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, 3, 4)).permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.output(attended.transpose(1, 2).flatten(2))


def build_sequential():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Embedding(VOCABULARY, 12), AttendingBlock(), AttendingBlock(), nn.Linear(12, VOCABULARY)
    )


class SharedBlock(nn.Module):
    """The same block three times, as in ALBERT: it cannot be skipped."""

    def __init__(self):
        super().__init__()
        self.embedding, self.block = nn.Embedding(VOCABULARY, 12), AttendingBlock()
        self.head = nn.Linear(12, VOCABULARY)

    def forward(self, ids):
        x = self.embedding(ids)
        for _ in range(3):
            x = self.block(x)
        return self.head(x)


def build_shared():
    torch.manual_seed(0)
    return SharedBlock()


MODELS = {
    "own": build_decoder,
    "gpt2": lambda: build_gpt2(train_tokenizer(), layers=3),
    "llama": build_llama,
    "llama, eager": lambda: build_llama("eager"),
    "sequential": build_sequential,
    "shared": build_shared,
}


@pytest.mark.parametrize("name", MODELS)
def test_all_heads_and_pairs_agree_with_interventions(name):
    model, batch = MODELS[name](), make_batch()
    replay = Replay(model, next_token_losses, batch)
    assert replay.is_fast == (name != "shared") and replay.can_repeat
    clean = replay.run_clean(batch)
    zeros = [layer.output.new_zeros(()) for layer in clean.layers]
    largest_change = 0.0
    for layer, heads in enumerate(replay.heads):
        removals = [[(layer, head)] for head in range(heads)]
        if layer + 1 < len(zeros):
            removals.append([(layer, 0), (layer + 1, 1)])
        losses = replay.run_without(clean, removals, zeros)
        for removal, removed in zip(removals, losses, strict=True):
            with torch.no_grad(), intervene(model, zero(removal)):
                expected = next_token_losses(model, batch)
            torch.testing.assert_close(removed, expected, rtol=0, atol=1e-6)
            largest_change = max(largest_change, float((expected - clean.losses).abs().max()))
    assert largest_change > 1e-3


def test_the_fast_way_leaves_blocks_out_and_does_not_run_attention():
    model, batch = build_decoder(), make_batch()
    replay = Replay(model, next_token_losses, batch)
    clean = replay.run_clean(batch)
    calls = []
    for name, module in model.named_modules():
        module.register_forward_hook(lambda *_, name=name: calls.append(name))
    replay.run_without(clean, [[(2, 0)], [(2, 2)]], [torch.zeros(())] * 3)
    assert "transformer_decoder.2.attention.sublayer.query" not in calls
    assert "transformer_decoder.1.feed_forward.sublayer.up" not in calls
    assert any(name.startswith("transformer_decoder.2.feed_forward.sublayer.") for name in calls)


def test_the_model_is_the_same_afterwards():
    model, batch = build_gpt2(train_tokenizer()).train(), make_batch()
    model.transformer.wte.weight.requires_grad_(False)
    state = copy.deepcopy(model.state_dict())
    attributes = {name: set(vars(module)) for name, module in model.named_modules()}
    flags = [param.requires_grad for param in model.parameters()]
    replay = Replay(model.eval(), next_token_losses, batch)
    expected = next_token_losses(model, batch)
    clean = replay.run_clean(batch, with_gradients=True)
    replay.run_without(clean, [[(0, 0)], [(0, 1), (1, 1)]], [torch.zeros(())] * 2)
    assert torch.equal(next_token_losses(model, batch), expected)
    assert all(torch.equal(state[name], value) for name, value in model.state_dict().items())
    assert {name: set(vars(module)) for name, module in model.named_modules()} == attributes
    assert [param.requires_grad for param in model.parameters()] == flags
    assert all(param.grad is None for param in model.parameters())
    hooks = ("_forward_hooks", "_forward_pre_hooks")
    assert not any(getattr(module, name) for module in model.modules() for name in hooks)


class EncoderModel(nn.Module):
    """torch's own encoder, with embeddings before and logits after it."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(12, 2, 16, batch_first=True)
        self.embedding, self.head = nn.Embedding(VOCABULARY, 12), nn.Linear(12, VOCABULARY)
        self.encoder = nn.TransformerEncoder(layer, 3)

    def forward(self, ids):
        return self.head(self.encoder(self.embedding(ids)))


def build_bert(implementation="sdpa"):
    config = transformers.BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=12,
        intermediate_size=16,
        num_hidden_layers=3,
        num_attention_heads=3,
        attn_implementation=implementation,
    )
    return transformers.BertForMaskedLM(config)


def bert_losses(model, batch):
    logits = model(batch["x"]).logits
    return functional.cross_entropy(logits.transpose(1, 2), batch["y"], reduction="none")


DIFFERENTIATED = {
    **MODELS,
    "bert": build_bert,
    "bert, eager": lambda: build_bert("eager"),
    "nn.TransformerEncoder": EncoderModel,
}


@pytest.mark.parametrize("name", DIFFERENTIATED)
def test_gradients_of_all_layers_are_those_of_finite_differences(name):
    torch.manual_seed(0)
    model, batch = DIFFERENTIATED[name]().double().eval(), make_batch()
    losses = bert_losses if name.startswith("bert") else next_token_losses
    clean = Replay(model, losses, batch).run_clean(batch, with_gradients=True)
    assert len(clean.layers) > 1
    width = 1e-3  # norms of Llama round to 32 bits
    for layer, state in enumerate(clean.layers):
        ends = []
        for factor in (1 + width, 1 - width):
            with torch.no_grad(), intervene(model, scale((layer, 1), factor)):
                ends.append(float(losses(model, batch).sum()))
        expected = (ends[0] - ends[1]) / (2 * width)
        assert abs(expected) > 1e-5
        product = float((state.output * state.gradient)[:, 1].sum())
        assert product == pytest.approx(expected, rel=5e-3, abs=1e-6)


def test_replaced_patterns_agree_with_interventions_also_in_a_later_layer():
    model, batch = build_decoder(), make_batch()
    replay = Replay(model, next_token_losses, batch)
    pattern = replace_pattern("all", "previous")
    clean = replay.run_clean(batch, pattern=pattern)
    removals = [[(1, 0)], [(1, 2), (2, 1)]]
    losses = replay.run_without(clean, removals, [pattern] * 3)
    for removal, removed in zip(removals, losses, strict=True):
        with torch.no_grad(), intervene(model, replace_pattern(removal, "previous")):
            expected = next_token_losses(model, batch)
        torch.testing.assert_close(removed, expected, rtol=0, atol=1e-6)


def test_examples_that_share_computations_are_not_repeated():
    class Distinct(nn.Module):
        """Computes equal rows once, as the focus task does."""

        def __init__(self):
            super().__init__()
            self.model = build_sequential()

        def forward(self, ids):
            rows, index = torch.unique(ids, dim=0, return_inverse=True)
            return self.model(rows)[index]

    model, batch = Distinct(), make_batch()
    replay = Replay(model, next_token_losses, batch)
    assert not replay.can_repeat
    clean = replay.run_clean(batch)
    removed = replay.run_without(clean, [[(1, 0)]], [torch.zeros(())] * 2)[0]
    with torch.no_grad(), intervene(model, zero((1, 0))):
        torch.testing.assert_close(removed, next_token_losses(model, batch), rtol=0, atol=1e-6)


def test_a_model_that_depends_on_skipped_modules_runs_completely():
    class Remembering(nn.Module):
        """The second block reads an attribute that the first one sets."""

        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(VOCABULARY, 12)
            self.blocks = nn.ModuleList([AttendingBlock(), AttendingBlock()])
            self.head = nn.Linear(12, VOCABULARY)
            self.blocks[0].register_forward_hook(self._remember)

        def _remember(self, module, args, output):
            self.shift = args[0].mean(dim=(1, 2), keepdim=True)

        def forward(self, ids):
            x = self.embedding(ids)
            self.shift = None
            for block in self.blocks:
                x = block(x)
            return self.head(x * (1 + self.shift))

    torch.manual_seed(0)
    model, batch = Remembering(), make_batch()
    replay = Replay(model, next_token_losses, batch)
    clean = replay.run_clean(batch)
    removed = replay.run_without(clean, [[(1, 0)], [(1, 1)]], [torch.zeros(())] * 2)
    for head in range(2):
        with torch.no_grad(), intervene(model, zero((1, head))):
            expected = next_token_losses(model, batch)
        torch.testing.assert_close(removed[head], expected, rtol=0, atol=1e-6)


def test_a_model_without_attention_is_a_message():
    model = nn.Sequential(nn.Embedding(VOCABULARY, 12), nn.Linear(12, VOCABULARY))
    with pytest.raises(InterventionError, match="no attention call"):
        Replay(model, next_token_losses, make_batch())

"""Complete models against a plain softmax: nanoGPT, torch, Hugging Face, FlexAttention."""

import numpy as np
import pytest
import torch
import transformers
from torch import nn
from torch.nn import functional

from neural.capture.watch import AttentionWarning, NoAttentionError, watch
from tests.capture.test_hooks import (
    PADDING,
    assert_same_with_and_without,
    build_encoder,
    compute_weights,
    random_tensor,
)

B, T, H, D, V = 3, 7, 2, 5, 31
E = H * D


class Block(nn.Module):
    """Block of nanoGPT: one projection for queries, keys and values, fused attention, dropout."""

    def __init__(self):
        super().__init__()
        self.ln_1, self.c_attn, self.c_proj = (
            nn.LayerNorm(E),
            nn.Linear(E, 3 * E, bias=False),
            nn.Linear(E, E),
        )
        self.mlp = nn.Sequential(nn.LayerNorm(E), nn.Linear(E, 17), nn.GELU(), nn.Linear(17, E))

    def heads(self, x):
        return (
            projected.view(*x.shape[:2], H, D).transpose(1, 2)
            for projected in self.c_attn(self.ln_1(x)).split(E, dim=2)
        )

    def forward(self, x):
        y = functional.scaled_dot_product_attention(
            *self.heads(x), dropout_p=0.1 * self.training, is_causal=True
        )
        x = x + self.c_proj(y.transpose(1, 2).flatten(2))
        return x + self.mlp(x)


class NanoGpt(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.wte, self.h = nn.Embedding(V, E), nn.ModuleList(Block() for _ in range(2))
        self.lm_head = nn.Linear(E, V, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, ids):
        x = self.wte(ids)
        for block in self.h:
            x = block(x)
        return self.lm_head(x)


def random_ids(*shape, seed=1):
    return torch.randint(1, V, shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
def test_nanogpt_is_captured_as_a_plain_softmax(training):
    model, ids = NanoGpt().train(training), random_ids(B, T)
    capture = assert_same_with_and_without(model, ids)
    assert capture.layer_names() == ["h.0", "h.1"]
    q, k, _ = model.h[0].heads(model.wte(ids))
    expected = compute_weights(q, k, causal=True)
    np.testing.assert_allclose(capture[0].maps(), expected, atol=1e-6)
    entropy = -np.where(
        expected > 0, expected * np.log(np.where(expected > 0, expected, 1)), 0
    ).sum(-1)
    np.testing.assert_allclose(capture[0].measures["entropy"], entropy.mean(axis=(0, 2)), rtol=1e-5)
    # divided by the log of the keys that a row may see; the first row sees one key
    relative = (entropy / np.log(np.maximum(np.arange(1, T + 1), 2)))[:, :, 1:].mean(axis=(0, 2))
    np.testing.assert_allclose(capture[0].measures["relative_entropy"], relative, rtol=1e-5)


def build_t5(kind):
    torch.manual_seed(0)
    config = transformers.T5Config(
        vocab_size=V,
        d_model=E,
        d_kv=D,
        d_ff=17,
        num_layers=2,
        num_heads=H,
        decoder_start_token_id=0,
        pad_token_id=0,
        attn_implementation=kind,
    )
    return transformers.T5ForConditionalGeneration._from_config(config).eval()


@pytest.mark.parametrize("kind", ["sdpa", "eager"])
def test_padding_of_the_decoder_does_not_count_in_measures_of_cross_attention(kind):
    model, lengths = build_t5(kind), torch.tensor([4, 1, 2])
    real = torch.arange(4) < lengths[:, None]
    inputs = {
        "input_ids": random_ids(B, T),
        "attention_mask": torch.arange(T) < torch.tensor([T, 3, 5])[:, None],
        "decoder_input_ids": random_ids(B, 4, seed=2),
        "decoder_attention_mask": real,
    }
    inputs |= {name: mask.long() for name, mask in inputs.items() if "mask" in name}
    calls = [call for call in watch(model, inputs) if "EncDec" in call.path]
    weights = build_t5("eager")(**inputs, output_attentions=True).cross_attentions
    for call, layer in zip(calls, weights, strict=True):
        rows = torch.special.entr(layer.detach()).sum(-1).transpose(1, 2)[real]
        assert call.measures["entropy"] == pytest.approx(rows.mean(dim=0).numpy(), abs=1e-5)


@pytest.mark.parametrize("kind", ["sdpa", "eager"])
def test_encoder_decoder_and_cross_attention_of_t5_are_captured(kind):
    model, source, target = build_t5(kind), random_ids(B, T), random_ids(B, 4, seed=2)
    inputs = {"input_ids": source, "attention_mask": (~PADDING).long(), "decoder_input_ids": target}
    with torch.no_grad():
        without = model(**inputs).logits
        with watch(model) as capture:
            assert torch.equal(model(**inputs).logits, without)
        model.set_attn_implementation("eager")
        expected = model(**inputs, output_attentions=True)
    assert [(call.attention.queries, call.attention.keys) for call in capture] == [(T, T)] * 2 + [
        (4, 4),
        (4, T),
    ] * 2
    own, cross = expected.decoder_attentions, expected.cross_attentions
    all_weights = [*expected.encoder_attentions, own[0], cross[0], own[1], cross[1]]
    real = (~PADDING).numpy()[:, None].repeat(H, 1)
    for index, (call, weights) in enumerate(zip(capture, all_weights, strict=True)):
        rows = real if index < 2 else np.ones((B, H, 4), bool)
        np.testing.assert_allclose(call.maps()[rows], weights.numpy()[rows], atol=1e-5)
    # the padding of the source hides keys, not the queries of the target
    assert all(
        call.attention.valid_queries() is None or call.attention.valid_queries().all()
        for call in capture[2:]
    )


def test_grouped_heads_generate_with_a_cache_as_they_do_without():
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=V,
        hidden_size=24,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=17,
        bos_token_id=0,
        eos_token_id=None,
        pad_token_id=0,
    )
    model, ids = transformers.LlamaForCausalLM(config).eval(), random_ids(1, 3)
    options = {"max_new_tokens": 3, "do_sample": False, "attention_mask": torch.ones_like(ids)}
    without = model.generate(ids, **options)
    with watch(model) as capture:
        assert torch.equal(model.generate(ids, **options), without)
    assert [call.attention.keys for call in capture] == [3, 3, 4, 4, 5, 5]
    assert {call.heads for call in capture} == {4}
    uncached = watch(model, {"input_ids": without[:, :-1]})
    for layer in range(2):
        np.testing.assert_allclose(
            capture[4 + layer].maps()[0, :, 0], uncached[layer].maps()[0, :, -1], atol=1e-5
        )


def test_a_model_that_returns_no_weights_on_request_is_captured():
    torch.manual_seed(0)
    config = transformers.GPT2Config(vocab_size=V, n_embd=E, n_layer=1, n_head=H, n_positions=11)
    config._attn_implementation = "sdpa"
    model = transformers.GPT2LMHeadModel._from_config(config).eval()
    with watch(model) as capture, torch.no_grad():
        out = model(random_ids(B, T), output_attentions=True)
    assert not any(torch.is_tensor(item) for item in out.attentions or ())  # a pitfall
    np.testing.assert_allclose(capture[0].maps().sum(-1), 1, atol=1e-5)


def test_captured_weights_in_training_are_those_before_dropout():
    torch.manual_seed(0)
    module, x = (
        nn.MultiheadAttention(E, H, dropout=0.5, batch_first=True).train(),
        random_tensor(B, T, E),
    )
    with watch(module) as capture:
        _, torch_weights = module(x, x, x, average_attn_weights=False)
    assert (torch_weights.sum(-1) - 1).abs().max() > 0.1  # a pitfall
    np.testing.assert_allclose(capture[0].maps().sum(-1), 1, atol=1e-5)


def test_a_compiled_encoder_of_torch_is_captured():
    model, x, frames = build_encoder().eval(), random_tensor(B, T, E), []
    compiled = torch.compile(model, backend=lambda graph, _: frames.append(1) or graph.forward)
    with torch.no_grad():
        without = compiled(x)
        before = len(frames)
        with watch(compiled) as capture:
            compiled(x)
        assert torch.equal(compiled(x), without)
    assert len(frames) == before > 0
    assert capture.layer_names() == ["layers.0.self_attn", "layers.1.self_attn"]
    plain = watch(model, x)
    np.testing.assert_allclose(capture[0].maps(), plain[0].maps(), atol=1e-6)


def test_models_in_inference_mode_are_captured():
    model, ids = NanoGpt().eval(), random_ids(B, T)
    with torch.inference_mode(), watch(model) as capture:
        out = model(ids)
    assert torch.equal(out, model(ids))
    np.testing.assert_array_equal(
        capture.measure_arrays()["entropy"], watch(model, ids).measure_arrays()["entropy"]
    )


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_flex_attention_is_captured_with_its_scores_and_masks():
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    slopes = torch.tensor([0.5, 0.1, 0.3, 0.2])
    ahead = create_block_mask(lambda b, h, i, j: i >= j, None, None, T, T, device="cpu")

    class Mixer(nn.Module):  # its name does not say attention
        def forward(self, q, k, v):
            return flex_attention(
                q,
                k,
                v,
                score_mod=lambda score, b, h, i, j: score - slopes[h] * (i - j),
                block_mask=ahead,
                enable_gqa=True,
            )

    q, k, v = (
        random_tensor(B, 4, T, D),
        random_tensor(B, 2, T, D, seed=2),
        random_tensor(B, 2, T, D, seed=3),
    )
    model = Mixer()
    with torch.no_grad():
        without = model(q, k, v)
        with watch(model) as capture:
            assert torch.equal(model(q, k, v), without)
    alibi = -slopes[:, None, None] * (torch.arange(T)[:, None] - torch.arange(T))
    mask = alibi.masked_fill(torch.ones(T, T).tril() == 0, -torch.inf)
    np.testing.assert_allclose(capture[0].maps(), compute_weights(q, k, mask=mask), atol=1e-6)


class ByHand(nn.Module):
    """Attention by a softmax, in a module whose name does not say so."""

    def __init__(self, heads):
        super().__init__()
        self.heads = heads

    def forward(self, x):
        if self.heads == 1:
            return torch.softmax(x @ x.mT, dim=-1) @ x
        y = x.unflatten(-1, (H, D)).transpose(1, 2)
        return ((y @ y.mT * D**-0.5).softmax(-1) @ y).transpose(1, 2).flatten(2)


@pytest.mark.parametrize("heads", [1, H])
def test_attention_by_a_softmax_in_another_module_is_noticed_and_captured_on_request(heads):
    model, x = nn.Sequential(nn.Linear(E, E), ByHand(heads)), random_tensor(B, T, E)
    with pytest.raises(NoAttentionError, match=r"a softmax that looks like one: `1`.*softmax=True"):
        watch(model, x)
    with pytest.warns(AttentionWarning, match="no attention was"):
        assert len(watch(model, x, softmax=False)) == 0
    (call,) = watch(model, x, softmax=True)
    assert (call.path, call.heads) == ("1", heads)
    y = model[0](x)
    y = y[:, None] if heads == 1 else y.unflatten(-1, (H, D)).transpose(1, 2)
    np.testing.assert_allclose(
        call.maps(), compute_weights(y, y, scale=1.0 if heads == 1 else None), atol=1e-5
    )


class Chunks(nn.Module):
    """Attention inside chunks of the sequence, with an axis for them."""

    def forward(self, x):
        y = x.unflatten(1, (-1, 2)).unflatten(-1, (H, D)).transpose(2, 3)
        return ((y @ y.mT).softmax(dim=-1) @ y).transpose(2, 3).flatten(3).flatten(1, 2)


def test_attention_by_a_softmax_with_more_axes_is_refused_with_its_path():
    model, x = nn.Sequential(nn.Linear(E, E), Chunks()), random_tensor(B, T + 1, E)
    with pytest.raises(
        NoAttentionError, match=r"`1`: its softmax over \(3, 4, 2, 2, 2\) is not one of"
    ):
        watch(model, x, softmax=True)


def test_a_softmax_with_keyword_arguments_is_captured():
    class ByKeyword(nn.Module):
        def forward(self, x):
            return functional.softmax(input=x @ x.mT, dim=-1) @ x

    (call,) = watch(ByKeyword(), random_tensor(B, T, E), softmax=True)
    assert call.attention.known_positions == "queries_and_keys"


@pytest.mark.parametrize("shape", [(B, V), (B, T, V), (B, T, 1, 1)], ids=str)
def test_a_softmax_over_classes_is_not_attention(shape):
    with pytest.warns(AttentionWarning, match="no attention was"):
        assert (
            len(watch(nn.Sequential(nn.Identity(), nn.Softmax(dim=-1)), random_tensor(*shape))) == 0
        )

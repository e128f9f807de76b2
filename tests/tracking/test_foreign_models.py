"""Whole models as people use them, against plain softmax: nanoGPT, torch's encoder, Hugging Face, FlexAttention."""

import numpy as np
import pytest
import torch
import transformers
from torch import nn
from torch.nn import functional

from neural.tracking.watch import AttentionWarning, NothingSeen, watch
from tests.tracking.test_foreign import PADDING, assert_same_with_and_without, encoder, numbers, weights_of

B, T, H, D, V = 3, 7, 2, 5, 31
E = H * D


class Block(nn.Module):
    """Of nanoGPT: one projection for queries, keys and values, fused attention, dropout."""

    def __init__(self):
        super().__init__()
        self.ln_1, self.c_attn, self.c_proj = nn.LayerNorm(E), nn.Linear(E, 3 * E, bias=False), nn.Linear(E, E)
        self.mlp = nn.Sequential(nn.LayerNorm(E), nn.Linear(E, 17), nn.GELU(), nn.Linear(17, E))

    def heads(self, x):
        return (one.view(*x.shape[:2], H, D).transpose(1, 2) for one in self.c_attn(self.ln_1(x)).split(E, dim=2))

    def forward(self, x):
        y = functional.scaled_dot_product_attention(*self.heads(x), dropout_p=0.1 * self.training, is_causal=True)
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


def ids_of(*shape, seed=1):
    return torch.randint(1, V, shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
def test_nanogpt_is_seen_as_plain_softmax_says(training):
    model, ids = NanoGpt().train(training), ids_of(B, T)
    seen = assert_same_with_and_without(model, ids)
    assert seen.layers() == ["h.0", "h.1"]
    q, k, _ = model.h[0].heads(model.wte(ids))
    wanted = weights_of(q, k, causal=True)
    np.testing.assert_allclose(seen[0].maps(), wanted, atol=1e-6)
    entropy = -np.where(wanted > 0, wanted * np.log(np.where(wanted > 0, wanted, 1)), 0).sum(-1)
    np.testing.assert_allclose(seen[0].measures["entropy"], entropy.mean(axis=(0, 2)), rtol=1e-5)
    # divided by the log of the keys that a row may see; the first row has no choice
    relative = (entropy / np.log(np.maximum(np.arange(1, T + 1), 2)))[:, :, 1:].mean(axis=(0, 2))
    np.testing.assert_allclose(seen[0].measures["relative_entropy"], relative, rtol=1e-5)


def t5(kind):
    torch.manual_seed(0)
    config = transformers.T5Config(
        vocab_size=V, d_model=E, d_kv=D, d_ff=17, num_layers=2, num_heads=H, decoder_start_token_id=0, pad_token_id=0,
        attn_implementation=kind,
    )  # fmt: skip
    return transformers.T5ForConditionalGeneration._from_config(config).eval()


@pytest.mark.parametrize("kind", ["sdpa", "eager"])
def test_encoder_decoder_and_cross_attention_of_t5_are_seen(kind):
    model, source, target = t5(kind), ids_of(B, T), ids_of(B, 4, seed=2)
    given = {"input_ids": source, "attention_mask": (~PADDING).long(), "decoder_input_ids": target}
    with torch.no_grad():
        without = model(**given).logits
        with watch(model) as seen:
            assert torch.equal(model(**given).logits, without)
        model.set_attn_implementation("eager")
        wanted = model(**given, output_attentions=True)
    assert [(call.look.queries, call.look.keys) for call in seen] == [(T, T)] * 2 + [(4, 4), (4, T)] * 2
    own, cross = wanted.decoder_attentions, wanted.cross_attentions
    every = [*wanted.encoder_attentions, own[0], cross[0], own[1], cross[1]]
    real = (~PADDING).numpy()[:, None].repeat(H, 1)
    for at, (call, weights) in enumerate(zip(seen, every, strict=True)):
        rows = real if at < 2 else np.ones((B, H, 4), bool)
        np.testing.assert_allclose(call.maps()[rows], weights.numpy()[rows], atol=1e-5)
    # the padding of the source hides keys, not the queries of the target
    assert all(call.look.counted() is None or call.look.counted().all() for call in seen[2:])


def test_grouped_heads_generate_with_a_cache_as_they_do_without():
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=V, hidden_size=24, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        intermediate_size=17, bos_token_id=0, eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    model, ids = transformers.LlamaForCausalLM(config).eval(), ids_of(1, 3)
    options = {"max_new_tokens": 3, "do_sample": False, "attention_mask": torch.ones_like(ids)}
    without = model.generate(ids, **options)
    with watch(model) as seen:
        assert torch.equal(model.generate(ids, **options), without)
    assert [call.look.keys for call in seen] == [3, 3, 4, 4, 5, 5]
    assert {call.heads for call in seen} == {4}
    whole = watch(model, {"input_ids": without[:, :-1]})
    for layer in range(2):
        np.testing.assert_allclose(seen[4 + layer].maps()[0, :, 0], whole[layer].maps()[0, :, -1], atol=1e-5)


def test_a_model_that_is_asked_for_its_weights_and_gives_none_is_seen_all_the_same():
    torch.manual_seed(0)
    config = transformers.GPT2Config(vocab_size=V, n_embd=E, n_layer=1, n_head=H, n_positions=11)
    config._attn_implementation = "sdpa"
    model = transformers.GPT2LMHeadModel._from_config(config).eval()
    with watch(model) as seen, torch.no_grad():
        out = model(ids_of(B, T), output_attentions=True)
    assert not any(torch.is_tensor(one) for one in out.attentions or ())   # the trap
    np.testing.assert_allclose(seen[0].maps().sum(-1), 1, atol=1e-5)


def test_weights_of_torch_in_training_are_after_dropout_and_ours_before():
    torch.manual_seed(0)
    module, x = nn.MultiheadAttention(E, H, dropout=0.5, batch_first=True).train(), numbers(B, T, E)
    with watch(module) as seen:
        _, theirs = module(x, x, x, average_attn_weights=False)
    assert (theirs.sum(-1) - 1).abs().max() > 0.1   # the trap
    np.testing.assert_allclose(seen[0].maps().sum(-1), 1, atol=1e-5)


def test_a_compiled_encoder_of_torch_is_seen():
    model, x, frames = encoder().eval(), numbers(B, T, E), []
    compiled = torch.compile(model, backend=lambda graph, _: frames.append(1) or graph.forward)
    with torch.no_grad():
        without = compiled(x)
        before = len(frames)
        with watch(compiled) as seen:
            compiled(x)
        assert torch.equal(compiled(x), without)
    assert len(frames) == before > 0
    assert seen.layers() == ["layers.0.self_attn", "layers.1.self_attn"]
    plain = watch(model, x)
    np.testing.assert_allclose(seen[0].maps(), plain[0].maps(), atol=1e-6)


def test_inference_mode_is_no_obstacle():
    model, ids = NanoGpt().eval(), ids_of(B, T)
    with torch.inference_mode(), watch(model) as seen:
        out = model(ids)
    assert torch.equal(out, model(ids))
    np.testing.assert_array_equal(seen.arrays()["entropy"], watch(model, ids).arrays()["entropy"])


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_flex_attention_is_seen_with_its_own_scores_and_masks():
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    slopes = torch.tensor([0.5, 0.1, 0.3, 0.2])
    ahead = create_block_mask(lambda b, h, i, j: i >= j, None, None, T, T, device="cpu")

    class Mixer(nn.Module):   # nothing in its name says attention
        def forward(self, q, k, v):
            return flex_attention(
                q, k, v, score_mod=lambda score, b, h, i, j: score - slopes[h] * (i - j), block_mask=ahead,
                enable_gqa=True,
            )  # fmt: skip

    q, k, v = numbers(B, 4, T, D), numbers(B, 2, T, D, seed=2), numbers(B, 2, T, D, seed=3)
    model = Mixer()
    with torch.no_grad():
        without = model(q, k, v)
        with watch(model) as seen:
            assert torch.equal(model(q, k, v), without)
    alibi = -slopes[:, None, None] * (torch.arange(T)[:, None] - torch.arange(T))
    mask = alibi.masked_fill(torch.ones(T, T).tril() == 0, -torch.inf)
    np.testing.assert_allclose(seen[0].maps(), weights_of(q, k, mask=mask), atol=1e-6)


class ByHand(nn.Module):
    """Attention that is written out, in a module whose name does not say so."""

    def __init__(self, heads):
        super().__init__()
        self.heads = heads

    def forward(self, x):
        if self.heads == 1:
            return torch.softmax(x @ x.mT, dim=-1) @ x
        y = x.unflatten(-1, (H, D)).transpose(1, 2)
        return ((y @ y.mT * D**-0.5).softmax(-1) @ y).transpose(1, 2).flatten(2)


@pytest.mark.parametrize("heads", [1, H])
def test_attention_by_hand_without_the_name_is_noticed_and_seen_on_request(heads):
    model, x = nn.Sequential(nn.Linear(E, E), ByHand(heads)), numbers(B, T, E)
    with pytest.raises(NothingSeen, match=r"a softmax that looks like one: `1`.*softmax=True"):
        watch(model, x)
    with pytest.warns(AttentionWarning, match="no attention was"):
        assert len(watch(model, x, softmax=False)) == 0
    (call,) = watch(model, x, softmax=True)
    assert (call.path, call.heads) == ("1", heads)
    y = model[0](x)
    y = y[:, None] if heads == 1 else y.unflatten(-1, (H, D)).transpose(1, 2)
    np.testing.assert_allclose(call.maps(), weights_of(y, y, scale=1.0 if heads == 1 else None), atol=1e-5)


class Chunks(nn.Module):
    """Attention inside chunks of the text, with an axis for them."""

    def forward(self, x):
        y = x.unflatten(1, (-1, 2)).unflatten(-1, (H, D)).transpose(2, 3)
        return ((y @ y.mT).softmax(dim=-1) @ y).transpose(2, 3).flatten(3).flatten(1, 2)


def test_attention_by_hand_with_more_axes_is_refused_by_name():
    model, x = nn.Sequential(nn.Linear(E, E), Chunks()), numbers(B, T + 1, E)
    with pytest.raises(NothingSeen, match=r"`1`: its softmax over \(3, 4, 2, 2, 2\) is not one of"):
        watch(model, x, softmax=True)


def test_a_softmax_by_keyword_is_seen():
    class ByKeyword(nn.Module):
        def forward(self, x):
            return functional.softmax(input=x @ x.mT, dim=-1) @ x

    (call,) = watch(ByKeyword(), numbers(B, T, E), softmax=True)
    assert call.look.axis == "shared"


@pytest.mark.parametrize("shape", [(B, V), (B, T, V), (B, T, 1, 1)], ids=str)
def test_a_softmax_over_classes_is_no_attention(shape):
    with pytest.warns(AttentionWarning, match="no attention was"):
        assert len(watch(nn.Sequential(nn.Identity(), nn.Softmax(dim=-1)), numbers(*shape))) == 0

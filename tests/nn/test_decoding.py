"""Decoding token by token gives the same scores as one forward pass."""

import pytest
import torch

from neural.nn.attention import registry as attention
from neural.nn.build import build
from neural.nn.generation import create_decoder, generate_tokens
from neural.nn.kv_cache import CachedModel, KVBuffer
from neural.nn.positions import registry as positions
from neural.nn.sampling import CachedDecoder, DecodingError, RecomputedDecoder, Sampler
from tests.programs import CLASSIFIER, TRANSLATOR, load_network

B, T, V, E = 2, 11, 17, 12
every_mechanism = pytest.mark.parametrize("mechanism", attention.names())
every_position = pytest.mark.parametrize("position", positions.names())


def build_model(
    block="",
    *,
    layers=None,
    head=f'Output({V}, activation="softmax")',
    loss=True,
    embedding="",
    context=T,
):
    """A small language model; noise on all weights, so that none has a special value."""
    middle = (
        layers
        or f"TransformerDecoder(num_heads=2, d_model={E}, dff=17"
        f"{', ' + block if block else ''}) * 2"
    )
    text = f"""network Small {{
      input: ({context},)
      layers:
        Embedding(input_dim={V}, output_dim={E}{embedding})
        {middle}
        {head}
      {'loss: "sparse_categorical_crossentropy"' if loss else ""}
    }}"""
    torch.manual_seed(0)
    model = build(load_network(text)).eval()
    with torch.no_grad():
        for param in model.parameters():
            param.add_(0.2 * torch.randn_like(param))
    return model


def ids(count=T, batch=B, seed=1):
    return torch.randint(V, (batch, count), generator=torch.Generator().manual_seed(seed))


def collect_scores(decoder, text, prompt_length=3):
    """The scores after the prompt and after each further token."""
    scores = [decoder.start(text[:, :prompt_length])]
    scores += [decoder.step(text[:, index]) for index in range(prompt_length, text.shape[1])]
    return torch.stack([row.clone() for row in scores], dim=1)


def generate(decoder, prompt, num_tokens, **sampling):
    sampler = Sampler(len(prompt), **sampling)
    return [token.ids.tolist() for token in generate_tokens(decoder, prompt, num_tokens, sampler)]


@every_mechanism
@every_position
def test_the_cache_gives_the_scores_of_a_full_forward_pass(mechanism, position):
    model = build_model(f'attention="{mechanism}", positional="{position}"').double()
    with torch.no_grad():
        expected = model.logits(ids())[:, 2:]
    for name in ("cached", "recomputed"):
        decoder = create_decoder(model, decoder=name)
        torch.testing.assert_close(collect_scores(decoder, ids()), expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    "block",
    [
        'norm="post"',
        "num_kv_heads=1",
        'qk_norm=true, positional="rotary"',
        'attention="localized", window=5',
        'attention="localized", window=5, positional="relative"',
        'attention="localized", window=41',
        'attention="topk", k=2',
        'attention="sparse", window=3, stride=3, global_tokens=2',
    ],
)
def test_the_cache_supports_the_options_of_a_block(block):
    model = build_model(block).double()
    with torch.no_grad():
        expected = model.logits(ids())[:, 2:]
    torch.testing.assert_close(
        collect_scores(CachedDecoder(model, T), ids()), expected, rtol=1e-6, atol=1e-8
    )


@pytest.mark.parametrize(
    "layers",
    [
        f'PositionalEncoding(encoding_type="learned")\nResidual(LayerNormalization(), '
        f'MultiHeadAttention(num_heads=2, attention="causal"))\nDense({E}, activation="relu")',
        f'TransformerEncoder(num_heads=2, d_model={E}, attention="causal", positional="alibi")',
        f"TransformerDecoder(num_heads=3, d_model={E})\nLayerNormalization()\n"
        "Dense(20)\nDropout(0.5)\n"
        'TransformerDecoder(num_heads=2, d_model=20, positional="rotary")',
    ],
)
def test_the_cache_supports_other_layers(layers):
    model = build_model(layers=layers).double()
    with torch.no_grad():
        expected = model.logits(ids())[:, 2:]
    torch.testing.assert_close(
        collect_scores(CachedDecoder(model, T), ids()), expected, rtol=1e-6, atol=1e-8
    )


@pytest.mark.parametrize("mechanism", ["self", "localized", "boundary_aware"])
def test_a_text_may_be_read_in_chunks_of_any_size(mechanism):
    model = build_model(f'attention="{mechanism}", positional="rotary"').double()
    cached_model = CachedModel(model, T)
    with torch.no_grad():
        chunks = ids().split((2, 5, 1, 3), dim=1)
        scores = torch.cat([cached_model.forward(chunk) for chunk in chunks], dim=1)
        torch.testing.assert_close(scores, model.logits(ids()), rtol=1e-6, atol=1e-8)


def test_padding_is_not_attended_to():
    model = build_model(embedding=", pad_id=0").double()
    text = ids()
    text[0, 1:5] = 0
    with torch.no_grad():
        expected = model.logits(text)[:, 2:]
    torch.testing.assert_close(
        collect_scores(CachedDecoder(model, T), text), expected, rtol=1e-6, atol=1e-8
    )


def cache_lengths(decoder):
    mechanisms = decoder.cached_model.attentions.values()
    return [mechanism.keys.storage.shape[-2] for mechanism in mechanisms]


def test_the_cache_of_a_window_is_as_long_as_the_window():
    decoder = CachedDecoder(build_model('attention="localized", window=7'), 100)
    collect_scores(decoder, ids())
    assert cache_lengths(decoder) == [4, 4]
    decoder = CachedDecoder(build_model(), 100)
    collect_scores(decoder, ids())
    assert cache_lengths(decoder) == [100, 100]


def test_memory_is_allocated_once():
    decoder = CachedDecoder(build_model(), T)
    decoder.start(ids(3))
    mechanisms = decoder.cached_model.attentions.values()
    before = [mechanism.keys.storage.data_ptr() for mechanism in mechanisms]
    for index in range(3, T):
        decoder.step(ids()[:, index])
    decoder.start(ids(5, seed=2))
    assert [mechanism.keys.storage.data_ptr() for mechanism in mechanisms] == before


def test_more_positions_than_the_capacity_are_refused():
    buffer = KVBuffer(3)
    buffer.append(torch.zeros(1, 2, 5))
    with pytest.raises(ValueError, match="the cache holds 3 positions, got 4"):
        buffer.append(torch.zeros(1, 2, 5))


@every_mechanism
def test_cached_and_recomputed_text_are_the_same_beyond_the_window(mechanism):
    model = build_model(f'attention="{mechanism}", positional="learned"', context=8)
    sampling = {"temperature": 0.9, "top_k": 9, "seed": 4}
    cached, recomputed = (
        generate(create_decoder(model, decoder=name), ids(3), 25, **sampling)
        for name in ("cached", "recomputed")
    )
    assert cached == recomputed
    assert len(cached) == 25


def test_the_text_of_a_sample_does_not_depend_on_the_others():
    model = build_model()
    together = generate(
        create_decoder(model, decoder="cached"), ids(3)[:1].repeat(3, 1), 20, seed=2
    )
    alone = [
        token.ids.item()
        for token in generate_tokens(
            create_decoder(model, decoder="cached"),
            ids(3)[:1],
            20,
            Sampler(1, seed=2, first_sample_index=2),
        )
    ]
    assert [row[2] for row in together] == alone


def test_a_full_window_slides_to_its_last_half_or_stops():
    decoder = RecomputedDecoder(build_model(context=8), 8)
    starts = [token.window_start for token in generate_tokens(decoder, ids(5), 14, Sampler(B))]
    assert starts == [0] * 4 + [5] * 5 + [10] * 5, (
        "5 to 8 tokens are read, then 4 to 8 from position 5, then from 10"
    )
    stopped = list(generate_tokens(decoder, ids(5), 14, Sampler(B), when_full="stop"))
    assert len(stopped) == 4


def test_a_long_prompt_is_cut_at_its_start():
    model = build_model(context=8)
    assert generate(CachedDecoder(model, 8), ids(30), 5) == generate(
        CachedDecoder(model, 8), ids(30)[:, -8:], 5
    )


def test_decoding_does_not_change_the_network():
    model = build_model('attention="boundary_aware", positional="rotary"').train()
    before = {path: type(module) for path, module in model.named_modules()}
    mechanism = model.blocks()[0].attention.sublayer.mechanism
    generate(create_decoder(model, decoder="cached"), ids(3), 4)
    assert model.training
    assert {path: type(module) for path, module in model.named_modules()} == before
    assert model.blocks()[0].attention.sublayer.mechanism is mechanism


def test_changed_weights_are_used_for_the_next_text():
    model = build_model('positional="learned"')
    decoder = create_decoder(model, decoder="cached")
    decoder.start(ids(3))
    with torch.no_grad():
        for param in model.parameters():
            param.add_(0.3)
        torch.testing.assert_close(decoder.start(ids(5)), model.logits(ids(5))[:, -1])


def test_probabilities_are_converted_to_logits():
    model, plain = build_model(loss=False), build_model()
    torch.testing.assert_close(
        CachedDecoder(model, T).start(ids()).softmax(dim=-1),
        plain(ids())[:, -1].detach(),
        rtol=1e-5,
        atol=1e-6,
    )


def test_attention_weights_of_the_newest_token_are_captured():
    decoder = CachedDecoder(build_model('attention="uniform"'), T, capture_weights=True)
    decoder.start(ids(4))
    assert {tuple(weights.shape) for weights in decoder.attention_weights().values()} == {(B, 2, 4)}
    decoder.step(ids()[:, 4])
    for weights in decoder.attention_weights().values():
        torch.testing.assert_close(weights, torch.full((B, 2, 5), 0.2))
    local = CachedDecoder(build_model('attention="localized", window=5'), T, capture_weights=True)
    collect_scores(local, ids())
    for weights in local.attention_weights().values():
        assert weights.shape == (B, 2, 3)
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones(B, 2))


def test_captured_weights_are_the_last_row_of_the_full_weights():
    model = build_model('positional="relative"')
    attention = model.blocks()[0].attention.sublayer
    recorded = []
    mechanism = attention.mechanism
    attention.mechanism = RecordingMechanism(mechanism, recorded)
    model.logits(ids())
    attention.mechanism = mechanism
    decoder = CachedDecoder(model, T, capture_weights=True)
    collect_scores(decoder, ids())
    torch.testing.assert_close(
        next(iter(decoder.attention_weights().values())),
        recorded[0][:, :, -1].detach(),
        rtol=1e-4,
        atol=1e-5,
    )


class RecordingMechanism:
    """Wraps a mechanism and records its weights."""

    def __init__(self, mechanism, recorded):
        self.mechanism, self.recorded = mechanism, recorded

    def attend(self, q, k, v, mask, dropout=0.0, extra=None):
        self.recorded.append(self.mechanism.weights(q, k, mask, extra))
        return self.mechanism.attend(q, k, v, mask, dropout, extra)


def test_networks_that_cannot_be_cached_are_recomputed():
    model = build_model(layers=f"LSTM({E}, return_sequences=true)")
    assert isinstance(create_decoder(model), RecomputedDecoder)
    with pytest.raises(DecodingError, match="`LSTM` uses other positions without attention"):
        create_decoder(model, decoder="cached")


@pytest.mark.parametrize("text", [CLASSIFIER, TRANSLATOR])
def test_a_network_that_predicts_no_tokens_is_refused(text):
    with pytest.raises(DecodingError, match="does not generate text"):
        create_decoder(build(load_network(text)))


def test_the_context_is_limited_by_learned_positions():
    model = build_model('positional="learned"')
    with pytest.raises(
        DecodingError, match="must be at most 11, the number of its learned positions, got 12"
    ):
        create_decoder(model, context=12)
    assert create_decoder(model).context == T
    assert create_decoder(build_model(), context=40).context == 40
    with pytest.raises(DecodingError, match="at least 2"):
        create_decoder(model, context=1)


def test_an_empty_text_and_one_that_is_too_long_are_refused():
    for count in (0, T + 1):
        with pytest.raises(ValueError, match=f"1 to {T} tokens"):
            CachedDecoder(build_model(), T).start(ids(count))

"""Reading token by token gives what reading everything at once gives."""

import pytest
import torch

from neural.modules.attention import registry as attention
from neural.modules.build import build
from neural.modules.cache import Kept, Twin
from neural.modules.continuation import continued, decoding_of
from neural.modules.decoding import Cached, CannotDecode, Recomputed
from neural.modules.positions import registry as positions
from neural.modules.sampling import Sampler
from tests.programs import CLASSIFIER, TRANSLATOR, network

B, T, V, E = 2, 11, 17, 12
every_mechanism = pytest.mark.parametrize("mechanism", attention.names())
every_position = pytest.mark.parametrize("position", positions.names())


def made(block="", *, layers=None, head=f'Output({V}, activation="softmax")', loss=True, embedding="", context=T):
    """A small language model; all weights moved away from where they start."""
    middle = layers or f"TransformerDecoder(num_heads=2, d_model={E}, dff=17{', ' + block if block else ''}) * 2"
    text = f"""network Small {{
      input: ({context},)
      layers:
        Embedding(input_dim={V}, output_dim={E}{embedding})
        {middle}
        {head}
      {'loss: "sparse_categorical_crossentropy"' if loss else ""}
    }}"""
    torch.manual_seed(0)
    model = build(network(text)).eval()
    with torch.no_grad():
        for one in model.parameters():
            one.add_(0.2 * torch.randn_like(one))
    return model


def ids(count=T, batch=B, seed=1):
    return torch.randint(V, (batch, count), generator=torch.Generator().manual_seed(seed))


def scores_along(decoding, text, begin=3):
    """The scores after the prompt and after each further token."""
    found = [decoding.start(text[:, :begin])]
    found += [decoding.step(text[:, at]) for at in range(begin, text.shape[1])]
    return torch.stack([one.clone() for one in found], dim=1)


def written(decoding, prompt, tokens, **how):
    sampler = Sampler(len(prompt), **how)
    return [drawn.ids.tolist() for drawn in continued(decoding, prompt, tokens, sampler)]


@every_mechanism
@every_position
def test_the_cache_gives_the_scores_of_the_whole_text(mechanism, position):
    model = made(f'attention="{mechanism}", positional="{position}"').double()
    with torch.no_grad():
        whole = model.scores(ids())[:, 2:]
    for way in ("cached", "recomputed"):
        torch.testing.assert_close(scores_along(decoding_of(model, way=way), ids()), whole, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    "block",
    [
        'norm="post"', "num_kv_heads=1", 'qk_norm=true, positional="rotary"', 'attention="localized", window=5',
        'attention="localized", window=5, positional="relative"', 'attention="localized", window=41',
        'attention="topk", k=2', 'attention="sparse", window=3, stride=3, global_tokens=2',
    ],
)  # fmt: skip
def test_the_cache_follows_the_block(block):
    model = made(block).double()
    with torch.no_grad():
        whole = model.scores(ids())[:, 2:]
    torch.testing.assert_close(scores_along(Cached(model, T), ids()), whole, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    "layers",
    [
        f'PositionalEncoding(encoding_type="learned")\nResidual(LayerNormalization(), '
        f'MultiHeadAttention(num_heads=2, attention="causal"))\nDense({E}, activation="relu")',
        f'TransformerEncoder(num_heads=2, d_model={E}, attention="causal", positional="alibi")',
        f'TransformerDecoder(num_heads=3, d_model={E})\nLayerNormalization()\nDense(20)\nDropout(0.5)\n'
        'TransformerDecoder(num_heads=2, d_model=20, positional="rotary")',
    ],
)  # fmt: skip
def test_other_layers_may_stand_between(layers):
    model = made(layers=layers).double()
    with torch.no_grad():
        whole = model.scores(ids())[:, 2:]
    torch.testing.assert_close(scores_along(Cached(model, T), ids()), whole, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("mechanism", ["self", "localized", "boundary_aware"])
def test_a_text_may_be_read_in_pieces_of_any_size(mechanism):
    model = made(f'attention="{mechanism}", positional="rotary"').double()
    twin = Twin(model, T)
    with torch.no_grad():
        pieces = torch.cat([twin.read(one) for one in ids().split((2, 5, 1, 3), dim=1)], dim=1)
        torch.testing.assert_close(pieces, model.scores(ids()), rtol=1e-6, atol=1e-8)


def test_padding_is_not_looked_at():
    model = made(embedding=", pad_id=0").double()
    text = ids()
    text[0, 1:5] = 0
    with torch.no_grad():
        whole = model.scores(text)[:, 2:]
    torch.testing.assert_close(scores_along(Cached(model, T), text), whole, rtol=1e-6, atol=1e-8)


def test_a_window_keeps_no_more_than_it_sees():
    decoding = Cached(made('attention="localized", window=7'), 100)
    scores_along(decoding, ids())
    assert [one.keys.all.shape[-2] for one in decoding.twin.attentions.values()] == [4, 4]
    decoding = Cached(made(), 100)
    scores_along(decoding, ids())
    assert [one.keys.all.shape[-2] for one in decoding.twin.attentions.values()] == [100, 100]


def test_memory_is_taken_once():
    decoding = Cached(made(), T)
    decoding.start(ids(3))
    before = [one.keys.all.data_ptr() for one in decoding.twin.attentions.values()]
    for at in range(3, T):
        decoding.step(ids()[:, at])
    decoding.start(ids(5, seed=2))
    assert [one.keys.all.data_ptr() for one in decoding.twin.attentions.values()] == before


def test_more_than_there_is_room_for_is_refused():
    kept = Kept(3)
    kept.add(torch.zeros(1, 2, 5))
    with pytest.raises(ValueError, match="room for 3 positions, not for 4"):
        kept.add(torch.zeros(1, 2, 5))


@every_mechanism
def test_cached_and_recomputed_text_are_the_same_beyond_the_window(mechanism):
    model = made(f'attention="{mechanism}", positional="learned"', context=8)
    how = {"temperature": 0.9, "top_k": 9, "seed": 4}
    cached, recomputed = (written(decoding_of(model, way=way), ids(3), 25, **how) for way in ("cached", "recomputed"))
    assert cached == recomputed
    assert len(cached) == 25


def test_the_text_of_a_sample_does_not_depend_on_the_others():
    model = made()
    together = written(decoding_of(model, way="cached"), ids(3)[:1].repeat(3, 1), 20, seed=2)
    alone = [drawn.ids.item() for drawn in continued(
        decoding_of(model, way="cached"), ids(3)[:1], 20, Sampler(1, seed=2, first=2)
    )]  # fmt: skip
    assert [row[2] for row in together] == alone


def test_a_full_window_slides_to_its_last_half_or_stops():
    decoding = Recomputed(made(context=8), 8)
    starts = [drawn.first for drawn in continued(decoding, ids(5), 14, Sampler(B))]
    assert starts == [0] * 4 + [5] * 5 + [10] * 5, "5 to 8 tokens are read, then 4 to 8 from position 5, then from 10"
    stopped = list(continued(decoding, ids(5), 14, Sampler(B), when_full="stop"))
    assert len(stopped) == 4


def test_of_a_long_prompt_the_end_counts():
    model = made(context=8)
    assert written(Cached(model, 8), ids(30), 5) == written(Cached(model, 8), ids(30)[:, -8:], 5)


def test_the_network_itself_is_not_touched():
    model = made('attention="boundary_aware", positional="rotary"').train()
    before = {path: type(module) for path, module in model.named_modules()}
    mechanism = model.blocks()[0].attention.part.mechanism
    written(decoding_of(model, way="cached"), ids(3), 4)
    assert model.training
    assert {path: type(module) for path, module in model.named_modules()} == before
    assert model.blocks()[0].attention.part.mechanism is mechanism


def test_weights_that_change_are_seen_by_the_next_text():
    model = made('positional="learned"')
    decoding = decoding_of(model, way="cached")
    decoding.start(ids(3))
    with torch.no_grad():
        for one in model.parameters():
            one.add_(0.3)
        torch.testing.assert_close(decoding.start(ids(5)), model.scores(ids(5))[:, -1])


def test_probabilities_become_scores_again():
    model, plain = made(loss=False), made()
    torch.testing.assert_close(
        Cached(model, T).start(ids()).softmax(dim=-1), plain(ids())[:, -1].detach(), rtol=1e-5, atol=1e-6
    )


def test_what_was_looked_at_is_told():
    decoding = Cached(made('attention="uniform"'), T, watched=True)
    decoding.start(ids(4))
    assert {tuple(one.shape) for one in decoding.seen().values()} == {(B, 2, 4)}
    decoding.step(ids()[:, 4])
    for one in decoding.seen().values():
        torch.testing.assert_close(one, torch.full((B, 2, 5), 0.2))
    near = Cached(made('attention="localized", window=5'), T, watched=True)
    scores_along(near, ids())
    for one in near.seen().values():
        assert one.shape == (B, 2, 3)
        torch.testing.assert_close(one.sum(dim=-1), torch.ones(B, 2))


def test_what_was_looked_at_is_the_last_row_of_the_whole_map():
    model = made('positional="relative"')
    heads = model.blocks()[0].attention.part
    rows = []
    own, heads.mechanism = heads.mechanism, Spy(heads.mechanism, rows)
    model.scores(ids())
    heads.mechanism = own
    decoding = Cached(model, T, watched=True)
    scores_along(decoding, ids())
    torch.testing.assert_close(next(iter(decoding.seen().values())), rows[0][:, :, -1].detach(), rtol=1e-4, atol=1e-5)


class Spy:
    """A mechanism that writes its weights down."""

    def __init__(self, own, rows):
        self.own, self.rows = own, rows

    def mix(self, q, k, v, mask, dropout=0.0, extra=None):
        self.rows.append(self.own.weights(q, k, mask, extra))
        return self.own.mix(q, k, v, mask, dropout, extra)


def test_what_cannot_be_cached_is_recomputed():
    model = made(layers=f"LSTM({E}, return_sequences=true)")
    assert isinstance(decoding_of(model), Recomputed)
    with pytest.raises(CannotDecode, match="`LSTM` looks at other positions by a way of its own"):
        decoding_of(model, way="cached")


@pytest.mark.parametrize("text", [CLASSIFIER, TRANSLATOR])
def test_a_network_that_writes_no_text_is_refused(text):
    with pytest.raises(CannotDecode, match="does not write text"):
        decoding_of(build(network(text)))


def test_nobody_looks_back_further_than_learned_positions_reach():
    model = made('positional="learned"')
    with pytest.raises(CannotDecode, match="but on at most 11: its positions end there"):
        decoding_of(model, context=12)
    assert decoding_of(model).context == T
    assert decoding_of(made(), context=40).context == 40
    with pytest.raises(CannotDecode, match="at least 2"):
        decoding_of(model, context=1)


def test_an_empty_text_and_one_that_is_too_long_are_refused():
    for count in (0, T + 1):
        with pytest.raises(ValueError, match=f"1 to {T} tokens"):
            Cached(made(), T).start(ids(count))

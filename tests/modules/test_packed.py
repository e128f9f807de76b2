"""One compiled call per token gives what torch gives."""

import pytest
import torch

from neural.modules.continuation import decoding_of
from neural.modules.decoding import Cached, CannotDecode
from neural.modules.packed import Compiled, unfit
from neural.modules.rounded import rounded
from tests.modules.test_decoding import E, T, V, ids, made, scores_along, written

TIED = f'Output({V}, activation="softmax", tied=true, bias=false)'
CLASSIC = 'positional="learned", activation="gelu", bias=false, final_norm=true'
MODERN = 'positional="rotary", qk_norm=true, normalization="rms", activation="squared_relu", bias=false'
FITTING = [
    (CLASSIC, TIED), (f"{MODERN}, final_norm=true", None), (MODERN, TIED), ("", None),
    ('positional="none", activation="silu", num_kv_heads=1', None), ('attention="causal", dropout_rate=0.3', None),
]  # fmt: skip


def fitting(block, head):
    return made(block, **({"head": head} if head else {}))


@pytest.mark.parametrize(("block", "head"), FITTING)
@pytest.mark.parametrize("batch", [1, 3])
def test_the_compiled_step_is_torchs(block, head, batch):
    model = fitting(block, head)
    text = ids(batch=batch)
    compiled, cached = (scores_along(one, text) for one in (Compiled(model, T), Cached(model, T)))
    torch.testing.assert_close(compiled, cached, rtol=1e-4, atol=1e-4)


def test_it_is_taken_where_it_fits():
    assert type(decoding_of(fitting(CLASSIC, TIED))) is Compiled
    assert type(decoding_of(fitting(CLASSIC, TIED), watched=True)) is Cached
    assert type(decoding_of(made('attention="localized"'))) is Cached


def test_the_text_is_the_same_beyond_the_window():
    model = fitting(CLASSIC, TIED)
    how = {"temperature": 0.9, "seed": 4}
    texts = [written(decoding_of(model, way=way), ids(3), 30, **how) for way in ("compiled", "cached", "recomputed")]
    assert texts[0] == texts[1] == texts[2]


def test_batches_of_another_size_follow_each_other():
    model = fitting(MODERN, TIED)
    compiled, cached = Compiled(model, T), Cached(model, T)
    for batch in (2, 1, 3):
        text = ids(batch=batch)
        torch.testing.assert_close(scores_along(compiled, text), scores_along(cached, text), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("block", "head"), FITTING[:2])
def test_eight_bits_are_near(block, head):
    model = fitting(block, head)
    exact = scores_along(Compiled(model, T), ids())
    near = scores_along(Compiled(model, T, "int8"), ids())
    assert 0 < (near - exact).abs().max() < 0.05 * exact.std()


def test_a_row_of_zeros_survives_eight_bits():
    model = fitting(CLASSIC, TIED)
    with torch.no_grad():
        for block in model.blocks():
            block.feed_forward.part.down.weight.zero_()
    assert scores_along(Compiled(model, T, "int8"), ids()).isfinite().all()


@pytest.mark.parametrize(
    ("block", "layers", "says"),
    [
        ('attention="localized"', None, "not the plain one"),
        ('positional="alibi"', None, "neither added nor rotary"),
        ('norm="post"', None, "before each part"),
        ('activation="tanh"', None, "activation"),
        ("", f"Dense({E})\nTransformerDecoder(num_heads=2, d_model={E})", "an embedding, positions"),
        ("", f"TransformerDecoder(num_heads=2, d_model={E})\nDense({E})", "something else than a norm"),
        ("", f"TransformerDecoder(num_heads=2, d_model={E})\nTransformerDecoder(num_heads=3, d_model={E})", "several"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_said_and_decoded_by_torch(block, layers, says):
    model = made(block, layers=layers)
    assert says in unfit(model)
    assert type(decoding_of(model)) is Cached
    with pytest.raises(CannotDecode, match="cannot be decoded by the compiled step"):
        decoding_of(model, way="compiled")


def test_other_precisions_than_32_bits_are_decoded_by_torch():
    assert type(decoding_of(fitting(CLASSIC, TIED).double())) is Cached


def test_eight_bits_are_refused_where_nothing_could_be_compiled():
    model = made('attention="localized"')
    with pytest.raises(CannotDecode, match="cannot have int8 weights: its attention is not the plain one"):
        decoding_of(model, precision="int8")
    assert type(decoding_of(model, precision="auto")) is Cached


@pytest.mark.parametrize(("block", "head"), FITTING[:2])
def test_with_eight_bits_too_all_ways_give_the_same_text(block, head):
    model = fitting(block, head)
    before = {name: one.clone() for name, one in model.state_dict().items()}
    ways = [{"way": way} for way in ("auto", "compiled", "cached", "recomputed")] + [{"watched": True}]
    texts = [written(decoding_of(model, precision="auto", **way), ids(3), 30) for way in ways]
    assert all(one == texts[0] for one in texts[1:])
    for name, one in model.state_dict().items():
        assert torch.equal(one, before[name]), "the network itself is not rounded"


@pytest.mark.parametrize(("block", "head"), FITTING[:2])
def test_what_is_rounded_stays_when_it_is_rounded_again(block, head):
    once = rounded(fitting(block, head))
    for one, other in zip(once.parameters(), rounded(once).parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=0)

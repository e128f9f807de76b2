"""Behaviour of built networks: causality, padding, batches, order, copies, dropout."""

import pytest
import torch

from neural.nn.build import build
from tests.programs import LANGUAGE_MODEL, TRANSLATOR, load_network

B, T, E = 2, 7, 12


def build_network(layers: str, *, input_shape: str = "(7, 12)", seed: int = 0) -> torch.nn.Module:
    """A network of these layers, in double precision and evaluation mode."""
    torch.manual_seed(seed)
    return (
        build(load_network(f"network Trial {{\n input: {input_shape}\n layers:\n{layers}\n}}"))
        .double()
        .eval()
    )


def random_tensor(*shape: int, seed: int = 1) -> torch.Tensor:
    torch.manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64)


def random_ids(*shape: int, seed: int = 1) -> torch.Tensor:
    torch.manual_seed(seed)
    return torch.randint(1, 19, shape)


DECODER = "TransformerDecoder(num_heads=2, d_model=12, dff=17"
ENCODER = "TransformerEncoder(num_heads=2, d_model=12, dff=17"
every_position = pytest.mark.parametrize(
    "positional", ["sinusoidal", "learned", "relative", "rotary", "alibi", "none"]
)
every_attention = pytest.mark.parametrize("attention", ['"self"', "localized(window=3)"])

# --- causality ------------------------------------------------------------------------------------


@every_position
@every_attention
def test_a_decoder_never_looks_ahead(positional, attention):
    net = build_network(f'{DECODER}, positional="{positional}", attention={attention}) * 3')
    for t in range(T):
        x = random_tensor(B, T, E).requires_grad_()
        net(x)[:, t].sum().backward()
        assert x.grad[:, t].count_nonzero(), "its own position is seen"
        assert not x.grad[:, t + 1 :].count_nonzero(), f"output {t} depends on what comes after it"


def test_a_decoder_sees_everything_before():
    net = build_network(f"{DECODER}) * 2")
    x = random_tensor(B, T, E).requires_grad_()
    net(x)[:, -1].square().sum().backward()
    assert (x.grad.abs().sum(dim=-1) > 0).all()


def test_an_encoder_sees_earlier_and_later_positions():
    net = build_network(f"{ENCODER})")
    x = random_tensor(B, T, E).requires_grad_()
    net(x)[:, 3].square().sum().backward()
    assert (x.grad.abs().sum(dim=-1) > 0).all()


def test_an_encoder_with_a_window_of_three_sees_one_neighbour_on_either_side():
    net = build_network(f'{ENCODER}, attention="localized", window=3)')
    x = random_tensor(B, T, E).requires_grad_()
    net(x)[:, 3].square().sum().backward()
    assert (x.grad[0].abs().sum(dim=-1) > 0).tolist() == [
        False,
        False,
        True,
        True,
        True,
        False,
        False,
    ]


def test_the_target_of_a_translator_never_looks_ahead_and_sees_the_whole_source():
    net = build(load_network(TRANSLATOR)).double().eval()
    source, target = random_ids(B, 11), random_ids(B, T, seed=2)
    for t in range(T - 1):
        other = target.clone()
        other[:, t + 1 :] = random_ids(B, T - t - 1, seed=3)
        assert torch.equal(net(source, target)[:, : t + 1], net(source, other)[:, : t + 1])
        assert not torch.equal(net(source, target)[:, t + 1], net(source, other)[:, t + 1])
    for position in range(11):
        other = source.clone()
        other[:, position] = other[:, position] % 18 + 1
        assert not torch.isclose(net(source, target)[:, 0], net(other, target)[:, 0]).all()


def test_a_language_model_predicts_from_earlier_tokens_only():
    net = build(load_network(LANGUAGE_MODEL)).double().eval()
    x = random_ids(B, 11)
    shorter = net(x[:, :5])
    torch.testing.assert_close(net(x)[:, :5], shorter)


# --- padding --------------------------------------------------------------------------------------

POOLED = [
    f"{ENCODER}) * 2\nGlobalAveragePooling1D()\nOutput(5)",
    f"{DECODER}) * 2\nGlobalAveragePooling1D()\nOutput(5)",
    f'{ENCODER}, attention="localized", window=3)\nGlobalAveragePooling1D()',
    f'{ENCODER}, positional="relative", norm="post")\nGlobalAveragePooling1D()',
    "LSTM(5, bidirectional=true)\nGlobalAveragePooling1D()",
    "LSTM(5, return_sequences=false, bidirectional=true)",
    "MultiHeadAttention(num_heads=3, key_dim=5)\nLayerNormalization()\nGlobalAveragePooling1D()",
    "Residual(MultiHeadAttention(num_heads=3, key_dim=5), Dense(12))\nGlobalAveragePooling1D()",
    'Conv1D(12, padding="same")\nGlobalAveragePooling1D()',
    "Conv1D(12, kernel_size=2, strides=2)\nGlobalAveragePooling1D()",
    f'Conv1D(12, padding="same", activation="relu") * 2\n{ENCODER})\nGlobalAveragePooling1D()',
    'MaxPooling1D(3, strides=1, padding="same")\nLSTM(5, return_sequences=false)',
    "MaxPooling1D(2)\nConv1D(5, kernel_size=1)\nGlobalAveragePooling1D()",
    'Residual(Conv1D(7, padding="same"), Conv1D(12, padding="same"))\nGlobalAveragePooling1D()',
    f"Dense(12)\nDropout(0.5)\n{ENCODER}, dropout_rate=0.3)\nGlobalAveragePooling1D()",
]
every_pooled = pytest.mark.parametrize("layers", POOLED)


def padding_mask(lengths: list[int], time: int) -> torch.Tensor:
    return torch.arange(time) < torch.tensor(lengths).unsqueeze(-1)


@every_pooled
def test_length_and_content_of_the_padding_change_nothing(layers):
    net = build_network(layers, input_shape="(None, 12)")
    x = random_tensor(B, 5, E)
    plain = net(x)
    for count in (1, 6):
        longer = torch.cat((x, 100 * random_tensor(B, count, E, seed=count)), dim=1)
        torch.testing.assert_close(net(longer, padding_mask([5, 5], 5 + count)), plain)


@every_pooled
def test_sequences_of_different_lengths_give_the_same_in_a_batch_and_alone(layers):
    net = build_network(layers, input_shape="(None, 12)")
    x = random_tensor(B, T, E)
    together = net(x, padding_mask([4, 7], T))
    torch.testing.assert_close(together[:1], net(x[:1, :4]))
    torch.testing.assert_close(together[1:], net(x[1:]))


@every_pooled
def test_a_mask_may_be_bool_or_ones_and_zeros(layers):
    net = build_network(layers, input_shape="(None, 12)")
    x, mask = random_tensor(B, T, E), padding_mask([4, 6], T)
    for same in (mask.float(), mask.double(), mask.long()):
        assert torch.equal(net(x, mask), net(x, same))


@every_pooled
def test_a_sequence_of_padding_alone_is_never_nan(layers):
    net = build_network(layers, input_shape="(None, 12)").train()
    x = random_tensor(B, T, E).requires_grad_()
    y = net(x, padding_mask([0, 6], T))
    assert y.isfinite().all()
    y.square().sum().backward()
    assert all(
        tensor.grad.isfinite().all() for tensor in (x, *net.parameters()) if tensor.grad is not None
    )


def test_attention_recurrence_and_mean_of_padding_alone_are_zero():
    x, mask = random_tensor(B, T, E), padding_mask([0, 6], T)
    attended = build_network("MultiHeadAttention(num_heads=3, key_dim=5)")
    torch.nn.init.zeros_(attended.multi_head_attention.output.bias)
    assert not attended(x, mask)[0].count_nonzero()
    assert attended(x, mask)[1].count_nonzero()
    assert not build_network("GlobalAveragePooling1D()")(x, mask)[0].count_nonzero()
    assert not build_network("LSTM(5)")(x, mask)[0].count_nonzero()
    last = build_network("LSTM(5, return_sequences=false)")(x, mask)
    assert not last[0].count_nonzero()
    assert last[1].count_nonzero()


def test_the_padding_id_gives_the_mask():
    layers = (
        "Embedding(input_dim=19, output_dim=12, pad_id=0)\n"
        f"{ENCODER}) * 2\nGlobalAveragePooling1D()"
    )
    net = build_network(layers, input_shape="(None,)")
    x = random_ids(B, 5)
    longer = torch.cat((x, torch.zeros(B, 3, dtype=torch.long)), dim=1)
    torch.testing.assert_close(net(longer), net(x))
    other = longer.clone()
    other[:, -1] = 7
    assert not torch.allclose(net(other), net(x)), "any other id counts"


def test_the_padding_id_and_a_mask_combine_by_and():
    layers = (
        f"Embedding(input_dim=19, output_dim=12, pad_id=0)\n{ENCODER})\nGlobalAveragePooling1D()"
    )
    net = build_network(layers, input_shape="(None,)")
    x = random_ids(1, T)
    x[:, -1] = 0
    mask = torch.ones(1, T)
    mask[:, -2] = 0
    torch.testing.assert_close(net(x, mask), net(x[:, :-2]))


def test_padding_in_source_and_target_of_a_translator_changes_nothing():
    net = build(load_network(TRANSLATOR)).double().eval()
    source, target = random_ids(B, 5), random_ids(B, T, seed=2)
    plain = net(source, target)
    padding = torch.zeros(B, 4, dtype=torch.long)
    torch.testing.assert_close(net(torch.cat((source, padding), dim=1), target), plain)
    torch.testing.assert_close(net(source, torch.cat((target, padding), dim=1))[:, :T], plain)
    masked = net(
        torch.cat((source, random_ids(B, 4)), dim=1), target, mask=padding_mask([5, 5], 9).float()
    )
    torch.testing.assert_close(masked, plain)


@pytest.mark.parametrize("both", ["false", "true"])
def test_a_recurrent_layer_returns_the_last_state_before_the_padding(both):
    net = build_network(
        f"LSTM(5, bidirectional={both}, return_sequences=false)", input_shape="(None, 12)"
    )
    steps = build_network(f"LSTM(5, bidirectional={both})", input_shape="(None, 12)")
    steps.load_state_dict(net.state_dict())
    x = random_tensor(1, T, E)
    all_steps = steps(x[:, :4])
    expected = torch.cat((all_steps[:, -1, :5], all_steps[:, 0, 5:]), dim=-1)
    torch.testing.assert_close(net(x, padding_mask([4], T)), expected)


def test_a_mask_is_dropped_with_the_time_axis():
    net = build_network(
        "Conv1D(5)\nMaxPooling1D()\nLSTM(3)\nGlobalAveragePooling1D()\nOutput(2)",
        input_shape="(11, 12)",
    )
    assert net(random_tensor(B, 11, E), padding_mask([6, 11], 11)).shape == (B, 2)


# --- batches and order ----------------------------------------------------------------------------


@every_pooled
def test_examples_do_not_influence_each_other(layers):
    net = build_network(layers, input_shape="(None, 12)")
    x = random_tensor(3, T, E)
    other = x.clone()
    other[1] = random_tensor(T, E, seed=2)
    torch.testing.assert_close(net(x)[0], net(other)[0], rtol=0, atol=0)
    torch.testing.assert_close(net(x[[2, 0, 1]]), net(x)[[2, 0, 1]])


@every_position
def test_order_matters_only_with_positions(positional):
    net = build_network(f'{ENCODER}, positional="{positional}") * 2')
    with torch.no_grad():
        for path, param in net.named_parameters():
            if "table" in path:
                param.normal_()
    x, order = random_tensor(B, T, E), torch.tensor([3, 0, 6, 1, 5, 2, 4])
    assert torch.allclose(net(x[:, order]), net(x)[:, order]) == (positional == "none")


# --- copies, dropout ------------------------------------------------------------------------------


def test_copies_share_no_weights():
    net = build_network(f"{ENCODER}) * 3\nDense(12) * 2")
    parameters = list(net.parameters())
    assert len({param.data_ptr() for param in parameters}) == len(parameters)
    first, second, third = net.transformer_encoder
    for a, b, c in zip(first.parameters(), second.parameters(), third.parameters(), strict=True):
        if a.ndim == 2:
            assert not torch.equal(a, b)
            assert not torch.equal(b, c)


def test_a_change_of_one_copy_does_not_change_the_others():
    net = build_network("Dense(12) * 3")
    before = [param.detach().clone() for param in net.dense[1].parameters()]
    net.dense[0](random_tensor(B, E)).sum().backward()
    assert all(param.grad is None for param in net.dense[1].parameters())
    torch.nn.init.zeros_(net.dense[2].linear.weight)
    after = net.dense[1].parameters()
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


DROPPING = [
    f"{ENCODER}, dropout_rate=0.5)",
    f"{DECODER}, dropout_rate=0.5)",
    "MultiHeadAttention(3, 5, dropout_rate=0.5)",
    "Dropout(0.5)",
]


@pytest.mark.parametrize("layers", DROPPING)
def test_dropout_is_active_in_training_only(layers):
    net = build_network(layers)
    without = build_network(
        layers.replace("dropout_rate=0.5", "dropout_rate=0.0").replace(
            "Dropout(0.5)", "Dropout(0.0)"
        )
    )
    without.load_state_dict(net.state_dict())
    x = random_tensor(B, T, E)
    assert torch.equal(net(x), without(x))
    assert not torch.equal(net.train()(x), net.train()(x))


def test_dropout_acts_on_attention_weights_and_inside_the_feed_forward_network():
    net = build_network(f"{ENCODER}, dropout_rate=0.5)").train()
    x = random_tensor(B, T, E)
    attention, feed_forward = (
        net.transformer_encoder.attention.sublayer,
        net.transformer_encoder.feed_forward.sublayer,
    )
    assert not torch.equal(attention(x), attention(x))
    assert not torch.equal(feed_forward(x), feed_forward(x))

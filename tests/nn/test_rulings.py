"""The nine decisions of the language (DESIGN.md), each on a built network."""

import pytest
import torch

from neural.language.shapes import ShapeError
from neural.nn.build import build
from neural.nn.layers.transformer_encoder import TransformerEncoder
from neural.nn.positions.sinusoidal import SinusoidalPositions, sinusoidal_table
from tests.programs import LANGUAGE_MODEL, TRANSLATOR, check_text, load_network

B, T, E = 2, 7, 12


def build_network(layers: str, input_shape: str = "(7, 12)", loss: str = "") -> torch.nn.Module:
    torch.manual_seed(0)
    return build(
        load_network(f"network Trial {{\n input: {input_shape}\n layers:\n{layers}\n{loss}\n}}")
    ).eval()


def count_layers(layers: str) -> int:
    return len(load_network(f"network Trial {{\n input: (7, 12)\n layers:\n{layers}\n}}").layers)


def random_tensor(*shape: int) -> torch.Tensor:
    torch.manual_seed(1)
    return torch.randn(*shape)


ENCODER = "TransformerEncoder(num_heads=2, d_model=12, dff=17"
DECODER = "TransformerDecoder(num_heads=2, d_model=12, dff=17"

# 1


def test_before_an_embedding_the_second_size_is_its_width_and_the_input_is_ids():
    text = "network Ids {\n input: (7, 12)\n layers:\n Embedding(input_dim=19, output_dim=12)\n}"
    result = check_text(text)
    assert [note.code for note in result.diagnostics if note.code == "N0702"]
    assert load_network(text).input == (7,)
    assert build(load_network(text))(torch.randint(0, 19, (B, T))).shape == (B, T, 12)


def test_another_second_size_is_an_error():
    result = check_text(
        "network Ids {\n input: (7, 13)\n layers:\n Embedding(input_dim=19, output_dim=12)\n}"
    )
    assert [error.code for error in result.errors] == ["E0305"]


# 2


def test_a_decoder_alone_has_no_cross_attention():
    net = build(load_network(LANGUAGE_MODEL))
    assert all(block.cross is None for block in net.transformer_decoder)
    assert not [name for name, _ in net.named_parameters() if "cross" in name]


def test_a_decoder_after_an_encoder_has_cross_attention_in_every_copy():
    net = build(load_network(TRANSLATOR))
    assert all(block.cross is not None for block in net.transformer_decoder)
    assert not hasattr(net.transformer_encoder[0], "cross")


# 3


@pytest.mark.parametrize("block", [ENCODER, DECODER])
def test_sinusoidal_positions_are_added_once_before_the_first_block(block):
    net = build_network(f"{block}) * 2\n{block})")
    positions = [module for module in net.modules() if isinstance(module, SinusoidalPositions)]
    assert len(positions) == 1
    x = random_tensor(B, T, E)
    block_inputs = []
    name = "transformer_encoder_1" if block == ENCODER else "transformer_decoder_1"
    getattr(net, name)[0].register_forward_hook(
        lambda module, inputs, output: block_inputs.append(inputs[0])
    )
    net(x)
    torch.testing.assert_close(block_inputs[0], x + sinusoidal_table(T, E, x.device))


def test_the_sinusoidal_table_is_that_of_the_paper():
    table = sinusoidal_table(T, E, torch.device("cpu"))
    for t in range(T):
        for i in range(E // 2):
            angle = torch.tensor(t / 10000 ** (2 * i / E))
            torch.testing.assert_close(table[t, 2 * i], angle.sin())
            torch.testing.assert_close(table[t, 2 * i + 1], angle.cos())


def test_source_and_target_get_separate_positions():
    net = build(load_network(TRANSLATOR))
    assert len([module for module in net.modules() if isinstance(module, SinusoidalPositions)]) == 2


def test_declared_positions_replace_the_default():
    assert count_layers(f"PositionalEncoding()\n{ENCODER})") == 2
    assert count_layers(f'{ENCODER}, positional="none")') == 1
    assert count_layers(f'{ENCODER}, positional="rotary")') == 1
    learned = build_network(f'{ENCODER}, positional="learned") * 2')
    assert learned.positional_encoding.table.shape == (T, E)
    relative = build_network(f'{ENCODER}, positional="relative") * 2').transformer_encoder
    assert all(
        block.attention.sublayer.position.table.weight.shape == (32, 2) for block in relative
    )


def test_no_positions_without_a_block():
    assert count_layers("MultiHeadAttention(num_heads=2, key_dim=3)\nDense(5)") == 2


# 4


def test_norms_are_before_the_sublayers_by_default_and_none_at_the_end():
    net = build_network(f'{ENCODER}, positional="none") * 2')
    block = net.transformer_encoder[0]
    x = random_tensor(B, T, E)
    attention, feed_forward = block.attention, block.feed_forward
    y = x + attention.sublayer(attention.norm(x))
    torch.testing.assert_close(block(x), y + feed_forward.sublayer(feed_forward.norm(y)))
    torch.testing.assert_close(net(x), net.transformer_encoder[1](block(x)))


def test_norms_are_after_the_sublayers_with_norm_post():
    block = build_network(f'{ENCODER}, positional="none", norm="post")').transformer_encoder
    x = random_tensor(B, T, E)
    attention, feed_forward = block.attention, block.feed_forward
    y = attention.norm(x + attention.sublayer(x))
    torch.testing.assert_close(block(x), feed_forward.norm(y + feed_forward.sublayer(y)))


def test_a_final_norm_only_on_request():
    plain, with_norm = (
        build_network(f"{ENCODER}) * 2"),
        build_network(f"{ENCODER}, final_norm=true) * 2"),
    )
    count = [sum(param.numel() for param in net.parameters()) for net in (plain, with_norm)]
    assert count[1] == count[0] + 2 * E
    y = with_norm(random_tensor(B, T, E))
    torch.testing.assert_close(y.mean(dim=-1), torch.zeros(B, T), atol=1e-5, rtol=0)


# 5


def test_softmax_is_applied_once():
    net = build_network(
        'Output(5, activation="softmax")', loss=' loss: "sparse_categorical_crossentropy"'
    )
    x = random_tensor(B, T, E)
    scores = net.output.linear(x)
    torch.testing.assert_close(net(x), scores.softmax(dim=-1))
    torch.testing.assert_close(net.logits(x), scores)
    target = torch.randint(0, 5, (B, T))
    expected = torch.nn.functional.cross_entropy(scores.flatten(0, 1), target.flatten())
    torch.testing.assert_close(net.loss(net.logits(x), target), expected)


# 6


def test_key_dim_is_per_head_and_the_output_has_the_input_width():
    net = build_network("MultiHeadAttention(num_heads=3, key_dim=11)")
    module = net.multi_head_attention
    for projection in (module.query, module.key, module.value):
        assert projection.weight.shape == (33, E)
    assert module.output.weight.shape == (E, 33)
    assert {name.split(".")[1] for name, _ in net.named_parameters()} == {
        "query",
        "key",
        "value",
        "output",
    }


def test_multi_head_attention_has_no_residual():
    net = build_network("MultiHeadAttention(num_heads=3, key_dim=11)")
    with torch.no_grad():
        for param in net.multi_head_attention.output.parameters():
            param.zero_()
    assert not net(random_tensor(B, T, E)).count_nonzero()


# 7


def test_the_mean_over_time_honours_the_mask():
    net = build_network("GlobalAveragePooling1D()")
    x = random_tensor(B, T, E)
    mask = torch.tensor([[1, 1, 0, 1, 0, 0, 0], [0, 1, 1, 1, 1, 1, 1]])
    expected = torch.stack([x[0, [0, 1, 3]].mean(dim=0), x[1, 1:].mean(dim=0)])
    torch.testing.assert_close(net(x, mask), expected)
    torch.testing.assert_close(net(x), x.mean(dim=1))


def test_channels_come_last():
    net = build_network("Conv2D(5, (3, 2))", input_shape="(7, 11, 3)")
    assert net(random_tensor(B, 7, 11, 3)).shape == (B, 5, 10, 5)
    assert build_network("Dense(5)", input_shape="(7, 11, 3)")(
        random_tensor(B, 7, 11, 3)
    ).shape == (B, 7, 11, 5)


# 8


def test_copies_are_independent_and_aliases_mean_the_same():
    net = build_network("TransformerEncoder(num_heads=2, d_model=12, ff_dim=17, dropout=0.2) * 3")
    assert len(net.transformer_encoder) == 3
    assert net.transformer_encoder[0].feed_forward.sublayer.up.weight.shape == (17, E)
    assert [block.feed_forward.sublayer.dropout.p for block in net.transformer_encoder] == [0.2] * 3
    assert [block.attention.sublayer.dropout for block in net.transformer_encoder] == [0.2] * 3
    assert len({id(param) for param in net.parameters()}) == 3 * len(
        list(net.transformer_encoder[0].parameters())
    )
    block = "TransformerEncoder(2, ff_dim=17, dropout=0.2)"
    notes = check_text(f"network Trial {{\n input: (7, 12)\n layers:\n {block}\n}}")
    assert [note.code for note in notes.diagnostics].count("N0701") == 2


# 9


def test_biases_are_on():
    net = build_network(
        f"{ENCODER})\nMultiHeadAttention(num_heads=2, key_dim=3)\nDense(5)\nConv1D(3)"
    )
    linears = [
        module for module in net.modules() if isinstance(module, torch.nn.Linear | torch.nn.Conv1d)
    ]
    assert len(linears) == 6 + 4 + 1 + 1
    assert all(module.bias is not None for module in linears)


def test_embeddings_are_untied_and_unscaled():
    net = build(load_network(LANGUAGE_MODEL)).eval()
    assert net.embedding.table.weight.data_ptr() != net.dense.linear.weight.data_ptr()
    x = torch.randint(0, 19, (B, 11))
    assert torch.equal(net.embedding(x), net.embedding.table.weight[x])


def test_epsilon_is_passed_to_the_norm():
    x = 1e-3 * random_tensor(B, T, E)
    for epsilon in (1e-5, 0.1):
        y = build_network(f"LayerNormalization(epsilon={epsilon})")(x)
        centred = x - x.mean(dim=-1, keepdim=True)
        torch.testing.assert_close(
            y, centred / (x.var(dim=-1, unbiased=False, keepdim=True) + epsilon).sqrt()
        )
        torch.testing.assert_close(
            build_network(f"BatchNormalization(epsilon={epsilon})")(x), x / (1 + epsilon) ** 0.5
        )


def test_the_heads_must_divide_the_width():
    with pytest.raises(AssertionError, match="must divide"):
        build_network("TransformerEncoder(num_heads=7, d_model=12, dff=17)")
    with pytest.raises(ShapeError, match="must divide"):
        TransformerEncoder(num_heads=7, d_model=12)

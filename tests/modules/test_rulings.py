"""The nine rules of the language that its guide leaves open (DESIGN.md), each on a built network."""

import pytest
import torch

from neural.language.shapes import Misfit
from neural.modules.build import build
from neural.modules.layers.transformer_encoder import TransformerEncoder
from neural.modules.positions.sinusoidal import SinusoidalPositions, waves
from tests.programs import LANGUAGE_MODEL, TRANSLATOR, checked, network

B, T, E = 2, 7, 12


def made(layers: str, start: str = "(7, 12)", rest: str = "") -> torch.nn.Module:
    torch.manual_seed(0)
    return build(network(f"network Trial {{\n input: {start}\n layers:\n{layers}\n{rest}\n}}")).eval()


def placed(layers: str, start: str = "(7, 12)") -> list[str]:
    return [repr(one.layer) for one in network(f"network Trial {{\n input: {start}\n layers:\n{layers}\n}}").layers]


def numbers(*shape: int) -> torch.Tensor:
    torch.manual_seed(1)
    return torch.randn(*shape)


ENCODER = "TransformerEncoder(num_heads=2, d_model=12, dff=17"
DECODER = "TransformerDecoder(num_heads=2, d_model=12, dff=17"

# 1


def test_before_an_embedding_the_second_size_is_its_width_and_the_input_is_ids():
    text = "network Ids {\n input: (7, 12)\n layers:\n Embedding(input_dim=19, output_dim=12)\n}"
    result = checked(text)
    assert [one.code for one in result.diagnostics if one.code == "N0702"]
    assert network(text).input == (7,)
    assert build(network(text))(torch.randint(0, 19, (B, T))).shape == (B, T, 12)


def test_another_second_size_is_a_mistake():
    result = checked("network Ids {\n input: (7, 13)\n layers:\n Embedding(input_dim=19, output_dim=12)\n}")
    assert [one.code for one in result.mistakes] == ["E0305"]


# 2


def test_a_decoder_alone_has_no_cross_attention():
    net = build(network(LANGUAGE_MODEL))
    assert all(block.cross is None for block in net.transformer_decoder)
    assert not [name for name, _ in net.named_parameters() if "cross" in name]


def test_a_decoder_after_an_encoder_has_cross_attention_in_every_copy():
    net = build(network(TRANSLATOR))
    assert all(block.cross is not None for block in net.transformer_decoder)
    assert not hasattr(net.transformer_encoder[0], "cross")


# 3


@pytest.mark.parametrize("block", [ENCODER, DECODER])
def test_sinusoidal_positions_are_added_once_before_the_first_block(block):
    net = made(f"{block}) * 2\n{block})")
    found = [module for module in net.modules() if isinstance(module, SinusoidalPositions)]
    assert len(found) == 1
    x = numbers(B, T, E)
    seen = []
    name = "transformer_encoder_1" if block == ENCODER else "transformer_decoder_1"
    getattr(net, name)[0].register_forward_hook(lambda module, inputs, output: seen.append(inputs[0]))
    net(x)
    torch.testing.assert_close(seen[0], x + waves(T, E, x.device))


def test_the_waves_are_those_of_the_paper():
    w = waves(T, E, torch.device("cpu"))
    for t in range(T):
        for i in range(E // 2):
            angle = torch.tensor(t / 10000 ** (2 * i / E))
            torch.testing.assert_close(w[t, 2 * i], angle.sin())
            torch.testing.assert_close(w[t, 2 * i + 1], angle.cos())


def test_source_and_target_get_positions_of_their_own():
    net = build(network(TRANSLATOR))
    assert len([module for module in net.modules() if isinstance(module, SinusoidalPositions)]) == 2


def test_a_program_that_says_otherwise_gets_what_it_says():
    assert len(placed(f"PositionalEncoding()\n{ENCODER})")) == 2
    assert len(placed(f'{ENCODER}, positional="none")')) == 1
    assert len(placed(f'{ENCODER}, positional="rotary")')) == 1
    learned = made(f'{ENCODER}, positional="learned") * 2')
    assert learned.positional_encoding.table.shape == (T, E)
    relative = made(f'{ENCODER}, positional="relative") * 2').transformer_encoder
    assert all(block.attention.part.position.table.weight.shape == (32, 2) for block in relative)


def test_no_positions_without_a_block():
    assert len(placed("MultiHeadAttention(num_heads=2, key_dim=3)\nDense(5)")) == 2


# 4


def test_norms_stand_before_the_parts_by_default_and_none_at_the_end():
    net = made(f'{ENCODER}, positional="none") * 2')
    block = net.transformer_encoder[0]
    x = numbers(B, T, E)
    attention, forward = block.attention, block.feed_forward
    y = x + attention.part(attention.norm(x))
    torch.testing.assert_close(block(x), y + forward.part(forward.norm(y)))
    torch.testing.assert_close(net(x), net.transformer_encoder[1](block(x)))


def test_norms_after_the_parts_where_the_program_says_so():
    block = made(f'{ENCODER}, positional="none", norm="post")').transformer_encoder
    x = numbers(B, T, E)
    attention, forward = block.attention, block.feed_forward
    y = attention.norm(x + attention.part(x))
    torch.testing.assert_close(block(x), forward.norm(y + forward.part(y)))


def test_a_final_norm_only_on_request():
    plain, with_norm = made(f"{ENCODER}) * 2"), made(f"{ENCODER}, final_norm=true) * 2")
    count = [sum(one.numel() for one in net.parameters()) for net in (plain, with_norm)]
    assert count[1] == count[0] + 2 * E
    y = with_norm(numbers(B, T, E))
    torch.testing.assert_close(y.mean(dim=-1), torch.zeros(B, T), atol=1e-5, rtol=0)


# 5


def test_softmax_is_applied_once():
    net = made('Output(5, activation="softmax")', rest=' loss: "sparse_categorical_crossentropy"')
    x = numbers(B, T, E)
    scores = net.output.linear(x)
    torch.testing.assert_close(net(x), scores.softmax(dim=-1))
    torch.testing.assert_close(net.scores(x), scores)
    target = torch.randint(0, 5, (B, T))
    expected = torch.nn.functional.cross_entropy(scores.flatten(0, 1), target.flatten())
    torch.testing.assert_close(net.loss(net.scores(x), target), expected)


# 6


def test_the_key_dimension_is_per_head_and_the_width_comes_back():
    net = made("MultiHeadAttention(num_heads=3, key_dim=11)")
    heads = net.multi_head_attention
    assert heads.query.weight.shape == heads.key.weight.shape == heads.value.weight.shape == (33, E)
    assert heads.output.weight.shape == (E, 33)
    assert {name.split(".")[1] for name, _ in net.named_parameters()} == {"query", "key", "value", "output"}


def test_multi_head_attention_has_no_residual():
    net = made("MultiHeadAttention(num_heads=3, key_dim=11)")
    with torch.no_grad():
        for one in net.multi_head_attention.output.parameters():
            one.zero_()
    assert not net(numbers(B, T, E)).count_nonzero()


# 7


def test_the_mean_over_time_honours_the_mask():
    net = made("GlobalAveragePooling1D()")
    x = numbers(B, T, E)
    mask = torch.tensor([[1, 1, 0, 1, 0, 0, 0], [0, 1, 1, 1, 1, 1, 1]])
    expected = torch.stack([x[0, [0, 1, 3]].mean(dim=0), x[1, 1:].mean(dim=0)])
    torch.testing.assert_close(net(x, mask), expected)
    torch.testing.assert_close(net(x), x.mean(dim=1))


def test_channels_come_last():
    net = made("Conv2D(5, (3, 2))", start="(7, 11, 3)")
    assert net(numbers(B, 7, 11, 3)).shape == (B, 5, 10, 5)
    assert made("Dense(5)", start="(7, 11, 3)")(numbers(B, 7, 11, 3)).shape == (B, 7, 11, 5)


# 8


def test_copies_are_independent_and_aliases_mean_the_same():
    net = made("TransformerEncoder(num_heads=2, d_model=12, ff_dim=17, dropout=0.2) * 3")
    assert len(net.transformer_encoder) == 3
    assert net.transformer_encoder[0].feed_forward.part.up.weight.shape == (17, E)
    assert [block.feed_forward.part.dropout.p for block in net.transformer_encoder] == [0.2] * 3
    assert [block.attention.part.dropout for block in net.transformer_encoder] == [0.2] * 3
    assert len({id(one) for one in net.parameters()}) == 3 * len(list(net.transformer_encoder[0].parameters()))
    notes = checked("network Trial {\n input: (7, 12)\n layers:\n TransformerEncoder(2, ff_dim=17, dropout=0.2)\n}")
    assert [one.code for one in notes.diagnostics].count("N0701") == 2


# 9


def test_biases_are_on():
    net = made(f"{ENCODER})\nMultiHeadAttention(num_heads=2, key_dim=3)\nDense(5)\nConv1D(3)")
    maps = [module for module in net.modules() if isinstance(module, torch.nn.Linear | torch.nn.Conv1d)]
    assert len(maps) == 6 + 4 + 1 + 1
    assert all(module.bias is not None for module in maps)


def test_embeddings_are_untied_and_unscaled():
    net = build(network(LANGUAGE_MODEL)).eval()
    assert net.embedding.table.weight.data_ptr() != net.dense.linear.weight.data_ptr()
    x = torch.randint(0, 19, (B, 11))
    assert torch.equal(net.embedding(x), net.embedding.table.weight[x])


def test_an_epsilon_arrives_in_the_norm():
    x = 1e-3 * numbers(B, T, E)
    for epsilon in (1e-5, 0.1):
        y = made(f"LayerNormalization(epsilon={epsilon})")(x)
        centred = x - x.mean(dim=-1, keepdim=True)
        torch.testing.assert_close(y, centred / (x.var(dim=-1, unbiased=False, keepdim=True) + epsilon).sqrt())
        torch.testing.assert_close(made(f"BatchNormalization(epsilon={epsilon})")(x), x / (1 + epsilon) ** 0.5)


def test_the_heads_must_share_the_width_evenly():
    with pytest.raises(AssertionError, match="must divide"):
        made("TransformerEncoder(num_heads=7, d_model=12, dff=17)")
    with pytest.raises(Misfit, match="must divide"):
        TransformerEncoder(num_heads=7, d_model=12)

"""A tied output: one table, counted once, saved once, with gradients from both uses."""

import copy

import pytest
import torch
from safetensors.torch import load, save

import neural
from neural.nn.build import build
from tests.nn.source_export.test_standalone_file import assert_exported_equal
from tests.programs import LANGUAGE_MODEL, TRANSLATOR, check_text, load_network

HEAD = 'Dense(19, activation="softmax")'
TIED = 'Output(19, activation="softmax", tied=true, bias=false)'
PROGRAMS = {
    "decoder": LANGUAGE_MODEL.replace(HEAD, TIED),
    "bias": LANGUAGE_MODEL.replace(HEAD, TIED.replace("false", "true")),
    "one block": LANGUAGE_MODEL.replace(HEAD, TIED).replace(" * 2", ""),
    "no loss": LANGUAGE_MODEL.replace(HEAD, TIED).replace(
        'loss: "sparse_categorical_crossentropy"', ""
    ),
    "both": TRANSLATOR.replace(HEAD, TIED),
}
every_program = pytest.mark.parametrize("text", PROGRAMS.values(), ids=list(PROGRAMS))


def build_network(text, seed=0):
    torch.manual_seed(seed)
    return build(load_network(text)).eval()


def example_inputs(net):
    torch.manual_seed(1)
    return tuple(
        torch.randint(1, 19, (2, 11)) for _ in range(2 if net.network.is_encoder_decoder else 1)
    )


@every_program
def test_the_scores_are_products_with_the_vectors_of_the_embedding(text):
    net, calls = build_network(text), []
    net.output.register_forward_hook(
        lambda module, inputs, output: calls.append((inputs[0], output))
    )
    net.logits(*example_inputs(net))
    ((x, scores),) = calls
    expected = x @ net.embedding.table.weight.T
    if net.network.loss is None:
        expected = expected.softmax(dim=-1)
    torch.testing.assert_close(scores, expected)


@every_program
def test_the_table_is_counted_and_saved_once(text):
    net = build_network(text)
    assert net.network.cost.parameters == sum(param.numel() for param in net.parameters())
    tables = [
        name for name, tensor in net.state_dict().items() if 19 in tensor.shape and tensor.ndim == 2
    ]
    assert tables == ["embedding.table.weight"]
    other = build_network(text, seed=2)
    other.load_state_dict(load(save(net.state_dict())))
    assert torch.equal(net(*example_inputs(net)), other(*example_inputs(net)))


def test_a_tied_network_has_the_parameters_of_the_untied_one_without_the_head():
    untied = load_network(LANGUAGE_MODEL).cost
    tied = load_network(PROGRAMS["decoder"]).cost
    assert untied.parameters - tied.parameters == 19 * 12 + 19
    assert untied.multiply_adds == tied.multiply_adds
    assert load_network(PROGRAMS["bias"]).cost.parameters == tied.parameters + 19


@every_program
def test_the_table_has_gradients_from_input_and_output(text):
    net = build_network(text)
    ids = example_inputs(net)
    scores = net.logits(*ids)
    target = torch.randint(0, 19, scores.shape[:2])
    torch.nn.functional.cross_entropy(scores.flatten(0, 1), target.flatten()).backward()
    gradient = net.embedding.table.weight.grad
    unread = [token for token in range(19) if token not in torch.cat(ids)]
    assert unread, "no input holds token 0"
    assert gradient[unread].abs().sum(dim=-1).gt(0).all(), (
        "tokens that are not in the input have a gradient as outputs"
    )


def test_a_copy_is_tied_to_its_own_table():
    net = build_network(PROGRAMS["decoder"])
    other = copy.deepcopy(net)
    before = net(*example_inputs(net))
    with torch.no_grad():
        other.embedding.table.weight.zero_()
    assert torch.equal(net(*example_inputs(net)), before)
    torch.testing.assert_close(other(*example_inputs(net)), torch.full_like(before, 1 / 19))


def test_moving_a_network_and_building_on_meta_keep_the_tie():
    net = build(load_network(PROGRAMS["decoder"]), device="meta").to_empty(device="cpu")
    net.load_state_dict(build_network(PROGRAMS["decoder"]).state_dict(), assign=True)
    assert torch.equal(
        net.eval()(*example_inputs(net)), build_network(PROGRAMS["decoder"])(*example_inputs(net))
    )
    assert net.double()(*example_inputs(net)).dtype == torch.float64


@every_program
def test_a_tied_network_is_exported_with_its_tie(text, tmp_path):
    assert_exported_equal(text, tmp_path)


SMALL = "network A {{\n  input: {}\n  layers:\n    {}\n}}"


@pytest.mark.parametrize(
    ("start", "layers", "message"),
    [
        (
            "(7, 12)",
            "Output(19, tied=true)",
            "a tied `Output` needs an `Embedding` whose vectors it can use",
        ),
        (
            "(7,)",
            "Embedding(19, 12)\nOutput(20, tied=true)",
            "`Output` has 20 units, but the `Embedding` it is tied to has 19 ids",
        ),
        (
            "(7,)",
            "Embedding(19, 12)\nDense(5)\nOutput(19, tied=true)",
            "5 features arrive, but the `Embedding` this is tied to is 12 wide",
        ),
        (
            "(7,)",
            'Embedding(19, 12)\nOutput(19, tied=true, init="gpt2")',
            "a tied `Output` has no weights of its own to initialize",
        ),
    ],
)
def test_an_output_that_cannot_be_tied_gives_one_error(start, layers, message):
    errors = check_text(SMALL.format(start, layers)).errors
    assert [(error.code, error.message) for error in errors] == [("E0314", message)]


def test_an_untied_output_has_its_own_weights():
    net = neural.parse(LANGUAGE_MODEL.replace("Dense(19", "Output(19")).build()
    assert net.output.linear.weight.shape == (19, 12)
    assert net.output.linear.bias.shape == (19,)


def test_the_alias_of_bias_is_accepted():
    result = check_text(SMALL.format("(7, 12)", "Output(5, use_bias=false)"))
    assert "N0701" in [note.code for note in result.diagnostics]
    assert result.networks[0].cost.parameters == 60

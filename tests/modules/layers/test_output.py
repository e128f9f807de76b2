"""A head with the embedding's weights: one table, counted once, saved once, learned from both ends."""

import copy

import pytest
import torch
from safetensors.torch import load, save

import neural
from neural.modules.build import build
from tests.modules.test_export import assert_twin
from tests.programs import LANGUAGE_MODEL, TRANSLATOR, checked, network

HEAD = 'Dense(19, activation="softmax")'
TIED = 'Output(19, activation="softmax", tied=true, bias=false)'
PROGRAMS = {
    "decoder": LANGUAGE_MODEL.replace(HEAD, TIED),
    "bias": LANGUAGE_MODEL.replace(HEAD, TIED.replace("false", "true")),
    "one block": LANGUAGE_MODEL.replace(HEAD, TIED).replace(" * 2", ""),
    "no loss": LANGUAGE_MODEL.replace(HEAD, TIED).replace('loss: "sparse_categorical_crossentropy"', ""),
    "both": TRANSLATOR.replace(HEAD, TIED),
}
every_program = pytest.mark.parametrize("text", PROGRAMS.values(), ids=list(PROGRAMS))


def made(text, seed=0):
    torch.manual_seed(seed)
    return build(network(text)).eval()


def inputs(net):
    torch.manual_seed(1)
    return tuple(torch.randint(1, 19, (2, 11)) for _ in range(2 if net.network.two_streams else 1))


@every_program
def test_the_scores_are_products_with_the_vectors_of_the_embedding(text):
    net, seen = made(text), []
    net.output.register_forward_hook(lambda module, given, gives: seen.append((given[0], gives)))
    net.scores(*inputs(net))
    ((x, scores),) = seen
    expected = x @ net.embedding.table.weight.T
    if net.network.loss is None:
        expected = expected.softmax(dim=-1)
    torch.testing.assert_close(scores, expected)


@every_program
def test_the_table_is_counted_and_saved_once(text):
    net = made(text)
    assert net.network.cost.parameters == sum(one.numel() for one in net.parameters())
    tables = [name for name, one in net.state_dict().items() if 19 in one.shape and one.ndim == 2]
    assert tables == ["embedding.table.weight"]
    other = made(text, seed=2)
    other.load_state_dict(load(save(net.state_dict())))
    assert torch.equal(net(*inputs(net)), other(*inputs(net)))


def test_a_tied_network_has_the_parameters_of_the_untied_one_without_the_head():
    untied = network(LANGUAGE_MODEL).cost
    tied = network(PROGRAMS["decoder"]).cost
    assert untied.parameters - tied.parameters == 19 * 12 + 19
    assert untied.multiply_adds == tied.multiply_adds
    assert network(PROGRAMS["bias"]).cost.parameters == tied.parameters + 19


@every_program
def test_the_table_learns_from_both_ends(text):
    net = made(text)
    ids = inputs(net)
    scores = net.scores(*ids)
    target = torch.randint(0, 19, scores.shape[:2])
    torch.nn.functional.cross_entropy(scores.flatten(0, 1), target.flatten()).backward()
    gradient = net.embedding.table.weight.grad
    unread = [one for one in range(19) if one not in torch.cat(ids)]
    assert unread, "no input holds token 0"
    assert gradient[unread].abs().sum(dim=-1).gt(0).all(), "what was not read learns not to be predicted"


def test_a_copy_is_tied_to_its_own_table():
    net = made(PROGRAMS["decoder"])
    other = copy.deepcopy(net)
    before = net(*inputs(net))
    with torch.no_grad():
        other.embedding.table.weight.zero_()
    assert torch.equal(net(*inputs(net)), before)
    torch.testing.assert_close(other(*inputs(net)), torch.full_like(before, 1 / 19))


def test_moving_a_network_and_making_one_without_memory_keep_the_tie():
    net = build(network(PROGRAMS["decoder"]), device="meta").to_empty(device="cpu")
    net.load_state_dict(made(PROGRAMS["decoder"]).state_dict(), assign=True)
    assert torch.equal(net.eval()(*inputs(net)), made(PROGRAMS["decoder"])(*inputs(net)))
    assert net.double()(*inputs(net)).dtype == torch.float64


@every_program
def test_a_tied_network_is_exported_with_its_tie(text, tmp_path):
    assert_twin(text, tmp_path)


SMALL = "network A {{\n  input: {}\n  layers:\n    {}\n}}"


@pytest.mark.parametrize(
    ("start", "layers", "message"),
    [
        ("(7, 12)", "Output(19, tied=true)", "a tied `Output` needs an `Embedding` whose vectors it can use"),
        ("(7,)", "Embedding(19, 12)\nOutput(20, tied=true)",
         "`Output` has 20 units, but the `Embedding` it is tied to has 19 ids"),
        ("(7,)", "Embedding(19, 12)\nDense(5)\nOutput(19, tied=true)",
         "5 features arrive, but the `Embedding` this is tied to is 12 wide"),
        ("(7,)", 'Embedding(19, 12)\nOutput(19, tied=true, init="gpt2")',
         "a tied `Output` has no weights of its own to begin with"),
    ],
)  # fmt: skip
def test_what_cannot_be_tied_is_refused_once_with_a_reason(start, layers, message):
    mistakes = checked(SMALL.format(start, layers)).mistakes
    assert [(one.code, one.message) for one in mistakes] == [("E0314", message)]


def test_an_untied_output_is_as_it_was():
    net = neural.parse(LANGUAGE_MODEL.replace("Dense(19", "Output(19")).build()
    assert net.output.linear.weight.shape == (19, 12)
    assert net.output.linear.bias.shape == (19,)


def test_the_other_name_of_bias_is_understood():
    result = checked(SMALL.format("(7, 12)", "Output(5, use_bias=false)"))
    assert "N0701" in [one.code for one in result.diagnostics]
    assert result.networks[0].cost.parameters == 60

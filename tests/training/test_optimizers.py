"""Every number that a program gives arrives in the torch optimizer that it is meant for."""

import pytest
import torch

from neural.modules.build import build
from neural.training.optimizers.adam import Adam
from neural.training.optimizers.adamw import AdamW
from neural.training.optimizers.muon import Muon
from neural.training.optimizers.sgd import SGD
from tests.programs import network

LANGUAGE_MODEL = """network Small {
  input: (11,)
  layers:
    Embedding(input_dim=19, output_dim=12)
    TransformerDecoder(num_heads=2, d_model=12, dff=17, positional="POSITIONS") * 2
    Dense(19, activation="softmax")
  loss: "sparse_categorical_crossentropy"
}"""


def named(positions: str = "sinusoidal") -> list[tuple[str, torch.nn.Parameter]]:
    return list(build(network(LANGUAGE_MODEL.replace("POSITIONS", positions))).named_parameters())


@pytest.mark.parametrize("optimizer", [Adam, AdamW])
def test_adam_gets_its_numbers(optimizer):
    (made,) = optimizer(learning_rate=0.03, beta_1=0.7, beta_2=0.8, epsilon=1e-5, weight_decay=0.2).build(named())
    assert type(made).__name__ == optimizer.__name__
    for group in made.param_groups:
        assert (group["lr"], group["betas"], group["eps"]) == (0.03, (0.7, 0.8), 1e-5)
    assert made.param_groups[0]["weight_decay"] == 0.2


def test_adamw_leaves_biases_and_norms_alone():
    (made,) = AdamW(weight_decay=0.2).build(named())
    decays, stays = made.param_groups
    assert (decays["weight_decay"], stays["weight_decay"]) == (0.2, 0.0)
    assert all(one.ndim >= 2 for one in decays["params"])
    assert all(one.ndim == 1 for one in stays["params"])


def test_sgd_gets_its_numbers():
    (made,) = SGD(learning_rate=0.03, momentum=0.7, nesterov=True, weight_decay=0.2).build(named())
    (group,) = made.param_groups
    assert (group["lr"], group["momentum"], group["nesterov"], group["weight_decay"]) == (0.03, 0.7, True, 0.2)


def test_sgd_without_momentum_looks_nowhere_ahead():
    (made,) = SGD(nesterov=True).build(named())
    assert made.param_groups[0]["nesterov"] is False


def test_muon_gets_its_numbers_and_adamw_a_rate_of_its_own():
    muon, adamw = Muon(learning_rate=0.03, momentum=0.7, weight_decay=0.2, other_learning_rate=0.004).build(named())
    (group,) = muon.param_groups
    assert (group["lr"], group["momentum"], group["weight_decay"]) == (0.03, 0.7, 0.2)
    assert [one["lr"] for one in adamw.param_groups] == [0.004]
    assert Muon(learning_rate=0.03).build(named())[1].param_groups[0]["lr"] == pytest.approx(0.003)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "relative"])
def test_muon_gets_the_hidden_matrices_alone(positions):
    parameters = named(positions)
    muon, adamw = Muon().build(parameters)
    held = {id(one) for one in muon.param_groups[0]["params"]}
    names = {name for name, one in parameters if id(one) in held}
    maps = ("query", "key", "value", "output", "up", "down")
    inside = [name for name, one in parameters if name.startswith("transformer") and one.ndim == 2]
    assert names == {name for name in inside if name.split(".")[-2] in maps}
    others = {id(one) for group in adamw.param_groups for one in group["params"]}
    assert others == {id(one) for _, one in parameters} - held


def test_muon_leaves_a_tied_table_to_adamw_and_takes_the_last_matrix_of_the_last_block():
    tied = LANGUAGE_MODEL.replace("POSITIONS", "learned").replace("Dense(19, ", "Output(19, tied=true, bias=false, ")
    parameters = list(build(network(tied)).named_parameters())
    muon, adamw = Muon().build(parameters)
    names = {id(one): name for name, one in parameters}
    held = [names[id(one)] for one in muon.param_groups[0]["params"]]
    assert "transformer_decoder.1.feed_forward.part.down.weight" in held
    others = [names[id(one)] for one in adamw.param_groups[0]["params"] if one.ndim == 2]
    assert others == ["embedding.table.weight", "positional_encoding.table"]


def test_muon_without_hidden_matrices_is_adamw():
    (made,) = Muon().build([("output.linear.bias", torch.nn.Parameter(torch.ones(3)))])
    assert isinstance(made, torch.optim.AdamW)


def test_weight_decay_pulls_towards_zero_beside_the_step_and_not_through_it():
    matrix = torch.nn.Parameter(torch.full((3, 5), 2.0))
    (made,) = AdamW(learning_rate=0.1, weight_decay=0.5).build([("dense.weight", matrix)])
    matrix.grad = torch.zeros_like(matrix)
    made.step()
    torch.testing.assert_close(matrix.detach(), torch.full((3, 5), 2.0 * (1 - 0.1 * 0.5)))

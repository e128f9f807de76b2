"""Arguments of a program's optimizer reach the torch optimizers they are meant for."""

import pytest
import torch

from neural.nn.build import build
from neural.optim.optimizers.adam import Adam
from neural.optim.optimizers.adamw import AdamW
from neural.optim.optimizers.muon import Muon
from neural.optim.optimizers.sgd import SGD
from tests.programs import load_network

LANGUAGE_MODEL = """network Small {
  input: (11,)
  layers:
    Embedding(input_dim=19, output_dim=12)
    TransformerDecoder(num_heads=2, d_model=12, dff=17, positional="POSITIONS") * 2
    Dense(19, activation="softmax")
  loss: "sparse_categorical_crossentropy"
}"""


def named_parameters(positions: str = "sinusoidal") -> list[tuple[str, torch.nn.Parameter]]:
    return list(
        build(load_network(LANGUAGE_MODEL.replace("POSITIONS", positions))).named_parameters()
    )


@pytest.mark.parametrize("optimizer", [Adam, AdamW])
def test_adam_gets_its_arguments(optimizer):
    (torch_optimizer,) = optimizer(
        learning_rate=0.03, beta_1=0.7, beta_2=0.8, epsilon=1e-5, weight_decay=0.2
    ).build(named_parameters())
    assert type(torch_optimizer).__name__ == optimizer.__name__
    for group in torch_optimizer.param_groups:
        assert (group["lr"], group["betas"], group["eps"]) == (0.03, (0.7, 0.8), 1e-5)
    assert torch_optimizer.param_groups[0]["weight_decay"] == 0.2


def test_adamw_does_not_decay_biases_and_norms():
    (torch_optimizer,) = AdamW(weight_decay=0.2).build(named_parameters())
    decayed, others = torch_optimizer.param_groups
    assert (decayed["weight_decay"], others["weight_decay"]) == (0.2, 0.0)
    assert all(param.ndim >= 2 for param in decayed["params"])
    assert all(param.ndim == 1 for param in others["params"])


def test_sgd_gets_its_arguments():
    (torch_optimizer,) = SGD(
        learning_rate=0.03, momentum=0.7, nesterov=True, weight_decay=0.2
    ).build(named_parameters())
    (group,) = torch_optimizer.param_groups
    assert (group["lr"], group["momentum"], group["nesterov"], group["weight_decay"]) == (
        0.03,
        0.7,
        True,
        0.2,
    )


def test_sgd_without_momentum_ignores_nesterov():
    (torch_optimizer,) = SGD(nesterov=True).build(named_parameters())
    assert torch_optimizer.param_groups[0]["nesterov"] is False


def test_muon_gets_its_arguments_and_adamw_its_own_rate():
    muon, adamw = Muon(
        learning_rate=0.03, momentum=0.7, weight_decay=0.2, other_learning_rate=0.004
    ).build(named_parameters())
    (group,) = muon.param_groups
    assert (group["lr"], group["momentum"], group["weight_decay"]) == (0.03, 0.7, 0.2)
    assert [group["lr"] for group in adamw.param_groups] == [0.004]
    assert Muon(learning_rate=0.03).build(named_parameters())[1].param_groups[0][
        "lr"
    ] == pytest.approx(0.003)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "relative"])
def test_muon_updates_only_the_hidden_matrices(positions):
    parameters = named_parameters(positions)
    muon, adamw = Muon().build(parameters)
    muon_ids = {id(param) for param in muon.param_groups[0]["params"]}
    muon_names = {name for name, param in parameters if id(param) in muon_ids}
    projections = ("query", "key", "value", "output", "up", "down")
    block_matrices = [
        name for name, param in parameters if name.startswith("transformer") and param.ndim == 2
    ]
    assert muon_names == {name for name in block_matrices if name.split(".")[-2] in projections}
    adamw_ids = {id(param) for group in adamw.param_groups for param in group["params"]}
    assert adamw_ids == {id(param) for _, param in parameters} - muon_ids


def test_muon_leaves_a_tied_table_to_adamw_and_takes_the_last_matrix_of_the_last_block():
    tied = LANGUAGE_MODEL.replace("POSITIONS", "learned").replace(
        "Dense(19, ", "Output(19, tied=true, bias=false, "
    )
    parameters = list(build(load_network(tied)).named_parameters())
    muon, adamw = Muon().build(parameters)
    names = {id(param): name for name, param in parameters}
    muon_names = [names[id(param)] for param in muon.param_groups[0]["params"]]
    assert "transformer_decoder.1.feed_forward.sublayer.down.weight" in muon_names
    adamw_matrices = [
        names[id(param)] for param in adamw.param_groups[0]["params"] if param.ndim == 2
    ]
    assert adamw_matrices == ["embedding.table.weight", "positional_encoding.table"]


def test_muon_without_hidden_matrices_is_adamw():
    (torch_optimizer,) = Muon().build([("output.linear.bias", torch.nn.Parameter(torch.ones(3)))])
    assert isinstance(torch_optimizer, torch.optim.AdamW)


def test_weight_decay_of_adamw_is_decoupled():
    matrix = torch.nn.Parameter(torch.full((3, 5), 2.0))
    (torch_optimizer,) = AdamW(learning_rate=0.1, weight_decay=0.5).build(
        [("dense.weight", matrix)]
    )
    matrix.grad = torch.zeros_like(matrix)
    torch_optimizer.step()
    torch.testing.assert_close(matrix.detach(), torch.full((3, 5), 2.0 * (1 - 0.1 * 0.5)))

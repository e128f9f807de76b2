"""Network → nn.Module: predictions, losses, two streams, errors, parameter counts, compilation."""

import pickle

import pytest
import torch

from neural.nn.build import build
from tests.programs import CLASSIFIER, LANGUAGE_MODEL, TRANSLATOR, load_network

B, T, E, C = 2, 7, 12, 5


def build_network(text: str, seed: int = 0) -> torch.nn.Module:
    torch.manual_seed(seed)
    return build(load_network(text)).double().eval()


def head(units: int, activation: str, loss: str) -> str:
    return (
        f'network Head {{\n input: (7, 12)\n layers:\n Dense(11, activation="tanh")\n'
        f' Output({units}, activation="{activation}")\n loss: {loss}\n}}'
    )


def random_tensor(*shape: int) -> torch.Tensor:
    torch.manual_seed(1)
    return torch.randn(*shape, dtype=torch.float64)


# --- heads and losses -----------------------------------------------------------------------------


def test_predictions_are_probabilities_and_scores_are_not():
    net = build_network(CLASSIFIER)
    x = random_tensor(B, 13, E)
    predictions, scores = net(x), net.logits(x)
    torch.testing.assert_close(predictions.sum(dim=-1), torch.ones(B, dtype=torch.float64))
    torch.testing.assert_close(predictions, scores.softmax(dim=-1))
    assert (scores < 0).any(), "scores have any sign"
    plain = net.output.linear(net.run_layers(net.network.layers[:-1], x, None)[0])
    torch.testing.assert_close(scores, plain)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_fused_loss_equals_the_two_step_loss_for_class_indices(smoothing):
    net = build_network(
        head(C, "softmax", f"sparse_categorical_crossentropy(label_smoothing={smoothing})")
    )
    x, target = random_tensor(B, T, E), torch.randint(0, C, (B, T))
    log_probabilities = net(x).log()
    of_target = log_probabilities.gather(-1, target.unsqueeze(-1)).squeeze(-1)
    two_steps = -((1 - smoothing) * of_target + smoothing * log_probabilities.mean(dim=-1)).mean()
    torch.testing.assert_close(net.loss(net.logits(x), target), two_steps)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_fused_loss_equals_the_two_step_loss_for_probabilities(smoothing):
    net = build_network(
        head(C, "softmax", f"categorical_crossentropy(label_smoothing={smoothing})")
    )
    x, target = random_tensor(B, T, E), random_tensor(B, T, C).softmax(dim=-1)
    smoothed = (1 - smoothing) * target + smoothing / C
    torch.testing.assert_close(
        net.loss(net.logits(x), target), -(smoothed * net(x).log()).sum(dim=-1).mean()
    )


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_fused_loss_equals_the_two_step_loss_for_binary_labels(smoothing):
    net = build_network(head(C, "sigmoid", f"binary_crossentropy(label_smoothing={smoothing})"))
    x, target = random_tensor(B, T, E), torch.randint(0, 2, (B, T, C))
    smoothed, p = (1 - smoothing) * target + smoothing / 2, net(x)
    torch.testing.assert_close(p, net.logits(x).sigmoid())
    two_steps = -(smoothed * p.log() + (1 - smoothed) * (1 - p).log()).mean()
    torch.testing.assert_close(net.loss(net.logits(x), target), two_steps)


@pytest.mark.parametrize(
    ("loss", "formula"), [("mse", lambda d: d.square().mean()), ("mae", lambda d: d.abs().mean())]
)
def test_regression_losses_are_means_over_predictions(loss, formula):
    net = build_network(head(C, "tanh", f'"{loss}"'))
    x, target = random_tensor(B, T, E), random_tensor(B, T, C)
    assert torch.equal(net(x), net.logits(x)), "this loss contains no activation"
    torch.testing.assert_close(net.loss(net.logits(x), target), formula(net(x) - target))


def test_a_regression_takes_targets_with_or_without_the_last_axis():
    net = build_network(head(1, "linear", '"mse"'))
    x, target = random_tensor(B, T, E), random_tensor(B, T)
    assert torch.equal(net.loss(net(x), target), net.loss(net(x), target.unsqueeze(-1)))


def test_a_network_without_a_loss_raises_an_error():
    net = build_network(
        'network Bare {\n input: (7, 12)\n layers:\n Output(5, activation="softmax")\n}'
    )
    torch.testing.assert_close(
        net(random_tensor(B, T, E)).sum(dim=-1), torch.ones(B, T, dtype=torch.float64)
    )
    with pytest.raises(ValueError, match="Bare has no loss"):
        net.loss(random_tensor(B, T, C), random_tensor(B, T, C))


def test_a_step_along_the_gradient_lowers_the_loss():
    for text, x, target in (
        (CLASSIFIER, (random_tensor(B, 13, E),), torch.tensor([1, 3])),
        (LANGUAGE_MODEL, (torch.randint(0, 19, (B, 11)),), torch.randint(0, 19, (B, 11))),
        (
            TRANSLATOR,
            (torch.randint(1, 19, (B, 11)), torch.randint(1, 19, (B, T))),
            torch.randint(0, 19, (B, T)),
        ),
    ):
        net = build_network(text).train()
        before = net.loss(net.logits(*x), target)
        before.backward()
        assert all(param.grad is not None for param in net.parameters())
        with torch.no_grad():
            for param in net.parameters():
                param -= 0.01 * param.grad
        assert net.loss(net.logits(*x), target) < before


# --- two streams ----------------------------------------------------------------------------------


def test_source_and_target_go_through_the_one_embedding():
    net = build_network(TRANSLATOR)
    embeddings = [module for module in net.modules() if isinstance(module, torch.nn.Embedding)]
    assert len(embeddings) == 1
    source, target = torch.full((B, 11), 3), torch.full((B, T), 4)
    plain = net(source, target)
    for token in (3, 4):  # the source's, then the target's
        other = build_network(TRANSLATOR)
        with torch.no_grad():
            other.embedding.table.weight[token] += 1
        assert not torch.allclose(other(source, target), plain)
    with torch.no_grad():
        net.embedding.table.weight[5] += 1
    assert torch.equal(net(source, target), plain), "a token that does not occur changes nothing"


def test_memory_is_the_output_of_the_last_encoder_block():
    net = build_network(TRANSLATOR)
    source, target = torch.randint(1, 19, (B, 11)), torch.randint(1, 19, (B, T))
    encoder_outputs, memories = [], []
    net.transformer_encoder[-1].register_forward_hook(
        lambda module, inputs, output: encoder_outputs.append(output)
    )
    for decoder in net.transformer_decoder:
        decoder.cross.sublayer.register_forward_hook(
            lambda module, inputs, output: memories.append(inputs[2])
        )
    net(source, target)
    assert (len(encoder_outputs), len(memories)) == (1, 2)
    assert all(torch.equal(memory, encoder_outputs[0]) for memory in memories)


def test_a_translator_takes_two_sequences_of_any_length():
    net = build_network(TRANSLATOR)
    assert net(torch.randint(1, 19, (B, 3)), torch.randint(1, 19, (B, 17))).shape == (B, 17, 19)


# --- rejected inputs ------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(B, 13), (B, 13, 11), (B, 13, E, 1), (13, E)])
def test_a_wrong_shape_is_refused_with_both_shapes(shape):
    with pytest.raises(
        ValueError, match=r"Classifier takes \(B, 13, 12\), got \(" + ", ".join(map(str, shape))
    ):
        build_network(CLASSIFIER)(torch.zeros(*shape, dtype=torch.float64))


def test_floats_instead_of_token_ids_are_refused():
    with pytest.raises(
        ValueError, match=r"LanguageModel takes token ids \(integers\), got torch.float64"
    ):
        build_network(LANGUAGE_MODEL)(torch.zeros(B, 11, dtype=torch.float64))
    with pytest.raises(ValueError, match=r"Translator takes \(B, 11\), got \(2, 7, 3\)"):
        build_network(TRANSLATOR)(torch.ones(B, 11, dtype=torch.long), torch.zeros(B, 7, 3))


def test_token_ids_instead_of_floats_are_refused():
    with pytest.raises(ValueError, match=r"Classifier takes floats, got torch.int64"):
        build_network(CLASSIFIER)(torch.zeros(B, 13, E, dtype=torch.long))


@pytest.mark.parametrize("shape", [(B,), (B, 12), (1, 13), (B, 13, 1)])
def test_a_mask_of_another_shape_is_refused(shape):
    with pytest.raises(ValueError, match=r"Classifier takes a mask of \(2, 13\), got \("):
        build_network(CLASSIFIER)(random_tensor(B, 13, E), torch.ones(*shape))


FIXED = ["Flatten()\nDense(5)", "Reshape((12, 7))\nDense(5)", "Conv1D(3)\nFlatten()\nDense(5)"]
FREE = [
    "LSTM(3)\nDense(5)",
    "GlobalAveragePooling1D()\nFlatten()\nDense(5)",
    "LSTM(3, return_sequences=false)\nFlatten()",
    "Conv1D(3)\nGlobalAveragePooling1D()",
]


@pytest.mark.parametrize("layers", FIXED)
def test_another_length_is_refused_if_a_layer_needs_the_declared_one(layers):
    net = build_network(f"network Fixed {{\n input: (7, 12)\n layers:\n{layers}\n}}")
    assert len(net(random_tensor(B, T, E))) == B
    with pytest.raises(ValueError, match=r"Fixed takes \(B, 7, 12\), got \(2, 8, 12\)"):
        net(random_tensor(B, 8, E))


@pytest.mark.parametrize("layers", FREE)
def test_another_length_is_accepted_if_no_layer_needs_it(layers):
    net = build_network(f"network Free {{\n input: (7, 12)\n layers:\n{layers}\n}}")
    assert len(net(random_tensor(B, 11, E))) == B


# --- parameter counts of the guide's networks -----------------------------------------------------

COUNTED = {
    "attention alone": (
        1_314_304,
        (100, 512),
        """network Several { input: (100, 512)
          layers:
            MultiHeadAttention(num_heads=8, key_dim=64)
            LayerNormalization()
            Dense(512, activation="relu")
          loss: "categorical_crossentropy" }""",
    ),
    "two streams": (
        54_388_496,
        ("T", 10000),
        """network Reader { input: (100, 512)
          layers:
            Embedding(input_dim=10000, output_dim=512)
            TransformerEncoder(num_heads=8, d_model=512, dff=2048) * 6
            TransformerDecoder(num_heads=8, d_model=512, dff=2048) * 6
            Dense(10000, activation="softmax")
          loss: "sparse_categorical_crossentropy" }""",
    ),
    "decoder alone": (
        123_702_097,
        (512, 50257),
        """network Writer { input: (512, 768)
          layers:
            TransformerDecoder(num_heads=12, d_model=768, dff=3072) * 12
            Dense(50257, activation="softmax")
          loss: "sparse_categorical_crossentropy" }""",
    ),
    "regression": (
        50_049,
        (1,),
        """network Forecast { input: (100, 64)
          layers:
            TransformerEncoder(num_heads=8, d_model=64, dff=256)
            GlobalAveragePooling1D()
            Dense(1)
          loss: "mse" }""",
    ),
}


@pytest.mark.parametrize(("parameters", "output", "text"), COUNTED.values(), ids=COUNTED.keys())
def test_predicted_and_built_parameter_counts_are_exact(parameters, output, text):
    checked = load_network(text)
    net = build(checked, device="meta")
    assert checked.cost.parameters == parameters
    assert sum(param.numel() for param in net.parameters()) == parameters
    assert checked.output == output
    if checked.is_encoder_decoder:
        x = [
            torch.zeros(B, 100, dtype=torch.long, device="meta"),
            torch.zeros(B, 17, dtype=torch.long, device="meta"),
        ]
    else:
        x = [torch.zeros(B, *checked.input, device="meta")]
    assert tuple(net(*x).shape) == (B, *(17 if dim == "T" else dim for dim in output))


# --- pickle, torch.compile, torch.export, precision -----------------------------------------------

INPUTS = {
    "classifier": (
        CLASSIFIER,
        lambda: (torch.randn(B, 13, E), torch.arange(13) < torch.tensor([[5], [13]])),
    ),
    "language model": (LANGUAGE_MODEL, lambda: (torch.randint(0, 19, (B, 11)),)),
    "translator": (
        TRANSLATOR,
        lambda: (torch.randint(0, 19, (B, 11)), torch.randint(0, 19, (B, T))),
    ),
}
every_program = pytest.mark.parametrize(("text", "inputs"), INPUTS.values(), ids=INPUTS.keys())


@every_program
def test_a_network_can_be_pickled_and_loaded_from_a_state_dict(text, inputs):
    net, x = build(load_network(text)).eval(), inputs()
    assert torch.equal(pickle.loads(pickle.dumps(net))(*x), net(*x))
    other = build(load_network(text)).eval()
    assert not torch.equal(other(*x), net(*x))
    other.load_state_dict(net.state_dict())
    assert torch.equal(other(*x), net(*x))


@every_program
def test_a_compiled_network_gives_the_same_values(text, inputs):
    torch._dynamo.reset()
    net, x = build(load_network(text)).eval(), inputs()
    compiled = torch.compile(net, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(*x), net(*x))
    loss = compiled(*x).square().sum()
    loss.backward()
    assert all(param.grad is not None for param in net.parameters())


@every_program
def test_an_exported_network_gives_the_same_values(text, inputs):
    net, x = build(load_network(text)).eval(), inputs()
    exported = torch.export.export(net, x)
    torch.testing.assert_close(exported.module()(*x), net(*x))


@every_program
def test_the_same_seed_gives_the_same_network(text, inputs):
    first, second = build_network(text, seed=3), build_network(text, seed=3)
    assert all(
        torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True)
    )


def test_a_network_moves_and_changes_precision():
    net = build(load_network(CLASSIFIER), device="meta").to_empty(device="cpu").to(torch.bfloat16)
    assert {param.dtype for param in net.parameters()} == {torch.bfloat16}
    assert net(torch.randn(B, 13, E, dtype=torch.bfloat16)).dtype == torch.bfloat16

"""Measurements of `neural debug` find planted faults at their locations."""

import numpy as np
import pytest
import torch

from neural.capture.capture_result import Capture
from neural.nn.multi_head_attention import MultiHeadAttentionModule
from neural.workflows.debug import prepare
from neural.workflows.model_inspection import (
    compare_fused_attention,
    compute_objective,
    find_anomalies,
    head_importance,
    measure_gradients,
    parse_layer_name,
)
from tests.programs import CLASSIFIER, LANGUAGE_MODEL


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "net.neural"
    path.write_text(CLASSIFIER)
    return path


@pytest.fixture
def prepared(program):
    """A subject and its inputs."""
    return prepare(program)


def attention_modules(prepared):
    return [
        (path, module)
        for path, module in prepared[0].model.named_modules()
        if isinstance(module, MultiHeadAttentionModule)
    ]


def capture(prepared):
    subject, inputs = prepared
    return subject.capture_attention(inputs, Capture())


def test_fused_attention_equals_explicit_weights(prepared):
    assert compare_fused_attention(*prepared) < 1e-5


def test_a_wrong_fast_path_is_noticed(prepared, monkeypatch):
    mechanism_type = type(attention_modules(prepared)[0][1].mechanism)
    attend = mechanism_type.attend
    monkeypatch.setattr(mechanism_type, "attend", lambda *args: 1.5 * attend(*args))
    assert compare_fused_attention(*prepared) > 1e-4


def test_gradients_equal_those_of_backward_and_do_not_set_grad(prepared):
    layers = {gradient.layer: gradient for gradient in measure_gradients(*prepared)}
    assert list(layers) == [
        "transformer_encoder.0.attention",
        "transformer_encoder.0.feed_forward",
        "transformer_encoder.1.attention",
        "transformer_encoder.1.feed_forward",
        "output",
    ]
    assert all(param.grad is None for param in prepared[0].model.parameters())
    compute_objective(*prepared).backward()
    params = [
        param for name, param in prepared[0].model.named_parameters() if name.startswith("output.")
    ]
    assert layers["output"].gradient_norm == pytest.approx(
        float(torch.cat([param.grad.flatten() for param in params]).norm())
    )
    assert layers["output"].weight_norm == pytest.approx(
        float(torch.cat([param.detach().flatten() for param in params]).norm())
    )
    assert sum(layer.parameters for layer in layers.values()) == sum(
        param.numel() for param in prepared[0].model.parameters()
    )


def test_the_layer_of_a_parameter_is_parsed_from_its_name():
    assert (
        parse_layer_name("transformer_decoder.0.attention.sublayer.query.weight")
        == "transformer_decoder.0.attention"
    )
    assert parse_layer_name("embedding.table.weight") == "embedding"
    assert parse_layer_name("scale.weight") == "scale"


def test_a_head_without_output_weights_has_no_importance(prepared):
    _, module = attention_modules(prepared)[1]
    with torch.no_grad():
        module.output.weight[:, 2 * module.head_width :] = 0  # the last of three heads
    importance = head_importance(*prepared, capture(prepared))
    assert importance.shape == (2, 3)
    assert importance[1, 2] == 0
    assert (np.delete(importance.flatten(), 5) > 1e-4).all()


def test_a_network_with_spread_attention_logits_has_no_anomalies(prepared):
    for _, module in attention_modules(prepared):
        torch.nn.init.normal_(module.query.weight, std=0.5)
        torch.nn.init.normal_(module.key.weight, std=0.5)
    assert find_anomalies(*prepared, capture(prepared)) == []


def locate_anomalies(prepared):
    anomalies = find_anomalies(*prepared, capture(prepared))
    return [(anomaly.kind, anomaly.location) for anomaly in anomalies]


def test_an_infinite_weight_is_found_in_its_parameter_and_module(prepared):
    with torch.no_grad():
        attention_modules(prepared)[1][1].value.bias[0] = float("inf")
    assert locate_anomalies(prepared) == [
        ("not finite", "transformer_encoder.1.attention.sublayer.value.bias"),
        ("not finite", "transformer_encoder.1.attention.sublayer.value"),
    ]


def test_saturated_heads_are_found(prepared):
    path, module = attention_modules(prepared)[0]
    with torch.no_grad():
        module.query.weight.mul_(400)
    assert ("saturation", f"{path} h0") in locate_anomalies(prepared)


def test_uniform_heads_are_found(prepared):
    path, module = attention_modules(prepared)[1]
    with torch.no_grad():
        module.query.weight.zero_()
        module.query.bias.zero_()
    assert ("collapse", path) in locate_anomalies(prepared)


def test_positions_with_the_same_vector_are_found(tmp_path):
    (tmp_path / "lm.neural").write_text(LANGUAGE_MODEL)
    prepared = prepare(tmp_path / "lm.neural")
    with torch.no_grad():
        table = prepared[0].model.get_submodule("embedding.table").weight
        table[:] = 100 * table[0]
    assert ("collapse", "embedding.table") in locate_anomalies(prepared)


def test_a_layer_without_gradient_is_found(prepared):
    with torch.no_grad():
        prepared[0].model.get_submodule("output.linear").weight.zero_()
        prepared[0].model.get_submodule("output.linear").bias.zero_()
    assert ("gradient", "transformer_encoder.0.attention") in locate_anomalies(prepared)

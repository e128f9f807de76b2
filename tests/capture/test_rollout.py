"""Attention rollout against a plain reference."""

import numpy as np
import pytest
import torch

import neural
from neural.capture.rollout import iter_rollouts, rollout_gradients
from tests.vision_folders import build_vision_model


def compute_reference(layers):
    """Abnar & Zuidema, written out: one multiplication per entry."""
    count = layers[0].shape[-1]
    rollout = np.eye(count)
    for maps in layers:
        mean = sum(maps) / len(maps)
        mixing = 0.5 * mean + 0.5 * np.eye(count)
        product = np.zeros((count, count))
        for i in range(count):
            for j in range(count):
                product[i, j] = sum(mixing[i, k] * rollout[k, j] for k in range(count))
        rollout = product
    return rollout


@pytest.fixture
def layers():
    scores = np.random.default_rng(0).normal(size=(3, 2, 7, 7))
    return np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)


def test_it_equals_the_reference_at_every_layer(layers):
    rollouts = list(iter_rollouts(layers))
    assert len(rollouts) == 3
    for count, rollout in enumerate(rollouts, 1):
        np.testing.assert_allclose(rollout, compute_reference(layers[:count]), atol=1e-12)


def test_the_order_of_layers_matters(layers):
    *_, forward = iter_rollouts(layers)
    *_, backward = iter_rollouts(layers[::-1])
    assert np.abs(forward - backward).max() > 1e-3


def test_rows_sum_to_one_also_with_a_sink(layers):
    *_, rollout = iter_rollouts(layers * 0.6)
    np.testing.assert_allclose(rollout.sum(-1), 1)


def test_information_of_a_chain_arrives():
    """Position 2 attends to 1, which attends to 0: after two layers, 2 holds a quarter of 0."""
    chain = np.array([[[1.0, 0, 0], [1, 0, 0], [0, 1, 0]]])
    *_, rollout = iter_rollouts([chain, chain])
    np.testing.assert_allclose(rollout[2], [0.25, 0.5, 0.25])


def test_maps_of_different_sizes_are_refused(layers):
    with pytest.raises(ValueError, match="same positions in all layers: 7, then 5"):
        list(iter_rollouts([layers[0], layers[1][:, :5, :5]]))
    with pytest.raises(ValueError, match="7 × 5 cells"):
        list(iter_rollouts([layers[0][:, :, :5]]))


def test_it_equals_the_reference_on_a_vision_transformer():
    model = build_vision_model()
    pixels = torch.randn(1, 3, 32, 32)
    capture = neural.watch(model, {"pixel_values": pixels})
    model.set_attn_implementation("eager")
    own = model(pixels, output_attentions=True).attentions
    expected = compute_reference([layer[0].detach().double().numpy() for layer in own])
    *_, rollout = iter_rollouts(call.maps()[0] for call in capture)
    np.testing.assert_allclose(rollout, expected, atol=1e-6)


def test_gradient_rollout_equals_the_reference(layers):
    """Chefer et al., written out: R ← R + mean over heads of (gradient ⊙ weights)⁺ · R."""
    gradients = np.random.default_rng(1).normal(size=layers.shape)
    expected = np.eye(7)
    for maps, gradient in zip(layers, gradients, strict=True):
        used = np.zeros((7, 7))
        for head in range(2):
            used += np.where(gradient[head] > 0, gradient[head] * maps[head], 0) / 2
        expected = expected + used @ expected
    np.testing.assert_allclose(rollout_gradients(layers, gradients), expected, atol=1e-12)


def test_gradient_rollout_ignores_what_speaks_against_the_answer(layers):
    relevance = rollout_gradients(layers, -np.ones_like(layers))
    np.testing.assert_array_equal(relevance, np.eye(7))


def test_gradient_rollout_refuses_other_attention(layers):
    with pytest.raises(ValueError, match="7 × 5 cells"):
        rollout_gradients([layers[0][:, :, :5]], [layers[0][:, :, :5]])
    with pytest.raises(ValueError, match="at least one layer"):
        rollout_gradients([], [])

"""The segmenter without torch against the torch model, on every instruction set."""

import numpy as np
import pytest
import torch

from neural.native.library import available_levels, force_level, no_kernels
from neural.tasks.segmentation.inference import compute_logits, compute_logits_in_windows
from neural.tasks.segmentation.model import Segmenter
from neural.tasks.segmentation.model_builder import build_attention
from neural.tasks.segmentation.numpy_segmenter import NumpySegmenter
from neural.tasks.segmentation.settings import SegmenterSettings

ARCHITECTURES = {
    "shipped": {"hidden_dim": 48, "attention_heads": 4, "attention_dim": 48, "window_size": 15},
    "primes": {"hidden_dim": 7, "attention_heads": 3, "attention_dim": 33, "num_layers": 2},
    "no projections": {"hidden_dim": 17, "attention_heads": 2, "attention_dim": 34},
    "wide": {"hidden_dim": 70, "attention_heads": 1, "attention_dim": 5, "window_size": 1},
    "no attention": {"hidden_dim": 5, "attention_enabled": False},
}
LEVELS = (*available_levels(), "numpy")


def build_models(name, num_features=11, num_classes=3):
    """The torch model with random weights, and the same without torch."""
    options = {"num_layers": 1, "attention_type": "localized", **ARCHITECTURES[name]}
    settings = SegmenterSettings(**options)
    torch.manual_seed(0)
    model = Segmenter(
        num_features,
        num_classes,
        hidden_dim=settings.hidden_dim,
        num_layers=settings.num_layers,
        attention=build_attention(settings) if settings.attention_enabled else None,
    ).eval()
    model.set_standardization(torch.randn(num_features), torch.rand(num_features) + 0.5)
    tensors = {key: tensor.numpy() for key, tensor in model.state_dict().items()}
    assert NumpySegmenter.supports(settings)
    return model, NumpySegmenter(settings, num_features, tensors), tensors, settings


def use_level(level):
    return no_kernels() if level == "numpy" else force_level(level)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_logits_equal_those_of_torch(name, level):
    model, numpy_model, _, _ = build_models(name)
    for time in (1, 2, 16, 37, 131):
        x = np.random.default_rng(time).standard_normal((time, 11)).astype(np.float32) * 3
        with torch.no_grad(), no_kernels():
            expected = model.logits(torch.from_numpy(x)[None])[0].numpy()
        with use_level(level):
            np.testing.assert_allclose(numpy_model.logits(x), expected, atol=1e-5)


@pytest.mark.parametrize("level", LEVELS)
def test_large_inputs_saturate_and_nan_stays_nan(level):
    model, numpy_model, _, _ = build_models("shipped")
    x = np.random.default_rng(0).standard_normal((20, 11)).astype(np.float32) * 1e6
    with torch.no_grad(), no_kernels():
        expected = model.logits(torch.from_numpy(x)[None])[0].numpy()
    with use_level(level):
        np.testing.assert_allclose(numpy_model.logits(x), expected, atol=1e-4)
        x[7] = np.nan
        assert np.isnan(numpy_model.logits(x)).all()


@pytest.mark.parametrize("level", LEVELS)
def test_strided_inputs_and_windows_are_accepted(level):
    _, numpy_model, _, _ = build_models("primes")
    x = np.random.default_rng(0).standard_normal((300, 22)).astype(np.float32)
    with use_level(level):
        np.testing.assert_array_equal(
            numpy_model.logits(x[:, ::2]), numpy_model.logits(x[:, ::2].copy())
        )
        logits = compute_logits_in_windows(
            numpy_model, x[:, :11], max_single_pass=64, window=64, context=8
        )
        assert logits.shape == (300, 3)
        (whole,) = compute_logits(numpy_model, [x[:, :11]])
        np.testing.assert_array_equal(logits[:8], numpy_model.logits(x[:64, :11])[:8])
        assert whole.shape == logits.shape


def test_wrong_weights_are_refused():
    _, numpy_model, tensors, settings = build_models("primes")
    with pytest.raises(ValueError, match="mean is missing"):
        NumpySegmenter(settings, 11, {k: v for k, v in tensors.items() if k != "mean"})
    with pytest.raises(ValueError, match="no surplus"):
        NumpySegmenter(settings, 11, {**tensors, "surplus": np.zeros(2)})
    with pytest.raises(ValueError, match="std has the shape"):
        NumpySegmenter(settings, 11, {**tensors, "std": np.zeros(2)})
    with pytest.raises(ValueError, match="elements, 11"):
        numpy_model.logits(np.zeros((4, 12), np.float32))


@pytest.mark.parametrize(
    "options",
    [
        {"attention_type": "self"},
        {"attention_type": "localized(window=5)"},
        {"attention_type": "localized", "positional_encoding": "rotary"},
        {"attention_type": "localized", "positional_encoding": True},
    ],
)
def test_other_architectures_are_left_to_torch(options):
    assert not NumpySegmenter.supports(SegmenterSettings(**options))

"""A state dict of torch's encoder becomes a run with the same outputs."""

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from neural.imports.nn_transformer_encoder import NnTransformerEncoder
from neural.training.load_model import load_best_model
from neural.workflows.import_model import ModelImportError, import_file

WIDTH, HEADS, INNER_WIDTH = 12, 3, 17


def create_encoder(layers=2, final_norm=True, **options):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(
        WIDTH, HEADS, INNER_WIDTH, dropout=0.1, batch_first=True, **options
    )
    norm = nn.LayerNorm(WIDTH, bias=options.get("bias", True)) if final_norm else None
    encoder = nn.TransformerEncoder(layer, layers, norm, enable_nested_tensor=False)
    with torch.no_grad():
        for param in encoder.parameters():
            param.add_(0.3 * torch.randn_like(param))
    return encoder.eval()


@pytest.mark.parametrize(
    ("options", "overrides"),
    [
        ({}, []),
        ({"norm_first": True, "activation": "gelu"}, ["norm_first=true", "activation=gelu"]),
        ({"layers": 1, "final_norm": False, "bias": False}, []),
    ],
)
def test_an_imported_run_has_the_outputs_of_the_original(options, overrides, tmp_path):
    original = create_encoder(**options)
    save_file(original.state_dict(), tmp_path / "encoder.safetensors")
    result = import_file(
        tmp_path / "encoder.safetensors",
        NnTransformerEncoder,
        [f"num_heads={HEADS}", *overrides],
        runs=tmp_path / "runs",
    )
    assert result.max_difference <= 1e-5
    x = torch.randn(2, 5, WIDTH)
    torch.testing.assert_close(load_best_model(result.path)(x), original(x), rtol=0, atol=1e-5)


def test_a_single_layer_in_a_pt_file_is_imported(tmp_path):
    layer = create_encoder().layers[0]
    torch.save(layer.state_dict(), tmp_path / "layer.pt")
    result = import_file(
        tmp_path / "layer.pt", NnTransformerEncoder, [f"num_heads={HEADS}"], runs=tmp_path / "runs"
    )
    x = torch.randn(2, 5, WIDTH)
    torch.testing.assert_close(load_best_model(result.path)(x), layer(x), rtol=0, atol=1e-5)


def test_a_missing_number_of_heads_is_an_error(tmp_path):
    torch.save(create_encoder().state_dict(), tmp_path / "encoder.pt")
    for overrides in ([], ["num_heads=5"]):
        with pytest.raises(ModelImportError, match="--set num_heads=…, one of 1, 2, 3, 4, 6, 12"):
            import_file(
                tmp_path / "encoder.pt", NnTransformerEncoder, overrides, runs=tmp_path / "runs"
            )
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layers.0.multihead_attn.in_proj_weight": torch.ones(3, 3)}, "unknown parameter"),
        (
            {"layers.7.linear1.weight": torch.ones(INNER_WIDTH, WIDTH)},
            "its layers are not layers.0, layers.1",
        ),
        (
            {"layers.1.linear2.weight": torch.ones(WIDTH, 5)},
            "lacks weights of its network",
        ),
    ],
)
def test_other_state_dicts_are_errors(change, message, tmp_path):
    torch.save({**create_encoder().state_dict(), **change}, tmp_path / "other.pt")
    with pytest.raises(ModelImportError, match=message):
        import_file(
            tmp_path / "other.pt",
            NnTransformerEncoder,
            [f"num_heads={HEADS}"],
            runs=tmp_path / "runs",
        )

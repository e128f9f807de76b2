"""A state dict of torch's own encoder becomes a run, and gives the same numbers."""

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from neural.experiments import best_model
from neural.importing import CannotImport, import_file
from neural.imports.nn_transformer_encoder import NnTransformerEncoder

E, H, INNER = 12, 3, 17


def encoder(layers=2, last=True, **said):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(E, H, INNER, dropout=0.1, batch_first=True, **said)
    norm = nn.LayerNorm(E, bias=said.get("bias", True)) if last else None
    made = nn.TransformerEncoder(layer, layers, norm, enable_nested_tensor=False)
    with torch.no_grad():
        for one in made.parameters():
            one.add_(0.3 * torch.randn_like(one))
    return made.eval()


@pytest.mark.parametrize(
    ("said", "changes"),
    [
        ({}, []),
        ({"norm_first": True, "activation": "gelu"}, ["norm_first=true", "activation=gelu"]),
        ({"layers": 1, "last": False, "bias": False}, []),
    ],
)
def test_the_run_gives_the_numbers_of_the_original(said, changes, tmp_path):
    theirs = encoder(**said)
    save_file(theirs.state_dict(), tmp_path / "encoder.safetensors")
    done = import_file(
        tmp_path / "encoder.safetensors", NnTransformerEncoder, [f"num_heads={H}", *changes], runs=tmp_path / "runs"
    )
    assert done.difference <= 1e-5
    x = torch.randn(2, 5, E)
    torch.testing.assert_close(best_model(done.path)(x), theirs(x), rtol=0, atol=1e-5)


def test_a_layer_alone_in_a_pt_file(tmp_path):
    layer = encoder().layers[0]
    torch.save(layer.state_dict(), tmp_path / "layer.pt")
    done = import_file(tmp_path / "layer.pt", NnTransformerEncoder, [f"num_heads={H}"], runs=tmp_path / "runs")
    x = torch.randn(2, 5, E)
    torch.testing.assert_close(best_model(done.path)(x), layer(x), rtol=0, atol=1e-5)


def test_heads_leave_no_trace_and_are_asked_for(tmp_path):
    torch.save(encoder().state_dict(), tmp_path / "encoder.pt")
    for changes in ([], ["num_heads=5"]):
        with pytest.raises(CannotImport, match="--set num_heads=…, one of 1, 2, 3, 4, 6, 12"):
            import_file(tmp_path / "encoder.pt", NnTransformerEncoder, changes, runs=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"layers.0.multihead_attn.in_proj_weight": torch.ones(3, 3)}, "is none of its names"),
        ({"layers.7.linear1.weight": torch.ones(INNER, E)}, "its layers are not layers.0, layers.1"),
        ({"layers.1.linear2.weight": torch.ones(E, 5)}, "does not hold all that such a network has"),
    ],
)
def test_what_is_no_encoder_is_refused(change, says, tmp_path):
    torch.save({**encoder().state_dict(), **change}, tmp_path / "other.pt")
    with pytest.raises(CannotImport, match=says):
        import_file(tmp_path / "other.pt", NnTransformerEncoder, [f"num_heads={H}"], runs=tmp_path / "runs")

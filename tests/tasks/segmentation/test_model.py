"""The segmenter network: parameter counts, padding, attention, standardization."""

import pytest
import torch

from neural.capture.watch import watch
from neural.language.shapes import ShapeError
from neural.nn.attention import registry as mechanisms
from neural.nn.attention.boundary_aware import BoundaryAware
from neural.nn.attention.localized import Localized
from neural.nn.attention.self import Self
from neural.nn.positions import registry as positions
from neural.nn.positions.rotary import Rotary
from neural.tasks.segmentation.model import (
    AttentionBlock,
    Segmenter,
    format_parameter_table,
    parameter_shares,
)

PUBLISHED_SIZES = [
    # inputs, hidden, layers, width, mechanism, LSTM, attention, classifier, all
    (60, 256, 2, 256, Self(), 2_228_224, 526_592, 1_026, 2_755_842),
    (48, 128, 1, 256, Self(), 182_272, 263_680, 514, 446_466),
    (48, 128, 1, 256, Localized(window=7), 182_272, 263_680, 514, 446_466),
    (48, 128, 1, 256, BoundaryAware(), 182_272, 296_705, 514, 479_491),
    (36, 64, 1, 64, BoundaryAware(), 52_224, 35_457, 258, 87_939),
]


def build_model(
    inputs=5,
    hidden=4,
    layers=1,
    width=8,
    heads=2,
    mechanism=None,
    dropout=0.0,
    position=None,
    classes=2,
):
    torch.manual_seed(0)
    attention = AttentionBlock(
        2 * hidden, width, heads, mechanism or Self(), dropout=dropout, position=position
    )
    return Segmenter(
        inputs, classes, hidden_dim=hidden, num_layers=layers, dropout=dropout, attention=attention
    ).eval()


def make_batch(*lengths, inputs=5):
    torch.manual_seed(1)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(-1)
    return torch.randn(len(lengths), max(lengths), inputs), mask


@pytest.mark.parametrize("row", PUBLISHED_SIZES, ids=lambda row: f"{row[-1]:,} {row[4]!r}")
def test_the_published_sizes_are_exact(row):
    inputs, hidden, layers, width, mechanism, *expected, total = row
    with torch.device("meta"):
        model = build_model(inputs, hidden, layers, width, 8, mechanism)
    counts = {label: count for label, count, _ in parameter_shares(model)}
    assert [counts["LSTM"], counts["attention"], counts["classifier"]] == expected
    assert sum(param.numel() for param in model.parameters()) == total == sum(expected)
    inner = sum(count for label, count in counts.items() if label.startswith("  "))
    assert inner == counts["attention"]


def test_the_summary_has_the_published_percentages():
    inputs, hidden, layers, width, mechanism, *_ = PUBLISHED_SIZES[0]
    with torch.device("meta"):
        text = format_parameter_table(build_model(inputs, hidden, layers, width, 8, mechanism))
    for label, count, share in (
        ("LSTM", "2,228,224", "80.9%"),
        ("attention", "526,592", "19.1%"),
        ("classifier", "1,026", "0.04%"),
    ):
        assert any(line.split() == [label, count, share] for line in text.splitlines())
    assert text.splitlines()[-1].split() == ["total", "2,755,842"]


def test_the_state_dict_has_the_shapes_of_the_small_boundary_aware_model():
    with torch.device("meta"):
        model = build_model(36, 64, 1, 64, 4, BoundaryAware())
    shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    directions = ("l0", "l0_reverse")
    assert shapes == {
        **{f"lstm.cell.weight_ih_{direction}": (256, 36) for direction in directions},
        **{f"lstm.cell.weight_hh_{direction}": (256, 64) for direction in directions},
        **{
            f"lstm.cell.bias_{kind}_{direction}": (256,)
            for direction in directions
            for kind in ("ih", "hh")
        },
        "attention.input_projection.weight": (64, 128),
        "attention.input_projection.bias": (64,),
        **{
            f"attention.heads.{name}.weight": (64, 64)
            for name in ("query", "key", "value", "output")
        },
        **{f"attention.heads.{name}.bias": (64,) for name in ("query", "key", "value", "output")},
        "attention.heads.learned.up.weight": (32, 64),
        "attention.heads.learned.up.bias": (32,),
        "attention.heads.learned.down.weight": (1, 32),
        "attention.heads.learned.down.bias": (1,),
        "attention.norm.weight": (64,),
        "attention.norm.bias": (64,),
        "attention.output_projection.weight": (128, 64),
        "attention.output_projection.bias": (128,),
        "classifier.weight": (2, 128),
        "classifier.bias": (2,),
        "mean": (36,),
        "std": (36,),
    }


def test_only_a_width_other_than_the_lstms_needs_projections():
    assert not any("projection" in name for name in build_model(width=8).state_dict())
    assert any("input_projection" in name for name in build_model(width=6).state_dict())


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("name", mechanisms.names())
def test_padding_changes_nothing(name, layers):
    model = build_model(mechanism=mechanisms.get(name).example(), layers=layers, width=6)
    x, mask = make_batch(11, 7, 1)
    x[~mask] = 1e3  # must not matter
    batched = model.logits(x, mask)
    for row, length in enumerate((11, 7, 1)):
        single = model.logits(x[row : row + 1, :length])
        torch.testing.assert_close(batched[row : row + 1, :length], single, rtol=1e-4, atol=1e-5)


def test_padding_gets_no_gradients():
    model = build_model(mechanism=BoundaryAware(), layers=2)
    x, mask = make_batch(9, 4)
    x = x.requires_grad_()
    model.logits(x, mask)[mask].square().sum().backward()
    assert (x.grad[~mask] == 0).all()
    assert (x.grad[mask] != 0).any(dim=-1).all()


def test_without_attention_it_is_the_lstm_and_the_classifier():
    torch.manual_seed(0)
    model = Segmenter(5, 2, hidden_dim=4, num_layers=2).eval()
    x, _ = make_batch(6)
    torch.testing.assert_close(model.logits(x), model.classifier(model.lstm.cell(x)[0]))
    assert model.boundary_logits is None
    assert [label for label, _, _ in parameter_shares(model)] == ["LSTM", "classifier"]


@pytest.mark.parametrize(
    "name", sorted({"sinusoidal", "rotary", "alibi", "none"} & set(positions.names()))
)
def test_positional_encodings_change_the_scores(name):
    x, mask = make_batch(9, 5)
    position = positions.get(name)()
    without, with_position = build_model(), build_model(position=position)
    same = torch.allclose(without.logits(x, mask)[mask], with_position.logits(x, mask)[mask])
    assert same == (name == "none")


def test_only_boundary_aware_attention_has_boundary_logits():
    model = build_model(mechanism=BoundaryAware())
    x, mask = make_batch(7, 3)
    model.logits(x, mask)
    assert model.boundary_logits.shape == (2, 7)
    assert build_model().boundary_logits is None


def test_the_standardization_is_saved_with_the_weights():
    model, loaded = build_model(), build_model()
    x, _ = make_batch(6)
    expected = model.logits(x)
    model.set_standardization(torch.full((5,), 3.0), torch.full((5,), 2.0))
    torch.testing.assert_close(model.logits(x * 2 + 3), expected)
    loaded.load_state_dict(model.state_dict())
    torch.testing.assert_close(loaded.logits(x * 2 + 3), expected)


def test_a_wrong_number_of_features_is_refused():
    with pytest.raises(ValueError, match=r"takes \(documents, elements, 5\), got \(1, 6, 4\)"):
        build_model().logits(torch.zeros(1, 6, 4))


def test_heads_that_do_not_divide_the_width_are_refused():
    with pytest.raises(ValueError, match="3 heads do not share a width of 8 evenly"):
        build_model(heads=3)


def test_the_attention_is_captured_by_watch():
    model = build_model(mechanism=Localized(window=3))
    x, mask = make_batch(9, 5)
    with watch(model) as capture, torch.no_grad():
        model.logits(x, mask)
    assert [call.path for call in capture] == ["attention.heads"]
    maps = capture[0].maps()
    assert maps.shape == (2, 2, 9, 9)
    outside = (torch.arange(9) - torch.arange(9).unsqueeze(-1)).abs() > 1
    assert (maps[..., outside.numpy()] == 0).all()


def test_training_on_twenty_thousand_lines_needs_linear_memory():
    model = build_model(
        inputs=3, hidden=4, width=4, heads=2, mechanism=Localized(window=7), dropout=0.1
    ).train()
    x = torch.randn(1, 20_000, 3)
    largest = 0

    def record_size(tensor):
        nonlocal largest
        largest = max(largest, tensor.untyped_storage().nbytes())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(record_size, lambda tensor: tensor):
        scores = model.logits(x)
    scores.square().mean().backward()
    assert scores.shape == (1, 20_000, 2)
    assert largest < 4 * 20_000 * 400  # n × n would be fifty times that
    assert all(param.grad.isfinite().all() for param in model.parameters())


def test_positions_that_need_another_head_width_are_refused():
    with pytest.raises(ShapeError, match="a head width of 3 is odd"):
        AttentionBlock(8, 12, 4, Self(), position=Rotary())

"""The segmenter: sizes that are known exactly, documents of any length, attention that is one of ours."""

import pytest
import torch

from neural.language.shapes import Misfit
from neural.modules.attention import registry as mechanisms
from neural.modules.attention.boundary_aware import BoundaryAware
from neural.modules.attention.localized import Localized
from neural.modules.attention.self import Self
from neural.modules.positions import registry as positions
from neural.modules.positions.rotary import Rotary
from neural.modules.segmenter import LookAround, Segmenter, shares, summary
from neural.tracking.watch import watch

KNOWN = [
    # inputs, hidden, layers, width, mechanism, LSTM, attention, classifier, all
    (60, 256, 2, 256, Self(), 2_228_224, 526_592, 1_026, 2_755_842),
    (48, 128, 1, 256, Self(), 182_272, 263_680, 514, 446_466),
    (48, 128, 1, 256, Localized(window=7), 182_272, 263_680, 514, 446_466),
    (48, 128, 1, 256, BoundaryAware(), 182_272, 296_705, 514, 479_491),
    (36, 64, 1, 64, BoundaryAware(), 52_224, 35_457, 258, 87_939),
]


def model(inputs=5, hidden=4, layers=1, width=8, heads=2, mechanism=None, dropout=0.0, position=None, classes=2):
    torch.manual_seed(0)
    attention = LookAround(2 * hidden, width, heads, mechanism or Self(), dropout=dropout, position=position)
    return Segmenter(
        inputs, classes, hidden_dim=hidden, num_layers=layers, dropout=dropout, attention=attention
    ).eval()  # fmt: skip


def batch(*lengths, inputs=5):
    torch.manual_seed(1)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(-1)
    return torch.randn(len(lengths), max(lengths), inputs), mask


@pytest.mark.parametrize("row", KNOWN, ids=lambda row: f"{row[-1]:,} {row[4]!r}")
def test_the_published_sizes_are_met_exactly(row):
    inputs, hidden, layers, width, mechanism, *wanted, whole = row
    with torch.device("meta"):
        made = model(inputs, hidden, layers, width, 8, mechanism)
    counted = {part: number for part, number, _ in shares(made)}
    assert [counted["LSTM"], counted["attention"], counted["classifier"]] == wanted
    assert sum(one.numel() for one in made.parameters()) == whole == sum(wanted)
    inside = sum(number for part, number in counted.items() if part.startswith("  "))
    assert inside == counted["attention"]


def test_the_summary_has_the_published_percentages():
    inputs, hidden, layers, width, mechanism, *_ = KNOWN[0]
    with torch.device("meta"):
        text = summary(model(inputs, hidden, layers, width, 8, mechanism))
    for part, number, share in (
        ("LSTM", "2,228,224", "80.9%"), ("attention", "526,592", "19.1%"), ("classifier", "1,026", "0.04%")
    ):  # fmt: skip
        assert any(line.split() == [part, number, share] for line in text.splitlines())
    assert text.splitlines()[-1].split() == ["total", "2,755,842"]


def test_the_state_dict_has_the_shapes_of_the_small_boundary_aware_model():
    with torch.device("meta"):
        made = model(36, 64, 1, 64, 4, BoundaryAware())
    shapes = {name: tuple(one.shape) for name, one in made.state_dict().items()}
    ways = ("l0", "l0_reverse")
    assert shapes == {
        **{f"lstm.cell.weight_ih_{way}": (256, 36) for way in ways},
        **{f"lstm.cell.weight_hh_{way}": (256, 64) for way in ways},
        **{f"lstm.cell.bias_{kind}_{way}": (256,) for way in ways for kind in ("ih", "hh")},
        "attention.enter.weight": (64, 128), "attention.enter.bias": (64,),
        **{f"attention.heads.{name}.weight": (64, 64) for name in ("query", "key", "value", "output")},
        **{f"attention.heads.{name}.bias": (64,) for name in ("query", "key", "value", "output")},
        "attention.heads.learned.up.weight": (32, 64), "attention.heads.learned.up.bias": (32,),
        "attention.heads.learned.down.weight": (1, 32), "attention.heads.learned.down.bias": (1,),
        "attention.norm.weight": (64,), "attention.norm.bias": (64,),
        "attention.leave.weight": (128, 64), "attention.leave.bias": (128,),
        "classifier.weight": (2, 128), "classifier.bias": (2,),
        "centre": (36,), "spread": (36,),
    }  # fmt: skip


def test_a_width_that_is_the_lstms_own_needs_no_projections():
    assert not any("enter" in name or "leave" in name for name in model(width=8).state_dict())
    assert any("enter" in name for name in model(width=6).state_dict())


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("name", mechanisms.names())
def test_padding_changes_nothing(name, layers):
    made = model(mechanism=mechanisms.get(name).tiny(), layers=layers, width=6)
    x, mask = batch(11, 7, 1)
    x[~mask] = 1e3   # whatever stands there
    together = made.scores(x, mask)
    for row, length in enumerate((11, 7, 1)):
        alone = made.scores(x[row : row + 1, :length])
        torch.testing.assert_close(together[row : row + 1, :length], alone, rtol=1e-4, atol=1e-5)


def test_gradients_know_nothing_of_padding():
    made = model(mechanism=BoundaryAware(), layers=2)
    x, mask = batch(9, 4)
    x = x.requires_grad_()
    made.scores(x, mask)[mask].square().sum().backward()
    assert (x.grad[~mask] == 0).all()
    assert (x.grad[mask] != 0).any(dim=-1).all()


def test_without_attention_it_is_the_lstm_and_the_classifier():
    torch.manual_seed(0)
    plain = Segmenter(5, 2, hidden_dim=4, num_layers=2).eval()
    x, _ = batch(6)
    torch.testing.assert_close(plain.scores(x), plain.classifier(plain.lstm.cell(x)[0]))
    assert plain.boundary_logits is None
    assert [part for part, _, _ in shares(plain)] == ["LSTM", "classifier"]


@pytest.mark.parametrize("name", sorted({"sinusoidal", "rotary", "alibi", "none"} & set(positions.names())))
def test_positions_can_be_told(name):
    x, mask = batch(9, 5)
    position = positions.get(name)()
    plain, told = model(), model(position=position)
    same = torch.allclose(plain.scores(x, mask)[mask], told.scores(x, mask)[mask])
    assert same == (name == "none")


def test_boundary_aware_attention_shows_what_it_holds_for_a_boundary():
    made = model(mechanism=BoundaryAware())
    x, mask = batch(7, 3)
    made.scores(x, mask)
    assert made.boundary_logits.shape == (2, 7)
    assert model().boundary_logits is None


def test_inputs_are_standardized_and_how_is_saved_with_the_weights():
    made, again = model(), model()
    x, _ = batch(6)
    before = made.scores(x)
    made.standardize(torch.full((5,), 3.0), torch.full((5,), 2.0))
    torch.testing.assert_close(made.scores(x * 2 + 3), before)
    again.load_state_dict(made.state_dict())
    torch.testing.assert_close(again.scores(x * 2 + 3), before)


def test_the_wrong_number_of_features_is_said():
    with pytest.raises(ValueError, match=r"takes \(documents, elements, 5\), got \(1, 6, 4\)"):
        model().scores(torch.zeros(1, 6, 4))


def test_heads_that_do_not_share_the_width_are_refused():
    with pytest.raises(ValueError, match="3 heads do not share a width of 8 evenly"):
        model(heads=3)


def test_the_attention_is_watched_like_any_other():
    made = model(mechanism=Localized(window=3))
    x, mask = batch(9, 5)
    with watch(made) as seen, torch.no_grad():
        made.scores(x, mask)
    assert [call.path for call in seen] == ["attention.heads"]
    maps = seen[0].maps()
    assert maps.shape == (2, 2, 9, 9)
    far = (torch.arange(9) - torch.arange(9).unsqueeze(-1)).abs() > 1
    assert (maps[..., far.numpy()] == 0).all()


def test_twenty_thousand_lines_are_learned_in_linear_memory():
    made = model(inputs=3, hidden=4, width=4, heads=2, mechanism=Localized(window=7), dropout=0.1).train()
    x = torch.randn(1, 20_000, 3)
    largest = 0
    def count(tensor):
        nonlocal largest
        largest = max(largest, tensor.untyped_storage().nbytes())
        return tensor
    with torch.autograd.graph.saved_tensors_hooks(count, lambda one: one):
        scores = made.scores(x)
    scores.square().mean().backward()
    assert scores.shape == (1, 20_000, 2)
    assert largest < 4 * 20_000 * 400   # n × n would be fifty times that
    assert all(one.grad.isfinite().all() for one in made.parameters())


def test_positions_that_heads_of_this_width_cannot_have_are_refused():
    with pytest.raises(Misfit, match="a head of 3 has one left over"):
        LookAround(8, 12, 4, Self(), position=Rotary())

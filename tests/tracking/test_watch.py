"""Watching networks of our own: what is seen is what the mechanism does, and nothing changes by it."""

import numpy as np
import pytest
import torch

import neural
from neural.modules.attend import attend
from neural.modules.attention import registry as attention
from neural.modules.attention.self import Self, softmax
from neural.modules.mask import Mask
from neural.modules.mechanism import Mechanism
from neural.tracking.maps import Maps
from neural.tracking.measure import HeadMeasure, LayerMeasure
from neural.tracking.measures import registry
from neural.tracking.watch import AttentionWarning, NothingSeen, watch
from tests.programs import CLASSIFIER, LANGUAGE_MODEL, TRANSLATOR

every_mechanism = pytest.mark.parametrize("name", attention.names())
B, T, E, H = 3, 7, 12, 2


def network(options: str, layers: int = 2) -> torch.nn.Module:
    torch.manual_seed(0)
    block = f"TransformerDecoder(num_heads={H}, d_model={E}, dff=17, {options})"
    return neural.parse(f"network A {{\n  input: (None, {E})\n  layers:\n    {block} * {layers}\n}}").build()


def numbers(*shape: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def by_definition(mechanism: Mechanism, q, k, mask: Mask, extra) -> dict[str, np.ndarray]:
    """All measures of weights that are written out by the definition, in double precision."""
    weights = mechanism.weights(q.double(), k.double(), mask, None if extra is None else extra.double())
    kept = mask.kept(q.shape[2], k.shape[2], q.device)
    kept = torch.ones_like(weights, dtype=torch.bool) if kept is None else kept.expand_as(weights)
    at = torch.arange(k.shape[2] - q.shape[2], k.shape[2])
    rules = mechanism.as_softmax(q, k, mask, extra)
    if rules is not None:   # a window is narrower than the mask
        narrow = rules.kept(q.shape[2], k.shape[2], q.device)
        kept = kept if narrow is None else (kept & narrow).expand_as(weights)
    real = torch.ones(len(q), k.shape[2], dtype=torch.bool) if mask.keys is None else mask.keys
    origins = real.byte().argmax(dim=-1, keepdim=True).expand(-1, q.shape[2])
    maps, found = Maps(weights=weights, kept=kept, at=at, origins=origins), {}
    for name in registry.names():
        measure = registry.get(name)()
        absent = {"induction", "logit", "extra"}
        if isinstance(measure, HeadMeasure | LayerMeasure) and not absent & set(measure.needs):
            rows = measure.plain(maps)
            full = kept.any(-1) if rows.ndim == 3 else kept.any(-1).all(1)
            real = torch.ones(rows.shape[0], rows.shape[-1], dtype=torch.bool) if mask.keys is None else mask.keys
            full = full & (real.unsqueeze(1) if rows.ndim == 3 else real)
            found[name] = measure.average(rows.masked_fill(~full, float("nan"))).detach().numpy()
    return found


@every_mechanism
@pytest.mark.parametrize("padded", [False, True], ids=["whole", "padded"])
def test_every_mechanism_is_measured_as_it_is_defined(name, padded):
    mechanism = attention.get(name).tiny()
    model, x = network(f"attention={mechanism!r}").eval(), numbers(B, T, E)
    mask = torch.arange(T) < torch.tensor([[T], [4], [1]]) if padded else None
    given = []
    heads = [one for one in model.modules() if hasattr(one, "mechanism")]
    own = type(mechanism).mix

    def mix(self, q, k, v, rules, dropout=0.0, extra=None):
        given.append((q, k, rules, extra))
        return own(self, q, k, v, rules, dropout, extra)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(mechanism), "mix", mix)
        with watch(model) as seen:
            model(x, mask)
    assert len(seen) == len(heads) == len(given) == 2
    for call, (q, k, rules, extra) in zip(seen, given, strict=True):
        wanted = by_definition(mechanism, q, k, rules, extra)
        assert set(call.measures) - {"largest_logit"} == set(wanted)
        for measure, values in wanted.items():
            assert call.measures[measure].dtype == np.float32
            np.testing.assert_allclose(call.measures[measure], values, rtol=2e-4, atol=2e-5, err_msg=measure)
        np.testing.assert_allclose(
            call.maps(), mechanism.weights(q, k, rules, extra).detach().numpy(), rtol=1e-4, atol=1e-6
        )


@every_mechanism
@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
def test_outputs_and_gradients_are_the_same_to_the_last_bit(name, training):
    model = network(f"attention={attention.get(name).tiny()!r}, dropout_rate=0.3").train(training)
    mask = torch.arange(T) < torch.tensor([[T], [4], [1]])

    def run() -> list[torch.Tensor]:
        torch.manual_seed(5)
        x = numbers(B, T, E).requires_grad_()
        out = model(x, mask)
        out.square().sum().backward()
        found = [out.detach(), x.grad, *(one.grad.clone() for one in model.parameters())]
        model.zero_grad()
        return found

    without = run()
    with watch(model) as seen:
        watched = run()
    assert len(seen) == 2
    for one, other in zip(without, watched, strict=True):
        assert torch.equal(one, other)
    assert model.training == training
    assert all(torch.equal(one, other) for one, other in zip(without, run(), strict=True)), "nothing is left behind"


def test_measures_are_those_without_dropout():
    model, x = network("dropout_rate=0.5", layers=1), numbers(B, T, E)
    torch.manual_seed(0)
    with watch(model.train()) as dropped:
        model(x)
    whole = watch(model.eval(), x)
    for name, values in whole[0].measures.items():
        np.testing.assert_array_equal(dropped[0].measures[name], values)


def test_paths_say_where_it_happened():
    ids = torch.ones(2, 11, dtype=torch.long)
    seen = watch(neural.parse(TRANSLATOR).build(), (ids, ids))
    assert [call.path for call in seen] == [
        "transformer_encoder.0.attention.part", "transformer_encoder.1.attention.part",
        "transformer_decoder.0.attention.part", "transformer_decoder.0.cross.part",
        "transformer_decoder.1.attention.part", "transformer_decoder.1.cross.part",
    ]  # fmt: skip
    assert {call.heads for call in seen} == {2}


def test_padding_of_the_source_does_not_hide_queries_of_the_target():
    ids = torch.ones(2, 11, dtype=torch.long)
    padded = ids.clone()
    padded[:, 4:] = 0   # the program's pad_id
    model = neural.parse(TRANSLATOR).build().eval()
    seen = watch(model, (padded, ids))
    cross = next(call for call in seen if "cross" in call.path)
    assert cross.look is not None
    assert cross.look.counted().all()
    assert cross.measures["effective_keys"].max() <= 4 + 1e-4
    own = seen[0]
    assert own.look is not None
    assert own.look.counted().sum() == 2 * 4


def test_tokens_are_for_those_that_look_at_them():
    model, ids = neural.parse(LANGUAGE_MODEL).build().eval(), torch.tensor([[1, 2, 3] * 3 + [1, 2]])
    with watch(model, tokens=ids) as seen:
        model(ids)
    assert all("induction_mass" in call.measures for call in seen)
    assert "induction_mass" not in watch(model, ids)[0].measures
    translator = neural.parse(TRANSLATOR).build().eval()
    both = watch(translator, (ids, ids), tokens=ids)
    assert ["induction_mass" in call.measures for call in both] == [True, True, True, False, True, False]


def test_only_the_measures_that_are_wanted():
    seen = watch(network(""), numbers(B, T, E), measures=["entropy", "head_diversity", "js_between"])
    assert list(seen[0].measures) == ["entropy", "head_diversity"]
    assert list(seen.between()) == ["js_between"]
    with pytest.raises(LookupError, match="did you mean `entropy`"):
        watch(network(""), measures=["entrpy"])


def test_arrays_have_a_row_for_every_layer_and_gaps_where_heads_are_fewer():
    text = (
        f"network A {{\n  input: (None, {E})\n  layers:\n    MultiHeadAttention(num_heads=3)\n"
        "    MultiHeadAttention(num_heads=1)\n}"
    )
    arrays = watch(neural.parse(text).build(), numbers(B, T, E)).arrays()
    assert arrays["entropy"].shape == (2, 3)
    assert np.isnan(arrays["entropy"]).tolist() == [[False] * 3, [False, True, True]]
    assert arrays["head_diversity"].shape == (2,)


def test_layers_are_compared_with_all_later_ones_and_by_the_definition():
    model, x = network("", layers=3).eval(), numbers(B, T, E)
    seen = watch(model, x)
    between = seen.between()
    assert np.isnan(between["js_between"]).tolist() == [[True, False, False], [True, True, False], [True] * 3]
    maps = [torch.tensor(call.maps()).double() for call in seen]
    one, other = maps[0], maps[2]
    mean = (one + other) / 2
    js = sum((part * (part / mean).log().nan_to_num(0)).sum(-1) / 2 for part in (one, other)) / np.log(2)
    np.testing.assert_allclose(between["js_between"][0, 2], js.mean().item(), rtol=1e-4, atol=1e-6)
    cosine = torch.cosine_similarity(maps[0], maps[1], dim=-1).mean().item()
    np.testing.assert_allclose(between["cosine_between"][0, 1], cosine, rtol=1e-5)


@pytest.mark.parametrize(("first", "second"), [("self", "sparsemax"), ("sparsemax", "self"), ("linear", "topk")])
def test_layers_of_different_mechanisms_are_compared_too(first, second):
    blocks = "\n".join(f"    MultiHeadAttention(num_heads=2, attention={name!r})" for name in (first, second))
    torch.manual_seed(0)
    model = neural.parse(f"network A {{\n  input: (None, {E})\n  layers:\n{blocks}\n}}".replace("'", '"')).build()
    seen = watch(model, numbers(B, T, E))
    maps = [torch.tensor(call.maps()) for call in seen]
    cosine = torch.cosine_similarity(*maps, dim=-1).mean().item()
    np.testing.assert_allclose(seen.between()["cosine_between"][0, 1], cosine, rtol=1e-5)


def test_layers_that_do_not_fit_are_not_compared():
    ids, short = torch.ones(2, 11, dtype=torch.long), torch.ones(2, 5, dtype=torch.long)
    between = watch(neural.parse(TRANSLATOR).build().eval(), (ids, short)).between()["js_between"]
    assert not np.isnan(between[0, 1])          # both look from 11 positions at 11
    assert np.isnan(between[0, 2])              # the decoder looks at 5
    assert not np.isnan(between[3, 5])          # both from 5 at 11


def test_of_many_layers_each_is_compared_with_the_next():
    between = watch(network("", layers=13), numbers(1, 3, E), measures=["js_between"]).between()["js_between"]
    assert (~np.isnan(between)).sum() == 12
    assert not np.isnan(np.diagonal(between, 1)).any()


def test_a_function_call_in_a_foreign_module_is_seen():
    class Own(torch.nn.Module):
        def forward(self, x):
            return attend(x, x, x, "localized", window=3, causal=True)

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = Own()

        def forward(self, x):
            return self.first(x)

    model, x = Model(), numbers(B, H, T, 5)
    without = model(x)
    with watch(model) as seen:
        assert torch.equal(model(x), without)
    assert [call.path for call in seen] == ["first"]
    assert seen[0].measures["span"].max() <= 1
    kept = Mask(causal=True, reach=1).kept(T, T, x.device)
    np.testing.assert_allclose(seen[0].maps(), softmax(x @ x.mT / 5**0.5, kept).numpy(), atol=1e-6)


def test_groups_that_share_keys_are_seen_head_by_head():
    assert watch(network("num_kv_heads=1", layers=1), numbers(B, T, E))[0].measures["entropy"].shape == (H,)


@pytest.mark.parametrize("position", ["rotary", "alibi", "relative", "learned"])
def test_positions_inside_attention_are_seen(position):
    options = f'positional="{position}"' + (", max_len=9" if position == "learned" else "")
    model, x = network(options, layers=1).eval(), numbers(B, T, E)
    (call,) = watch(model, x)
    given = []
    own = Self.mix

    def mix(self, q, k, v, mask, *rest):
        given.append((q, k, mask))
        return own(self, q, k, v, mask, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Self, "mix", mix)
        model(x)
    q, k, mask = given[0]
    np.testing.assert_allclose(call.maps(), Self().weights(q, k, mask).detach().numpy(), atol=1e-6)


def test_numbers_that_are_not_finite_are_no_reason_to_stop():
    model = network("", layers=2)
    with torch.no_grad():
        next(model.parameters()).fill_(float("nan"))
    seen = watch(model, numbers(B, T, E))
    assert all(np.isnan(values).all() for values in seen[0].measures.values())
    assert seen.arrays()["entropy"].shape == (2, H)
    assert np.isnan(seen.between()["js_between"]).all()
    with pytest.raises(ValueError, match="not finite"):
        seen[0].maps()


def test_half_precision_is_measured_in_full():
    model, x = network("", layers=1).eval(), numbers(B, T, E)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        (call,) = watch(model, x)
    assert call.look is not None and call.look.q.dtype == torch.bfloat16
    exact = watch(model, x)[0].measures["entropy"]
    assert call.measures["entropy"].dtype == np.float32
    weights = Self().weights(call.look.q.double(), call.look.k.double(), call.look.mask)
    wanted = -torch.special.xlogy(weights, weights).sum(-1).mean(dim=(0, 2))
    np.testing.assert_allclose(call.measures["entropy"], wanted.numpy(), rtol=1e-5)
    np.testing.assert_allclose(call.measures["entropy"], exact, rtol=0.02)


def test_a_compiled_network_is_seen_and_stays_compiled():
    model, x = network("", layers=1).eval(), numbers(B, T, E)
    frames = 0

    def backend(graph, _):
        nonlocal frames
        frames += 1
        return graph.forward

    compiled = torch.compile(model, backend=backend)
    with torch.no_grad():
        without = compiled(x)
        assert frames > 0
        before = frames
        with watch(compiled) as seen:
            compiled(x)
        assert [call.path for call in seen] == ["transformer_decoder.attention.part"]
        assert torch.equal(compiled(x), without)
    assert frames == before, "compiled again"


def test_what_a_backward_pass_computes_again_is_not_counted():
    model, x = network("", layers=2), numbers(B, T, E).requires_grad_()
    with watch(model) as seen:
        torch.utils.checkpoint.checkpoint(model, x, use_reentrant=False).sum().backward()
    assert len(seen) == 2


def test_two_may_watch_at_once_and_an_error_leaves_nothing_behind():
    model, x = network("", layers=1), numbers(B, T, E)

    def state():
        return [(path, vars(one).get("mechanism"), *one._forward_pre_hooks) for path, one in model.named_modules()]

    own = state()
    with watch(model) as outer, watch(model) as inner:
        model(x)
    assert len(outer) == len(inner) == 1
    with pytest.raises(ValueError, match="takes"), watch(model):
        model(numbers(B, T))
    assert state() == own


CNN = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(18, 2))


@pytest.mark.parametrize("kind", ["ours", "convolutions"])
def test_a_model_without_attention_is_a_warning_that_says_what_is_recognised(kind):
    ours = neural.parse("network A {\n  input: (5,)\n  layers:\n    Dense(3)\n}").build()
    model, x = (ours, numbers(2, 5)) if kind == "ours" else (CNN, numbers(2, 1, 5, 5))
    with pytest.warns(AttentionWarning, match="no attention was recognised.*scaled_dot") as warned:
        assert len(watch(model, x)) == 0
    assert warned[0].filename == __file__   # at the line that watches
    messages = []
    with watch(model, on_warning=messages.append) as seen:
        model(x)
    assert len(seen) == 0 and len(messages) == 1


def test_a_model_that_does_not_run_in_the_block_is_a_warning():
    with pytest.warns(AttentionWarning, match="did not run"), watch(network("")):
        network("")(numbers(B, T, E))   # another one


def test_attention_that_is_not_recognised_is_said_loudly():
    class SelfAttention(torch.nn.Module):
        def forward(self, x):
            return (x @ x.mT).sigmoid() @ x

    model = torch.nn.Sequential(torch.nn.Linear(5, 5), SelfAttention())
    with pytest.raises(NothingSeen, match=r"`1`.*softmax=True"):
        watch(model, numbers(2, 3, 5))


def test_the_classifier_of_the_guide_is_watched_in_its_own_mode():
    model = neural.parse(CLASSIFIER).build().train()
    model.transformer_encoder[0].eval()
    watch(model, numbers(B, 13, 12))
    assert model.training
    assert not model.transformer_encoder[0].training
    assert model.transformer_encoder[1].training

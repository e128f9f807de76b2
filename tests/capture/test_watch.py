"""Watch networks of `neural`: calls are captured as defined, and outputs do not change."""

import numpy as np
import pytest
import torch

import neural
from neural.capture.attention_maps import AttentionMaps
from neural.capture.measure import HeadMeasure, LayerMeasure
from neural.capture.measures import registry
from neural.capture.watch import AttentionWarning, NoAttentionError, watch
from neural.nn.attend import attend
from neural.nn.attention import registry as attention
from neural.nn.attention.self import Self, masked_softmax
from neural.nn.mask import Mask
from neural.nn.mechanism import Mechanism
from tests.programs import CLASSIFIER, LANGUAGE_MODEL, TRANSLATOR

every_mechanism = pytest.mark.parametrize("name", attention.names())
B, T, E, H = 3, 7, 12, 2


def build_network(options: str, layers: int = 2) -> torch.nn.Module:
    torch.manual_seed(0)
    block = f"TransformerDecoder(num_heads={H}, d_model={E}, dff=17, {options})"
    return neural.parse(
        f"network A {{\n  input: (None, {E})\n  layers:\n    {block} * {layers}\n}}"
    ).build()


def random_tensor(*shape: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def measure_by_definition(mechanism: Mechanism, q, k, mask: Mask, extra) -> dict[str, np.ndarray]:
    """All measures by their definitions, on weights in double precision."""
    weights = mechanism.weights(
        q.double(), k.double(), mask, None if extra is None else extra.double()
    )
    visible = mask.to_keep_mask(q.shape[2], k.shape[2], q.device)
    visible = torch.ones_like(weights, dtype=torch.bool) if visible is None else visible
    visible = visible.expand_as(weights)
    positions = torch.arange(k.shape[2] - q.shape[2], k.shape[2])
    softmax_mask = mechanism.softmax_mask(q, k, mask, extra)
    if softmax_mask is not None:  # a window is narrower than the mask
        window = softmax_mask.to_keep_mask(q.shape[2], k.shape[2], q.device)
        visible = visible if window is None else (visible & window).expand_as(weights)
    real = torch.ones(len(q), k.shape[2], dtype=torch.bool) if mask.keys is None else mask.keys
    first_keys = real.byte().argmax(dim=-1, keepdim=True).expand(-1, q.shape[2])
    maps = AttentionMaps(
        weights=weights, visible_mask=visible, query_positions=positions, first_keys=first_keys
    )
    values = {}
    for name in registry.names():
        measure = registry.get(name)()
        missing = {"induction", "logit", "extra"} & set(measure.required_statistics)
        if isinstance(measure, HeadMeasure | LayerMeasure) and not (missing or measure.signed_only):
            rows = measure.reference(maps)
            counts = visible.any(-1) if rows.ndim == 3 else visible.any(-1).all(1)
            real = (
                torch.ones(rows.shape[0], rows.shape[-1], dtype=torch.bool)
                if mask.keys is None
                else mask.keys
            )
            counts = counts & (real.unsqueeze(1) if rows.ndim == 3 else real)
            rows = rows.masked_fill(~counts, float("nan"))
            values[name] = measure.aggregate_rows(rows).detach().numpy()
    return values


@every_mechanism
@pytest.mark.parametrize("padded", [False, True], ids=["unpadded", "padded"])
def test_every_mechanism_is_measured_as_it_is_defined(name, padded):
    mechanism = attention.get(name).example()
    model, x = build_network(f"attention={mechanism!r}").eval(), random_tensor(B, T, E)
    mask = torch.arange(T) < torch.tensor([[T], [4], [1]]) if padded else None
    calls = []
    modules = [module for module in model.modules() if hasattr(module, "mechanism")]
    original = type(mechanism).attend

    def attend_and_record(self, q, k, v, mask, dropout=0.0, extra=None):
        calls.append((q, k, mask, extra))
        return original(self, q, k, v, mask, dropout, extra)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(mechanism), "attend", attend_and_record)
        with watch(model) as capture:
            model(x, mask)
    assert len(capture) == len(modules) == len(calls) == 2
    for call, (q, k, call_mask, extra) in zip(capture, calls, strict=True):
        expected = measure_by_definition(mechanism, q, k, call_mask, extra)
        assert set(call.measures) - {"largest_logit"} == set(expected)
        for measure, values in expected.items():
            assert call.measures[measure].dtype == np.float32
            np.testing.assert_allclose(
                call.measures[measure], values, rtol=2e-4, atol=2e-5, err_msg=measure
            )
        np.testing.assert_allclose(
            call.maps(),
            mechanism.weights(q, k, call_mask, extra).detach().numpy(),
            rtol=1e-4,
            atol=1e-6,
        )


@every_mechanism
@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
def test_outputs_and_gradients_are_bit_identical(name, training):
    model = build_network(f"attention={attention.get(name).example()!r}, dropout_rate=0.3").train(
        training
    )
    mask = torch.arange(T) < torch.tensor([[T], [4], [1]])

    def run() -> list[torch.Tensor]:
        torch.manual_seed(5)
        x = random_tensor(B, T, E).requires_grad_()
        out = model(x, mask)
        out.square().sum().backward()
        tensors = [out.detach(), x.grad, *(param.grad.clone() for param in model.parameters())]
        model.zero_grad()
        return tensors

    without = run()
    with watch(model) as capture:
        watched = run()
    assert len(capture) == 2
    for plain_tensor, watched_tensor in zip(without, watched, strict=True):
        assert torch.equal(plain_tensor, watched_tensor)
    assert model.training == training
    after = run()
    assert all(torch.equal(a, b) for a, b in zip(without, after, strict=True)), "not restored"


def test_measures_are_those_without_dropout():
    model, x = build_network("dropout_rate=0.5", layers=1), random_tensor(B, T, E)
    torch.manual_seed(0)
    with watch(model.train()) as dropped:
        model(x)
    complete = watch(model.eval(), x)
    for name, values in complete[0].measures.items():
        np.testing.assert_array_equal(dropped[0].measures[name], values)


def test_calls_have_the_paths_of_their_modules():
    ids = torch.ones(2, 11, dtype=torch.long)
    capture = watch(neural.parse(TRANSLATOR).build(), (ids, ids))
    assert [call.path for call in capture] == [
        "transformer_encoder.0.attention.sublayer",
        "transformer_encoder.1.attention.sublayer",
        "transformer_decoder.0.attention.sublayer",
        "transformer_decoder.0.cross.sublayer",
        "transformer_decoder.1.attention.sublayer",
        "transformer_decoder.1.cross.sublayer",
    ]
    assert {call.heads for call in capture} == {2}


def test_padding_of_the_source_does_not_hide_queries_of_the_target():
    ids = torch.ones(2, 11, dtype=torch.long)
    padded = ids.clone()
    padded[:, 4:] = 0  # the program's pad_id
    model = neural.parse(TRANSLATOR).build().eval()
    capture = watch(model, (padded, ids))
    cross = next(call for call in capture if "cross" in call.path)
    assert cross.attention is not None
    assert cross.attention.valid_queries().all()
    assert cross.measures["effective_keys"].max() <= 4 + 1e-4
    own = capture[0]
    assert own.attention is not None
    assert own.attention.valid_queries().sum() == 2 * 4


def test_tokens_are_used_by_self_attention_only():
    model, ids = neural.parse(LANGUAGE_MODEL).build().eval(), torch.tensor([[1, 2, 3] * 3 + [1, 2]])
    with watch(model, tokens=ids) as capture:
        model(ids)
    assert all("induction_mass" in call.measures for call in capture)
    assert "induction_mass" not in watch(model, ids)[0].measures
    translator = neural.parse(TRANSLATOR).build().eval()
    both = watch(translator, (ids, ids), tokens=ids)
    assert ["induction_mass" in call.measures for call in both] == [
        True,
        True,
        True,
        False,
        True,
        False,
    ]


def test_only_the_requested_measures_are_computed():
    capture = watch(
        build_network(""),
        random_tensor(B, T, E),
        measures=["entropy", "head_diversity", "js_between"],
    )
    assert list(capture[0].measures) == ["entropy", "head_diversity"]
    assert list(capture.compare_layers()) == ["js_between"]
    with pytest.raises(LookupError, match="did you mean `entropy`"):
        watch(build_network(""), measures=["entrpy"])


def test_arrays_have_a_row_per_layer_and_nan_for_missing_heads():
    text = (
        f"network A {{\n  input: (None, {E})\n  layers:\n    MultiHeadAttention(num_heads=3)\n"
        "    MultiHeadAttention(num_heads=1)\n}"
    )
    arrays = watch(neural.parse(text).build(), random_tensor(B, T, E)).measure_arrays()
    assert arrays["entropy"].shape == (2, 3)
    assert np.isnan(arrays["entropy"]).tolist() == [[False] * 3, [False, True, True]]
    assert arrays["head_diversity"].shape == (2,)


def test_layers_are_compared_with_all_later_ones_by_the_definition():
    model, x = build_network("", layers=3).eval(), random_tensor(B, T, E)
    capture = watch(model, x)
    between = capture.compare_layers()
    assert np.isnan(between["js_between"]).tolist() == [
        [True, False, False],
        [True, True, False],
        [True] * 3,
    ]
    maps = [torch.tensor(call.maps()).double() for call in capture]
    mean = (maps[0] + maps[2]) / 2
    divergences = [(p * (p / mean).log().nan_to_num(0)).sum(-1) for p in (maps[0], maps[2])]
    js = sum(divergence / 2 for divergence in divergences) / np.log(2)
    np.testing.assert_allclose(between["js_between"][0, 2], js.mean().item(), rtol=1e-4, atol=1e-6)
    cosine = torch.cosine_similarity(maps[0], maps[1], dim=-1).mean().item()
    np.testing.assert_allclose(between["cosine_between"][0, 1], cosine, rtol=1e-5)


@pytest.mark.parametrize(
    ("first", "second"), [("self", "sparsemax"), ("sparsemax", "self"), ("linear", "topk")]
)
def test_layers_of_different_mechanisms_are_compared_too(first, second):
    blocks = "\n".join(
        f"    MultiHeadAttention(num_heads=2, attention={name!r})" for name in (first, second)
    )
    torch.manual_seed(0)
    model = neural.parse(
        f"network A {{\n  input: (None, {E})\n  layers:\n{blocks}\n}}".replace("'", '"')
    ).build()
    capture = watch(model, random_tensor(B, T, E))
    maps = [torch.tensor(call.maps()) for call in capture]
    cosine = torch.cosine_similarity(*maps, dim=-1).mean().item()
    np.testing.assert_allclose(capture.compare_layers()["cosine_between"][0, 1], cosine, rtol=1e-5)


def test_layers_of_different_lengths_are_not_compared():
    ids, short = torch.ones(2, 11, dtype=torch.long), torch.ones(2, 5, dtype=torch.long)
    between = watch(neural.parse(TRANSLATOR).build().eval(), (ids, short)).compare_layers()[
        "js_between"
    ]
    assert not np.isnan(between[0, 1])  # both have 11 queries and 11 keys
    assert np.isnan(between[0, 2])  # the decoder has 5 keys
    assert not np.isnan(between[3, 5])  # both have 5 queries and 11 keys


def test_with_many_layers_each_is_compared_with_the_next():
    between = watch(
        build_network("", layers=13), random_tensor(1, 3, E), measures=["js_between"]
    ).compare_layers()["js_between"]
    assert (~np.isnan(between)).sum() == 12
    assert not np.isnan(np.diagonal(between, 1)).any()


def test_a_call_of_attend_in_any_module_is_captured():
    class Own(torch.nn.Module):
        def forward(self, x):
            return attend(x, x, x, "localized", window=3, causal=True)

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = Own()

        def forward(self, x):
            return self.first(x)

    model, x = Model(), random_tensor(B, H, T, 5)
    without = model(x)
    with watch(model) as capture:
        assert torch.equal(model(x), without)
    assert [call.path for call in capture] == ["first"]
    assert capture[0].measures["span"].max() <= 1
    visible = Mask(causal=True, reach=1).to_keep_mask(T, T, x.device)
    np.testing.assert_allclose(
        capture[0].maps(), masked_softmax(x @ x.mT / 5**0.5, visible).numpy(), atol=1e-6
    )


def test_grouped_heads_are_measured_head_by_head():
    assert watch(build_network("num_kv_heads=1", layers=1), random_tensor(B, T, E))[0].measures[
        "entropy"
    ].shape == (H,)


@pytest.mark.parametrize("position", ["rotary", "alibi", "relative", "learned"])
def test_position_embeddings_inside_attention_are_captured(position):
    options = f'positional="{position}"' + (", max_len=9" if position == "learned" else "")
    model, x = build_network(options, layers=1).eval(), random_tensor(B, T, E)
    (call,) = watch(model, x)
    calls = []
    original = Self.attend

    def attend_and_record(self, q, k, v, mask, *args):
        calls.append((q, k, mask))
        return original(self, q, k, v, mask, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Self, "attend", attend_and_record)
        model(x)
    q, k, mask = calls[0]
    np.testing.assert_allclose(call.maps(), Self().weights(q, k, mask).detach().numpy(), atol=1e-6)


def test_nan_weights_give_nan_measures():
    model = build_network("", layers=2)
    with torch.no_grad():
        next(model.parameters()).fill_(float("nan"))
    capture = watch(model, random_tensor(B, T, E))
    assert all(np.isnan(values).all() for values in capture[0].measures.values())
    assert capture.measure_arrays()["entropy"].shape == (2, H)
    assert np.isnan(capture.compare_layers()["js_between"]).all()
    with pytest.raises(ValueError, match="not finite"):
        capture[0].maps()


def test_half_precision_is_measured_in_32_bits():
    model, x = build_network("", layers=1).eval(), random_tensor(B, T, E)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        (call,) = watch(model, x)
    assert call.attention is not None and call.attention.q.dtype == torch.bfloat16
    exact = watch(model, x)[0].measures["entropy"]
    assert call.measures["entropy"].dtype == np.float32
    weights = Self().weights(
        call.attention.q.double(), call.attention.k.double(), call.attention.mask
    )
    expected = -torch.special.xlogy(weights, weights).sum(-1).mean(dim=(0, 2))
    np.testing.assert_allclose(call.measures["entropy"], expected.numpy(), rtol=1e-5)
    np.testing.assert_allclose(call.measures["entropy"], exact, rtol=0.02)


def test_a_compiled_network_is_captured_and_stays_compiled():
    model, x = build_network("", layers=1).eval(), random_tensor(B, T, E)
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
        with watch(compiled) as capture:
            compiled(x)
        assert [call.path for call in capture] == ["transformer_decoder.attention.sublayer"]
        assert torch.equal(compiled(x), without)
    assert frames == before, "compiled again"


def test_recomputation_in_a_backward_pass_is_not_captured():
    model, x = build_network("", layers=2), random_tensor(B, T, E).requires_grad_()
    with watch(model) as capture:
        torch.utils.checkpoint.checkpoint(model, x, use_reentrant=False).sum().backward()
    assert len(capture) == 2


def test_watches_can_be_nested_and_an_error_restores_the_model():
    model, x = build_network("", layers=1), random_tensor(B, T, E)

    def state():
        return [
            (path, vars(module).get("mechanism"), *module._forward_pre_hooks)
            for path, module in model.named_modules()
        ]

    before = state()
    with watch(model) as outer, watch(model) as inner:
        model(x)
    assert len(outer) == len(inner) == 1
    with pytest.raises(ValueError, match="takes"), watch(model):
        model(random_tensor(B, T))
    assert state() == before


CNN = torch.nn.Sequential(
    torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(18, 2)
)


@pytest.mark.parametrize("kind", ["neural", "convolutions"])
def test_a_model_without_attention_gives_a_warning_that_lists_what_is_recognised(kind):
    dense = neural.parse("network A {\n  input: (5,)\n  layers:\n    Dense(3)\n}").build()
    model, x = (
        (dense, random_tensor(2, 5)) if kind == "neural" else (CNN, random_tensor(2, 1, 5, 5))
    )
    with pytest.warns(AttentionWarning, match="no attention was recognised.*scaled_dot") as warned:
        assert len(watch(model, x)) == 0
    assert warned[0].filename == __file__  # at the line that calls watch
    messages = []
    with watch(model, on_warning=messages.append) as capture:
        model(x)
    assert len(capture) == 0 and len(messages) == 1


def test_a_model_that_does_not_run_in_the_block_gives_a_warning():
    with pytest.warns(AttentionWarning, match="did not run"), watch(build_network("")):
        build_network("")(random_tensor(B, T, E))  # another one


def test_unrecognised_attention_is_an_error():
    class SelfAttention(torch.nn.Module):
        def forward(self, x):
            return (x @ x.mT).sigmoid() @ x

    model = torch.nn.Sequential(torch.nn.Linear(5, 5), SelfAttention())
    with pytest.raises(NoAttentionError, match=r"`1`.*softmax=True"):
        watch(model, random_tensor(2, 3, 5))


def test_watching_keeps_the_modes_of_all_modules():
    model = neural.parse(CLASSIFIER).build().train()
    model.transformer_encoder[0].eval()
    watch(model, random_tensor(B, 13, 12))
    assert model.training
    assert not model.transformer_encoder[0].training
    assert model.transformer_encoder[1].training

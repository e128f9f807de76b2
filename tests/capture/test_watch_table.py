"""A sample of the table in docs/watched-models.md, and regression tests of `watch`."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from neural.capture import recorder
from neural.capture.placement import Placement
from neural.capture.recorder import Recorder
from neural.capture.watch import AttentionWarning, NoAttentionError, watch
from tests.capture import watch_table
from tests.capture.hf_models import LENGTH, MODELS, VOCABULARY
from tests.capture.opaque_attention import OPAQUE, OPAQUE_DENSE
from tests.capture.watch_table import (
    BEGIN,
    END,
    IMPLEMENTATIONS,
    Case,
    Mismatch,
    format_table,
    list_cases,
    run_case,
)

MEASURED = [
    ("gpt_oss", "eager", "left", "static"),
    ("gpt_oss", "eager", "no", "dynamic"),
    ("llama", "sdpa", "right", "static"),
    ("llama", "eager", "left", "static"),
    ("mistral", "sdpa", "left", "dynamic"),
    ("mistral", "eager", "no", "static"),
    ("t5", "eager", "left", "static"),
    ("bloom", "eager", "left", "dynamic"),
    ("gemma3n", "sdpa", "no", "static"),
    ("markuplm", "eager", "right", None),
    ("xglm", "eager", "left", "dynamic"),
    ("diffllama", "sdpa", "no", "dynamic"),
    ("mimo_v2_flash", "eager", "left", "static"),
    ("swin", "eager", "no", None),
    ("llama", OPAQUE, "left", "static"),
    ("mistral", OPAQUE, "right", "dynamic"),  # padding between tokens: the window skips it
    ("mistral", OPAQUE, "packed", None),
    ("gemma2", OPAQUE, "right", "static"),
    ("gpt_oss", OPAQUE, "left", "dynamic"),
    ("t5", OPAQUE_DENSE, "right", "static"),
    ("bart", OPAQUE, "left", "dynamic"),
    ("bert", OPAQUE_DENSE, "left", None),
    ("vit", OPAQUE, "no", None),
    ("qwen2", "flex_attention", "left", "dynamic"),
    ("gemma2", "flex_attention", "packed", None),
    ("llama", "sdpa", "packed", None),
]
REFUSED = [
    ("longformer", "eager", "no", None, "no product of its softmax over (2, 12, 4, 5) with values"),
    (
        "big_bird",
        "eager",
        "no",
        None,
        "its softmax over (2, 4, 8, 4, 24) is not one of (B, H, Q, K)",
    ),
    ("nystromformer", "eager", "no", None, "it computes attention in 3 chunks"),
    (
        "granite_swa",
        "eager",
        "no",
        "dynamic",
        "learned sinks (`sinks`) that are not part of its softmax",
    ),
    ("xlnet", "eager", "left", None, "seen by none: pass `real`"),
    ("informer", "eager", "no", None, "it attends from a sample of its queries"),
    ("deepseek_v4", "eager", "left", None, "which of its queries are padding is not known"),
    ("longt5_local", "eager", "no", "dynamic", "is not one of (B, H, Q, K)"),
    (
        "qwen3_next",
        "sdpa",
        "no",
        "dynamic",
        "nothing in it (Qwen3NextGatedDeltaNet) was recognised",
    ),
    ("mamba", "eager", "no", None, "no attention was recognised in this model"),
]


@pytest.mark.parametrize(("name", "implementation", "padding", "cache"), MEASURED)
def test_measured_weights_equal_those_that_the_model_returns(name, implementation, padding, cache):
    outcome = run_case(Case(MODELS[name], implementation, padding, cache))
    assert outcome.calls >= 2
    assert outcome.error <= 1e-5
    assert not outcome.refusals


@pytest.mark.parametrize(("name", "implementation", "padding", "cache", "reason"), REFUSED)
def test_attention_that_cannot_be_measured_is_refused_with_a_reason(
    name, implementation, padding, cache, reason
):
    outcome = run_case(Case(MODELS[name], implementation, padding, cache))
    assert any(reason in message for message in outcome.refusals.values()), outcome.refusals


def test_the_table_has_forty_models_and_the_outcome_of_each_case():
    assert len(MODELS) >= 40
    # 4 implementations × (3 paddings × 2 caches + a packed sequence)
    assert len(list(list_cases(["llama"]))) == 28
    assert len(list(list_cases(["vit"]))) == 4
    rows = format_table(["big_bird", "bert"]).splitlines()
    assert rows[0].startswith("15 cases: 12 measured, 0 of them in part, and 3 refused")
    assert [row.split("|")[1].strip() for row in rows[4:]] == ["`big_bird`"] + ["`bert`"] * 4
    assert [row.split("|")[3].strip() for row in rows[5:]] == list(IMPLEMENTATIONS)
    assert rows[4].count("refused") == 3
    assert "`encoder.layer.0.attention.self`" in rows[4]
    assert "e-7" in rows[5]


@pytest.mark.parametrize(
    ("name", "padding", "cache", "change"),
    [
        ("mistral", "no", "dynamic", {"reach": 4}),  # a window that is one too wide
        ("llama", "left", "dynamic", {"keys": None}),  # padding is measured
        ("llama", "packed", None, {"segments": None}),  # documents see each other
        ("bert", "no", None, {"causal": True}),
    ],
)
def test_a_wrong_reading_of_an_opaque_function_would_be_noticed(
    name, padding, cache, change, monkeypatch
):
    original = Recorder.record_call

    def record(self, path, q, k, mask, placement, **options):
        original(self, path, q, k, replace(mask, **change), placement, **options)

    monkeypatch.setattr(Recorder, "record_call", record)
    with pytest.raises(Mismatch):
        run_case(Case(MODELS[name], OPAQUE, padding, cache))


@pytest.mark.parametrize("name", ["gpt_oss", "llama"])
def test_queries_placed_at_the_last_keys_would_be_noticed(name, monkeypatch):
    """The last query is not always at the last key: a static cache has empty slots."""
    monkeypatch.setattr(
        recorder, "place_queries", lambda queries, k, **_: Placement("queries_and_keys", k.shape[2])
    )
    with pytest.raises(Mismatch, match="a map of"):
        run_case(Case(MODELS[name], "eager", "no", "static"))


def build_uniform(name, implementation):
    """A model whose attention is uniform: its queries are 0."""
    model = MODELS[name].build(implementation)
    with torch.no_grad():
        for path, param in model.named_parameters():
            if "q_proj" in path:
                param.zero_()
            if "sinks" in path:
                param.fill_(1)
    return model


IDS = torch.randint(3, VOCABULARY, (2, LENGTH + 1), generator=torch.Generator().manual_seed(1))


def test_a_learned_sink_is_not_a_position():
    capture = watch(
        build_uniform("gpt_oss", "eager"), {"input_ids": IDS[:, :LENGTH], "use_cache": False}
    )
    call = capture[1]  # the layer without a window
    assert call.maps().shape == (2, 4, LENGTH, LENGTH)
    keys = np.arange(1, LENGTH + 1)
    weight, sink = 1 / (keys + np.e), np.e / (keys + np.e)
    expected = {
        "extra_key_mass": sink,
        "span": weight * keys * (keys - 1) / 2,
        "diagonal_mass": weight,
        "first_key_mass": weight,
        "expected_position": (keys - 1) / 2,
        "entropy": -keys * weight * np.log(weight) - sink * np.log(sink),
    }
    for name, values in expected.items():
        np.testing.assert_allclose(
            call.measures[name], [values.mean()] * 4, rtol=1e-5, err_msg=name
        )
    assert "largest_logit" not in call.measures  # the model subtracts the largest of each row
    assert (
        "extra_key_mass"
        not in watch(MODELS["llama"].build("eager"), {"input_ids": IDS})[0].measures
    )


def test_scores_that_the_model_has_shifted_are_not_logits():
    mask = torch.ones_like(IDS)
    mask[1, :3] = 0
    capture = watch(
        MODELS["mimo_v2_flash"].build("eager"), {"input_ids": IDS, "attention_mask": mask}
    )
    assert not any("largest_logit" in call.measures for call in capture)
    unshifted = watch(MODELS["llama"].build("eager"), {"input_ids": IDS, "attention_mask": mask})
    assert all("largest_logit" in call.measures for call in unshifted)


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_empty_slots_of_a_static_cache_are_not_keys(implementation):
    model = build_uniform("llama", implementation)
    cache = transformers.StaticCache(config=model.config, max_cache_len=32)
    first = watch(model, {"input_ids": IDS[:, :LENGTH], "past_key_values": cache})[0]
    assert first.maps().shape == (2, 4, LENGTH, LENGTH)
    np.testing.assert_allclose(first.measures["span"], 2.25, rtol=1e-6)
    np.testing.assert_allclose(
        first.measures["diagonal_mass"], (1 / np.arange(1, LENGTH + 1)).mean(), rtol=1e-6
    )
    step = watch(model, {"input_ids": IDS[:, LENGTH:], "past_key_values": cache})[0]
    assert step.maps().shape == (2, 4, 1, LENGTH + 1)
    np.testing.assert_allclose(step.measures["span"], 5, rtol=1e-6)
    np.testing.assert_allclose(step.measures["relative_entropy"], 1, rtol=1e-6)


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_two_sequences_of_equal_length_do_not_share_positions(implementation):
    model = MODELS["bart"].build(implementation)
    capture = watch(model, {"input_ids": IDS, "decoder_input_ids": IDS})
    cross = [call for call in capture if "encoder_attn" in call.path]
    assert len(cross) == 2
    for call in cross:
        assert call.attention.queries == call.attention.keys
        assert not {"span", "span90", "diagonal_mass", "previous_token_mass"} & set(call.measures)
        assert "two sequences" in call.note
    assert all("span" in call.measures for call in capture if call not in cross)


def test_a_partly_measured_model_warns_and_keeps_the_measured_calls():
    model = MODELS["qwen3_next"].build("sdpa")
    with pytest.warns(
        AttentionWarning, match=r"`model.layers.0.linear_attn`: .*Qwen3NextGatedDeltaNet"
    ):
        capture = watch(model, {"input_ids": IDS})
    assert [call.path for call in capture] == ["model.layers.1.self_attn"]
    assert list(capture.refusals) == ["model.layers.0.linear_attn"]


def test_a_model_without_any_measured_call_is_an_error_with_the_reason():
    with pytest.raises(
        NoAttentionError, match=r"`encoder.layer.0.attention.self`.*no product of its softmax"
    ):
        watch(MODELS["longformer"].build("eager"), {"input_ids": IDS})


def test_the_caller_can_pass_padding_that_masks_do_not_show():
    model, real = MODELS["xlnet"].build("eager"), torch.ones_like(IDS, dtype=torch.bool)
    real[1, :3] = False
    capture = watch(model, {"input_ids": IDS, "attention_mask": real.long()}, real=real)
    assert len(capture) == 2
    assert all(torch.equal(call.attention.valid_queries(), real) for call in capture)


def test_gradients_are_the_same_with_and_without_a_watch():
    model = MODELS["gpt_oss"].build("eager")

    def compute_gradients():
        model.zero_grad()
        model(input_ids=IDS, labels=IDS, use_cache=False).loss.backward()
        return [param.grad.clone() for param in model.parameters() if param.grad is not None]

    without = compute_gradients()
    with watch(model) as capture:
        watched = compute_gradients()
    assert len(capture) == 2
    assert all(torch.equal(*pair) for pair in zip(without, watched, strict=True))
    # the patch of the cache is removed
    assert transformers.cache_utils.Cache.update.__qualname__ == "Cache.update"


def test_the_table_is_in_the_page_that_its_command_names():
    page = re.search(r"--write (\S+)", watch_table.__doc__)[1]
    text = (Path(__file__).parents[2] / page).read_text(encoding="utf-8")
    assert text.index(BEGIN) < text.index("| `llama`") < text.index(END)
    assert f"--write {page}" in text, "the page names the same command"

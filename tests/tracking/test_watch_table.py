"""A sample of the table in docs/watching.md, and the numbers that watching got wrong once."""

import numpy as np
import pytest
import torch
import transformers

from neural.tracking import recorder
from neural.tracking.placement import Placement
from neural.tracking.watch import AttentionWarning, NothingSeen, watch
from tests.tracking.hf_models import LENGTH, MODELS, VOCABULARY
from tests.tracking.watch_table import Case, Mismatch, cases, outcome_of, table

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
    ("nystromformer", "eager", "no", None, "it computes attention in 3 parts"),
    (
        "granite_swa",
        "eager",
        "no",
        "dynamic",
        "learned sinks (`sinks`) that are not part of its softmax",
    ),
    ("xlnet", "eager", "left", None, "seen by none: give `real`"),
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
def test_what_is_measured_is_what_the_model_returns(name, implementation, padding, cache):
    outcome = outcome_of(Case(MODELS[name], implementation, padding, cache))
    assert outcome.calls >= 2
    assert outcome.error <= 1e-5
    assert not outcome.refused


@pytest.mark.parametrize(("name", "implementation", "padding", "cache", "reason"), REFUSED)
def test_what_cannot_be_measured_is_refused_by_name(name, implementation, padding, cache, reason):
    outcome = outcome_of(Case(MODELS[name], implementation, padding, cache))
    assert any(reason in message for message in outcome.refused.values()), outcome.refused


def test_the_table_has_forty_models_and_says_what_each_case_gave():
    assert len(MODELS) >= 40
    assert len(list(cases(["llama"]))) == 12
    rows = table(["big_bird", "bert"]).splitlines()
    assert rows[0].startswith("9 cases: 6 measured, 0 of them in part, and 3 refused")
    assert [row.split("|")[1].strip() for row in rows[4:]] == ["`big_bird`", "`bert`", "`bert`"]
    assert rows[4].count("refused") == 3
    assert "`encoder.layer.0.attention.self`" in rows[4]
    assert "e-7" in rows[5]


@pytest.mark.parametrize("name", ["gpt_oss", "llama"])
def test_the_old_assumption_would_be_noticed(name, monkeypatch):
    """The last query at the last key, whatever the keys are."""
    monkeypatch.setattr(recorder, "place", lambda queries, k, **_: Placement("shared", k.shape[2]))
    with pytest.raises(Mismatch, match="a map of"):
        outcome_of(Case(MODELS[name], "eager", "no", "static"))


def without_preference(name, implementation):
    """A model whose heads look at all keys alike: its queries are 0."""
    model = MODELS[name].build(implementation)
    with torch.no_grad():
        for path, parameter in model.named_parameters():
            if "q_proj" in path:
                parameter.zero_()
            if "sinks" in path:
                parameter.fill_(1)
    return model


IDS = torch.randint(3, VOCABULARY, (2, LENGTH + 1), generator=torch.Generator().manual_seed(1))


def test_a_learned_sink_is_no_position():
    seen = watch(
        without_preference("gpt_oss", "eager"), {"input_ids": IDS[:, :LENGTH], "use_cache": False}
    )
    call = seen[1]  # the layer without a window
    assert call.maps().shape == (2, 4, LENGTH, LENGTH)
    keys = np.arange(1, LENGTH + 1)
    each, sink = 1 / (keys + np.e), np.e / (keys + np.e)
    expected = {
        "extra_key_mass": sink,
        "span": each * keys * (keys - 1) / 2,
        "diagonal_mass": each,
        "first_key_mass": each,
        "expected_position": (keys - 1) / 2,
        "entropy": -keys * each * np.log(each) - sink * np.log(sink),
    }
    expected["first_key_mass"] = each  # the sink is a choice, also in the first row
    for name, values in expected.items():
        np.testing.assert_allclose(
            call.measures[name], [values.mean()] * 4, rtol=1e-5, err_msg=name
        )
    assert "largest_logit" not in call.measures  # the model subtracts the largest of each row
    assert (
        "extra_key_mass"
        not in watch(MODELS["llama"].build("eager"), {"input_ids": IDS})[0].measures
    )


def test_scores_that_the_model_has_shifted_are_no_logits():
    mask = torch.ones_like(IDS)
    mask[1, :3] = 0
    seen = watch(MODELS["mimo_v2_flash"].build("eager"), {"input_ids": IDS, "attention_mask": mask})
    assert not any("largest_logit" in call.measures for call in seen)
    unshifted = watch(MODELS["llama"].build("eager"), {"input_ids": IDS, "attention_mask": mask})
    assert all("largest_logit" in call.measures for call in unshifted)


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_empty_slots_of_a_static_cache_are_no_keys(implementation):
    model = without_preference("llama", implementation)
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
def test_two_texts_of_one_length_do_not_share_positions(implementation):
    model = MODELS["bart"].build(implementation)
    seen = watch(model, {"input_ids": IDS, "decoder_input_ids": IDS})
    cross = [call for call in seen if "encoder_attn" in call.path]
    assert len(cross) == 2
    for call in cross:
        assert call.look.queries == call.look.keys
        assert not {"span", "span90", "diagonal_mass", "previous_token_mass"} & set(call.measures)
        assert "two sequences" in call.note
    assert all("span" in call.measures for call in seen if call not in cross)


def test_a_model_of_which_only_a_part_is_measured_warns_and_keeps_the_rest():
    model = MODELS["qwen3_next"].build("sdpa")
    with pytest.warns(
        AttentionWarning, match=r"`model.layers.0.linear_attn`: .*Qwen3NextGatedDeltaNet"
    ):
        seen = watch(model, {"input_ids": IDS})
    assert [call.path for call in seen] == ["model.layers.1.self_attn"]
    assert list(seen.refused) == ["model.layers.0.linear_attn"]


def test_a_model_of_which_nothing_is_measured_is_an_error_with_the_reason():
    with pytest.raises(
        NothingSeen, match=r"`encoder.layer.0.attention.self`.*no product of its softmax"
    ):
        watch(MODELS["longformer"].build("eager"), {"input_ids": IDS})


def test_padding_that_only_the_caller_knows_can_be_given():
    model, real = MODELS["xlnet"].build("eager"), torch.ones_like(IDS, dtype=torch.bool)
    real[1, :3] = False
    seen = watch(model, {"input_ids": IDS, "attention_mask": real.long()}, real=real)
    assert len(seen) == 2
    assert all(torch.equal(call.look.counted(), real) for call in seen)


def test_gradients_are_the_same_with_and_without_a_watch():
    model = MODELS["gpt_oss"].build("eager")

    def gradients():
        model.zero_grad()
        model(input_ids=IDS, labels=IDS, use_cache=False).loss.backward()
        return [
            parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None
        ]

    without = gradients()
    with watch(model) as seen:
        watched = gradients()
    assert len(seen) == 2
    assert all(torch.equal(*pair) for pair in zip(without, watched, strict=True))
    assert (
        transformers.cache_utils.Cache.update.__qualname__ == "Cache.update"
    )  # nothing is left behind

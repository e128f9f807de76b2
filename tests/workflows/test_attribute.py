"""`neural.attribute`: one prediction explained, on own runs, Hugging Face models and classifiers."""

import json
import logging

import numpy as np
import pytest
import torch

import neural
from neural.capture.attribution import trace_attention
from neural.core.errors import NeuralError, TaskError
from neural.interpret.explanations import METHODS
from neural.workflows.attribute import attribute
from tests.capture.attribution_models import (
    build_classifier,
    build_hugging_face,
    build_own,
    build_sequence_classifier,
    draw_ids,
    read_logits,
)
from tests.circuits import build_induction, build_tokenizer, format_tokens
from tests.hugging_face_folders import (
    POSITIONS,
    build_gpt2,
    build_sentence_pieces,
    train_tokenizer,
)
from tests.written_runs import CHARACTERS, write_run


@pytest.fixture(scope="module")
def induction():
    """The text of an induction circuit, and a position whose next token it decides."""
    circuit = build_induction("gpt2")
    batch = circuit.draw(1, seed=1)
    position = int(batch.has_target[0].nonzero()[-1])
    return circuit.model, format_tokens(batch.tokens[0]), position


@pytest.fixture(scope="module")
def explained(induction):
    model, text, position = induction
    return attribute(
        model,
        text,
        tokenizer=build_tokenizer(),
        position=position,
        faithfulness=True,
        examples=6,
    )


def test_the_known_circuit_is_explained(explained, induction):
    _, text, position = induction
    words = text.split()
    assert explained.tokens == words[: position + 1]
    assert explained.answer.text == words[position + 1]
    assert explained.answer.probability > 0.99
    assert explained.predicted == explained.answer
    source = int(explained.scores["direct"].argmax())
    assert words[source] == explained.answer.text
    assert words[source - 1] == words[position]
    # the previous-token head has no direct part, but the answer needs it
    assert explained.head_parts[0, 1] == pytest.approx(0, abs=1e-3)
    assert explained.removed_heads[0, 1] == pytest.approx(explained.answer.logit, abs=0.1)
    assert explained.removed_heads[1, 0] == pytest.approx(explained.parts["L1 h0"], abs=0.1)
    assert [row.rank for row in explained.lens][-1] == 0


def test_parts_sum_to_the_logit(explained):
    assert sum(explained.parts.values()) == pytest.approx(explained.answer.logit, abs=1e-4)


def test_every_method_has_a_faithfulness_number(explained):
    assert list(explained.faithfulness) == list(METHODS)
    for name, number in explained.faithfulness.items():
        assert number.gain.n == 6
        assert number.gain.low < number.gain.value < number.gain.high
        assert number.here == pytest.approx(explained.examples[0].gain(name))
    assert explained.faithfulness["ablation"].here > 1


def test_data_and_tables_hold_everything(explained):
    data = json.loads(json.dumps(explained.to_dict()))
    assert data["methods"]["rollout"]["scores"] == pytest.approx(explained.scores["rollout"])
    assert data["methods"]["rollout"]["faithfulness"]["examples"] == 6
    assert len(data["logit_attribution"]["parts"]) == len(explained.parts)
    assert data["lens"][-1]["top"][0]["text"] == explained.answer.text
    assert len(data["curves"]["methods"]) == len(METHODS)
    length = len(explained.tokens)
    for rows in data["head_rows"].values():
        assert [np.shape(layer) for layer in rows] == [(4, length)] * 2
    frame = explained.to_dataframe()
    assert frame["token"].tolist() == explained.tokens
    assert set(METHODS) <= set(frame.columns)
    heads = explained.to_dataframe("heads")
    assert len(heads) == 8
    assert heads["direct"].sum() == pytest.approx(np.nansum(explained.head_parts))


def test_the_same_seed_gives_the_same_numbers(induction):
    model, text, position = induction
    first, second = (
        attribute(
            model,
            text,
            tokenizer=build_tokenizer(),
            position=position,
            methods=["ablation"],
            faithfulness=True,
            examples=2,
        )
        for _ in range(2)
    )
    assert first.to_dict() == second.to_dict()


def test_a_run_is_explained_by_its_name(tmp_path):
    path = write_run(tmp_path, vocabulary=list(CHARACTERS))
    result = neural.attribute("small", "abc abc", runs=tmp_path, answer="d", against="e")
    assert result.model_name == path.name
    assert result.tokens == list("abc abc")
    assert result.answer.text == "d"
    total = sum(result.parts.values())
    assert total == pytest.approx(result.answer.logit - result.against.logit, abs=1e-4)
    assert "probability" in repr(result)
    (note,) = [note for note in result.notes if "difference" in note]
    assert "to the logit of “e”, scores of source positions of the answer alone" in note
    alone = neural.attribute("small", "abc abc", runs=tmp_path, answer="d")
    assert result.scores["direct"].tolist() == alone.scores["direct"].tolist()
    assert not any("difference" in note for note in alone.notes)


def test_a_causal_model_is_explained_by_the_tokens_up_to_the_position():
    ids = draw_ids(batch=1)[0].tolist()
    model = build_own("final_norm=true")
    result = attribute(model, ids, position=-4, methods=["rollout"])
    assert result.position == 5
    assert result.token_ids == ids[:6]
    probabilities = read_logits(model, torch.tensor([ids]))[0, 5].softmax(-1)
    assert result.answer.probability == pytest.approx(float(probabilities.max()), abs=1e-5)


def test_a_class_is_explained_on_several_inputs():
    model = build_classifier("final_norm=true")
    rows = draw_ids(batch=3).tolist()
    result = attribute(model, rows, faithfulness=True, methods=["attention", "direct", "ablation"])
    assert result.position is None
    assert result.answer.text == f"class {result.answer.id}"
    assert result.faithfulness["direct"].gain.n == 3
    assert sum(result.parts.values()) == pytest.approx(result.answer.logit, abs=1e-4)
    single = attribute(model, rows[:1], faithfulness=True, methods=["attention"])
    # a longer input has one class, too
    assert single.notes[-1] == "faithfulness of one prediction has no interval: give several inputs"
    again = attribute(model, rows, answer="2", methods=["attention"])
    assert again.answer.id == 2


def test_a_causal_model_has_an_interval_with_a_longer_input():
    model, ids = build_own(), draw_ids(batch=1)[0].tolist()
    options = {"faithfulness": True, "methods": ["attention"]}
    note = "faithfulness of one prediction has no interval"
    short = attribute(model, ids[:4], **options)
    assert short.notes[-1] == f"{note}: give a longer input, or several"
    assert attribute(model, ids, **options).faithfulness["attention"].gain.n > 1
    assert attribute(model, ids, examples=1, **options).notes[-1] == note  # as asked for


def test_post_norm_networks_keep_what_they_allow():
    result = attribute(build_own('norm="post"'), draw_ids(batch=1))
    assert set(result.scores) == set(METHODS) - {"direct"}
    assert result.attribution is None
    assert result.lens == []
    assert result.to_dict()["logit_attribution"] is None
    assert any("no direct logit attribution" in note for note in result.notes)
    assert np.isfinite(result.removed_heads).all()


def test_the_model_is_as_before():
    model = build_hugging_face("llama", "sdpa").train()
    ids = draw_ids(batch=1)
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    random_state = torch.get_rng_state()
    attribute(model, ids, faithfulness=True, examples=2, methods=["gradient_rollout"])
    assert model.training
    assert torch.equal(torch.get_rng_state(), random_state)
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, state[name])
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"position": 30}, "position 30 does not exist: the input has 9 tokens"),
        ({"position": -10}, "position -10 does not exist"),
        ({"answer": 99}, "answer 99 does not exist: ids are 0 to 10"),
        ({"answer": "cat"}, "no tokenizer: give the answer as a token id"),
        ({"answer": 3, "against": 3}, "their difference is 0"),
        ({"methods": ["rolout"]}, "did you mean `rollout`"),
        ({"examples": 0}, "examples must be at least 1"),
    ],
)
def test_bad_arguments_get_messages(options, message):
    with pytest.raises(TaskError, match=message):
        attribute(build_own(), draw_ids(batch=1), **options)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([5], "the input has one token"),
        ([5, 99], "cannot read this input: the id 99"),
        ([5, -1], "not negative"),
        ([4, 4, 4], "all tokens of the input are the same"),
        ("text", "has no tokenizer"),
    ],
)
def test_bad_inputs_get_messages(inputs, message):
    with pytest.raises(TaskError, match=message):
        attribute(build_own(), inputs)


def test_weights_that_are_not_finite_get_a_message():
    model = build_own()
    with torch.no_grad():
        model.output.linear.weight[0, 0] = torch.nan
    with pytest.raises(TaskError, match="logits of SequentialNetwork are not finite"):
        attribute(model, draw_ids(batch=1))


def test_a_position_of_a_class_is_that_which_the_model_reads():
    with pytest.raises(TaskError, match="class is read from all 9 positions; leave the position"):
        attribute(build_classifier(), draw_ids(batch=1), position=3)
    model = build_sequence_classifier("BERT")
    plain, named = (
        attribute(model, draw_ids(batch=1), position=position, methods=["attention", "direct"])
        for position in (None, 0)
    )
    assert "the class is read from position 0" in plain.notes
    np.testing.assert_array_equal(plain.scores["attention"], named.scores["attention"])
    maps = trace_attention(model, {"input_ids": draw_ids(batch=1)}).value_weighted_maps()
    np.testing.assert_allclose(named.head_rows["value_weighted"][1], maps[1][0, :, 0])
    with pytest.raises(TaskError, match="class is read from position 0; leave the position out"):
        attribute(model, draw_ids(batch=1), position=3)


def test_answers_of_sentence_pieces_follow_the_input():
    tokenizer = build_sentence_pieces("ve", "ved", "▁e", "▁l", "▁lo")
    model = build_gpt2(tokenizer)
    text = "the cat lo"
    for answer, shown in (("ved", "ved"), (".", "."), ("e", "e")):
        result = attribute(
            model, text, tokenizer=tokenizer, answer=answer, against=" e", methods=["attention"]
        )
        assert result.answer.text == shown and result.against.text == " e"
        assert any("logit of “␣e”" in note for note in result.notes)
    # after the first "t", the answer is not what follows the whole input
    early = attribute(
        model, text, tokenizer=tokenizer, answer="e", position=2, methods=["attention"]
    )
    assert early.answer.text == "e" and early.tokens == ["<s>", " ", "t"]
    with pytest.raises(NeuralError, match="2 tokens, “␣” “c”: an answer is one token"):
        attribute(model, text, tokenizer=tokenizer, answer=" c")


@pytest.mark.parametrize("faithfulness", [False, True])
@pytest.mark.parametrize("build", [build_own, build_classifier])
def test_progress_begins_before_the_first_method_and_ends_at_its_total(build, faithfulness):
    calls, rows = [], draw_ids(batch=2).tolist()
    result = attribute(
        build(), rows, faithfulness=faithfulness, examples=5, on_progress=lambda *c: calls.append(c)
    )
    assert calls[:2] == [(0, 0), (0, calls[-1][1])]  # the total is known before methods run
    assert calls[-1][0] == calls[-1][1] and calls == sorted(calls)
    assert len({total for _, total in calls[1:]}) == 1
    # heads and ablation are counted, and every prediction of faithfulness
    assert len(calls) > 6 + 5 * len(result.examples)


def test_no_reason_is_given_twice():
    result = attribute(build_sequence_classifier("BERT"), draw_ids(batch=1))
    assert any("no logit lens and no direct logit attribution" in note for note in result.notes)
    reasons = [note.partition(": ")[2] for note in result.notes]
    assert len(reasons) == len(set(reasons))


def test_unknown_classes_get_a_message():
    with pytest.raises(TaskError, match="`cat` is not a class: 0 to 4"):
        attribute(build_classifier(), draw_ids(batch=1), answer="cat")


def test_a_text_longer_than_the_model_reads_is_one_message(caplog):
    tokenizer = train_tokenizer()
    tokenizer.model_max_length = POSITIONS
    caplog.handler.setLevel(logging.WARNING)
    logging.getLogger("transformers").addHandler(caplog.handler)
    with pytest.raises(TaskError, match="it has 70 tokens, and the model reads 64 at most"):
        attribute(build_gpt2(tokenizer), "cat " * 70, tokenizer=tokenizer)
    logging.getLogger("transformers").removeHandler(caplog.handler)
    assert not caplog.records


def test_files_of_other_kinds_are_refused(explained, tmp_path):
    with pytest.raises(NeuralError, match=r"name it \.html"):
        explained.save(tmp_path / "page.txt")

"""Objectives by name: a sentence encoder and a classifier without a loss on a text."""

import copy

import numpy as np
import pytest
import torch
from torch.nn.functional import cosine_similarity

import neural
from neural.capture.intervene import intervene
from neural.capture.interventions import zero
from neural.core.errors import TaskError
from neural.interpret.objectives import build_batch, create_objective
from tests.hugging_face_folders import build_encoder, train_tokenizer

PAIRS = ["the cat sat\ta dog ran", "a red house\tthe old dog sat there", "one two\tthe cat"]


@pytest.fixture(scope="module")
def encoder():
    tokenizer = train_tokenizer()
    return build_encoder(tokenizer), tokenizer


def embed(model, tokenizer, text):
    ids = torch.tensor([tokenizer(text)["input_ids"]])
    return model(ids).last_hidden_state[0].mean(dim=0)


def compute_cosines(model, tokenizer, pairs):
    rows = [[embed(model, tokenizer, text) for text in pair.split("\t")] for pair in pairs]
    return torch.stack([cosine_similarity(*row, dim=0) for row in rows]).detach().double()


def test_heads_are_ablated_by_the_cosine_of_pairs_of_texts(encoder):
    model, tokenizer = encoder
    result = neural.ablate(
        model, "\n".join(PAIRS), tokenizer=tokenizer, objective="cosine", method="zero"
    )
    clean = compute_cosines(model, tokenizer, PAIRS)
    assert result.last.loss == pytest.approx(-float(clean.mean()), abs=1e-6)
    for head in ((0, 1), (1, 0)):
        with torch.no_grad(), intervene(model, zero(head)):
            changed = compute_cosines(model, tokenizer, PAIRS)
        change = float((clean - changed).mean())
        assert result.last.change[head] == pytest.approx(change, abs=1e-6)
    assert "change of −cosine without each" in str(result)


def plant_delimiter_head(model, tokenizer):
    """A head of the first layer that attends to [SEP], by one coordinate of its embedding."""
    model = copy.deepcopy(model)
    with torch.no_grad():
        model.embeddings.word_embeddings.weight[tokenizer.sep_token_id, 0] = 10
        attention = model.encoder.layer[0].attention.self
        for projection in (attention.query, attention.key):
            projection.weight[0], projection.bias[0] = 0, 0
        attention.query.bias[0], attention.key.weight[0, 0] = 10, 10
    return model


@pytest.mark.parametrize("objective", ["norm", "cosine"])
def test_roles_beside_an_objective_are_those_of_watch_on_the_same_texts(encoder, objective):
    tokenizer = train_tokenizer(pair_template=True)  # writes [CLS] and [SEP]
    model = plant_delimiter_head(encoder[0], tokenizer)
    texts = ["the cat sat on the mat and the dog sat", "a cat and a dog sat on a mat and the rug"]
    lines = ["\t".join(texts), "\t".join(texts[::-1])] if objective == "cosine" else texts
    result = neural.ablate(
        model, "\n".join(lines), tokenizer=tokenizer, objective=objective, pairs=False
    )
    assert result.roles[0, 0] == "delimiter"
    assert (
        result.roles.tolist()
        == neural.watch(model, texts, tokenizer=tokenizer).head_roles().tolist()
    )


@pytest.mark.parametrize("objective", ["norm", "cosine"])
def test_roles_are_those_of_all_lines(encoder, objective):
    tokenizer = train_tokenizer(pair_template=True)
    model = plant_delimiter_head(encoder[0], tokenizer)
    long = "the cat sat on the mat and the dog sat on a mat and a rug"
    texts = ["a cat"] * 10 + [long] * 10  # the first ones alone are too short for roles
    lines = [f"{text}\t{text}" for text in texts] if objective == "cosine" else texts
    result = neural.ablate(
        model, "\n".join(lines), tokenizer=tokenizer, objective=objective, pairs=False
    )
    assert result.roles[0, 0] == "delimiter"
    watched = neural.watch(model, texts, tokenizer=tokenizer)
    assert result.roles.tolist() == watched.head_roles().tolist()


def first_state_losses(model, batch):
    """A loss of a user."""
    return model(**batch).last_hidden_state[:, 0, 0] ** 2


def test_a_loss_of_the_user_is_named_without_a_minus(encoder):
    model, tokenizer = encoder
    name = f"{__name__}:first_state_losses"
    result = neural.ablate(
        model, "one text\nand another", tokenizer=tokenizer, objective=name, pairs=False
    )
    assert result.last.loss > 0 and result.header.metric == name


def test_the_similarity_of_two_texts_is_attributed_to_tokens_and_heads(encoder):
    model, tokenizer = encoder
    first, second = PAIRS[1].split("\t")
    result = neural.attribute(model, [first, second], tokenizer=tokenizer, objective="cosine")
    clean = float(compute_cosines(model, tokenizer, PAIRS[1:2]))
    assert result.answer.logit == pytest.approx(clean, abs=1e-5)
    reference = embed(model, tokenizer, second).detach()
    with torch.no_grad(), intervene(model, zero((1, 1))):
        changed = float(cosine_similarity(embed(model, tokenizer, first), reference, dim=0))
    assert result.removed_heads[1, 1] == pytest.approx(clean - changed, abs=1e-5)
    assert result.to_dict()["answer"]["probability"] is None
    measured = neural.attribute(
        model,
        [first, second],
        tokenizer=tokenizer,
        objective="cosine",
        faithfulness=True,
        methods=["attention"],
    )
    # cosine takes two inputs, and more tokens are still one prediction
    assert measured.notes[-1] == "faithfulness of one prediction has no interval"
    with pytest.raises(TaskError, match="has a score of the input"):
        neural.attribute(model, first, tokenizer=tokenizer, objective="norm", position=0)
    with pytest.raises(TaskError, match="cosine compares two inputs"):
        neural.attribute(model, first, tokenizer=tokenizer, objective="cosine")


def test_the_clean_text_is_restored_by_cosine_and_by_norm(encoder):
    model, tokenizer = encoder
    pairs = [{"clean": "the cat sat", "corrupted": "the dog sat"}]
    for objective in ("cosine", "norm"):
        result = neural.patch(
            model, pairs, tokenizer=tokenizer, objective=objective, sweeps="residual", null=False
        )
        assert np.abs(result["residual"].restored).max() > 0.1
        assert result.metric == objective
    clean = neural.patch(model, pairs, tokenizer=tokenizer, objective="cosine", null=False).clean
    assert clean == pytest.approx([1.0], abs=1e-6)


def test_padding_does_not_change_an_embedding(encoder):
    model, tokenizer = encoder
    texts = ["the cat sat", "a much longer text about the old red house"]
    norms = -create_objective("norm", model)(model, build_batch("norm", texts, tokenizer))
    expected = [embed(model, tokenizer, text).norm().item() for text in texts]
    np.testing.assert_allclose(norms.detach().numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        ("cosine", "line 1 has 1 texts, and the objective cosine needs 2"),
        ("euclid", "there is no objective `euclid`: use cosine, norm"),
        ("logit:joy", "`joy` is not a class"),
        ("logit:0", "returns no `logits`"),
        ("nowhere:losses", "No module named"),
        (None, "--objective cosine, norm, logit:LABEL"),
    ],
)
def test_what_cannot_be_measured_is_a_message(encoder, objective, message):
    model, tokenizer = encoder
    with pytest.raises(TaskError, match=message):
        neural.ablate(model, "one text\nand another", tokenizer=tokenizer, objective=objective)


def test_the_name_of_an_objective_is_checked_before_the_lines(encoder):
    model, tokenizer = encoder
    with pytest.raises(TaskError, match="there is no objective `euclid`: use cosine, norm"):
        neural.ablate(model, "\n".join(PAIRS), tokenizer=tokenizer, objective="euclid")


def test_broken_batches_and_objectives_are_messages(encoder):
    model, _ = encoder
    ids = torch.ones(4, 3, dtype=torch.long)
    with pytest.raises(TaskError, match="a batch is a dict of tensors with examples first"):
        neural.ablate(model, objective=lambda model, batch: 0, batches=[(ids, ids)])

    def contrast(model, batch):
        states = model(batch["ids"]).last_hidden_state[:, 0]
        targets = torch.tensor([1, 0, 3, 2])[: len(states)]
        return torch.nn.functional.cross_entropy(states @ states.T, targets, reduction="none")

    with pytest.raises(TaskError, match=r"IndexError.* must not depend on the others"):
        neural.ablate(model, objective=contrast, batches=[{"ids": ids}])

"""Roles of several captures are those of all their examples in one batch."""

import numpy as np
import pytest
import torch
import transformers

import neural
from neural.findings.capture_roles import (
    RoleParts,
    find_capture_roles,
    name_roles,
    score_capture,
    score_parts,
)
from tests.hugging_face_folders import TEXTS, build_gpt2, train_tokenizer

LINES = ["the cat", "a dog sat on the mat and the cat saw the dog", *TEXTS, "the dog and the cat"]


@pytest.fixture(scope="module")
def encoder():
    """A BERT with sharp attention, so that heads differ, and its tokenizer."""
    tokenizer = train_tokenizer(pair_template=True)  # writes the delimiters [CLS] and [SEP]
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=8,
    )
    model = transformers.BertModel(config).eval()
    for layer in model.encoder.layer:
        layer.attention.self.query.weight.data *= 30
        layer.attention.self.key.weight.data *= 30
    return model, tokenizer


def capture(model, tokenizer, texts):
    """The attention of texts in one batch, which is as wide as the longest of them."""
    encoded = tokenizer(texts, padding=True, return_tensors="pt")
    encoded.pop("token_type_ids", None)
    ids = encoded["input_ids"]
    inputs = dict(encoded) if len(texts) > 1 else {"input_ids": ids}
    result = neural.watch(model, inputs, tokens=ids)
    result.labels = [tokenizer.convert_ids_to_tokens(row) for row in ids.tolist()]
    return result


@pytest.mark.parametrize("sizes", [(1, 5), (2, 2, 2), (1, 1, 1, 1, 1, 1)])
def test_batches_have_the_scores_of_all_examples(encoder, sizes):
    whole = capture(*encoder, LINES)
    parts, start = [], 0
    for size in sizes:
        parts.append(RoleParts.collect(capture(*encoder, LINES[start : start + size])))
        start += size
    expected, scores = score_capture(whole), score_parts(parts)
    assert {"sink", "induction", "positional", "local", "delimiter"} <= set(expected)
    assert scores.keys() == expected.keys()
    for name, role in expected.items():
        np.testing.assert_allclose(scores[name].scores, role.scores, atol=1e-6, err_msg=name)
    assert name_roles(parts).tolist() == find_capture_roles(whole).tolist()


def test_captures_of_other_layers_are_refused(encoder):
    tokenizer = train_tokenizer()
    parts = [
        RoleParts.collect(capture(build_gpt2(tokenizer, layers=layers), tokenizer, TEXTS))
        for layers in (1, 2)
    ]
    with pytest.raises(ValueError, match=r"shape|argument"):
        name_roles(parts)
    assert name_roles([]).shape == (0, 0)

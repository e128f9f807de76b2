"""`neural.watch` of any torch model: inputs, labels, head roles and the saved page."""

import warnings

import numpy as np
import pytest
import torch
import transformers
from torch import nn

import neural
from neural.capture.watch import AttentionWarning
from neural.core.errors import NeuralError
from neural.runs.errors import RunError
from tests.hugging_face_folders import build_gpt2, plant_previous_token_head, train_tokenizer

WORDS = ["the", "cat", "sat", ",", "<script>alert(1)</script>", *"abcdefg"]


class Lookup(nn.Module):
    """Attention whose scores are given: head 0 attends to the previous position, head 1 to all."""

    def forward(self, x, y=None):
        length = x.shape[1]
        scores = torch.zeros(1, 2, length, length)
        scores[0, 0] = torch.diag(torch.full((length - 1,), 40.0), -1)
        q = torch.zeros(x.shape[0], 2, length, 4)
        return nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=scores)


@pytest.fixture
def capture():
    return neural.watch(Lookup(), torch.zeros(2, 12, 3), labels=WORDS)


def test_labels_are_in_the_capture(capture):
    assert capture.labels == [WORDS, WORDS]
    assert capture.axis_labels(0) == (WORDS, WORDS)


def test_labels_are_checked_at_the_end_of_a_block():
    model = Lookup()
    with (
        pytest.raises(ValueError, match="labels has 12 labels, but the attention has 4 positions"),
        neural.watch(model, labels=WORDS),
    ):
        model(torch.zeros(1, 4, 3))


def test_several_inputs_are_passed_to_the_model():
    class Sum(Lookup):
        def forward(self, x, y):
            return super().forward(x + y)

    x = torch.zeros(1, 5, 3)
    assert neural.watch(Sum(), x, x)[0].maps().shape == (1, 2, 5, 5)
    assert neural.watch(Sum(), {"x": x, "y": x})[0].maps().shape == (1, 2, 5, 5)
    assert neural.watch(Sum(), (x, x))[0].maps().shape == (1, 2, 5, 5)


def test_roles_name_what_each_head_does(capture):
    assert capture.head_roles().tolist() == [["previous token", "uniform"]]


def test_a_head_that_attends_to_punctuation_is_named_by_its_labels():
    class ToComma(Lookup):
        def forward(self, x):
            scores = torch.zeros(1, 2, 12, 12)
            scores[..., 3] = 40.0
            q = torch.zeros(1, 2, 12, 4)
            return nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=scores)

    x = torch.zeros(1, 12, 3)
    assert neural.watch(ToComma(), x, labels=[*WORDS[:4], *"abcdefgh"]).head_roles().tolist() == [
        ["delimiter", "delimiter"]
    ]
    assert "delimiter" not in neural.watch(ToComma(), x).head_roles()


def test_a_head_that_rests_on_a_special_token_at_the_start_is_a_sink():
    labels = ["[CLS]", *"abcdefghijk", ".", "[SEP]"]
    # were [CLS] a delimiter, 86 % of the weight would be on delimiters
    weights = torch.tensor([0.62, *[0.14 / 11] * 11, 0.12, 0.12])

    class Resting(nn.Module):
        def forward(self, x):
            q = torch.zeros(1, 1, 14, 4)
            scores = weights.log().expand(1, 1, 14, 14)
            return nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=scores)

    capture = neural.watch(Resting(), torch.zeros(1, 14, 3), labels=labels)
    assert capture.head_roles().tolist() == [["sink"]]


def test_a_short_input_does_not_tell_roles():
    capture = neural.watch(Lookup(), torch.zeros(4, 9, 3))
    assert capture.head_roles().tolist() == [["too short to tell", "uniform"]]


def test_the_order_of_the_examples_changes_no_role():
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=40,
        hidden_size=32,
        num_hidden_layers=4,
        num_attention_heads=4,
        initializer_range=0.5,
    )
    model = transformers.BertModel(config).eval()
    ids = torch.randint(0, 40, (4, 14))
    lengths = torch.tensor([14, 10, 14, 12])
    mask = (torch.arange(14) < lengths[:, None]).long()
    labels = [[".,;"[token % 3] if token < 12 else "a" for token in row] for row in ids.tolist()]
    roles = []
    for shift in range(4):
        order = [(index + shift) % 4 for index in range(4)]
        batch = {"input_ids": ids[order], "attention_mask": mask[order]}
        capture = neural.watch(
            model, batch, tokens=ids[order], labels=[labels[index] for index in order]
        )
        roles.append(capture.head_roles().tolist())
    assert roles.count(roles[0]) == 4
    assert len({role for layer in roles[0] for role in layer}) > 1


def test_a_saved_page_has_labels_roles_and_measures(capture, tmp_path):
    path = capture.save(tmp_path / "heads.html")
    page = path.read_text()
    assert path == tmp_path / "heads.html"
    assert "<title>Lookup: attention</title>" in page
    assert '"queries":["the","cat","sat",",","\\u003cscript' in page
    assert '"roles":[["previous token","uniform"]]' in page
    assert '"entropy":{"unit":"nats"' in page
    assert "alert(1)</script>" not in page
    assert "example 0 of 2" in page


def test_another_example_and_another_title(tmp_path):
    model = nn.TransformerEncoderLayer(8, 2, 8, batch_first=True).eval()
    labels = [["a", "b", "c"], ["d", "e", "f"]]
    capture = neural.watch(model, torch.randn(2, 3, 8), labels=labels)
    pages = [
        capture.save(str(tmp_path / f"{example}.html"), example=example, title="Mine").read_text()
        for example in (0, 1)
    ]
    assert all("<title>Mine: attention</title>" in page for page in pages)
    assert '["a","b","c"]' in pages[0] and '["a","b","c"]' not in pages[1]
    assert '["d","e","f"]' in pages[1]
    np.testing.assert_equal(capture.head_roles().shape, (1, 2))


@pytest.mark.parametrize("example", [2, -1])
def test_an_example_that_does_not_exist_is_an_error(capture, tmp_path, example):
    with pytest.raises(ValueError, match=f"example {example} does not exist: the batch has 2"):
        capture.save(tmp_path / "heads.html", example=example)


def test_a_page_is_html(capture, tmp_path):
    with pytest.raises(NeuralError, match=r"heads.png: name it \.html"):
        capture.save(tmp_path / "heads.png")


def test_a_folder_that_does_not_exist_is_an_error(capture, tmp_path):
    with pytest.raises(RunError, match=r"heads.html cannot be written: "):
        capture.save(tmp_path / "missing" / "heads.html")


def test_without_attention_there_is_nothing_to_save(tmp_path):
    with pytest.warns(AttentionWarning):
        capture = neural.watch(nn.Linear(3, 3), torch.zeros(2, 3))
    with pytest.raises(ValueError, match="no attention was captured"):
        capture.save(tmp_path / "heads.html")
    assert capture.head_roles().size == 0


def test_a_warning_points_at_the_line_of_the_user():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        neural.watch(nn.Linear(3, 3), torch.zeros(2, 3))
    assert [warning.filename for warning in caught] == [__file__]


def test_a_capture_prints_a_row_per_layer(capture):
    lines = repr(capture).splitlines()
    assert lines[0] == "attention of 1 layer"
    assert lines[1].split() == ["layer", "heads", "batch", "entropy", "(nats)"]
    assert "2 × 12 queries × 12 keys" in lines[2]
    assert "tensor" not in repr(capture) + repr(capture[0])
    assert repr(capture[0]).endswith("2 heads, 2 × 12 queries × 12 keys")


class Words(Lookup):
    """The same attention, from ids (B, T)."""

    def forward(self, ids):
        examples, length = ids.shape
        return super().forward(torch.zeros(examples, length, 3))


IDS = torch.tensor([[3, 1, 3, 1, 3], [0, 1, 2, 0, 1]])


@pytest.mark.parametrize("tokens", [IDS.tolist(), IDS.numpy(), list(IDS.numpy()), list(IDS)])
def test_token_ids_may_be_nested_lists_or_an_array(tokens):
    expected = neural.watch(Words(), IDS, tokens=IDS).measure_arrays()["induction_mass"]
    actual = neural.watch(Words(), IDS, tokens=tokens).measure_arrays()["induction_mass"]
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (IDS[0], r"shape \(B, T\), .* not \(5,\): add a batch axis, tokens\[None\]"),
        (IDS[0].tolist(), r"add a batch axis, \[tokens\]"),
        (IDS[:, :4], r"tokens has the shape \(2, 4\), but the attention has 2 × 5 positions"),
        (IDS[:1], r"tokens has the shape \(1, 5\), but the attention has 2 × 5 positions"),
        (IDS.float(), "tokens must be token ids: whole numbers, not torch.float32"),
        ([[1, 2], [1]], "tokens must be a tensor .* equally long lists"),
        ("the cat", "tokens must be a tensor .* of token ids"),
        ([["the", "cat"]], "tokens must be a tensor .* of token ids"),
    ],
)
def test_wrong_token_ids_are_explained(tokens, message):
    with pytest.raises(ValueError, match=message):
        neural.watch(Words(), IDS, tokens=tokens)


def test_token_ids_are_checked_at_the_end_of_a_block():
    model = Words()
    with (
        pytest.raises(ValueError, match=r"tokens has the shape \(2, 5\), .* 1 × 4 positions"),
        neural.watch(model, tokens=IDS),
    ):
        model(IDS[:1, :4])


def test_a_padding_mask_may_be_nested_lists_and_must_fit():
    assert neural.watch(Words(), IDS, real=[[True] * 5] * 2)
    with pytest.raises(ValueError, match=r"real has the shape \(2, 4\)"):
        neural.watch(Words(), IDS, real=torch.ones(2, 4, dtype=torch.bool))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Words, r"`Words` is a class: create an instance, such as Words\(\)"),
        ("gpt2", "'gpt2' is a text: load the model first"),
        (None, "the model must be a torch.nn.Module; this is a NoneType"),
    ],
)
def test_what_is_no_model_is_named(model, message):
    with pytest.raises(TypeError, match=message):
        neural.watch(model, IDS)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (IDS[0], r"add a batch axis, x\[None\]"),
        (IDS.tolist(), r"pass one tensor, torch.tensor\(x\)"),
        ("the cat", "a text is no tensor: tokenize it"),
    ],
)
def test_an_input_on_which_the_model_fails_is_explained(ids, message):
    with pytest.raises(ValueError, match=message):
        neural.watch(Words(), ids)


def test_an_error_of_the_model_itself_is_raised_as_it_is():
    class Broken(Words):
        def forward(self, ids):
            raise ZeroDivisionError("my own")

    with pytest.raises(ZeroDivisionError, match=r"^my own$"):
        neural.watch(Broken(), IDS)


# --- texts ---

TEXT = "the cat sat on the mat and the dog sat"


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(pair_template=True)


@pytest.fixture(scope="module")
def gpt2(tokenizer):
    return plant_previous_token_head(build_gpt2(tokenizer))


def test_a_text_is_tokenized_and_labelled(gpt2, tokenizer):
    capture = neural.watch(gpt2, TEXT, tokenizer=tokenizer)
    assert capture.labels == [["[CLS]", *TEXT.split(), "[SEP]"]]
    assert capture.head_roles()[1, 0] == "previous token"
    ids = tokenizer(TEXT, return_tensors="pt")["input_ids"]
    expected = neural.watch(gpt2, ids, tokens=ids).measure_arrays()
    assert capture.measure_arrays().keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_array_equal(capture.measure_arrays()[name], values)


def test_padding_of_several_texts_is_not_measured(gpt2, tokenizer):
    capture = neural.watch(gpt2, [TEXT, "a dog"], tokenizer=tokenizer)
    assert capture.labels[1] == ["[CLS]", "a", "dog", "[SEP]", *["[PAD]"] * 8]
    alone = [neural.watch(gpt2, text, tokenizer=tokenizer) for text in (TEXT, "a dog")]
    rows = np.array([12, 4])  # a measure is the mean over rows, so the longer text counts more
    expected = sum(
        count * one.measure_arrays()["entropy"] for count, one in zip(rows, alone, strict=True)
    )
    np.testing.assert_allclose(
        capture.measure_arrays()["entropy"], expected / rows.sum(), atol=1e-5
    )


def test_pairs_are_tuples(gpt2, tokenizer):
    pair = ["[CLS]", "the", "cat", "[SEP]", "a", "dog", "[SEP]"]
    assert neural.watch(gpt2, ("the cat", "a dog"), tokenizer=tokenizer).labels == [pair]
    pairs = [("the cat", "a dog")] * 2
    assert neural.watch(gpt2, pairs, tokenizer=tokenizer).labels == [pair, pair]


def test_ids_get_labels_from_a_tokenizer(gpt2, tokenizer):
    encoded = tokenizer([TEXT, "a dog"], return_tensors="pt", padding=True)
    expected = neural.watch(gpt2, [TEXT, "a dog"], tokenizer=tokenizer)
    named = neural.watch(gpt2, encoded, tokenizer=tokenizer)
    assert named.labels == expected.labels
    np.testing.assert_array_equal(named.measure_arrays()["span"], expected.measure_arrays()["span"])
    ids = encoded["input_ids"][:1]
    assert neural.watch(gpt2, ids, tokenizer=tokenizer).labels == expected.labels[:1]
    with neural.watch(gpt2, tokens=ids, tokenizer=tokenizer) as block:
        gpt2(ids)
    assert block.labels == expected.labels[:1]
    own = [str(position) for position in range(12)]
    assert neural.watch(gpt2, TEXT, tokenizer=tokenizer, labels=own).labels == [own]


def test_a_model_with_another_name_for_its_ids_reads_texts(tokenizer):
    capture = neural.watch(Words(), "the cat sat on", tokenizer=tokenizer)
    assert capture.labels == [["[CLS]", "the", "cat", "sat", "on", "[SEP]"]]


def test_the_tokenizer_of_the_caller_stays_as_it_was(gpt2):
    own = train_tokenizer()
    own.pad_token = None
    messages = []
    neural.watch(gpt2, [TEXT, "a dog"], tokenizer=own, on_warning=messages.append)
    assert own.pad_token is None and messages == []


def test_words_outside_the_vocabulary_are_a_warning(gpt2, tokenizer):
    with pytest.warns(AttentionWarning, match="1 token is not in the vocabulary"):
        neural.watch(gpt2, "the zebra", tokenizer=tokenizer)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (([],), "the list of texts is empty"),
        ((TEXT, TEXT), "this model reads one sequence: give a pair of texts as a tuple"),
        (([TEXT, ("a", "b")],), "a list of texts, or a list of pairs of texts, not both"),
        ((torch.zeros(1, 4, 8),), r"the inputs are texts, or token ids \(B, T\)"),
        ((), r"the tokenizer needs the ids that the model reads: tokens=ids"),
    ],
)
def test_wrong_texts_are_explained(gpt2, tokenizer, inputs, message):
    with pytest.raises(ValueError, match=message):
        neural.watch(gpt2, *inputs, tokenizer=tokenizer)


def test_a_second_text_is_read_by_the_decoder(tokenizer):
    config = transformers.T5Config(
        vocab_size=len(tokenizer), d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2
    )
    config.decoder_start_token_id = 0
    model = transformers.T5ForConditionalGeneration(config).eval()
    capture = neural.watch(model, TEXT, "a dog", tokenizer=tokenizer)
    assert capture.decoder_labels == [["[PAD]", "[CLS]", "a", "dog"]]
    assert capture.axis_labels(2) == (capture.decoder_labels[0], capture.labels[0])
    encoded = tokenizer(TEXT, return_tensors="pt")["input_ids"]
    named = {"input_ids": encoded, "decoder_input_ids": encoded[:, :3]}
    by_name = neural.watch(model, named, tokenizer=tokenizer)
    assert by_name.decoder_labels == [["[CLS]", "the", "cat"]]
    with pytest.raises(ValueError, match="2 texts for the encoder and 1 for the decoder"):
        neural.watch(model, [TEXT, TEXT], "a dog", tokenizer=tokenizer)
    with pytest.raises(ValueError, match="the decoder reads one text or list of texts"):
        neural.watch(model, TEXT, "a dog", "a cat", tokenizer=tokenizer)

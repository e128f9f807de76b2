"""Texts, pairs, files and ids become one batch with labels; bad inputs are messages."""

import numpy as np
import pytest
import torch
import transformers
from torch.utils._python_dispatch import TorchDispatchMode

from neural.capture.map_encoding import decode_map
from neural.interpret.foreign_models import TargetError
from neural.interpret.inputs import (
    DEFAULT_TEXT,
    prepare_ids,
    prepare_input,
    read_inputs,
)
from neural.interpret.subject import Subject
from neural.interpret.tokens import label_ids
from neural.workflows.watch_models import capture_model, record_captures
from tests.hugging_face_folders import POSITIONS, TEXTS, build_gpt2, train_tokenizer


@pytest.fixture(scope="module")
def subject():
    tokenizer = train_tokenizer()
    return Subject("tiny", build_gpt2(tokenizer), tokenizer)


class LetterTokenizer:
    """A tokenizer of another library: only `encode` and `decode`."""

    def encode(self, text):
        return [ord(letter) % 10 for letter in text]

    def decode(self, ids):
        return "".join(chr(48 + index) for index in ids)


def test_a_text_has_a_label_per_token(subject):
    prepared = prepare_input(subject, [TEXTS[1]])
    assert prepared.labels == [TEXTS[1].split()]
    assert prepared.description == "1 text, 11 tokens" and prepared.notes == []
    assert prepared.real is None and torch.equal(prepared.tokens, prepared.batch["input_ids"])


def test_several_texts_are_padded_and_padding_is_marked(subject):
    prepared = prepare_input(subject, ["the cat", "a dog sat"])
    assert prepared.labels == [["the", "cat", "[PAD]"], ["a", "dog", "sat"]]
    assert prepared.real.tolist() == [[True, True, False], [True, True, True]]
    assert prepared.description == "2 texts, 3 tokens with padding"


def test_without_a_text_there_is_a_default_and_its_unknown_words_are_counted(subject):
    prepared = prepare_input(subject, [])
    assert prepared.tokens.shape[1] == len(
        DEFAULT_TEXT.replace(",", " ,").replace(".", " .").split()
    )
    unknown = prepared.labels[0].count("[UNK]")
    assert f"{unknown} tokens are not in the vocabulary and became [UNK]" in prepared.notes


def test_one_unknown_word_is_noted(subject):
    (note,) = prepare_input(subject, ["the zebra sat"]).notes
    assert note == "1 token is not in the vocabulary and became [UNK]"


def test_long_texts_are_cut_to_the_positions_of_the_model_with_a_note(subject):
    prepared = prepare_input(subject, ["the cat " * POSITIONS])
    assert prepared.tokens.shape == (1, POSITIONS)
    assert prepared.notes == [f"inputs are cut to {POSITIONS} tokens"]
    fitting = prepare_input(subject, ["the cat " * (POSITIONS // 2)])
    assert fitting.tokens.shape == (1, POSITIONS) and fitting.notes == []
    assert prepare_input(subject, [TEXTS[0]], max_length=4).tokens.shape == (1, 4)


def test_files_are_read_and_binary_files_are_a_message(tmp_path):
    (tmp_path / "text.txt").write_text("the cat", encoding="utf-8")
    (tmp_path / "weights.bin").write_bytes(b"\xff\xfe\x00\x81")
    assert read_inputs([str(tmp_path / "text.txt"), "a dog"]) == ["the cat", "a dog"]
    for length in (300, 1_000, 5_000):  # longer than a file name may be, or than a path
        assert read_inputs(["the cat " * length]) == ["the cat " * length]
        assert read_inputs(["x" * length]) == ["x" * length]
    with pytest.raises(TargetError, match=r"weights\.bin cannot be read as text"):
        read_inputs([str(tmp_path / "weights.bin")])
    with pytest.raises(TargetError, match=r"cannot be read as text: is a directory"):
        read_inputs([str(tmp_path)])


def test_one_line_break_at_the_end_of_a_file_is_not_part_of_the_text(tmp_path):
    for name, content in (("one", "the cat\n"), ("two", "the cat\n\n"), ("windows", "the cat\r\n")):
        (tmp_path / name).write_bytes(content.encode())
    texts = read_inputs([str(tmp_path / name) for name in ("one", "two", "windows")])
    assert texts == ["the cat", "the cat\n", "the cat"]
    assert read_inputs(["the cat\n"]) == ["the cat\n"]


def test_a_misspelt_file_name_is_not_taken_for_a_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "probe.txt").write_text("the cat")
    with pytest.raises(TargetError, match=r"no file prob\.txt; did you mean `probe\.txt`\?"):
        read_inputs(["the dog", "prob.txt"])
    with pytest.raises(TargetError, match=r"no file texts/a .*add a blank: \"texts/a \""):
        read_inputs(["texts/a"])
    texts = ["prob.txt ", "see prob.txt", "Hello.", "3.14", "cat", ""]
    assert read_inputs(texts) == texts


def test_models_without_a_tokenizer_say_what_to_do(subject):
    bare = Subject("tiny", subject.model)
    with pytest.raises(TargetError, match=r"has no tokenizer: save it into the same folder.*--ids"):
        prepare_input(bare, ["the cat"])
    broken = Subject("tiny", subject.model, tokenizer_error="Expecting value")
    with pytest.raises(TargetError, match="tokenizer of tiny cannot be read: Expecting value"):
        prepare_input(broken, ["the cat"])
    prepared = prepare_ids(bare, ["5 3 9", "1,2,3"])
    assert prepared.tokens.tolist() == [[5, 3, 9], [1, 2, 3]]
    assert prepared.labels == [["5", "3", "9"], ["1", "2", "3"]]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["the cat"], "whole numbers"),
        (["1 2", "1"], "same number of ids"),
        ([""], "at least one"),
        (["-1 2"], "not negative"),
        (["5 9999"], "--ids has id 9,999, and the model has 14 embeddings: ids go from 0 to 13"),
    ],
)
def test_bad_ids_are_messages(subject, rows, message):
    with pytest.raises(TargetError, match=message):
        prepare_ids(subject, rows)


def test_a_tokenizer_of_another_model_is_a_message(subject):
    small = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(vocab_size=5, n_positions=16, n_embd=8, n_layer=1, n_head=2)
    )
    with pytest.raises(TargetError, match="model has 5 embeddings: tokenizer and model do not"):
        prepare_input(Subject("tiny", small, subject.tokenizer), [TEXTS[0]])


def test_inputs_without_tokens_or_of_two_kinds_are_messages(subject):
    with pytest.raises(TargetError, match="is empty"):
        prepare_input(subject, [""])
    with pytest.raises(TargetError, match="either --input or --pair"):
        prepare_input(subject, ["a"], pairs=[("a", "b")])


def test_tokenizers_of_other_libraries_encode_and_decode(subject):
    other = Subject("tiny", subject.model, LetterTokenizer())
    prepared = prepare_input(other, ["abc"])
    assert prepared.tokens.tolist() == [[7, 8, 9]] and prepared.labels == [["7", "8", "9"]]
    with pytest.raises(TargetError, match="need a tokenizer of Hugging Face"):
        prepare_input(other, ["a", "b"])


def test_marks_of_blanks_become_blanks():
    class Marked:
        def convert_ids_to_tokens(self, row):
            return [("Ġthe", "▁cat", "Ċ")[index] for index in row]

    assert label_ids(Marked(), torch.tensor([[0, 1, 2]])) == [[" the", " cat", "\n"]]


def test_bytes_of_byte_level_tokenizers_become_characters():
    """“Café” — 東: whole characters are read; parts of one, and control characters, stay."""
    pieces = ["âĢľ", "C", "af", "Ã©", "âĢĿ", "ĠâĢĶ", "æĿ", "±", "ě", "Âł", "▁über", "##é"]

    class ByteLevel:
        def convert_ids_to_tokens(self, row):
            return [pieces[index] for index in row]

    labels = label_ids(ByteLevel(), torch.arange(len(pieces))[None])[0]
    assert labels[:6] == ["“", "C", "af", "é", "”", " —"]
    assert labels[6:9] == ["æĿ", "±", "ě"]  # ě is the escape character
    assert labels[9:] == ["\xa0", " über", "##é"]


class HalfOnly(torch.nn.Module):
    """A model with an operation that does not exist in 16 bits."""

    def __init__(self, inner):
        super().__init__()
        self.inner, self.config = inner, inner.config

    def forward(self, input_ids, attention_mask=None):
        if self.inner.dtype == torch.float16:
            raise RuntimeError("\"some_kernel\" not implemented for 'Half'")
        return self.inner(input_ids=input_ids, attention_mask=attention_mask)


def test_missing_operations_of_16_bits_run_in_32_bits_with_a_note(subject):
    model = HalfOnly(build_gpt2(subject.tokenizer).half())
    half = Subject("tiny", model, subject.tokenizer)
    capture = capture_model(half, prepare_input(half, [TEXTS[0]]))
    assert capture.notes == [
        "an operation of this model is missing for float16 here: run in 32 bits"
    ]
    assert len(capture.result) == 2


class NeverRuns(torch.nn.Linear):
    """A model that fails in every dtype."""

    def forward(self, input_ids, attention_mask=None):
        raise RuntimeError("\"some_kernel\" not implemented for 'Half'\nmore lines")


def test_models_that_fail_are_messages(subject):
    failing = Subject("tiny", NeverRuns(2, 2).half(), subject.tokenizer)
    with pytest.raises(TargetError, match=r"cannot run in float16 on this machine.*model\.float"):
        capture_model(failing, prepare_input(failing, ["the cat"]))
    other = Subject("tiny", torch.nn.Linear(2, 2), subject.tokenizer)
    with pytest.raises(TargetError, match="tiny failed on this input"):
        capture_model(other, prepare_input(subject, ["the cat"]))


def test_weights_that_are_not_finite_are_named(subject):
    model = build_gpt2(subject.tokenizer)
    model.transformer.h[1].mlp.c_fc.bias.data[3] = float("inf")
    broken = Subject("tiny", model, subject.tokenizer)
    with pytest.raises(TargetError, match=r"`transformer\.h\.1\.mlp\.c_fc\.bias` has values"):
        capture_model(broken, prepare_input(broken, ["the cat"]))


class LargestTensor(TorchDispatchMode):
    """Number of elements of the largest tensor that an operation of torch returns."""

    elements = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, tuple | list) else (result,):
            if isinstance(tensor, torch.Tensor):
                # an expanded tensor takes the memory of its storage
                stored = tensor.untyped_storage().nbytes() // tensor.element_size()
                self.elements = max(self.elements, min(tensor.numel(), stored))
        return result


def test_long_inputs_are_measured_without_a_matrix_and_stored_in_part(tmp_path, subject):
    length = 2048
    config = transformers.GPT2Config(
        vocab_size=len(subject.tokenizer), n_positions=length, n_embd=8, n_layer=1, n_head=2
    )
    torch.manual_seed(0)
    long = Subject("long", transformers.GPT2Model(config).eval(), subject.tokenizer)
    prepared = prepare_input(long, [" ".join(TEXTS[0].split()[i * i % 11] for i in range(length))])
    assert prepared.tokens.shape == (1, length)
    with LargestTensor() as largest:
        capture = capture_model(long, prepared)
        (maps,) = record_captures([capture]).maps(0).values()
        capture.result.save(tmp_path / "page.html")
    assert largest.elements < length**2 / 8
    assert decode_map(maps).shape[-2:] == (512, 512)
    # all rows are measured: those of the first 512 positions alone have a smaller span
    (call,) = capture.result
    weights = call.maps()
    distance = np.abs(np.arange(length)[:, None] - np.arange(length))
    expected = (weights * distance).sum(-1).mean((0, 2))
    np.testing.assert_allclose(call.measures["span"], expected, rtol=1e-4)
    assert (tmp_path / "page.html").stat().st_size < 5_000_000


@pytest.mark.parametrize(
    "name", ["Roberta", "Camembert", "XLMRoberta", "Longformer", "MPNet", "Data2VecText"]
)
def test_inputs_of_models_that_count_from_padding_are_cut_to_what_the_model_takes(name):
    """Their configuration has two positions more: they count from the index of padding."""
    tokenizer = train_tokenizer()
    config = getattr(transformers, f"{name}Config")(
        vocab_size=len(tokenizer),
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=18,
        pad_token_id=1,
        **({"attention_window": [4]} if name == "Longformer" else {}),
    )
    model = getattr(transformers, f"{name}Model")(config).eval()
    prepared = prepare_input(Subject("tiny", model, tokenizer), ["the cat sat " * 9])
    assert prepared.tokens.shape[1] == 16
    assert "inputs are cut to 16 tokens" in prepared.notes
    with torch.no_grad():
        model(prepared.tokens)

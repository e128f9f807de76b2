"""Models that read tokens: runs, folders of Hugging Face, and torch modules."""

import pytest
import torch

from neural.core.errors import TaskError
from neural.interpret.subject import Subject, load_subject
from neural.tasks._text_generator import CharacterTokenizer
from tests.hugging_face_folders import (
    build_gpt2,
    build_sentence_pieces,
    build_t5,
    save_folder,
    train_tokenizer,
)
from tests.programs import TRANSLATOR
from tests.written_runs import CHARACTERS, write_run


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer()


def test_a_run_has_logits_and_characters(tmp_path):
    path = write_run(tmp_path, vocabulary=list(CHARACTERS))
    for target in (path, "small"):
        model = load_subject(target, runs=tmp_path)
        ids = torch.tensor([model.encode(CHARACTERS[:4])])
        with torch.no_grad():
            expected = model.model.logits(ids)[:, -1]
        assert torch.equal(model.run(ids), expected)
        assert model.label(ids[0].tolist()) == list(CHARACTERS[:4])
        assert model.encode_next(CHARACTERS[:4], CHARACTERS[5]) == [5]
        assert model.class_count == len(CHARACTERS)
        assert "step 3" in model.source


@pytest.mark.parametrize(
    ("tokenizer", "ids", "labels"),
    [
        (CharacterTokenizer(("a", "b")), [1, 2, 0, 9], ["b", "<2>", "a", "<9>"]),
        (CharacterTokenizer(("a", "b"), pad=0), [1, 2, 3], ["a", "b", "<3>"]),
        (CharacterTokenizer(None), [97, 256], ["a", "<256>"]),
    ],
    ids=["characters", "padding", "bytes"],
)
def test_ids_that_the_text_lacked_are_shown_as_numbers(tokenizer, ids, labels):
    assert Subject("wide", torch.nn.Identity(), tokenizer).label(ids) == labels


def test_a_folder_has_logits_of_the_last_position(tmp_path, tokenizer):
    folder = save_folder(tmp_path / "gpt2", build_gpt2(tokenizer), tokenizer)
    model = load_subject(str(folder))
    ids = torch.tensor([model.encode("the cat sat")])
    with torch.no_grad():
        expected = model.model(ids).logits[:, -1]
    assert torch.allclose(model.run(ids), expected, atol=1e-6)
    assert model.gives_last_logits


def test_an_answer_is_tokenized_after_its_context(tokenizer):
    model = Subject("tiny", build_gpt2(tokenizer), tokenizer)
    for answer in ("sat", " sat"):
        assert model.label(model.encode_next("the cat", answer)) == ["sat"]
    assert model.label(model.encode_next([4, 5], "sat")) == ["sat"]
    with pytest.raises(TaskError, match="not in the vocabulary"):
        model.encode_next("the cat", "zebra")


@pytest.mark.parametrize(
    ("answer", "token"),
    [
        ("ved", "ved"),
        (".", "."),
        ("e", "e"),  # alone it is " e"
        (" e", " e"),
        (" on", " on"),
        ("on", " on"),  # not one token without the blank
        ("ve", "ve"),  # "lo" and "ve" are one token together
        ("\n", "\n"),
    ],
)
def test_an_answer_of_sentence_pieces_is_the_token_that_was_written(answer, token):
    pieces = ("ve", "ved", "▁e", "▁l", "▁lo", "▁love", "▁o", "▁on")
    model = Subject("tiny", torch.nn.Identity(), build_sentence_pieces(*pieces))
    context = "the cat lo"
    for before in (context, model.encode(context)):
        assert model.label(model.encode_next(before, answer)) == [token]


def test_a_context_that_is_half_a_character_has_answers_too():
    model = Subject("tiny", torch.nn.Identity(), build_sentence_pieces("ve", "ved"))
    half = model.encode("the ü")[:-1]
    assert model.label(half)[-1] == "<0xC3>"
    assert model.label(model.encode_next(half, "ved")) == ["ved"]


def test_ids_outside_the_vocabulary_are_named(tokenizer):
    model = Subject("tiny", build_gpt2(tokenizer), tokenizer)
    assert "no tokens" in model.check_ids([])
    assert "the id 999" in model.check_ids([1, 999])
    assert model.check_ids([1, 2]) is None
    assert "predicts" in model.check_class(999)


def test_a_model_without_a_tokenizer_takes_ids(tokenizer):
    model = load_subject(build_gpt2(tokenizer))
    assert model.label([3, 4]) == ["3", "4"]
    with pytest.raises(TaskError, match=r"\[5, 3, 9\]"):
        model.encode("the cat")


@pytest.mark.parametrize("length", [65, 200])
def test_an_input_that_is_too_long_is_a_message(tokenizer, length):
    model = Subject("tiny", build_gpt2(tokenizer), tokenizer)
    with pytest.raises(TaskError, match=f"tiny failed on an input of {length} tokens"):
        model.check_run(torch.zeros(1, length, dtype=torch.long))


def test_models_of_other_kinds_are_refused(tmp_path, tokenizer):
    folder = save_folder(tmp_path / "t5", build_t5(tokenizer), tokenizer)
    with pytest.raises(TaskError, match="two sequences"):
        load_subject(str(folder)).check_reads_tokens()
    with pytest.raises(TaskError, match="is no model"):
        load_subject(3)
    body = build_gpt2(tokenizer).transformer
    with pytest.raises(TaskError, match=r"no language-model head|no logits"):
        Subject("body", body, tokenizer).run(torch.tensor([[4, 5]]))
    path = write_run(tmp_path / "runs", "translator", text=TRANSLATOR)
    with pytest.raises(TaskError, match="two sequences"):
        load_subject(path).check_reads_tokens()
    with pytest.raises(TaskError, match="--step"):
        load_subject(str(save_folder(tmp_path / "g", build_gpt2(tokenizer), None)), step=3)

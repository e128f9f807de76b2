"""Files of pairs: what they may say, and messages with the pair and the line."""

from pathlib import Path

import pytest

from neural.core.errors import TaskError
from neural.core.settings import SettingsError
from neural.interpret.subject import Subject
from neural.workflows.patching_pairs import read_pairs, tokenize_pairs
from tests.hugging_face_folders import build_gpt2, train_tokenizer

EXAMPLES = Path(__file__).parents[2] / "examples" / "patching"
PAIR = {"clean": "the cat sat", "corrupted": "the dog sat", "answer": "on", "wrong": "saw"}


@pytest.fixture(scope="module")
def model():
    tokenizer = train_tokenizer()
    return Subject("tiny", build_gpt2(tokenizer), tokenizer)


def fail(model, text, tmp_path):
    """The message of a file that is refused."""
    path = tmp_path / "pairs.yaml"
    path.write_text(text)
    with pytest.raises(SettingsError) as caught:
        tokenize_pairs(read_pairs(path), model)
    return str(caught.value)


def test_texts_become_ids_with_labels(model):
    (pair,) = tokenize_pairs(read_pairs([PAIR]), model)
    assert pair.clean_labels == ("the", "cat", "sat")
    assert pair.corrupted_labels == ("the", "dog", "sat")
    assert model.label([pair.answer, pair.wrong]) == ["on", "saw"]
    assert pair.length == 3


def test_ids_are_taken_as_they_are(model):
    ids = {"clean": [4, 5, 6], "corrupted": [4, 7, 6], "answer": 8}
    source = read_pairs({"metric": "loss", "pairs": [ids]})
    (pair,) = tokenize_pairs(source, model)
    assert (pair.clean, pair.corrupted, pair.answer, pair.wrong) == ((4, 5, 6), (4, 7, 6), 8, None)
    assert read_pairs([PAIR], metric="probability").settings.metric == "probability"


def test_pairs_of_different_lengths_name_pair_and_line(model, tmp_path):
    text = """metric: logit_difference
pairs:
  - {clean: the cat sat, corrupted: the dog sat, answer: on, wrong: saw}
  - clean: the cat sat
    corrupted: the dog sat on
    answer: on
    wrong: saw
"""
    message = fail(model, text, tmp_path)
    assert "pair 2: `clean` has 3 tokens and `corrupted` 4" in message
    assert "pairs.yaml:5:" in message
    assert "pair 1" not in message


def test_all_errors_are_reported_at_once(model, tmp_path):
    text = """pairs:
  - {clean: the cat, corrupted: the dog, answer: on the mat, wrong: zebra}
  - {clean: the cat, corrupted: the dog, answer: on, wrong: on}
  - {clean: the CAT, corrupted: the cat, answer: on, wrong: saw}
  - {clean: [4, 999], corrupted: [4, 5], answer: on, wrong: saw}
"""
    message = fail(model, text, tmp_path)
    assert "pair 1: `answer` is 3 tokens (`on` `the` `mat`)" in message
    assert "pair 1: `wrong`: `zebra` is not in the vocabulary" in message
    assert "pair 2: `answer` and `wrong` are the same token" in message
    assert "pair 3: `clean` and `corrupted` have the same tokens" in message  # lower case
    assert "pair 4: `clean`: the id 999" in message
    for line in (2, 3, 4, 5):
        assert f"pairs.yaml:{line}:" in message


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("pairs:\n  - {clean: a b, corrupted: a b, answer: c, wrong: d}", "are identical", 2),
        ("pairs:\n  - {clean: a b, corrupted: a c, answer: c}", "needs `wrong`", 2),
        ("metric: loss\npairs:\n  - {clean: a b, corrupted: a c}", "needs `answer`", 3),
        ("metric: los\npairs:\n  - {clean: a b, corrupted: a c}", "`loss`", 1),
        ("pairs:\n  - {clean: a b, corupted: a c, answer: c}", "did you mean `corrupted`", 2),
        ("pairs: []", "at least one", 1),
        ("pairs:\n  - {clean: 3, corrupted: a}", "a text or a list of token ids", 2),
        ('pairs:\n  - {clean: "", corrupted: a}', "a text or a list of token ids", 2),
    ],
)
def test_wrong_files_are_messages_with_their_line(model, text, message, line, tmp_path):
    shown = fail(model, text, tmp_path)
    assert message in shown
    assert f"pairs.yaml:{line}:" in shown


def test_a_missing_file_is_a_message(tmp_path):
    with pytest.raises(TaskError, match=r"none\.yaml"):
        read_pairs(tmp_path / "none.yaml")


def test_python_data_of_another_kind_is_a_message():
    with pytest.raises(TaskError, match="clean, corrupted"):
        read_pairs([{"clean": object()}])


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_examples_have_pairs_that_differ_in_one_place(path):
    pairs = read_pairs(path).settings.pairs
    assert len(pairs) >= 6
    for pair in pairs:
        is_text = " " in pair.clean
        clean, corrupted = (
            text.split() if is_text else text for text in (pair.clean, pair.corrupted)
        )
        assert len(clean) == len(corrupted)
        assert sum(a != b for a, b in zip(clean, corrupted, strict=True)) == 1
    assert len({pair.answer for pair in pairs}) > 3

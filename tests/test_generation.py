"""From a run folder to text."""

import numpy as np
import pytest
import torch

from neural.attention_file import AttentionFile
from neural.generation import Letters, writer_of
from neural.tasks.task import TaskError
from neural.tracking.trouble import RunError
from tests.written_runs import CHARACTERS, CONTEXT, program, write_run


@pytest.fixture
def writer(tmp_path):
    return writer_of(write_run(tmp_path, vocabulary=list(CHARACTERS)))


def test_a_run_writes_with_its_own_characters(writer):
    (text,) = writer.write("abc", 40)
    assert len(text) == 40
    assert set(text) <= set(CHARACTERS)


def test_the_same_seed_gives_the_same_text_whatever_is_written_beside_it(writer):
    many = writer.write("ab", 30, samples=35, seed=5)
    assert writer.write("ab", 30, samples=3, seed=5) == many[:3]
    assert len(set(many)) > 30
    assert writer.write("ab", 30, seed=6) != many[:1]


@pytest.mark.parametrize("way", ["compiled", "cached", "recomputed"])
def test_every_way_gives_the_same_text_beyond_the_window(writer, way):
    written = writer.write("ab", 3 * CONTEXT, samples=2, decoding=writer.decoding(way=way))
    assert written == writer.write("ab", 3 * CONTEXT, samples=2)


def test_the_likeliest_text_needs_no_seed(writer):
    assert writer.write("a", 20, temperature=0, seed=1) == writer.write("a", 20, temperature=0, seed=2)


def test_a_character_that_was_never_seen_is_named_with_its_position(writer):
    with pytest.raises(TaskError, match="character 3 of the prompt, 'Z', does not occur"):
        writer.write("abZ", 5)


def test_without_a_prompt_a_new_line_begins(writer):
    assert writer.prompt(None) == ("\n", [0])
    with pytest.raises(TaskError, match="the prompt is empty"):
        writer.prompt("")


def test_bytes_write_any_language(tmp_path):
    writer = writer_of(write_run(tmp_path, text=program(256), vocabulary="bytes"))
    assert writer.prompt("é") == ("é", [195, 169])
    (text,) = writer.write("é", 50)
    assert text


def test_a_character_of_several_bytes_comes_with_its_last():
    read = Letters(None).reader()
    assert [read(one) for one in "é!".encode()] == ["", "é", "!"]
    assert Letters(None).reader()(255) == "\ufffd"


def test_padding_moves_ids_up_and_stands_for_nothing():
    letters = Letters(tuple("abc"), pad=1)
    assert letters.encode("abc") == [0, 2, 3]
    assert letters.count == 4
    assert [letters.reader()(one) for one in range(4)] == ["a", "", "b", "c"]


def test_a_supervised_run_on_text_has_the_fixed_characters(tmp_path):
    writer = writer_of(write_run(tmp_path, text=program(96), settings={"task": "supervised"}))
    assert writer.prompt("\n ~") == ("\n ~", [0, 1, 95])


def test_the_vocabulary_of_the_settings_will_do(tmp_path):
    path = write_run(tmp_path, settings={"task": "language_model", "vocabulary": CHARACTERS})
    assert writer_of(path).letters.characters == tuple(CHARACTERS)


def test_ids_beyond_the_vocabulary_are_never_chosen(tmp_path):
    writer = writer_of(write_run(tmp_path, text=program(40), vocabulary=list("ab\n")))
    assert set("".join(writer.write("a", 60, samples=2, temperature=5.0))) <= set("ab\n")


def test_a_vocabulary_larger_than_the_network_is_refused(tmp_path):
    with pytest.raises(TaskError, match="knows 13 characters, but its network chooses among 5"):
        writer_of(write_run(tmp_path, text=program(5), vocabulary=list(CHARACTERS)))


def test_a_run_without_weights_is_refused(tmp_path):
    with pytest.raises(RunError, match="no checkpoint yet"):
        writer_of(write_run(tmp_path, vocabulary=list(CHARACTERS), saved=False))


def test_what_was_looked_at_is_kept_by_position_of_the_text(writer, tmp_path):
    tokens, prompt, samples = 20, "abc", 2
    decoding = writer.decoding(watched=True)
    seen = AttentionFile(*writer.prompt(prompt))
    seen.begin()
    for new in writer.stream(prompt, tokens, samples=samples, watched=True, decoding=decoding):
        seen.add(new)
    seen.write(tmp_path / "seen.npz")
    with np.load(tmp_path / "seen.npz") as file:
        found = dict(file)
    assert found["weights"].shape == (samples, tokens, 2, 2, CONTEXT)
    assert found["weights"].sum(axis=-1) == pytest.approx(1, abs=1e-2)
    assert found["ids"].shape == (samples, 3 + tokens)
    assert [str(one)[:3] for one in found["text"]] == ["abc"] * samples
    assert [str(one)[3:] for one in found["text"]] == writer.write(prompt, tokens, samples=samples)
    assert found["prompt"] == 3
    assert found["layers"].tolist() == [f"transformer_decoder.{one}.attention.part" for one in range(2)]
    first = found["first"]
    assert (first[:14] == 0).all() and first[14] == 16 + 1 - 8
    # the tenth token again, from the definition: the last row of what the window's ids give
    window = torch.from_numpy(found["ids"][:, : 3 + 9]).long()
    again = writer.decoding(way="cached", watched=True)
    again.start(window)
    rows = np.stack([one.numpy() for one in again.seen().values()], axis=1)
    assert found["weights"][:, 9, :, :, :12] == pytest.approx(rows, abs=1e-3)
    assert (found["weights"][:, 9, :, :, 12:] == 0).all()


def test_a_window_of_attention_stands_at_the_end_of_the_keys(tmp_path):
    text = program(len(CHARACTERS), attention="localized")
    writer = writer_of(write_run(tmp_path, text=text, vocabulary=list(CHARACTERS)))
    seen = AttentionFile(*writer.prompt("abc"))
    seen.begin()
    for new in writer.stream("abc", 6, watched=True):
        seen.add(new)
    weights = seen.arrays()["weights"]
    assert (weights[0, 5, ..., :4] == 0).all(), "8 positions: the window of 7 reaches back 3"
    assert weights[0, 5, ..., 4:8].sum(axis=-1) == pytest.approx(1, abs=1e-2)

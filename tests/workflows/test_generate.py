"""Generate text with the model of a run folder."""

import numpy as np
import pytest
import torch

import neural
from neural.core.errors import TaskError
from neural.runs.errors import RunError
from neural.runs.run import Run
from neural.tasks._text_generator import CharacterTokenizer
from neural.workflows.attention_export import AttentionExport
from neural.workflows.generate import load_generator
from tests.written_runs import CHARACTERS, CONTEXT, program, write_run


@pytest.fixture
def generator(tmp_path):
    return load_generator(write_run(tmp_path, vocabulary=list(CHARACTERS)))


def test_a_run_generates_only_characters_of_its_vocabulary(generator):
    (text,) = generator.generate("abc", 40)
    assert len(text) == 40
    assert set(text) <= set(CHARACTERS)


def test_a_sample_depends_on_the_seed_and_not_on_other_samples(generator):
    many = generator.generate("ab", 30, samples=35, seed=5)
    assert generator.generate("ab", 30, samples=3, seed=5) == many[:3]
    assert len(set(many)) > 30
    assert generator.generate("ab", 30, seed=6) != many[:1]


@pytest.mark.parametrize("decoder", ["compiled", "cached", "recomputed"])
def test_every_decoder_gives_the_same_text_beyond_the_context(generator, decoder):
    token_decoder = generator.create_decoder(decoder=decoder)
    texts = generator.generate("ab", 3 * CONTEXT, samples=2, decoder=token_decoder)
    assert texts == generator.generate("ab", 3 * CONTEXT, samples=2)


def test_at_temperature_0_the_seed_does_not_matter(generator):
    assert generator.generate("a", 20, temperature=0, seed=1) == generator.generate(
        "a", 20, temperature=0, seed=2
    )


def test_an_unknown_character_is_named_with_its_position(generator):
    with pytest.raises(TaskError, match="character 3 of the prompt, 'Z', does not occur"):
        generator.generate("abZ", 5)


def test_the_default_prompt_is_a_new_line(generator):
    assert generator.encode_prompt(None) == ("\n", [0])
    with pytest.raises(TaskError, match="the prompt is empty"):
        generator.encode_prompt("")


def test_a_byte_model_encodes_any_language(tmp_path):
    generator = load_generator(write_run(tmp_path, text=program(256), vocabulary="bytes"))
    assert generator.encode_prompt("é") == ("é", [195, 169])
    (text,) = generator.generate("é", 50)
    assert text


def test_a_character_of_several_bytes_is_decoded_at_its_last_byte():
    decode = CharacterTokenizer(None).create_decoder()
    assert [decode(byte) for byte in "é!".encode()] == ["", "é", "!"]
    assert CharacterTokenizer(None).create_decoder()(255) == "\ufffd"


def test_a_padding_id_shifts_later_ids_and_decodes_to_nothing():
    tokenizer = CharacterTokenizer(tuple("abc"), pad=1)
    assert tokenizer.encode("abc") == [0, 2, 3]
    assert tokenizer.vocab_size == 4
    assert [tokenizer.create_decoder()(token) for token in range(4)] == ["a", "", "b", "c"]


def test_a_supervised_run_on_text_has_the_fixed_vocabulary(tmp_path):
    generator = load_generator(
        write_run(tmp_path, text=program(96), settings={"task": "supervised"})
    )
    assert generator.encode_prompt("\n ~") == ("\n ~", [0, 1, 95])


def test_the_vocabulary_may_come_from_the_settings(tmp_path):
    path = write_run(tmp_path, settings={"task": "language_model", "vocabulary": CHARACTERS})
    assert load_generator(path).tokenizer.characters == tuple(CHARACTERS)


def test_ids_beyond_the_vocabulary_are_never_sampled(tmp_path):
    generator = load_generator(write_run(tmp_path, text=program(40), vocabulary=list("ab\n")))
    assert set("".join(generator.generate("a", 60, samples=2, temperature=5.0))) <= set("ab\n")


def test_a_vocabulary_larger_than_the_network_is_refused(tmp_path):
    with pytest.raises(TaskError, match="has 13 characters, but its network has 5 classes"):
        load_generator(write_run(tmp_path, text=program(5), vocabulary=list(CHARACTERS)))


def test_a_run_without_weights_is_refused(tmp_path):
    with pytest.raises(RunError, match="no checkpoint yet"):
        load_generator(write_run(tmp_path, vocabulary=list(CHARACTERS), has_checkpoint=False))


def test_exported_attention_is_indexed_by_text_position(generator, tmp_path):
    tokens, prompt, samples = 20, "abc", 2
    decoder = generator.create_decoder(capture_attention=True)
    export = AttentionExport(*generator.encode_prompt(prompt))
    export.start_batch()
    for step in generator.stream(
        prompt, tokens, samples=samples, capture_attention=True, decoder=decoder
    ):
        export.add_step(step)
    export.write(tmp_path / "attention.npz")
    with np.load(tmp_path / "attention.npz") as file:
        arrays = dict(file)
    assert arrays["weights"].shape == (samples, tokens, 2, 2, CONTEXT)
    assert arrays["weights"].sum(axis=-1) == pytest.approx(1, abs=1e-2)
    assert arrays["ids"].shape == (samples, 3 + tokens)
    assert [str(text)[:3] for text in arrays["text"]] == ["abc"] * samples
    generated = generator.generate(prompt, tokens, samples=samples)
    assert [str(text)[3:] for text in arrays["text"]] == generated
    assert arrays["prompt"] == 3
    assert arrays["layers"].tolist() == [
        f"transformer_decoder.{layer}.attention.sublayer" for layer in range(2)
    ]
    first = arrays["first"]
    assert (first[:14] == 0).all() and first[14] == 16 + 1 - 8
    # the weights of the tenth token, computed again from the ids of its window
    window = torch.from_numpy(arrays["ids"][:, : 3 + 9]).long()
    cached = generator.create_decoder(decoder="cached", capture_attention=True)
    cached.start(window)
    rows = np.stack([weights.numpy() for weights in cached.attention_weights().values()], axis=1)
    assert arrays["weights"][:, 9, :, :, :12] == pytest.approx(rows, abs=1e-3)
    assert (arrays["weights"][:, 9, :, :, 12:] == 0).all()


def test_localized_attention_fills_the_newest_keys(tmp_path):
    text = program(len(CHARACTERS), attention="localized")
    generator = load_generator(write_run(tmp_path, text=text, vocabulary=list(CHARACTERS)))
    export = AttentionExport(*generator.encode_prompt("abc"))
    export.start_batch()
    for step in generator.stream("abc", 6, capture_attention=True):
        export.add_step(step)
    weights = export.to_arrays()["weights"]
    assert (weights[0, 5, ..., :4] == 0).all(), "8 positions: the window of 7 reaches back 3"
    assert weights[0, 5, ..., 4:8].sum(axis=-1) == pytest.approx(1, abs=1e-2)


def test_text_is_generated_from_python_by_the_name_of_a_run(tmp_path):
    path = write_run(tmp_path, vocabulary=list(CHARACTERS))
    text = neural.generate(path.name, "ab", tokens=20, seed=3, runs=path.parent)
    assert [text] == load_generator(path).generate("ab", 20, seed=3)
    texts = neural.generate(path, prompt="ab", tokens=20, seed=3, samples=2)
    assert texts[0] == text
    assert len(texts) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tokens": -1}, "`tokens` must be a whole number, at least 1, not -1"),
        ({"tokens": "3"}, "`tokens` must be a whole number, at least 1, not '3'"),
        ({"tokens": 2.5}, "`tokens` must be a whole number, at least 1, not 2.5"),
        ({"samples": 0}, "`samples` must be a whole number, at least 1, not 0"),
        ({"top_k": 0}, "`top_k` must be a whole number, at least 1, not 0"),
    ],
)
def test_a_number_out_of_range_is_refused_before_the_model_is_loaded(options, message, tmp_path):
    with pytest.raises(TaskError, match=message):
        neural.generate(runs=tmp_path, **options)


@pytest.mark.parametrize("task", ["watched", "tracked"])
def test_the_attention_of_a_model_from_elsewhere_has_no_task_to_run(task, tmp_path):
    run = Run.create(tmp_path, "bert", settings={"task": task}, program=None, environment={})
    run.finish("finished")
    for use in (neural.generate, neural.evaluate, lambda path: neural.predict(path, "new.csv")):
        with pytest.raises(RunError, match="attention of a model from elsewhere: there is no task"):
            use(run.path)

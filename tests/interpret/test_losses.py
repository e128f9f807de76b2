"""Losses of language models on windows of a text."""

import numpy as np
import pytest
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from torch.nn import functional

from neural.interpret.foreign_models import TargetError
from neural.interpret.inputs import read_text
from neural.interpret.losses import (
    choose_length,
    compute_chance_loss,
    cut_windows,
    prepare_losses,
)
from neural.interpret.subject import Subject
from tests.hugging_face_folders import POSITIONS, TEXTS, build_gpt2, build_t5, train_tokenizer

TEXT = " ".join(TEXTS * 8)


def test_windows_do_not_overlap_and_cover_the_text():
    ids = torch.arange(100)
    windows = cut_windows(ids, 9, 64, "text")
    assert len(windows) == 11 and windows[0, 0] == 0 and windows[-1, -1] == 99
    assert (windows[1:, 0] >= windows[:-1, 0] + 9).all()


def test_the_chance_loss_is_the_entropy_of_the_targets():
    targets = torch.tensor([[0, 0, 1, 2], [0, 0, 3, -1]])
    shares = np.array([4, 1, 1, 1]) / 7
    expected = -(shares * np.log(shares)).sum()
    assert compute_chance_loss(targets) == pytest.approx(expected)


def test_a_few_targets_of_a_large_vocabulary_tell_no_chance_loss():
    """36 words of a text have an entropy of 3.2 nats; a model with a loss of 4.7 knows language."""
    targets = torch.tensor([[*range(25)], [25, 26, 27, 28] * 6 + [-1]])
    assert compute_chance_loss(targets) is None


def test_the_loss_of_a_causal_model_is_that_of_transformers():
    tokenizer = train_tokenizer()
    model = build_gpt2(tokenizer)
    losses = prepare_losses(Subject("gpt2", model, tokenizer), TEXT, "text", 5, 12)
    assert losses.description == "5 windows of 12 tokens of text"
    (batch,) = losses.batches
    with torch.no_grad():
        values = losses.objective(model, batch)
        ids = torch.cat([batch["input_ids"], batch["targets"][:, -1:]], dim=1)
        expected = model(ids, labels=ids).loss
    assert values.shape == (5, 12)
    torch.testing.assert_close(values.mean(), expected)
    assert losses.labels[0] == TEXT.split()[:12]


def test_losses_of_a_large_vocabulary_are_exact():
    """A strided softmax over 49,152 tokens, as many as SmolLM2 has, loses the fourth decimal."""
    tokenizer = train_tokenizer()
    logits = torch.randn(1, 1, 49_152, generator=torch.Generator().manual_seed(0)) * 2 - 16
    logits[..., 0] = 0  # one sure token: what the others add to a sum of 1 is easily lost

    class Constant(torch.nn.Module):
        def forward(self, ids):
            return logits.expand(*ids.shape, -1)

    losses = prepare_losses(Subject("big", Constant(), tokenizer), TEXT, "text", 2, 12)
    targets = losses.batches[0]["targets"]
    expected = -logits[0, 0].double().log_softmax(-1)[targets]
    values = losses.objective(Constant(), losses.batches[0]).double()
    assert float((values - expected).abs().max()) < 5e-5


def test_tokens_of_a_byte_level_tokenizer_have_the_text_of_the_window():
    """Blanks, line breaks and dashes are delimiters and no letters, as for `neural watch`."""
    text = "the cat — “the” mat (a\ncafé) " * 8
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=320, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator([text], trainer)
    wrapped = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer)
    subject = Subject("gpt2", build_gpt2(wrapped), wrapped)
    losses = prepare_losses(subject, text, "text", 2, 12)
    window = "".join(losses.labels[0])
    assert len(window) > 12 and text.startswith(window)


def test_masked_tokens_are_hidden_and_the_same_for_every_model():
    tokenizer = train_tokenizer()
    tokenizer.add_special_tokens({"mask_token": "[MASK]"})
    config = transformers.BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
    )
    model = transformers.BertForMaskedLM(config).eval()
    losses, other = (
        prepare_losses(Subject("bert", model, tokenizer), TEXT, "text", 6, 20) for _ in range(2)
    )
    (first,), (second,) = losses.batches, other.batches
    assert torch.equal(first["input_ids"], second["input_ids"])
    is_masked = first["targets"] >= 0
    assert torch.equal(first["input_ids"] == tokenizer.mask_token_id, is_masked)
    assert 0.05 < float(is_masked.float().mean()) < 0.3
    with torch.no_grad():
        values = losses.objective(model, first)
    assert torch.equal(values.isfinite(), is_masked) and is_masked.any(dim=1).all()


def test_an_encoder_decoder_predicts_the_second_half():
    tokenizer = train_tokenizer()
    model = build_t5(tokenizer)
    losses = prepare_losses(Subject("t5", model, tokenizer), TEXT, "text", 4, 10)
    (batch,) = losses.batches
    assert batch["input_ids"].shape == batch["targets"].shape == (4, 5)
    assert torch.equal(losses.tokens[:, 1:], batch["targets"][:, :-1])
    with torch.no_grad():
        logits = model(
            input_ids=batch["input_ids"], decoder_input_ids=batch["decoder_input_ids"]
        ).logits
        expected = functional.cross_entropy(logits.flatten(0, 1), batch["targets"].flatten())
        torch.testing.assert_close(losses.objective(model, batch).mean(), expected)


def test_windows_are_as_long_as_the_model_allows():
    tokenizer = train_tokenizer()
    subject = Subject("gpt2", build_gpt2(tokenizer), tokenizer)
    assert choose_length(subject, None) == POSITIONS and choose_length(subject, 7) == 7
    assert choose_length(Subject("own", torch.nn.Linear(2, 2)), None) == 256


def test_models_that_do_not_fit_the_text_are_messages():
    tokenizer = train_tokenizer()

    class Broken(torch.nn.Module):
        def forward(self, ids):
            raise RuntimeError("shapes do not match\nsecond line")

    class Pooled(torch.nn.Module):
        def forward(self, ids):
            return torch.zeros(len(ids), 99)

    class Small(torch.nn.Module):
        def forward(self, ids):
            return torch.zeros(*ids.shape, 3)

    for model, message in (
        (Broken(), "failed on this text: shapes do not match$"),
        (Pooled(), "not a prediction for each of"),
        (Small(), "predicts 3 tokens, but its tokenizer has more"),
    ):
        with pytest.raises(TargetError, match=message):
            prepare_losses(Subject("mine", model, tokenizer), TEXT, "text", 4, 9)


def test_a_text_is_a_file_or_the_text_itself(tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("the cat", encoding="utf-8")
    assert read_text(file) == read_text(str(file)) == ("the cat", "notes.txt")
    assert read_text("the cat") == ("the cat", "the given text")
    file.write_bytes(b"\xff\xfe\x00")
    for data, message in (
        (file, "cannot be read as text"),
        ("notes", "there is no file notes"),
        (str(tmp_path / "nots.txt"), r"did you mean `notes\.txt`\?"),
        (tmp_path / "nots.txt", r"did you mean `notes\.txt`\?"),
        (None, "needs a text"),
    ):
        with pytest.raises(TargetError, match=message):
            read_text(data, required_by="gpt2")

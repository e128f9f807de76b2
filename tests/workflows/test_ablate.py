"""`neural.ablate`: runs of all tasks, models of Hugging Face and in memory; resuming; messages."""

import json
import math

import numpy as np
import pytest
import torch
import transformers
from torch.nn import functional

import neural
from neural.core.errors import TaskError
from neural.interpret.losses import cut_windows
from neural.runs.errors import RunError
from neural.runs.importance_file import IMPORTANCE_FILE, load_importance
from neural.tasks import registry
from neural.workflows import ablate as workflow
from tests.capture.test_replay import build_decoder, make_batch, next_token_losses
from tests.hugging_face_folders import TEXTS, build_gpt2, build_t5, save_folder, train_tokenizer
from tests.task_runs import write_task_run

TEXT = " ".join(TEXTS * 8)


@pytest.fixture(scope="module")
def run_path(tmp_path_factory):
    """A language model with three checkpoints; at step 20, L0 h1 is cut off."""

    def change(model, step):
        if step == 20:
            model.transformer_decoder.attention.sublayer.output.weight[:, 3:] = 0

    return write_task_run(
        tmp_path_factory.mktemp("runs"), "language_model", steps=(10, 20, 30), change=change
    )


def test_a_run_is_measured_at_its_best_checkpoint_and_saved(run_path):
    result = neural.ablate(run_path, examples=4)
    assert [step.step for step in result.steps] == [30]
    assert result.header.heads == (2,) and result.header.method == "mean"
    assert "held-out windows of numbers.txt" in result.header.data
    assert result.header.examples == int(result.header.data.split()[0])
    record = load_importance(run_path)
    assert record.steps.tolist() == [30]
    np.testing.assert_allclose(record.change[0], result.last.change, rtol=1e-4, atol=1e-9)
    assert 0 < record.chance_loss < math.log(17)
    assert "importance of 2 heads" in repr(result) and "L0 h0" in repr(result)
    saved = result.to_dict()
    assert saved["steps"][0]["step"] == 30 and json.dumps(saved, allow_nan=False)
    frame = result.to_dataframe()
    assert len(frame) == 2 and {"change", "standard_error", "gradient", "role"} <= set(frame)


def test_all_checkpoints_are_measured_and_an_interrupted_measurement_resumes(run_path, monkeypatch):
    (run_path / IMPORTANCE_FILE).unlink(missing_ok=True)
    measured = []
    original = workflow.measure_head_importance

    def count(model, *args, **options):
        if len(measured) == 2:
            raise KeyboardInterrupt
        measured.append(model)
        return original(model, *args, **options)

    monkeypatch.setattr(workflow, "measure_head_importance", count)
    with pytest.raises(KeyboardInterrupt):
        neural.ablate(run_path, over_training=True, examples=4, pairs=False)
    assert load_importance(run_path).steps.tolist() == [10, 20]
    monkeypatch.setattr(
        workflow,
        "measure_head_importance",
        lambda *args, **options: measured.append(1) or original(*args, **options),
    )
    result = neural.ablate(run_path, over_training=True, examples=4, pairs=False)
    assert len(measured) == 3  # only the last one was missing
    assert [step.step for step in result.steps] == [10, 20, 30]
    record = load_importance(run_path)
    assert record.change.shape == (3, 1, 2)
    assert record.change[1, 0, 1] == 0 and (record.change[[0, 2], 0, 1] != 0).all()
    sections = result.to_sections(80)
    assert [section.title for section in sections][1] == "over training"
    # another method is another measurement
    neural.ablate(run_path, examples=4, pairs=False, method="zero")
    assert load_importance(run_path).steps.tolist() == [30]
    neural.ablate(run_path, examples=4, pairs=False, method="zero", again=True)
    assert len(measured) == 5


@pytest.mark.parametrize("name", ["segmentation", "supervised"])
def test_runs_of_other_tasks(tmp_path, name):
    path = write_task_run(tmp_path / "runs", name)
    result = neural.ablate(path, examples=5, pairs=False)
    assert np.isfinite(result.last.change).all() and np.abs(result.last.change).max() > 1e-6
    task = registry.get(name)
    assert result.header.chance_loss > 0 and not result.last.classes, task


def test_text_of_another_file_is_read_with_the_vocabulary_of_the_run(run_path, tmp_path):
    file = tmp_path / "more.txt"
    file.write_text("one two three five " * 60)
    result = neural.ablate(run_path, file, examples=60, pairs=False)
    assert result.header.data == "60 windows of more.txt"
    assert "word starts" in result.last.classes
    file.write_text("zebra " * 50)
    with pytest.raises(TaskError, match="does not know: 'a' 'b' 'z'"):
        neural.ablate(run_path, file)
    file.write_text("one two")
    with pytest.raises(TaskError, match=r"more\.txt has 7 tokens; two windows of 9 need 18"):
        neural.ablate(run_path, file)


@pytest.fixture(scope="module")
def gpt2_folder(tmp_path_factory):
    tokenizer = train_tokenizer()
    return save_folder(tmp_path_factory.mktemp("hf") / "gpt2", build_gpt2(tokenizer), tokenizer)


def test_a_causal_model_of_hugging_face(gpt2_folder):
    result = neural.ablate(str(gpt2_folder), TEXT, length=12, examples=8)
    assert result.name == "gpt2" and result.header.heads == (2, 2)
    assert result.header.data == "8 windows of 12 tokens of the given text"
    assert np.isfinite(result.last.change).all() and len(result.last.pairs) == 6
    # by hand: zeroing the rows of c_proj, which is (in, out)
    zeroed = neural.ablate(
        str(gpt2_folder), TEXT, length=12, examples=8, method="zero", pairs=False
    )
    model = transformers.GPT2LMHeadModel.from_pretrained(gpt2_folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(gpt2_folder)
    ids = torch.tensor(tokenizer.encode(TEXT, add_special_tokens=False))
    windows = cut_windows(ids, 13, 8, "text")

    def loss():
        with torch.no_grad():
            logits = model(windows[:, :-1]).logits
        return float(functional.cross_entropy(logits.transpose(1, 2), windows[:, 1:]))

    clean = loss()
    with torch.no_grad():
        model.transformer.h[1].attn.c_proj.weight[32:] = 0
    assert zeroed.last.change[1, 1] == pytest.approx(loss() - clean, abs=1e-6)
    assert zeroed.last.loss == pytest.approx(clean, abs=1e-5)


def test_masked_models_and_encoder_decoders(tmp_path):
    tokenizer = train_tokenizer()
    tokenizer.add_special_tokens({"mask_token": "[MASK]"})
    torch.manual_seed(0)
    bert = transformers.BertForMaskedLM(
        transformers.BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=16,
        )
    )
    folder = save_folder(tmp_path / "bert", bert, tokenizer)
    result = neural.ablate(str(folder), TEXT, length=20, examples=6, pairs=False)
    assert "15 % of them masked" in result.header.data
    assert result.header.heads == (2, 2) and np.isfinite(result.last.change).all()
    folder = save_folder(tmp_path / "t5", build_t5(tokenizer), tokenizer)
    result = neural.ablate(str(folder), TEXT, length=20, examples=6, pairs=False)
    assert result.header.heads == (2, 2, 2)  # encoder, decoder, and between them
    assert np.isfinite(result.last.change).all() and np.abs(result.last.change).min() > 0


def test_checkpoints_of_a_model_become_a_run(tmp_path):
    tokenizer = train_tokenizer()
    model = build_gpt2(tokenizer)
    folders = []
    for step in (200, 100):
        with torch.no_grad():
            model.transformer.h[0].attn.c_proj.weight.mul_(1.5)
        folders.append(str(save_folder(tmp_path / f"checkpoint-{step}", model, tokenizer)))
    result = neural.ablate(
        folders,
        TEXT,
        length=12,
        examples=4,
        pairs=False,
        save=True,
        name="grown",
        runs=tmp_path / "runs",
    )
    assert [step.step for step in result.steps] == [100, 200]
    assert load_importance(result.saved).steps.tolist() == [100, 200]
    assert result.saved.parent == tmp_path / "runs"


def test_a_module_in_memory_with_any_loss():
    batch = make_batch()
    result = neural.ablate(
        build_decoder(), objective=next_token_losses, batches=[batch], pairs=False, heads=["L2 h1"]
    )
    assert np.argwhere(np.isfinite(result.last.change)).tolist() == [[2, 1]]
    assert result.saved is None and result.header.chance_loss is None


class Letters:
    def encode(self, text):
        return [ord(letter) % 13 for letter in text]

    def decode(self, ids):
        return "".join(chr(97 + token) for token in ids)


def test_input_that_cannot_be_measured_is_a_message(run_path, gpt2_folder, tmp_path):
    tokenizer = train_tokenizer()
    bare = save_folder(tmp_path / "bare", build_gpt2(tokenizer).transformer, tokenizer)
    without_tokenizer = save_folder(tmp_path / "raw", build_gpt2(tokenizer), None)
    broken = build_gpt2(tokenizer)
    with torch.no_grad():
        broken.transformer.h[0].ln_1.weight[0] = math.nan
    focus = write_task_run(tmp_path / "focus", "focus")
    torch.manual_seed(0)
    bidirectional = neural.parse(
        """network Both {
          input: (11,)
          layers:
            Embedding(input_dim=13, output_dim=12)
            TransformerEncoder(num_heads=3, d_model=12, dff=13)
            Output(13, activation="softmax")
          loss: "sparse_categorical_crossentropy"
        }"""
    ).build()
    for parameter in bidirectional.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    cases = [
        (TaskError, "needs a text", lambda: neural.ablate(str(gpt2_folder))),
        (
            TaskError,
            "there is no file nope.txt",
            lambda: neural.ablate(str(gpt2_folder), "nope.txt"),
        ),
        (
            TaskError,
            "2 windows|two windows of 65 need",
            lambda: neural.ablate(str(gpt2_folder), "the cat sat on the mat"),
        ),
        (TaskError, "no head L7 h0", lambda: neural.ablate(run_path, heads="L7 h0")),
        (TaskError, "at least 2 examples", lambda: neural.ablate(run_path, examples=1)),
        (TaskError, "has no loss on a text", lambda: neural.ablate(str(bare), TEXT, length=9)),
        (TaskError, "no tokenizer", lambda: neural.ablate(str(without_tokenizer), TEXT)),
        (
            TaskError,
            "`transformer.h.0.ln_1.weight` has values that are not finite",
            lambda: neural.ablate(broken, TEXT, tokenizer=tokenizer, length=9),
        ),
        (
            TaskError,
            "is not causal",
            lambda: neural.ablate(bidirectional, TEXT, tokenizer=Letters(), length=11),
        ),
        (TaskError, "no attention call", lambda: neural.ablate(focus, pairs=False)),
        (TaskError, "leave out --data", lambda: neural.ablate(focus, TEXT)),
        (RunError, "no checkpoint of step 15", lambda: neural.ablate(run_path, step=15)),
        (RunError, "has kept only", lambda: neural.ablate(focus, over_training=True)),
        (TaskError, "belong together", lambda: neural.ablate(broken, batches=[])),
        (TaskError, "of a run", lambda: neural.ablate(str(gpt2_folder), TEXT, step=3)),
        (TaskError, "no such (file or )?folder", lambda: neural.ablate("nothing/here:x", TEXT)),
    ]
    for error, message, call in cases:
        with pytest.raises(error, match=message):
            call()

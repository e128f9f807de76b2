"""The callback for the Trainer of transformers."""

import pytest
import torch
import transformers

from neural.callbacks.huggingface import NeuralCallback
from neural.runs.run import Run

VOCABULARY, LENGTH = 23, 9
PROBE = torch.arange(2 * LENGTH).reshape(2, LENGTH) % VOCABULARY


def build_model():
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=VOCABULARY, n_positions=LENGTH, n_embd=16, n_layer=2, n_head=2
    )
    return transformers.GPT2LMHeadModel(config)


class Texts(torch.utils.data.Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, index):
        ids = (torch.arange(LENGTH) + index) % VOCABULARY
        return {"input_ids": ids, "labels": ids}


def train(folder, steps, callbacks=(), **options):
    arguments = transformers.TrainingArguments(
        output_dir=str(folder),
        max_steps=steps,
        per_device_train_batch_size=4,
        logging_steps=1,
        save_steps=4,
        report_to=[],
        use_cpu=True,
        seed=3,
        disable_tqdm=True,
    )
    trainer = transformers.Trainer(
        model=build_model(),
        args=arguments,
        train_dataset=Texts(),
        eval_dataset=Texts(),
        callbacks=list(callbacks),
    )
    trainer.train(**options)
    return trainer


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Losses without the callback, losses with it, its run, and the output folder."""
    root = tmp_path_factory.mktemp("trainer")
    plain = train(root / "plain", 8)
    callback = NeuralCallback({"input_ids": PROBE}, every=2, run=root / "runs" / "mine")
    tracked = train(root / "tracked", 8, [callback])
    return plain, tracked, callback, root


def read_losses(trainer):
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


def test_losses_and_weights_are_bit_identical(trained):
    plain, tracked, _, _ = trained
    assert read_losses(plain) == read_losses(tracked) and len(read_losses(plain)) == 8
    for first, second in zip(plain.model.parameters(), tracked.model.parameters(), strict=True):
        assert torch.equal(first, second)


def test_the_run_has_snapshots_and_curves(trained):
    _, tracked, callback, _ = trained
    with Run.open(callback.path) as run:
        assert run.status.state == "finished"
        assert list(run.measure("entropy")[0]) == [0, 2, 4, 6, 8]
        steps, losses = run.scalars("train/loss")
        assert list(steps) == list(range(1, 9))
        assert list(losses) == pytest.approx(read_losses(tracked))
        assert run.metadata("attention/heads") == [2, 2]


def test_a_resumed_training_continues_the_run(trained):
    _, _, first, root = trained
    callback = NeuralCallback({"input_ids": PROBE}, every=2, run=root / "runs" / "other")
    train(root / "tracked", 12, [callback], resume_from_checkpoint=True)
    assert callback.path == first.path
    with Run.open(callback.path) as run:
        assert list(run.measure("entropy")[0]) == [0, 2, 4, 6, 8, 10, 12]
        assert list(run.scalars("train/loss")[0]) == list(range(1, 13))

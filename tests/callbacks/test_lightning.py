"""The callback for the Trainer of Lightning."""

import warnings

import pytest
import torch

from neural.runs.run import Run
from tests.workflows.test_track import PROBE, VOCABULARY, SmallModel

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # deprecations inside the library
    import lightning.pytorch as pl

    from neural.callbacks.lightning import NeuralCallback

pytestmark = pytest.mark.filterwarnings("ignore")


class Copy(pl.LightningModule):
    """Learns to copy tokens."""

    def __init__(self):
        super().__init__()
        self.model = SmallModel()
        self.losses = []

    def training_step(self, batch, batch_idx):
        loss = torch.nn.functional.cross_entropy(self.model(batch).flatten(0, 1), batch.flatten())
        self.losses.append(loss.item())
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        self.log("val_loss", torch.nn.functional.mse_loss(batch.float(), batch.float() + 1))

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=0.01)


def fit(folder, callbacks=(), *, epochs=2, checkpoint=None):
    pl.seed_everything(5, verbose=False)
    module = Copy()
    data = torch.randint(0, VOCABULARY, (16, 7), generator=torch.Generator().manual_seed(0))
    loader = torch.utils.data.DataLoader(data, batch_size=4)
    trainer = pl.Trainer(
        max_epochs=epochs,
        callbacks=list(callbacks),
        default_root_dir=folder,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(module, loader, loader, ckpt_path=checkpoint)
    return module, trainer


def test_a_lightning_training_is_a_run_and_stays_bit_identical(tmp_path):
    plain, _ = fit(tmp_path / "plain")
    callback = NeuralCallback(
        PROBE, every=3, run=tmp_path / "runs" / "mine", select=lambda module: module.model
    )
    tracked, _ = fit(tmp_path / "tracked", [callback])
    assert plain.losses == tracked.losses and len(plain.losses) == 8
    with Run.open(callback.path) as run:
        assert run.status.state == "finished"
        assert list(run.measure("entropy")[0]) == [0, 3, 6, 8]
        steps, losses = run.scalars("train/loss")
        assert list(steps) == list(range(1, 9))
        assert list(losses) == pytest.approx(tracked.losses)
        assert list(run.scalars("valid/loss")[1]) == [1, 1]


def test_a_resumed_training_continues_the_run(tmp_path):
    options = {"every": 2, "run": tmp_path / "runs" / "mine", "select": lambda m: m.model}
    callback = NeuralCallback(PROBE, **options)
    _, trainer = fit(tmp_path / "first", [callback], epochs=1)
    path = tmp_path / "last.ckpt"
    trainer.save_checkpoint(path)
    again = NeuralCallback(PROBE, **options)
    fit(tmp_path / "second", [again], epochs=2, checkpoint=path)
    assert again.path == callback.path
    with Run.open(again.path) as run:
        assert list(run.measure("entropy")[0]) == [0, 2, 4, 6, 8]


def test_an_error_in_the_training_is_the_state_of_the_run(tmp_path):
    class Failing(Copy):
        def training_step(self, batch, batch_idx):
            raise FloatingPointError("too large")

    callback = NeuralCallback(PROBE, run=tmp_path / "runs" / "mine", select=lambda m: m.model)
    trainer = pl.Trainer(
        max_epochs=1,
        callbacks=[callback],
        default_root_dir=tmp_path,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_checkpointing=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    with pytest.raises(FloatingPointError):
        trainer.fit(Failing(), torch.utils.data.DataLoader(torch.zeros(4, 7, dtype=torch.long)))
    with Run.open(callback.path) as run:
        assert run.status.state == "failed" and "too large" in run.status.message

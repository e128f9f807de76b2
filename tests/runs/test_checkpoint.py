"""Checkpoints: bit-exact, complete or refused, and one always exists."""

import json
from pathlib import Path

import pytest
import safetensors.torch
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from neural.runs import checkpoint
from neural.runs.errors import RunError
from neural.runs.run import Run
from tests.runs.runs import create_run


def make_tensors(seed: int = 0) -> dict[str, torch.Tensor]:
    weight = torch.randn(5, 7, generator=torch.Generator().manual_seed(seed))
    pairs = torch.view_as_complex(weight[:, :2].contiguous())
    return {
        "weight": weight,
        "tied": weight,
        "turned": weight.t(),
        "strided": weight[:, ::2],
        "row": weight[1],
        "double": weight.double(),
        "half": weight.half(),
        "bfloat": weight.bfloat16(),
        "eight": weight.to(torch.float8_e4m3fn),
        "complex": pairs,
        "conjugate": pairs.conj(),
        "bytes": weight.to(torch.uint8),
        "counts": torch.tensor([2**62 + 1, -1]),
        "short": torch.tensor([-3], dtype=torch.int16),
        "yes": torch.tensor([True, False, True]),
        "single": torch.tensor(0.1),
        "single count": torch.tensor(3),
        "none": torch.empty(0, 3),
        "none of": torch.empty(0),
        "nan": torch.tensor([float("nan"), -0.0, float("inf")]),
        "learned": torch.nn.Parameter(weight + 1),
        "näme": weight + 2,
        "expanded": torch.ones(1, 3).expand(2, 3),
    }


def is_identical(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Same dtype, shape and bits."""
    raw = [
        tensor.detach().resolve_conj().contiguous().reshape(-1).view(torch.uint8)
        for tensor in (a, b)
    ]
    return (a.dtype, a.shape) == (b.dtype, b.shape) and torch.equal(*raw)


def test_every_kind_of_tensor_comes_back_to_the_last_bit(tmp_path):
    checkpoint.write_checkpoint(tmp_path, 3, make_tensors(), {"seed": 1}, is_best=False)
    loaded = checkpoint.read_checkpoint(tmp_path, 3)
    expected = make_tensors()
    assert loaded.tensors.keys() == expected.keys()
    changed = [name for name in expected if not is_identical(expected[name], loaded.tensors[name])]
    assert changed == []
    assert (loaded.step, loaded.metadata, loaded.is_best) == (3, {"seed": 1}, False)


def test_the_file_is_a_safetensors_file_as_the_library_reads_it(tmp_path):
    checkpoint.write_checkpoint(tmp_path, 3, make_tensors(), {}, is_best=False)
    file = tmp_path / "step-00000003.safetensors"
    tensors = safetensors.torch.load(file.read_bytes())
    assert all(is_identical(tensor, make_tensors()[name]) for name, tensor in tensors.items())
    assert set(make_tensors()) - set(tensors) == {
        "tied"
    }  # the same memory under two names is written once


def test_tied_tensors_share_memory_again(tmp_path):
    checkpoint.write_checkpoint(tmp_path, 3, make_tensors(), {}, is_best=False)
    tensors = checkpoint.read_checkpoint(tmp_path, 3).tensors
    assert tensors["tied"] is tensors["weight"]
    assert tensors["turned"].data_ptr() != tensors["weight"].data_ptr()


def test_a_tensor_that_the_format_cannot_hold_is_refused_and_leaves_no_file(tmp_path):
    with pytest.raises(TypeError, match="cannot hold `odd`"):
        checkpoint.write_checkpoint(
            tmp_path, 3, {"odd": torch.ones(2, 2).to_sparse()}, {}, is_best=False
        )
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def saved_folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoints")
    checkpoint.write_checkpoint(
        folder, 3, make_tensors(), {"rate": 0.5, "words": ["a", "b"]}, is_best=True
    )
    return folder


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data(), flip=st.integers(1, 255), in_tensors=st.booleans())
def test_a_changed_byte_anywhere_is_noticed(saved_folder, data, flip, in_tensors):
    file = saved_folder / ("step-00000003.safetensors" if in_tensors else "step-00000003.json")
    original = file.read_bytes()
    index = data.draw(st.integers(0, len(original) - 1))
    try:
        flipped = bytes([original[index] ^ flip])
        file.write_bytes(original[:index] + flipped + original[index + 1 :])
        with pytest.raises(RunError, match="damaged"):
            checkpoint.read_checkpoint(saved_folder, 3)
    finally:
        file.write_bytes(original)
    assert checkpoint.read_checkpoint(saved_folder, 3).metadata["rate"] == 0.5


@pytest.mark.parametrize("name", ["step-00000003.safetensors", "step-00000003.json"])
def test_a_truncated_or_extended_file_is_noticed(saved_folder, name):
    file = saved_folder / name
    original = file.read_bytes()
    try:
        half = original[: len(original) // 2]
        for data in (original[:-1], half, b"", original + b" ", original + original):
            file.write_bytes(data)
            with pytest.raises(RunError, match="damaged"):
                checkpoint.read_checkpoint(saved_folder, 3)
    finally:
        file.write_bytes(original)


def create_run_with(
    tmp_path: Path, steps: tuple[int, ...], *, best: int | None = None, keep: int = 9
) -> Run:
    run = create_run(tmp_path)
    for step in steps:
        run.save(step, {"w": torch.tensor(step)}, {"at": step}, best=step == best, keep=keep)
    return run


def damage(run: Run, step: int) -> None:
    file = run.path / "checkpoints" / f"step-{step:08d}.safetensors"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)


def test_the_newest_and_the_best_stay(tmp_path):
    run = create_run_with(tmp_path, (1, 2, 3, 4, 5), best=2, keep=2)
    assert [(info.step, info.is_best) for info in run.checkpoints()] == [
        (2, True),
        (4, False),
        (5, False),
    ]
    assert (
        sorted(file.suffix for file in (run.path / "checkpoints").iterdir())
        == [".json"] * 3 + [".safetensors"] * 3
    )
    best, newest, other = run.load_checkpoint("best"), run.load_checkpoint(), run.load_checkpoint(4)
    assert best and newest and other
    assert [int(loaded.tensors["w"]) for loaded in (best, newest, other)] == [2, 5, 4]
    run.save(6, {"w": torch.tensor(6)}, {}, best=True, keep=1)
    assert [info.step for info in run.checkpoints()] == [6]
    run.finish("finished")


def test_the_best_is_read_while_a_writer_replaces_it(tmp_path, monkeypatch):
    run = create_run_with(tmp_path, (1, 2), best=1)
    read_checkpoint = checkpoint.read_checkpoint

    def read_late(folder, step):
        if step == 1:  # the writer prunes it before this reader opens it
            run.save(3, {"w": torch.tensor(3)}, {}, best=True, keep=1)
        return read_checkpoint(folder, step)

    monkeypatch.setattr(checkpoint, "read_checkpoint", read_late)
    best = run.load_checkpoint("best")
    assert best and int(best.tensors["w"]) == 3
    run.finish("finished")


def test_a_run_without_checkpoints_loads_none(tmp_path):
    run = create_run_with(tmp_path, ())
    assert (run.load_checkpoint(), run.load_checkpoint("best"), run.checkpoints()) == (
        None,
        None,
        [],
    )
    with pytest.raises(RunError, match="no checkpoint of step 7, only of none"):
        run.load_checkpoint(7)
    run.finish("finished")


def test_a_damaged_newest_checkpoint_is_skipped_and_named(tmp_path):
    run = create_run_with(tmp_path, (1, 2, 3))
    damage(run, 3)
    (run.path / "checkpoints" / "step-00000002.safetensors").unlink()
    loaded = run.load_checkpoint()
    assert loaded and loaded.step == 1
    assert "step-00000003.safetensors is damaged" in loaded.skipped[0]
    assert "00000002" in loaded.skipped[1]
    run.commit()
    assert [(step, kind) for step, kind, _, _ in run.events()] == [(1, "warning")] * 2
    run.delete_after(1)
    assert (
        sorted(file.stem for file in (run.path / "checkpoints").iterdir()) == ["step-00000001"] * 2
    )
    run.finish("finished")


def test_a_damaged_checkpoint_is_refused_when_named(tmp_path):
    run = create_run_with(tmp_path, (1, 2), best=2)
    damage(run, 2)
    for which in (2, "best"):
        with pytest.raises(RunError, match=r"step-00000002\.safetensors is damaged"):
            run.load_checkpoint(which)
    damage(run, 1)
    with pytest.raises(RunError, match=r"all checkpoints .* are damaged"):
        run.load_checkpoint()
    run.finish("finished")


def test_a_second_checkpoint_of_the_same_step_replaces_the_first(tmp_path):
    run = create_run_with(tmp_path, (1,))
    for value in (2, 3):
        run.save(1, {"w": torch.tensor(value)}, {"value": value}, keep=2)
        loaded = run.load_checkpoint()
        assert loaded and (int(loaded.tensors["w"]), loaded.metadata) == (value, {"value": value})
        assert len(list((run.path / "checkpoints").iterdir())) == 2
    run.finish("finished")


def test_rows_are_on_disk_before_their_checkpoint(tmp_path, monkeypatch):
    run = create_run(tmp_path)
    run.log(1, {"loss": 1})

    def fail(*_args: object, **_kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "write_checkpoint", fail)
    with pytest.raises(
        RunError, match=r"the checkpoint of step 1 cannot be saved in .*: the disk is full"
    ):
        run.save(1, {}, {})
    with Run.open(run.path) as reader:
        assert reader.scalar_rows() == [(1, "loss", 1)]
    run.finish("failed", "the disk is full")


def test_nothing_in_a_checkpoint_is_a_pickle(tmp_path):
    run = create_run_with(tmp_path, (1,))
    for file in (run.path / "checkpoints").iterdir():
        data = file.read_bytes()
        header = (
            data[8 : 8 + int.from_bytes(data[:8], "little")]
            if file.suffix == ".safetensors"
            else data
        )
        assert isinstance(json.loads(header), dict)
    run.finish("finished")

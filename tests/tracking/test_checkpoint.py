"""Checkpoints: exact, whole or refused, and one is always there."""

import json
from pathlib import Path

import pytest
import safetensors.torch
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from neural.tracking import checkpoint
from neural.tracking.run import Run
from neural.tracking.trouble import RunError
from tests.tracking.runs import new_run


def some(seed: int = 0) -> dict[str, torch.Tensor]:
    weight = torch.randn(5, 7, generator=torch.Generator().manual_seed(seed))
    pairs = torch.view_as_complex(weight[:, :2].contiguous())
    return {
        "weight": weight, "tied": weight, "turned": weight.t(), "strided": weight[:, ::2], "row": weight[1],
        "double": weight.double(), "half": weight.half(), "bfloat": weight.bfloat16(),
        "eight": weight.to(torch.float8_e4m3fn), "complex": pairs, "conjugate": pairs.conj(),
        "bytes": weight.to(torch.uint8), "counts": torch.tensor([2**62 + 1, -1]),
        "short": torch.tensor([-3], dtype=torch.int16),
        "yes": torch.tensor([True, False, True]), "single": torch.tensor(0.1), "single count": torch.tensor(3),
        "none": torch.empty(0, 3), "none of": torch.empty(0), "nan": torch.tensor([float("nan"), -0.0, float("inf")]),
        "learned": torch.nn.Parameter(weight + 1), "näme": weight + 2, "expanded": torch.ones(1, 3).expand(2, 3),
    }  # fmt: skip


def same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """To the last bit, type and shape."""
    plain = [one.detach().resolve_conj().contiguous().reshape(-1).view(torch.uint8) for one in (a, b)]
    return (a.dtype, a.shape) == (b.dtype, b.shape) and torch.equal(*plain)


def test_every_kind_of_tensor_comes_back_to_the_last_bit(tmp_path):
    checkpoint.write(tmp_path, 3, some(), {"seed": 1}, best=False)
    found = checkpoint.read(tmp_path, 3)
    assert found.tensors.keys() == some().keys()
    assert [name for name, tensor in some().items() if not same(tensor, found.tensors[name])] == []
    assert (found.step, found.facts, found.best) == (3, {"seed": 1}, False)


def test_the_file_is_a_safetensors_file_as_the_library_reads_it(tmp_path):
    checkpoint.write(tmp_path, 3, some(), {}, best=False)
    file = tmp_path / "step-00000003.safetensors"
    read = safetensors.torch.load(file.read_bytes())
    assert all(same(tensor, some()[name]) for name, tensor in read.items())
    assert set(some()) - set(read) == {"tied"}   # the same memory under two names is written once


def test_what_shared_memory_shares_it_again(tmp_path):
    checkpoint.write(tmp_path, 3, some(), {}, best=False)
    tensors = checkpoint.read(tmp_path, 3).tensors
    assert tensors["tied"] is tensors["weight"]
    assert tensors["turned"].data_ptr() != tensors["weight"].data_ptr()


def test_a_tensor_that_the_format_does_not_know_is_refused_and_nothing_is_left(tmp_path):
    with pytest.raises(TypeError, match="cannot hold `odd`"):
        checkpoint.write(tmp_path, 3, {"odd": torch.ones(2, 2).to_sparse()}, {}, best=False)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    checkpoint.write(folder, 3, some(), {"rate": 0.5, "words": ["a", "b"]}, best=True)
    return folder


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), flip=st.integers(1, 255), tensors=st.booleans())
def test_a_changed_byte_anywhere_is_noticed(saved, data, flip, tensors):
    file = saved / ("step-00000003.safetensors" if tensors else "step-00000003.json")
    whole = file.read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    try:
        file.write_bytes(whole[:at] + bytes([whole[at] ^ flip]) + whole[at + 1 :])
        with pytest.raises(RunError, match="damaged"):
            checkpoint.read(saved, 3)
    finally:
        file.write_bytes(whole)
    assert checkpoint.read(saved, 3).facts["rate"] == 0.5


@pytest.mark.parametrize("name", ["step-00000003.safetensors", "step-00000003.json"])
def test_a_file_cut_short_or_grown_is_noticed(saved, name):
    file = saved / name
    whole = file.read_bytes()
    try:
        for wrong in (whole[:-1], whole[: len(whole) // 2], b"", whole + b" ", whole + whole):
            file.write_bytes(wrong)
            with pytest.raises(RunError, match="damaged"):
                checkpoint.read(saved, 3)
    finally:
        file.write_bytes(whole)


def run_with(tmp_path: Path, steps: tuple[int, ...], *, best: int | None = None, keep: int = 9) -> Run:
    run = new_run(tmp_path)
    for step in steps:
        run.save(step, {"w": torch.tensor(step)}, {"at": step}, best=step == best, keep=keep)
    return run


def damage(run: Run, step: int) -> None:
    file = run.path / "checkpoints" / f"step-{step:08d}.safetensors"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)


def test_the_newest_and_the_best_stay(tmp_path):
    run = run_with(tmp_path, (1, 2, 3, 4, 5), best=2, keep=2)
    assert [(one.step, one.best) for one in run.checkpoints()] == [(2, True), (4, False), (5, False)]
    assert sorted(file.suffix for file in (run.path / "checkpoints").iterdir()) == [".json"] * 3 + [".safetensors"] * 3
    best, newest, other = run.restore("best"), run.restore(), run.restore(4)
    assert best and newest and other
    assert [int(one.tensors["w"]) for one in (best, newest, other)] == [2, 5, 4]
    run.save(6, {"w": torch.tensor(6)}, {}, best=True, keep=1)
    assert [one.step for one in run.checkpoints()] == [6]
    run.finish("finished")


def test_the_best_is_found_while_a_better_one_takes_its_place(tmp_path, monkeypatch):
    run = run_with(tmp_path, (1, 2), best=1)
    read = checkpoint.read

    def late(folder, step):
        if step == 1:   # the writer is quicker than this reader
            run.save(3, {"w": torch.tensor(3)}, {}, best=True, keep=1)
        return read(folder, step)

    monkeypatch.setattr(checkpoint, "read", late)
    best = run.restore("best")
    assert best and int(best.tensors["w"]) == 3
    run.finish("finished")


def test_without_any_there_is_none(tmp_path):
    run = run_with(tmp_path, ())
    assert (run.restore(), run.restore("best"), run.checkpoints()) == (None, None, [])
    with pytest.raises(RunError, match="no checkpoint of step 7, only of none"):
        run.restore(7)
    run.finish("finished")


def test_a_broken_newest_is_passed_over_and_named(tmp_path):
    run = run_with(tmp_path, (1, 2, 3))
    damage(run, 3)
    (run.path / "checkpoints" / "step-00000002.safetensors").unlink()
    found = run.restore()
    assert found and found.step == 1
    assert ["step-00000003.safetensors is damaged" in found.skipped[0], "00000002" in found.skipped[1]] == [True, True]
    run.commit()
    assert [(step, kind) for step, kind, _, _ in run.events()] == [(1, "warning")] * 2
    run.forget_after(1)
    assert sorted(file.stem for file in (run.path / "checkpoints").iterdir()) == ["step-00000001"] * 2
    run.finish("finished")


def test_a_broken_one_that_was_asked_for_is_refused(tmp_path):
    run = run_with(tmp_path, (1, 2), best=2)
    damage(run, 2)
    for which in (2, "best"):
        with pytest.raises(RunError, match=r"step-00000002\.safetensors is damaged"):
            run.restore(which)
    damage(run, 1)
    with pytest.raises(RunError, match=r"all checkpoints .* are damaged"):
        run.restore()
    run.finish("finished")


def test_a_second_one_of_the_same_step_takes_the_place_of_the_first(tmp_path):
    run = run_with(tmp_path, (1,))
    for value in (2, 3):
        run.save(1, {"w": torch.tensor(value)}, {"value": value}, keep=2)
        found = run.restore()
        assert found and (int(found.tensors["w"]), found.facts) == (value, {"value": value})
        assert len(list((run.path / "checkpoints").iterdir())) == 2
    run.finish("finished")


def test_rows_are_on_disk_before_their_checkpoint(tmp_path, monkeypatch):
    run = new_run(tmp_path)
    run.log(1, {"loss": 1})

    def no_write(*_args: object, **_named: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "write", no_write)
    with pytest.raises(RunError, match=r"the checkpoint of step 1 cannot be saved in .*: the disk is full"):
        run.save(1, {}, {})
    with Run.open(run.path) as seen:
        assert seen.rows() == [(1, "loss", 1)]
    run.finish("failed", "the disk is full")


def test_nothing_in_a_checkpoint_is_a_pickle(tmp_path):
    run = run_with(tmp_path, (1,))
    for file in (run.path / "checkpoints").iterdir():
        data = file.read_bytes()
        header = data[8 : 8 + int.from_bytes(data[:8], "little")] if file.suffix == ".safetensors" else data
        assert isinstance(json.loads(header), dict)
    run.finish("finished")

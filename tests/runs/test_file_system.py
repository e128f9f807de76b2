"""Which file system holds a path, and whether several machines can share it."""

from pathlib import Path

import pytest

from neural.runs import file_system
from neural.runs.file_system import find_file_system, find_network_file_system

MOUNTS = r"""22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:40 / /home rw,relatime shared:5 - nfs4 server:/home rw,vers=4.2
31 22 0:41 / /scratch rw - lustre 10.0.0.1@tcp:/scratch rw
32 31 0:42 / /scratch/local rw - xfs /dev/nvme0n1 rw
33 22 0:43 / /mnt/my\040disk rw - fuse.sshfs host:/data rw
34 22 0:44 / /mnt/twice rw - nfs server:/old rw
35 22 0:45 / /mnt/twice rw - ext4 /dev/sdb rw
damaged line
"""


@pytest.fixture(autouse=True)
def mounts(tmp_path, monkeypatch):
    path = tmp_path / "mountinfo"
    path.write_text(MOUNTS)
    monkeypatch.setattr(file_system, "MOUNTS_FILE", path)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/var/runs", "ext4"),
        ("/home/ann/runs", "nfs4"),
        ("/homestead", "ext4"),
        ("/scratch/runs", "lustre"),
        ("/scratch/local/runs", "xfs"),
        ("/mnt/my disk/runs", "fuse.sshfs"),
        ("/mnt/twice/runs", "ext4"),
    ],
)
def test_the_innermost_mount_counts(path, expected):
    assert find_file_system(Path(path)) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [("/home/runs", "nfs4"), ("/mnt/my disk", "fuse.sshfs"), ("/scratch/local", None)],
)
def test_shared_file_systems_are_recognized(path, expected):
    assert find_network_file_system(Path(path)) == expected


def test_a_system_without_a_mount_table_has_an_unknown_file_system(tmp_path, monkeypatch):
    monkeypatch.setattr(file_system, "MOUNTS_FILE", tmp_path / "missing")
    assert find_file_system(Path("/home")) is None
    assert find_network_file_system(Path("/home")) is None


def test_training_on_a_shared_disk_is_noted_with_a_remedy(tmp_path, monkeypatch):
    (tmp_path / "mountinfo").write_text(f"40 22 0:50 / {tmp_path} rw - nfs4 server:/runs rw\n")
    from neural.workflows.train import PreparedTraining, train
    from tests.training.programs import create_small_task

    notes = []
    task = create_small_task(tmp_path, steps=1)
    train(PreparedTraining(task, tmp_path / "runs"), on_warning=notes.append)
    assert [note for note in notes if "is on nfs4, a network file system" in note]
    assert "neural runs merge" in notes[-1]


def test_the_doctor_names_a_shared_disk(tmp_path, monkeypatch):
    (tmp_path / "mountinfo").write_text(f"40 22 0:50 / {tmp_path} rw - lustre server:/runs rw\n")
    monkeypatch.chdir(tmp_path)
    from neural.workflows.doctor import _check_disk

    (check,) = [check for check in _check_disk() if check.name == "run folders"]
    assert (check.state, check.detail.split(":")[0]) == ("missing", "on lustre")
    assert "neural runs merge" in check.fix

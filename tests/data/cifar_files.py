"""Small files in CIFAR's formats. Every image has one grey level: 20 × its class + 5."""

import io
import pickle
import tarfile

import numpy as np

TEN = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


def make_rows(classes, count):
    """Labels and images (count, 3072); the red of the first pixel is 255."""
    y = np.arange(count) % classes
    x = np.repeat((20 * y + 5).astype(np.uint8)[:, None], 3072, axis=1)
    x[:, 0] = 255
    return y, x


def binary_files(classes=10, each=40):
    """Files of the binary version by name."""
    y, x = make_rows(classes, each)
    if classes == 10:
        record = np.concatenate([y[:, None].astype(np.uint8), x], axis=1).tobytes()
        files = {f"data_batch_{index}.bin": record for index in range(1, 6)} | {
            "test_batch.bin": record
        }
        return files | {"batches.meta.txt": "\n".join(TEN).encode() + b"\n\n"}
    record = np.concatenate(
        [np.zeros((each, 1), np.uint8), y[:, None].astype(np.uint8), x], axis=1
    ).tobytes()
    names = "\n".join(f"kind_{index}" for index in range(classes)).encode()
    return {
        "train.bin": record,
        "test.bin": record,
        "fine_label_names.txt": names,
        "coarse_label_names.txt": b"all",
    }


def pickle_files(each=40):
    """Files of the Python version of CIFAR-10 by name."""
    y, x = make_rows(10, each)
    batch = pickle.dumps({"data": x, "labels": y.tolist(), "batch_label": "made up"}, protocol=2)
    names = pickle.dumps({"label_names": list(TEN)}, protocol=2)
    return {f"data_batch_{index}": batch for index in range(1, 6)} | {
        "test_batch": batch,
        "batches.meta": names,
    }


def write_files(folder, files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def pack_archive(files, archive_folder="cifar-10-batches-bin"):
    """The files as a .tar.gz archive."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(f"{archive_folder}/{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()

"""Files laid out like CIFAR's, with a few pictures that can be told apart: each is of one grey, 20 × its class."""

import io
import pickle
import tarfile

import numpy as np

TEN = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


def rows(classes, count):
    """Labels and pictures (count, 3072), the red of the first pixel being 255."""
    y = np.arange(count) % classes
    x = np.repeat((20 * y + 5).astype(np.uint8)[:, None], 3072, axis=1)
    x[:, 0] = 255
    return y, x


def binary(classes=10, each=40):
    """The binary version, by name."""
    y, x = rows(classes, each)
    if classes == 10:
        record = np.concatenate([y[:, None].astype(np.uint8), x], axis=1).tobytes()
        parts = {f"data_batch_{one}.bin": record for one in range(1, 6)} | {"test_batch.bin": record}
        return parts | {"batches.meta.txt": "\n".join(TEN).encode() + b"\n\n"}
    record = np.concatenate([np.zeros((each, 1), np.uint8), y[:, None].astype(np.uint8), x], axis=1).tobytes()
    names = "\n".join(f"kind_{one}" for one in range(classes)).encode()
    return {"train.bin": record, "test.bin": record, "fine_label_names.txt": names, "coarse_label_names.txt": b"all"}


def pickles(each=40):
    """The version for Python of CIFAR-10, by name."""
    y, x = rows(10, each)
    part = pickle.dumps({"data": x, "labels": y.tolist(), "batch_label": "made up"}, protocol=2)
    names = pickle.dumps({"label_names": list(TEN)}, protocol=2)
    return {f"data_batch_{one}": part for one in range(1, 6)} | {"test_batch": part, "batches.meta": names}


def write(folder, files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def packed(files, inside="cifar-10-batches-bin"):
    """An archive as it comes over the net."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in files.items():
            about = tarfile.TarInfo(f"{inside}/{name}")
            about.size = len(content)
            archive.addfile(about, io.BytesIO(content))
    return buffer.getvalue()

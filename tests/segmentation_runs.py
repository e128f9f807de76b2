"""Run folders of segmentation with random weights, as training writes them."""

import json

import numpy as np
import torch

from neural.nn.kernel_dispatch import no_kernels
from neural.tasks.segmentation.inference import compute_logits
from neural.tasks.segmentation.settings import SegmentationSettings
from neural.training.load_task import create_task
from neural.workflows.train import create_run

VERSE, CHORUS = ("river", "road", "night", "lantern", "window"), ("home", "carry", "again", "sing")
MODEL = {
    "hidden_dim": 3,
    "num_layers": 1,
    "attention_heads": 1,
    "attention_dim": 4,
    "attention_type": "localized",
}


def write_songs(path, *, count=20, labels=True, seed=0):
    """Write songs as JSON lines: verses and choruses of a few lines each."""
    rng, rows = np.random.default_rng(seed), []
    for number in range(count):
        segments = [
            (VERSE if index % 2 == 0 else CHORUS, int(rng.integers(2, 4))) for index in range(4)
        ]
        lines = [
            " ".join(rng.choice(words, 4)) for words, length in segments for _ in range(length)
        ]
        names = [
            "verse" if words is VERSE else "chorus"
            for words, length in segments
            for _ in range(length)
        ]
        starts = np.cumsum([length for _, length in segments])[:-1].tolist()
        truth = {"labels": names} if labels else {"boundaries": starts}
        rows.append({"title": f"song {number}", "lines": lines} | truth)
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return path


def build_confident_model(task, confidence):
    """Model with random weights whose logits have mean 0 and standard deviation `confidence`."""
    torch.manual_seed(0)
    model = task.build().eval()
    with no_kernels(), torch.no_grad():
        scores = np.concatenate(compute_logits(model, [example.x for example in task.train]))
        mean = torch.from_numpy(scores.mean(axis=0))
        factor = torch.from_numpy(confidence / scores.std(axis=0))
        model.classifier.bias.sub_(mean).mul_(factor)
        model.classifier.weight.mul_(factor[:, None])
    return model


def write_run(root, *, labels=False, step=3, confidence=2.0, **overrides):
    """Write a run with one checkpoint, marked as the best; its documents are beside `root`."""
    root.mkdir(parents=True, exist_ok=True)
    data = write_songs(root.parent / "songs.jsonl", labels=labels)
    settings = {
        "data": str(data),
        "features": ("word_overlap", "shape"),
        "elements": "lines",
        "name": "songs",
        "model": MODEL,
        "training": {"batch_size": 4, "epochs": 1.0},
    }
    task = create_task(SegmentationSettings.model_validate(settings | overrides), root.parent)
    run = create_run(task, root)
    for key, value in task.metadata().items():
        run.set_metadata(key, value)
    model = build_confident_model(task, confidence)
    run.log(step, {"valid/threshold": 0.41})
    run.save(
        step,
        {f"model.{name}": tensor for name, tensor in model.state_dict().items()},
        {},
        best=True,
    )
    run.finish("finished")
    return run.path

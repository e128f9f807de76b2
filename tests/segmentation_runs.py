"""Run folders with a segmenter in them, as training leaves them; the weights are random."""

import json

import numpy as np
import torch

from neural.experiments import made, new_run
from neural.modules.compiled import plain_torch
from neural.tasks.cutting.predicted import scores_of
from neural.tasks.cutting.settings import SegmentationSettings

VERSE, CHORUS = ("river", "road", "night", "lantern", "window"), ("home", "carry", "again", "sing")
MODEL = {"hidden_dim": 3, "num_layers": 1, "attention_heads": 1, "attention_dim": 4, "attention_type": "localized"}


def write_songs(path, *, count=20, labels=True, seed=0):
    """Verses and choruses, a few lines each, a song per line."""
    random, rows = np.random.default_rng(seed), []
    for number in range(count):
        parts = [(VERSE if part % 2 == 0 else CHORUS, int(random.integers(2, 4))) for part in range(4)]
        lines = [" ".join(random.choice(kind, 4)) for kind, length in parts for _ in range(length)]
        said = ["verse" if kind is VERSE else "chorus" for kind, length in parts for _ in range(length)]
        starts = np.cumsum([length for _, length in parts])[:-1].tolist()
        known = {"labels": said} if labels else {"boundaries": starts}
        rows.append({"title": f"song {number}", "lines": lines} | known)
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return path


def sure(task, sureness):
    """A model with random weights that is for every class now and against it then, whatever the weights are."""
    torch.manual_seed(0)
    model = task.build().eval()
    with plain_torch(), torch.no_grad():
        scores = np.concatenate(scores_of(model, [one.x for one in task.train]))
        mean, factor = torch.from_numpy(scores.mean(axis=0)), torch.from_numpy(sureness / scores.std(axis=0))
        model.classifier.bias.sub_(mean).mul_(factor)
        model.classifier.weight.mul_(factor[:, None])
    return model


def write_run(root, *, labels=False, step=3, sureness=2.0, **said):
    """A run of no steps with one checkpoint, called the best; its documents lie beside the runs."""
    root.mkdir(parents=True, exist_ok=True)
    data = write_songs(root.parent / "songs.jsonl", labels=labels)
    settings = {"data": str(data), "features": ("word_overlap", "shape"), "elements": "lines", "name": "songs",
                "model": MODEL, "training": {"batch_size": 4, "epochs": 1.0}}  # fmt: skip
    task = made(SegmentationSettings.model_validate(settings | said), root.parent)
    run = new_run(task, root)
    for key, value in task.facts().items():
        run.describe(key, value)
    model = sure(task, sureness)
    run.log(step, {"valid/threshold": 0.41})
    run.save(step, {f"model.{name}": one for name, one in model.state_dict().items()}, {}, best=True)
    run.finish("finished")
    return run.path

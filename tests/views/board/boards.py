"""Runs to show, and boards that show them."""

import math
import threading
import time
from contextlib import contextmanager

import numpy as np
import torch
import uvicorn
from starlette.testclient import TestClient

import neural
from neural.board import application
from neural.experiments import new_run
from neural.standard import CATALOGUE
from neural.tasks.segmentation import Segmentation
from neural.tracking.quantised import pack
from neural.tracking.run import Run
from neural.views.board.guard import Door, listening
from tests.written_runs import CHARACTERS, program

PORT = 8765
LAYERS, HEADS, TEXT = ["decoder.0.attention", "decoder.1.attention"], 3, "bad cab!"


class Written:
    """A run that is being written, a look at a time."""

    def __init__(self, root, name="live", *, settings=None, seed=0):
        said = {"task": "language_model", "name": name, "training": {"seed": seed}, **(settings or {})}
        self.text = program(len(CHARACTERS))
        self.run = Run.create(root, name, settings=said, program=self.text, environment={})
        self.run.describe("steps", 1000)
        self.run.describe("vocabulary", list(CHARACTERS))
        self.run.describe("attention/layers", LAYERS)
        self.run.describe("attention/heads", [HEADS] * len(LAYERS))
        self.run.describe("attention/measures", {"entropy": {"unit": "nats", "says": "Mean entropy of a head's rows."}})
        self.run.describe("probe/labels", [list(TEXT)])
        self.random = np.random.default_rng(seed)

    @property
    def path(self):
        return self.run.path

    @property
    def name(self):
        return self.run.name

    def look(self, step, *, logit=5.0, **scalars):
        """One step with everything, on disk when it returns."""
        self.run.log(step, {"train/loss": 3 * math.exp(-step / 300) + 0.5, **scalars})
        n = len(TEXT)
        weights = np.tril(self.random.random((len(LAYERS), HEADS, n, n)) ** (1 + step / 100))
        weights /= weights.sum(-1, keepdims=True)
        entropy = -(weights * np.log(np.maximum(weights, 1e-9))).sum(-1).mean(-1)
        self.run.log_arrays(step, {"entropy": entropy, "largest_logit": np.full_like(entropy, logit)})
        self.run.log_maps(step, {name: pack(one, causal=True) for name, one in zip(LAYERS, weights, strict=True)})
        self.run.beat(step, steps=1000, loss=1.0, best={"valid/loss": 1.5})
        self.run.commit()

    def save(self, step):
        """A checkpoint of a network that can write."""
        torch.manual_seed(0)
        weights = neural.parse(self.text).build().state_dict()
        self.run.save(step, {f"model.{name}": 2 * one for name, one in weights.items()}, {}, best=True)


def written(root, name="done", looks=(0, 50, 100), **more):
    """A run that is over."""
    made = Written(root, name, **more)
    for step in looks:
        made.look(step, **{"valid/loss": 2 - step / 100})
    made.save(looks[-1])
    made.run.finish("finished")
    return made


def written_segmenter(root):
    """A run that can cut texts, by weights that nobody trained."""
    root.mkdir(exist_ok=True)
    task = Segmentation.tiny(root.parent, CATALOGUE)
    run = new_run(task, root)
    run.save(0, {f"model.{name}": one for name, one in task.build().state_dict().items()}, {}, best=True)
    run.finish("finished")
    return run


def client(root, door=None, **more):
    """Who asks the board, without a network between; what goes wrong in the board goes wrong in the test."""
    door = door or Door("127.0.0.1", PORT)
    return TestClient(application(root, door), base_url=f"http://127.0.0.1:{door.port}", **more)


@contextmanager
def served(root):
    """A board on a free port of this machine; gives its address."""
    listener = listening("127.0.0.1", 0)
    door = Door("127.0.0.1", listener.getsockname()[1])
    config = uvicorn.Config(application(root, door), log_level="error", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield door.address.rstrip("/")
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()

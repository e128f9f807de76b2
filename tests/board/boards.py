"""Run folders, and boards that serve them."""

import math
import threading
import time
from contextlib import contextmanager

import numpy as np
import torch
import uvicorn
from starlette.testclient import TestClient

import neural
from neural.board.app import create_app
from neural.board.security import ServerConfig, open_listening_socket
from neural.board.server import create_server_config
from neural.capture.map_encoding import encode_map
from neural.optim.catalogue import CATALOGUE
from neural.runs.run import Run
from neural.tasks.segmentation.task import Segmentation
from neural.workflows.train import create_run
from tests.written_runs import CHARACTERS, program

PORT, TOKEN = 8765, "a-token-that-cannot-be-guessed"
AUTHORIZATION = {"authorization": f"Bearer {TOKEN}"}
LAYERS, HEADS, TEXT = ["decoder.0.attention", "decoder.1.attention"], 3, "bad cab!"


class LiveRun:
    """A run that is being written, one snapshot at a time."""

    def __init__(self, root, name="live", *, settings=None, seed=0):
        run_settings = {
            "task": "language_model",
            "name": name,
            "training": {"seed": seed},
            **(settings or {}),
        }
        self.text = program(len(CHARACTERS))
        self.run = Run.create(root, name, settings=run_settings, program=self.text, environment={})
        self.run.set_metadata("steps", 1000)
        self.run.set_metadata("vocabulary", list(CHARACTERS))
        self.run.set_metadata("attention/layers", LAYERS)
        self.run.set_metadata("attention/heads", [HEADS] * len(LAYERS))
        self.run.set_metadata(
            "attention/measures",
            {"entropy": {"unit": "nats", "description": "Mean entropy of a head's rows."}},
        )
        self.run.set_metadata("probe/labels", [list(TEXT)])
        self.random = np.random.default_rng(seed)

    @property
    def path(self):
        return self.run.path

    @property
    def name(self):
        return self.run.name

    def write_step(self, step, *, logit=5.0, **scalars):
        """Write scalars, measures and maps of one step; they are on disk when it returns."""
        self.run.log(step, {"train/loss": 3 * math.exp(-step / 300) + 0.5, **scalars})
        n = len(TEXT)
        weights = np.tril(self.random.random((len(LAYERS), HEADS, n, n)) ** (1 + step / 100))
        weights /= weights.sum(-1, keepdims=True)
        entropy = -(weights * np.log(np.maximum(weights, 1e-9))).sum(-1).mean(-1)
        self.run.log_arrays(
            step, {"entropy": entropy, "largest_logit": np.full_like(entropy, logit)}
        )
        self.run.log_maps(
            step,
            {
                name: encode_map(maps, causal=True)
                for name, maps in zip(LAYERS, weights, strict=True)
            },
        )
        self.run.heartbeat(step, steps=1000, loss=1.0, best={"valid/loss": 1.5})
        self.run.commit()

    def save(self, step):
        """Save a checkpoint of a network that can generate text."""
        torch.manual_seed(0)
        weights = neural.parse(self.text).build().state_dict()
        self.run.save(
            step, {f"model.{name}": 2 * weight for name, weight in weights.items()}, {}, best=True
        )


def write_finished_run(root, name="done", steps=(0, 50, 100), **options):
    """Write a run that has finished."""
    finished = LiveRun(root, name, **options)
    for step in steps:
        finished.write_step(step, **{"valid/loss": 2 - step / 100})
    finished.save(steps[-1])
    finished.run.finish("finished")
    return finished


def write_segmenter_run(root):
    """Write a run that can segment texts, with untrained weights."""
    root.mkdir(exist_ok=True)
    task = Segmentation.example(root.parent, CATALOGUE)
    run = create_run(task, root)
    run.save(
        0,
        {f"model.{name}": weight for name, weight in task.build().state_dict().items()},
        {},
        best=True,
    )
    run.finish("finished")
    return run


def create_client(root, config=None, *, headers=None, clock=time.monotonic, **options):
    """Create a test client without a network; exceptions of the board are raised in the test.

    The client sends the token, unless other `headers` are passed.
    """
    config = config or ServerConfig("127.0.0.1", PORT, TOKEN)
    return TestClient(
        create_app(root, config, clock=clock),
        base_url=f"http://127.0.0.1:{config.port}",
        headers=AUTHORIZATION if headers is None else headers,
        **options,
    )


@contextmanager
def serve_board(root):
    """Serve a board with TOKEN on a free port of this machine; yields its address."""
    listener = open_listening_socket("127.0.0.1", 0)
    config = ServerConfig("127.0.0.1", listener.getsockname()[1], TOKEN)
    server = uvicorn.Server(create_server_config(create_app(root, config)))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield config.address.rstrip("/")
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()

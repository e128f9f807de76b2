"""Models of runs that the board keeps in memory."""

import gc
import weakref
from pathlib import Path

import pytest

from neural.board import inference
from neural.board.inference import MAX_CACHED_MODELS, ModelCache


class Model:
    """A stand-in that can be referenced weakly."""


@pytest.fixture
def steps(monkeypatch):
    """Newest checkpoint by run folder."""
    newest_steps = {}
    monkeypatch.setattr(inference, "_latest_checkpoint_step", newest_steps.__getitem__)
    monkeypatch.setattr(inference, "_limit_threads", lambda: None)
    return newest_steps


def test_a_model_is_loaded_once_for_each_checkpoint(steps):
    loaded = []
    cache = ModelCache(lambda path: (loaded.append(path), Model())[1])
    path = Path("a")
    steps[path] = 10
    first = cache.get(path)
    assert cache.get(path) is first
    steps[path] = 20
    assert cache.get(path) is not first
    assert loaded == [path, path]


def test_the_model_of_an_older_checkpoint_is_freed_before_the_next_is_loaded(steps):
    living = weakref.WeakSet()
    counts = []

    def load(path):
        gc.collect()
        counts.append(len(living))
        model = Model()
        living.add(model)
        return model

    cache = ModelCache(load)
    for step in range(5):
        steps[Path("a")] = step
        cache.get(Path("a"))
    assert counts == [0, 0, 0, 0, 0]


def test_the_least_recently_used_models_are_dropped(steps):
    loaded = []
    cache = ModelCache(lambda path: (loaded.append(path), Model())[1])
    paths = [Path(str(number)) for number in range(MAX_CACHED_MODELS + 1)]
    steps.update(dict.fromkeys(paths, 0))
    for path in paths[:-1]:
        cache.get(path)
    cache.get(paths[0])
    cache.get(paths[-1])  # drops the second
    cache.get(paths[0])
    assert loaded == paths
    cache.get(paths[1])
    assert loaded == [*paths, paths[1]]


def test_the_shipped_model_has_no_checkpoint(steps):
    loaded = []
    cache = ModelCache(lambda path: (loaded.append(path), Model())[1])
    assert cache.get(None) is cache.get(None)
    assert loaded == [None]

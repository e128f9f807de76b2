"""Sinks receive the same scalars; a run continues without them."""

import struct
import sys
from types import ModuleType, SimpleNamespace

import pytest
from tensorboardX.proto.event_pb2 import Event

from neural.core.settings import flatten_settings
from neural.runs.errors import RunError
from neural.runs.run import Run
from neural.runs.sink import Sink
from neural.runs.sinks import registry
from tests.runs.runs import create_run


class FakeLibrary(ModuleType):
    """Stands for a tracker's package: records every call and returns itself."""

    def __init__(self) -> None:
        super().__init__("fake")
        self.calls: list[tuple] = []

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)

        def call(*args, **kwargs):
            self.calls.append((name, *args, *([kwargs] if kwargs else [])))
            return self

        return call


@pytest.mark.parametrize("name", registry.names())
def test_a_missing_package_names_the_command_that_installs_it(name, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, registry.get(name).package, None)
    run = create_run(tmp_path)
    with pytest.raises(
        RunError, match=f"`{name}` needs a package that is not installed; `pip install "
    ):
        run.add_sinks([name])
    run.finish("finished")


def test_a_misspelt_sink_is_refused_with_a_suggestion(tmp_path):
    run = create_run(tmp_path)
    with pytest.raises(
        RunError, match="no sink is called `tensorbord`; did you mean `tensorboard`"
    ):
        run.add_sinks(["tensorbord"])
    run.finish("finished")


def test_tensorboard_receives_every_scalar_also_after_a_restart(tmp_path):
    run = create_run(tmp_path)
    run.add_sinks(["tensorboard"])
    run.log(1, {"train/loss": 0.5, "rate": 1.0})
    run.finish("stopped")
    run = Run.reopen(run.path)
    run.add_sinks(["tensorboard"])
    run.log(2, {"train/loss": 0.25})
    run.finish("finished")
    points = []
    for file in sorted((run.path / "tensorboard").iterdir()):
        data = file.read_bytes()
        while data:  # length, checksum, event, checksum
            (length,) = struct.unpack("<Q", data[:8])
            event, data = Event.FromString(data[12 : 12 + length]), data[16 + length :]
            points += [(event.step, value.tag, value.simple_value) for value in event.summary.value]
    assert sorted(points) == [(1, "rate", 1.0), (1, "train/loss", 0.5), (2, "train/loss", 0.25)]


@pytest.mark.parametrize(
    ("name", "logged"),
    [
        ("wandb", ("log", {"loss": 0.5}, {"step": 3})),
        ("trackio", ("log", {"loss": 0.5}, {"step": 3})),
    ],
)
def test_hosted_trackers_open_log_and_finish(name, logged, tmp_path, monkeypatch):
    library = FakeLibrary()
    monkeypatch.setitem(sys.modules, name, library)
    run = create_run(tmp_path)
    run.add_sinks([name])
    run.log(3, {"loss": 0.5})
    run.finish("finished")
    (function, options), *later_calls = library.calls
    assert function == "init"
    assert (options["name"], options["resume"], options["config"]) == (
        run.name,
        "allow",
        {"training": {"steps": 7}},
    )
    assert later_calls == [logged, ("finish",)]


def test_mlflow_resumes_the_run_of_that_name(tmp_path, monkeypatch):
    library, runs = FakeLibrary(), []
    new_run = SimpleNamespace(info=SimpleNamespace(run_id="r1"))
    client = SimpleNamespace(
        get_experiment_by_name=lambda name: None,
        create_experiment=lambda name: "e1",
        search_runs=lambda experiments, query, max_results: list(runs),
        set_terminated=library.set_terminated,
        create_run=lambda experiment, run_name: runs.append(new_run) or new_run,
        log_metric=library.log_metric,
        log_param=library.log_param,
    )
    monkeypatch.setitem(sys.modules, "mlflow", SimpleNamespace(MlflowClient=lambda: client))
    run = create_run(tmp_path)
    run.add_sinks(["mlflow"])
    run.log(3, {"loss": 0.5})
    run.finish("stopped")
    run = Run.reopen(run.path)
    run.add_sinks(["mlflow"])
    run.finish("finished")
    assert library.calls == [
        ("log_param", "r1", "training.steps", "7"),
        ("log_metric", "r1", "loss", 0.5, {"step": 3}),
        ("set_terminated", "r1"),
        ("set_terminated", "r1"),
    ]


class Failing(Sink):
    package, pip_name = "json", "json"

    def open(self, name, folder, settings): ...

    def log(self, step, values):
        raise ConnectionError("no network")

    def close(self):
        raise ConnectionError("still none")


def test_a_sink_that_fails_is_dropped_and_named(tmp_path):
    run = create_run(tmp_path)
    run._sinks.append(Failing("a", tmp_path, {}))
    for step in (1, 2):
        run.log(step, {"loss": 1.0})
    run.commit()
    assert [event[:3] for event in run.events()] == [
        (1, "warning", "Failing failed and receives no more values: no network")
    ]
    run._sinks.append(Failing("a", tmp_path, {}))
    run.finish("finished")
    assert len(Run.open(run.path).scalar_rows()) == 2


def test_nested_settings_become_one_level():
    assert flatten_settings({"a": {"b": 1, "c": {"d": 2}}, "e": 3}) == {
        "a.b": 1,
        "a.c.d": 2,
        "e": 3,
    }

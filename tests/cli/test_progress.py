"""How training is shown."""

import json

import pytest

from neural.cli._progress import shown
from neural.training.engine import Progress


def progress(step: int, **more) -> Progress:
    return Progress(step=step, steps=20, loss=1.25, rate=0.01, seconds=step / 4, done=step, **more)


def test_a_terminal_gets_a_bar_with_all_there_is_to_know(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "150")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("TERM", "xterm")
    with shown("text", terminal=True) as tell:
        tell(progress(1))
        tell(progress(10, scores={"valid/loss": 0.5}, looked=("largest_weight", 0.75)))
    said = capsys.readouterr().err
    for piece in ("10/20", "loss 1.2500", "valid/loss 0.5000", "4.0 steps/s", "0:02 left", "largest weight 0.750"):
        assert piece in said


def test_a_narrow_terminal_gets_whole_words(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("TERM", "xterm")
    with shown("text", terminal=True) as tell:
        tell(progress(10, scores={"valid/loss": 0.5, "valid/accuracy": 0.75}, looked=("largest_weight", 0.75)))
    said = capsys.readouterr().err
    assert "…" not in said
    assert "10/20" in said and "loss 1.2500  0:02 left  valid/loss 0.5000" in said


@pytest.mark.parametrize("terminal", [False, True])
def test_elsewhere_a_line_comes_with_a_validation_and_at_the_end(capsys, monkeypatch, terminal):
    monkeypatch.setenv("TERM", "dumb")
    with shown("text", terminal=terminal) as tell:
        for step in range(1, 21):
            tell(progress(step, scores={"valid/loss": 0.5} if step == 10 else None))
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines] == ["10/20", "20/20"]
    assert "loss 0.5000 (valid)" in lines[0]


def test_machines_get_json(capsys):
    with shown("json", terminal=True) as tell:
        tell(progress(20, looked=("entropy", 1.5)))
    said = json.loads(capsys.readouterr().out)
    assert said["step"] == 20
    assert said["attention"] == {"entropy": 1.5}
    assert said["steps_per_second"] == pytest.approx(4)


def test_quiet_is_quiet(capsys):
    with shown("quiet", terminal=True) as tell:
        tell(progress(20))
    assert capsys.readouterr() == ("", "")

"""Progress output of training."""

import json

import pytest

from neural.training.engine import TrainingProgress
from neural.workflows.training_progress import show_progress


def make_progress(step: int, **values) -> TrainingProgress:
    return TrainingProgress(
        step=step,
        steps=20,
        loss=1.25,
        learning_rate=0.01,
        # the first step takes two minutes, each later one a quarter of a second
        seconds=120 + (step - 1) / 4,
        steps_done=step,
        first_step_seconds=120,
        **values,
    )


def test_a_terminal_gets_a_bar_with_all_values(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "150")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("TERM", "xterm")
    with show_progress("text", is_terminal=True) as show_step:
        show_step(make_progress(1))
        show_step(
            make_progress(
                10, scores={"valid/loss": 0.5}, attention_summary=("largest_weight", 0.75)
            )
        )
    output = capsys.readouterr().err
    for text in (
        "10/20",
        "loss 1.2500",
        "valid/loss 0.5000",
        "4.0 steps/s",
        "0:02 left",
        "largest weight 0.750",
    ):
        assert text in output


def test_a_narrow_terminal_gets_whole_words(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("TERM", "xterm")
    with show_progress("text", is_terminal=True) as show_step:
        show_step(
            make_progress(
                10,
                scores={"valid/loss": 0.5, "valid/accuracy": 0.75},
                attention_summary=("largest_weight", 0.75),
            )
        )
    output = capsys.readouterr().err
    assert "…" not in output
    assert "10/20" in output and "loss 1.2500  0:02 left  valid/loss 0.5000" in output


@pytest.mark.parametrize("is_terminal", [False, True])
def test_without_a_terminal_a_line_follows_validations_and_the_end(
    capsys, monkeypatch, is_terminal
):
    monkeypatch.setenv("TERM", "dumb")
    with show_progress("text", is_terminal=is_terminal) as show_step:
        for step in range(1, 21):
            show_step(make_progress(step, scores={"valid/loss": 0.5} if step == 10 else None))
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines] == ["10/20", "20/20"]
    assert "loss 0.5000 (valid)" in lines[0]


def test_json_progress_has_all_values(capsys):
    with show_progress("json", is_terminal=True) as show_step:
        show_step(make_progress(20, attention_summary=("entropy", 1.5)))
    data = json.loads(capsys.readouterr().out)
    assert data["step"] == 20
    assert data["attention"] == {"entropy": 1.5}
    assert data["steps_per_second"] == pytest.approx(4)


def test_the_first_steps_have_no_estimate(capsys):
    with show_progress("json", is_terminal=True) as show_step:
        for step in (1, 3, 4):
            show_step(make_progress(step, scores={"valid/loss": 0.5}))
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["seconds_left"] for line in lines] == [None, None, 4.0]
    assert [line["steps_per_second"] for line in lines] == [None, None, 4.0]


def test_quiet_prints_nothing(capsys):
    with show_progress("quiet", is_terminal=True) as show_step:
        show_step(make_progress(20))
    assert capsys.readouterr() == ("", "")


def test_every_line_has_the_same_columns(capsys):
    measure = {"attention_summary": ("relative_entropy", 0.75)}
    with show_progress("text", is_terminal=False) as show_step:
        for step, scores in ((1, None), (5, {"valid/loss": 0.5}), (6, None), (20, None)):
            show_step.last_time = -1e9  # as if the last line were long ago
            show_step(make_progress(step, scores=scores, **measure))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("loss – (valid)  relative entropy 0.750  – left")
    assert lines[1].endswith("0:04 left")
    assert all("loss 0.5000 (valid)  relative entropy 0.750" in line for line in lines[1:])
    assert len(lines) == 4


def test_the_bar_shows_the_last_validation_until_the_next(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "150")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("TERM", "xterm")
    with show_progress("text", is_terminal=True) as show_step:
        show_step(make_progress(1))
    assert "valid/loss –" in capsys.readouterr().err
    with show_progress("text", is_terminal=True) as show_step:
        show_step(make_progress(5, scores={"valid/loss": 0.5}))
        show_step(make_progress(6))
    assert "valid/loss 0.5000" in capsys.readouterr().err.rpartition("6/20")[2]


def test_a_line_has_the_first_three_scores(capsys):
    names = ("loss", "threshold", "f1", "pk", "window_diff")
    with show_progress("text", is_terminal=False) as show_step:
        show_step(make_progress(20, scores={f"valid/{name}": 0.5 for name in names}))
    line = capsys.readouterr().out
    assert "loss 0.5000 (valid)  threshold 0.5000 (valid)  f1 0.5000 (valid)" in line
    assert "pk" not in line and len(line) < 120

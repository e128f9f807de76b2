"""`neural runs`, `neural show` and `neural compare`, as a user types them."""

import json
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from neural.cli.main import main
from neural.runs.run import Run
from tests.cli.finished_runs import PROGRAM, write_run


def invoke(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path / "runs"


def kill(path):
    """Change the status as if the process that writes the run had been killed."""
    status = json.loads((path / "status.json").read_text())
    (path / "status.json").write_text(
        json.dumps({**status, "state": "running", "pid": 2**22 + 1, "process": "gone"})
    )


def test_runs_are_listed_newest_last_with_state_steps_and_best_score(root):
    first = write_run(root, "first")
    second = write_run(root, "second", end="failed")
    result = invoke("runs")
    assert result.exit_code == 0
    header, *lines = result.output.splitlines()
    assert header.split() == ["run", "state", "step", "best", "age"]
    assert lines[0].split()[:5] == [first.name, "finished", "40/40", "loss", "0.5"]
    assert lines[1].split()[:2] == [second.name, "failed"]


def test_only_the_newest_runs_of_a_large_folder_are_read_unless_all_are_asked_for(
    root, monkeypatch
):
    names = [write_run(root, name).name for name in ("first", "second", "third")]
    monkeypatch.setattr("neural.cli.runs.MAX_SHOWN_RUNS", 2)
    opened = []
    open_run = Run.open.__func__
    monkeypatch.setattr(
        Run, "open", classmethod(lambda cls, path: opened.append(path.name) or open_run(cls, path))
    )
    *lines, _, last = invoke("runs").output.splitlines()
    assert [line.split()[0] for line in lines] == ["run", *names[1:]]
    assert last.strip() == "… and 1 older: `neural runs --all`"
    assert opened == names[1:]
    assert [line.split()[0] for line in invoke("runs", "--all").output.splitlines()[1:]] == names
    assert [run["name"] for run in json.loads(invoke("runs", "--json").output)] == names


def test_the_phases_of_a_training_are_named_with_steps_and_epochs(root):
    path = write_run(root, scores=(0.9, 0.7, 0.5, 0.48, 0.46, 0.44, 0.42, 0.40, 0.38, 0.39))
    lines = invoke("show", path).output.splitlines()
    title = lines.index("phases of valid/loss")
    assert [line.split() for line in lines[title + 1 : title + 5]] == [
        ["rapid", "steps", "4–12", "epochs", "0.5–1.5", "-0.4"],
        ["steady", "steps", "12–36", "epochs", "1.5–4.5", "-0.12"],
        ["best", "steps", "36", "epochs", "4.5"],
        ["after", "steps", "36–40", "epochs", "4.5–5", "+0.01"],
    ]


def test_the_step_of_a_run_is_that_of_its_rows_if_its_status_is_behind(root):
    path = write_run(root)
    kill(path)
    status = json.loads((path / "status.json").read_text())
    (path / "status.json").write_text(json.dumps({**status, "step": 1}))
    assert " 40/40 " in invoke("runs").output
    assert "step     40 of 40" in invoke("show").output


def test_a_run_whose_process_is_gone_is_lost(root):
    kill(write_run(root))
    assert " lost " in invoke("runs").output
    assert "resume with: neural train --resume runs/" in invoke("show").output


def test_broken_folders_are_named_and_the_others_are_listed(root):
    good = write_run(root)
    (root / "2020-empty").mkdir()
    (root / "2021-torn").mkdir()
    (root / "2021-torn" / "rows.sqlite").write_bytes(b"not a database" * 100)
    result = invoke("runs")
    assert result.exit_code == 0
    assert good.name in result.output
    assert "2020-empty is not a run folder: it has no rows.sqlite" in result.output
    assert "2021-torn" in result.output and "damaged" in result.output
    assert [summary["kind"] for summary in json.loads(invoke("runs", "--json").output)] == [
        "broken",
        "broken",
        "run",
    ]


def test_an_empty_folder_is_reported_and_a_missing_one_is_an_error(root):
    assert "no runs in runs yet" in invoke("runs").output
    assert json.loads(invoke("runs", "--json").output) == []
    result = invoke("runs", "--runs", root / "nowhere")
    assert result.exit_code == 2
    assert "there is no folder" in result.output


def test_show_fits_into_eighty_columns(root):
    path = write_run(root, learning_rate=0.01)
    result = invoke("show", "small")
    assert result.exit_code == 0, result.output
    assert max(map(len, result.output.splitlines())) <= 80 + len(str(path))
    for text in (
        "finished",
        "40 of 40",
        "valid/loss 0.5",
        "valid/accuracy 0.5",
        "(step 20)",
        "Small: (B, 5, 6) → (B, 3), 63 parameters",
        "training.learning_rate  0.01",
        "training.steps          40",
        "o validation",
        "the seventh step was odd",
        "neural compare",
    ):
        assert text in result.output
    assert "batch_size" not in result.output, "a default"


def test_show_has_the_first_and_last_snapshot_of_every_head(root):
    write_run(root)
    lines = invoke("show").output.splitlines()
    heads = lines.index("entropy, in nats, first snapshot → last")
    assert lines[heads + 2].split() == ["L0", "encoder.0", "1.50→0.25", "1.50→1.50"]
    assert lines[heads + 3].split() == ["L1", "encoder.1", "1.50→1.50", "1.50→1.50"]
    (row,) = [line.split() for line in lines if line.startswith("  entropy (nats)")]
    assert row[2:] == ["1.50", "1.19", "0.25", "L0", "h0", "1.50", "L0", "h1"]
    assert "L1 encoder.1  1.50→0.25" in invoke("show", "--measure", "head_diversity").output


def test_show_as_json_is_complete_and_has_no_bare_nan(root):
    path = write_run(root, scores=(0.9, float("nan")))
    data = json.loads(invoke("show", path, "--json").output, parse_constant=pytest.fail)
    assert data["best"] == {
        "step": 20,
        "score": 0.9,
        "name": "valid/loss",
        "scores": {"valid/loss": 0.9, "valid/accuracy": pytest.approx(0.1)},
    }
    assert data["curves"]["valid/loss"] == {"steps": [20, 40], "values": [0.9, None]}
    assert data["attention"]["measures"]["entropy"]["last"] == [[0.25, 1.5], [1.5, 1.5]]
    assert data["network"]["input_shape"] == "(B, 5, 6)"


def test_show_has_what_a_program_logged_though_nothing_selects_a_best(root):
    settings = {"task": "tracked"}
    run = Run.create(root, "own", settings=settings, program=None, environment={})
    run.log(1, {"train/loss": 2.0, "valid/accuracy": 0.5})
    run.log(2, {"train/loss": 1.0, "valid/accuracy": 0.75})
    run.finish("finished")
    assert ["valid/accuracy", "0.75"] in [
        line.split() for line in invoke("show").output.split("\n")
    ]


def test_show_of_a_language_model_has_relative_entropy_and_no_error_as_a_score(root):
    def draw(step):
        return {
            "sink_excess": np.array([[1e-3 * step, 0.0]]),
            "relative_entropy": np.array([[0.9, 0.9 - 0.01 * step]]),
        }

    run = Run.create(root, "text", settings={}, program=None, environment={})
    run.set_metadata("attention/layers", ["blocks.0"])
    for step in (1, 2):
        run.log_arrays(step, draw(step))
        run.log(step, {"valid/loss": 2.0 / step, "valid/standard_error": 0.1})
    run.finish("finished")
    text = invoke("show").output
    assert "relative entropy, first snapshot → last" in text
    assert "standard_error" not in text


def test_a_nan_score_is_never_the_best(root):
    write_run(root, "nan", scores=(float("nan"), float("-inf"), 0.8, 0.9))
    write_run(root, "none", scores=(float("nan"), float("inf")))
    first, second = json.loads(invoke("runs", "--json").output, parse_constant=pytest.fail)
    assert first["best"]["score"] == 0.8
    assert second["best"] is None


@pytest.mark.parametrize("heads", [2, 8, 12, 40])
def test_any_number_of_heads_fits_into_eighty_columns(root, heads):
    run = Run.create(root, "wide", settings={"task": "supervised"}, program=None, environment={})
    run.set_metadata(
        "attention/layers",
        [f"a.rather.long.name.of.a.block.{index}.attention" for index in range(12)],
    )
    values = np.random.default_rng(0).uniform(0, 3, size=(12, heads)).astype(np.float32)
    values[3, 1:] = np.nan
    for step in (0, 9):
        run.log_arrays(step, {"entropy": values * (step + 1)})
    run.finish("finished")
    lines = invoke("show").output.splitlines()
    assert (
        max(len(line) for line in lines if "neural compare" not in line and "folder" not in line)
        <= 80
    )
    assert sum(line.startswith("  L3") for line in lines) >= 1
    assert f"{values[11, heads - 1] * 10:.2f}" in "".join(lines)


def test_twelve_heads_of_a_share_stand_in_one_row(root):
    run = Run.create(root, "wide", settings={"task": "supervised"}, program=None, environment={})
    run.set_metadata("attention/layers", ["first", "second"])
    run.log_arrays(0, {"relative_entropy": np.full((2, 12), 0.5, dtype=np.float32)})
    run.finish("finished")
    assert sum(line.split()[:1] == ["L1"] for line in invoke("show").output.splitlines()) == 1


def test_show_of_a_run_without_any_value_yet(root):
    Run.create(
        root, "new", settings={"task": "of another version"}, program="no program", environment={}
    ).close()
    result = invoke("show")
    assert result.exit_code == 0, result.output
    assert "step    0" in result.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["show", "nothing"], "there is no run `nothing` in runs; there are "),
        (["show", "frist-small"], "in runs; did you mean `first-small`?"),
        (["show", "small"], "write more of its name"),
        (["show", "first", "--measure", "entrpy"], "did you mean `entropy`?"),
        (["compare", "first", "nothing"], "there is no run `nothing`"),
        (["compare", "first"], "name two runs or more"),
    ],
)
def test_an_error_is_a_message(root, words, message):
    for name in ("first-small", "other-small"):
        write_run(root, name)
    result = invoke(*words)
    assert result.exit_code == 2
    assert message in result.output
    assert "Traceback" not in result.output


def test_compare_shows_only_the_settings_that_differ_and_scores_side_by_side(root):
    write_run(root, "first", learning_rate=0.01)
    write_run(root, "second", learning_rate=0.02, scores=(0.3, 0.4))
    result = invoke("compare", "first", "second")
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.output.splitlines()]
    settings = lines.index(["settings", "that", "differ"])
    assert lines[settings + 1 : settings + 4] == [
        ["A", "B"],
        ["training.learning_rate", "0.01", "0.02"],
        [],
    ]
    assert ["valid/loss", "0.5", "0.3"] in lines
    assert ["at", "step", "20", "20"] in lines
    assert ["entropy", "1.19", "1.19", "+0.00"] in lines
    curves = [line for line in result.output.splitlines() if "ends at" in line]
    assert len(curves) == 4
    assert max(map(len, curves)) <= 80


def test_compare_shows_the_effective_values_of_settings_and_optimizer(root):
    rates = "learning_rate=LinearDecay(0.02, 40), other_learning_rate=0.01"
    muon = {"optimizer": f"Muon({rates}, clipnorm=1.0)"}
    write_run(root, "first", **muon, learning_rate=0.004, clip_norm=2.0)
    write_run(root, "second", **muon)
    lines = [line.split() for line in invoke("compare", "first", "second").output.splitlines()]
    assert ["training.learning_rate", "0.004", "0.02"] in lines
    assert ["training.other_learning_rate", "0.002", "0.01"] in lines
    assert ["training.clip_norm", "2.0", "1.0"] in lines
    assert not any("training.weight_decay" in line for line in lines)


def test_compare_of_an_unknown_optimizer_shows_the_written_settings(root):
    write_run(root, "first", optimizer="Own()", learning_rate=0.01)
    write_run(root, "second", optimizer="Own()")
    lines = [line.split() for line in invoke("compare", "first", "second").output.splitlines()]
    assert ["training.learning_rate", "0.01", "–"] in lines


def test_compare_uses_pairs_of_seeds(root):
    scores = {0.01: (0.5, 1.5, 2.5), 0.1: (0.7, 1.71, 2.72), 0.2: (0.9, 1.2, 2.5)}
    names = []
    for rate, by_seed in scores.items():
        for seed, score in enumerate(by_seed):
            names.append(f"rate-{rate}-seed-{seed}")
            write_run(root, names[-1], seed=seed, scores=(score,), learning_rate=rate)
    result = invoke("compare", *names)
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.output.splitlines() if line.strip()]
    (title,) = [index for index, line in enumerate(lines) if line[:2] == ["over", "seeds"]]
    assert " ".join(lines[title][2:]) == "valid/loss, against A B C by pairs of seeds"
    assert lines[title + 1] == ["A", "B", "C", "1.5"]
    assert lines[title + 2][:5] == ["D", "E", "F", "1.71", "worse"]
    assert lines[title + 3][:5] == ["G", "H", "I", "1.533", "undecided"]
    groups = json.loads(invoke("compare", *names, "--json").output)["groups"]
    assert [group["runs"] for group in groups] == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    assert groups[1]["against_first"]["value"] == pytest.approx(0.21)


def test_compare_of_one_seed_is_undecided(root):
    write_run(root, "first", learning_rate=0.01)
    write_run(root, "second", learning_rate=0.02, scores=(0.1,))
    assert "undecided (1 shared seed)" in invoke("compare", "first", "second").output


@pytest.mark.parametrize(
    ("windows", "second", "text"),
    [
        (64, lambda losses: losses, "0 (no interval) nats"),
        (20, lambda losses: losses + 0.5, "0.5 (no interval) nats"),
        (64, lambda losses: losses + np.linspace(0.4, 0.6, 64), "nats  worse"),
    ],
    ids=["equal losses", "one block", "an interval"],
)
def test_compare_of_language_models_window_by_window(windows, second, text, root):
    first = np.linspace(1, 2, windows)
    for name, losses in (("first", first), ("second", second(first))):
        with Run.reopen(write_run(root, name)) as run:
            # the best validation of these runs
            run.log_arrays(20, {"valid/window_losses": losses.astype(np.float32)})
            run.finish("finished")
    result = invoke("compare", "first", "second")
    assert result.exit_code == 0, result.output
    (line,) = [line for line in result.output.splitlines() if line.startswith("  B − A  ")]
    assert text in line


def test_compare_shows_the_lines_in_which_programs_differ(root):
    write_run(root, "first")
    write_run(root, "second", program=PROGRAM.replace("Dense(6)", "Dense(7)"))
    result = invoke("compare", "first", "second")
    assert "-    Dense(6)" in result.output
    assert "+    Dense(7)" in result.output
    assert "GlobalAverage" not in result.output


def test_many_runs_are_compared_within_eighty_columns(root):
    paths = [
        write_run(root, f"run{index}", learning_rate=0.001 * (index + 1)) for index in range(9)
    ]
    result = invoke("compare", *paths)
    assert result.exit_code == 0
    assert max(map(len, result.output.splitlines())) <= 80
    assert result.output.count("training.learning_rate") > 1, "in several tables"
    data = json.loads(invoke("compare", *paths, "--json").output)
    assert data["settings"]["training.learning_rate"] == pytest.approx(
        [0.001 * (index + 1) for index in range(9)]
    )


def test_reading_runs_needs_no_torch(root):
    paths = [str(write_run(root, name)) for name in ("first", "second")]
    code = (
        "import sys, neural.cli.main as cli\n"
        "try: cli.main(sys.argv[1:])\n"
        "finally: print('torch' in sys.modules)"
    )
    for words in (["runs"], ["show"], ["compare", *paths]):
        process = subprocess.run(
            [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True
        )
        assert process.stdout.splitlines()[-1] == "False", words


def test_colours_follow_the_environment(root, monkeypatch):
    write_run(root)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in invoke("runs").output
    monkeypatch.delenv("FORCE_COLOR")
    for name, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        with monkeypatch.context() as context:
            context.setenv(name, value)
            assert "\x1b[" not in CliRunner().invoke(main, ["runs"], color=True).output


def test_without_runs_show_names_the_command_that_creates_one(root):
    result = invoke("show")
    assert result.exit_code == 2
    assert "there is no run in runs: create one with `neural train FILE`" in result.output


def test_there_are_no_colours_without_a_terminal(root):
    write_run(root)
    for words in (["runs"], ["show"]):
        assert "\x1b" not in invoke(*words).output

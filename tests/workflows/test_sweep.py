"""Sweeps with a scripted runner: trials, errors, retries, resuming, ranking and confirmation."""

import json
import math

import pytest

from neural.core.errors import TaskError
from neural.core.settings import SettingsError
from neural.runs.errors import RunError
from neural.runs.run import Run
from neural.training.runner import Runner, TrialResult, read_last_error
from neural.workflows.sweep import (
    TRIALS_FILE,
    GridPoint,
    create_sweep,
    find_sweep,
    open_sweep,
    run_sweep,
)
from neural.workflows.sweep_result import SweepResult
from neural.workflows.sweep_trials import SweepSettings, expand_grid, read_sweep, reseed_trials
from tests.contract.test_results import check_result
from tests.sweeps import write_sweep

GRID = """experiment: tiny.neural
seeds: [0, 1]
grid: {training.learning_rate: [1e-3, 3e-3], training.batch_size: [8]}
set: [training.steps=5]
retries: 1
"""


class ScriptedRunner(Runner):
    """Writes each trial's run itself and ends it with the next of its scripted results."""

    threads = 1

    def __init__(self, results=None, workers=2):
        super().__init__(workers)
        self.results, self.running, self.started, self.stopped = results or {}, [], [], False

    @property
    def has_capacity(self):
        return len(self.running) < self.workers

    def start(self, job):
        self.started.append(job.name)
        self.running.append(job)

    def poll_finished(self):
        assert len(self.running) <= self.workers
        job = self.running.pop(0)
        result = (
            self.results.get(job.name, []).pop(0)
            if self.results.get(job.name)
            else TrialResult("finished")
        )
        if result is KeyboardInterrupt:
            self.running.insert(0, job)
            raise KeyboardInterrupt
        path = job.find_run()
        options = {"settings": {"task": "supervised"}, "program": None}
        run = Run.reopen(path) if path else Run.create(job.folder, job.name, **options)
        run.log(4, {"valid/loss": len(job.name) / 10})
        run.log(5, {"valid/loss": len(job.name) / 10 + 1})
        run.finish("finished" if result.state == "finished" else "failed", result.reason)
        return [(job, result)]

    def stop(self):
        self.stopped = True

    def __exit__(self, *_):
        pass


@pytest.fixture
def sweep(tmp_path):
    settings, experiment, trials = read_sweep(write_sweep(tmp_path, GRID))
    return create_sweep(tmp_path / "runs", "rates", settings, experiment, trials)


FIRST, SECOND = "learning_rate-0.001_batch_size-8_seed-0", "learning_rate-0.001_batch_size-8_seed-1"


def test_trials_are_all_pairs_of_point_and_seed_with_stable_names(sweep):
    names = [row.trial.name for row in sweep.rows]
    assert names[:3] == [FIRST, SECOND, "learning_rate-0.003_batch_size-8_seed-0"]
    assert len(names) == 4
    assert sweep.rows[1].trial.overrides == (
        "training.steps=5",
        "training.learning_rate=0.001",
        "training.batch_size=8",
        "training.seed=1",
    )


def test_long_or_equal_names_are_replaced_by_numbers():
    long = SweepSettings(experiment="x", grid={"a.b": ("c" * 90, "d")})
    assert [trial.name for trial in expand_grid(long)] == ["trial-0000_seed-0", "trial-0001_seed-0"]
    alike = SweepSettings(experiment="x", grid={"a.b": ("c d", "c-d")})
    assert len({trial.name for trial in expand_grid(alike)}) == 2
    same_ends = SweepSettings(experiment="x", grid={"a.rate": (1,), "b.rate": (2,)})
    assert expand_grid(same_ends)[0].name == "a.rate-1_b.rate-2_seed-0"


def test_all_errors_of_all_trials_are_shown_at_their_lines(tmp_path):
    path = write_sweep(
        tmp_path,
        """experiment: tiny.neural
grid:
  training.learning_rte: [1e-3]
  training.batch_size: [16, many]
set: [training.steps=none]
""",
    )
    with pytest.raises(SettingsError) as caught:
        read_sweep(path)
    text = str(caught.value)
    assert text.count("error[") == 3, "once each, not once per trial"
    assert "rates.yaml:3:3" in text and "did you mean `learning_rate`?" in text
    assert "rates.yaml:4:29" in text and "`batch_size` must be a whole number" in text
    assert "rates.yaml:5:7" in text and "`steps` must be a whole number" in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("experiment: tiny.neural\nseds: [1]\n", "did you mean `seeds`?"),
        (
            "experiment: tiny.neural\nseeds: []\n",
            "`seeds` must be a list of whole numbers, one or more",
        ),
        ("experiment: tiny.neural\nseeds: [1, 1]\n", "a seed is listed twice"),
        (
            "experiment: tiny.neural\ngrid: {training.seed: [1]}\n",
            "write them as `seeds: [0, 1, 2]`",
        ),
        (
            "experiment: tiny.neural\ngrid: {training.steps: [5, 5]}\n",
            "a value of `training.steps` is listed twice",
        ),
        ("experiment: tiny.neural\ngrid: {training.steps: 5}\n", "`training.steps` must be a list"),
        (
            "experiment: tiny.neural\ngrid: {training.steps: []}\n",
            "`training.steps` must be a list of values, one",
        ),
        ("grid: {}\n", "`experiment` is missing"),
        (
            f"experiment: tiny.neural\ngrid: {{training.steps: [1, 2, 3, 4]}}\nseeds: {[*range(2501)]}",
            "10,004 trials",
        ),
    ],
)
def test_an_invalid_sweep_is_refused(tmp_path, text, message):
    with pytest.raises(SettingsError) as caught:
        read_sweep(write_sweep(tmp_path, text))
    assert message in str(caught.value)


def test_errors_of_the_network_or_the_data_are_found_before_the_first_trial(tmp_path):
    path = write_sweep(
        tmp_path, "experiment: tiny.neural\ngrid: {training.optimizer: [AdamW, AdamQ]}\n"
    )
    with pytest.raises(TaskError, match=r"AdamQ[^\0]*trial optimizer-AdamQ_seed-0"):
        read_sweep(path)
    path.write_text("experiment: nowhere.yaml\n")
    with pytest.raises(TaskError, match=r"there is no experiment .*nowhere\.yaml"):
        read_sweep(path)


def test_all_trials_run_and_the_table_records_their_states(sweep):
    changes = []
    run_sweep(sweep, ScriptedRunner(), lambda row: changes.append((row.trial.name, row.state)))
    assert [state for name, state in changes if name == FIRST] == ["running", "finished"]
    table = json.loads((sweep.path / TRIALS_FILE).read_text())
    assert [trial["state"] for trial in table["trials"]] == ["finished"] * 4
    assert table["writer"] is None
    assert all((sweep.path / trial["run"] / "rows.sqlite").exists() for trial in table["trials"])
    assert sweep.count_states()["state"] == "finished"


def test_a_failed_trial_is_retried_in_the_same_run_and_then_reported(sweep):
    runner = ScriptedRunner(
        {
            FIRST: [TrialResult("failed", "one"), TrialResult("failed", "two")],
            SECOND: [TrialResult("failed", "one")],
        }
    )
    run_sweep(sweep, runner)
    assert runner.started.count(FIRST) == 2, "once and one retry"
    again = open_sweep(sweep.path)
    failed, recovered = again.rows[0], again.rows[1]
    assert (failed.state, failed.reason, failed.attempts) == ("failed", "two", 2)
    assert (recovered.state, recovered.reason, recovered.attempts) == ("finished", "", 2)
    assert len([path for path in sweep.path.iterdir() if path.is_dir()]) == 4, (
        "no second run for a retried trial"
    )
    assert again.count_states() | {"time": 0} == {
        "state": "failed",
        "trials": 4,
        "finished": 3,
        "running": 0,
        "failed": 1,
        "stopped": 0,
        "waiting": 0,
        "time": 0,
    }


def test_a_refused_trial_is_not_retried(sweep):
    runner = ScriptedRunner({FIRST: [TrialResult("refused", "error: no such file")]})
    run_sweep(sweep, runner)
    assert runner.started.count(FIRST) == 1
    assert sweep.rows[0].state == "failed"


def test_an_interrupted_sweep_resumes_with_unfinished_trials(sweep):
    runner = ScriptedRunner({SECOND: [KeyboardInterrupt]})
    with pytest.raises(KeyboardInterrupt):
        run_sweep(sweep, runner)
    assert runner.stopped
    again = open_sweep(sweep.path)
    assert [row.state for row in again.rows] == ["finished", "stopped", "stopped", "waiting"]
    second = ScriptedRunner()
    run_sweep(again, second)
    assert FIRST not in second.started
    assert len(second.started) == 3
    assert again.unfinished == []


def test_after_a_kill_states_and_scores_are_read_from_the_run_folders(sweep):
    run_sweep(sweep, ScriptedRunner())
    table = json.loads((sweep.path / TRIALS_FILE).read_text())
    table["writer"] = {"state": "running", "pid": 2**22 + 1, "process": "gone", "host": "elsewhere"}
    table["trials"][0] |= {"state": "running", "score": None}
    table["trials"][1] |= {"state": "waiting", "score": None}
    (sweep.path / TRIALS_FILE).write_text(json.dumps(table))
    again = open_sweep(sweep.path)
    assert again.rows[0].state == "stopped"
    runner = ScriptedRunner()
    run_sweep(again, runner)
    assert runner.started == []
    assert again.rows[0].score == len(FIRST) / 10


def test_a_running_sweep_cannot_be_started_again(sweep):
    class NestedRunner(ScriptedRunner):
        def poll_finished(self):
            with pytest.raises(RunError, match="is being written by"):
                run_sweep(open_sweep(sweep.path), ScriptedRunner())
            return super().poll_finished()

    run_sweep(sweep, NestedRunner())


def test_points_have_mean_and_standard_error_and_the_best_is_first(sweep):
    run_sweep(sweep, ScriptedRunner())
    for row, score in zip(sweep.rows, (3.0, 5.0, 1.0, 2.0), strict=True):
        row.score = score
    best, other = sweep.rank_points()
    assert best.values == {"training.learning_rate": 0.003, "training.batch_size": 8}
    assert (best.mean, best.standard_error) == (1.5, pytest.approx(0.5))
    assert (other.mean, other.standard_error) == (4.0, pytest.approx(1.0))
    assert [row.score for row in sweep.rank_rows()] == [1.0, 2.0, 3.0, 5.0]
    assert math.isnan(GridPoint({}, (1.0,)).standard_error)


def set_scores(sweep, *scores):
    """Mark all trials as finished with these scores; return the ranked points."""
    for row, score in zip(sweep.rows, scores, strict=True):
        row.state, row.score = "finished", score
    return sweep.rank_points()


@pytest.mark.parametrize(
    ("scores", "verdict"),
    [
        ((3.0, 5.0, 1.0, 3.01), "worse"),
        ((1.1, 2.0, 1.0, 2.1), "undecided"),
    ],
)
def test_points_are_compared_in_pairs_of_equal_seeds(sweep, scores, verdict):
    ((difference, p, decided),) = sweep.compare_with_best(set_scores(sweep, *scores))
    assert decided == verdict
    assert (p <= 0.05) == (verdict == "worse")
    assert difference.n == 2
    assert f" {verdict} " in repr(SweepResult(sweep))
    (first, second) = SweepResult(sweep).to_dict()["points"]
    assert (first["against_best"], second["against_best"]["verdict"]) == (None, verdict)


def test_the_last_validation_is_shown_next_to_the_best(sweep):
    run_sweep(sweep, ScriptedRunner())
    assert sweep.rows[0].last_score == sweep.rows[0].score + 1
    assert open_sweep(sweep.path).rows[0].last_score == sweep.rows[0].last_score
    best = sweep.rank_points()[0]
    assert best.last_mean == pytest.approx(best.mean + 1)
    (header,) = [
        line for line in repr(SweepResult(sweep)).splitlines() if "against the best" in line
    ]
    assert header.split()[2:5] == ["valid/loss", "last", "seeds"]


@pytest.mark.parametrize("score", [None, math.nan, math.inf, 0.001])
def test_a_setting_with_a_failed_seed_is_not_selected(sweep, score):
    """The first setting has the better mean, but that of the seed that did not diverge."""
    set_scores(sweep, 0.1, score, 1.0, 2.0)
    if score == 0.001:  # the best validation before the training failed
        sweep.rows[1].state = "failed"
    stable, unstable = sweep.rank_points()
    assert (stable.mean, unstable.mean) == (1.5, 0.1)
    assert [len(point.failed_seeds) for point in (stable, unstable)] == [0, 1]
    assert math.isnan(unstable.standard_error) and math.isnan(unstable.estimate_mean().low)
    (comparison,) = sweep.compare_with_best([stable, unstable])
    assert comparison.verdict == "undecided" and comparison.difference.value == math.inf
    text = repr(SweepResult(sweep))
    assert "unstable: 1 of 2 seeds failed" in text and "1 of 2" in text
    best, other = SweepResult(sweep).to_dict()["points"]
    assert (best["failed_seeds"], other["failed_seeds"]) == (0, 1)


def test_a_selected_setting_that_fails_with_fresh_seeds_is_named_unstable(sweep):
    set_scores(sweep, 3.0, 5.0, 1.0, 2.0)
    for row in sweep.add_confirmation(3):
        is_selected = row.trial.point["training.learning_rate"] == 0.003
        row.state, row.last_score = ("failed", None) if is_selected else ("finished", 4.0)
    confirmation = sweep.summarize_confirmation()
    assert math.isnan(confirmation.estimates[0].value)
    assert confirmation.comparison.difference.value == -math.inf
    assert "selected, unstable: 3 of 3 seeds failed" in repr(SweepResult(sweep))


def test_selection_of_the_best_and_its_optimism_are_reported(sweep):
    points = set_scores(sweep, 3.0, 5.0, 1.0, 2.0)
    selection = sweep.estimate_selection_bias(points)
    assert (selection.setting_count, selection.seed_count) == (2, 2)
    # differences of 2 and 3: variance 0.5, half of it per score, over the median of chi² with 1 df
    assert selection.noise_std == pytest.approx(math.sqrt(0.25 / 0.4549), rel=1e-3)
    assert selection.optimism == pytest.approx(
        selection.noise_std * 0.5642 / math.sqrt(2), rel=1e-3
    )
    text = " ".join(repr(SweepResult(sweep)).split())
    assert "selected among 2" in text
    assert (
        "If all 2 were equal, the selected mean would be about 0.2957 below the true one "
        "(0.4 SD of a seed)" in text
    )
    data = SweepResult(sweep).to_dict()
    assert data["selection"]["selected_among"] == 2
    assert data["confirmation"] is None


def test_with_one_seed_the_optimism_of_the_selection_is_unknown(tmp_path):
    text = GRID.replace("seeds: [0, 1]", "seeds: [0]")
    settings, experiment, trials = read_sweep(write_sweep(tmp_path, text))
    sweep = create_sweep(tmp_path / "runs", "rates", settings, experiment, trials)
    set_scores(sweep, 1.0, 2.0)
    text = repr(SweepResult(sweep))
    assert "selected among 2 by its mean over 1 seed" in text
    assert "equal" not in text


def add_confirmation(sweep, count=3):
    """Finish the sweep with the second setting as the best; return the added trials."""
    run_sweep(sweep, ScriptedRunner())
    for row, score in zip(sweep.rows, (3.0, 5.0, 1.0, 2.0), strict=True):
        row.score = score
    return sweep.add_confirmation(count)


def test_the_best_and_the_runner_up_are_trained_with_fresh_seeds(sweep):
    added = add_confirmation(sweep)
    assert [row.trial.seed for row in added] == [2, 3, 4, 2, 3, 4]
    assert [row.trial.point["training.learning_rate"] for row in added] == [0.003] * 3 + [0.001] * 3
    assert added[0].trial.name == "confirm_learning_rate-0.003_batch_size-8_seed-2"
    assert added[0].trial.overrides == (
        "training.steps=5",
        "training.learning_rate=0.003",
        "training.batch_size=8",
        "training.seed=2",
    )
    assert sweep.summarize_confirmation() is None, "no summary before they have finished"
    run_sweep(sweep, ScriptedRunner())
    assert all(row.is_finished for row in open_sweep(sweep.path).rows)


def test_confirmation_trials_do_not_change_the_selection(sweep):
    added = add_confirmation(sweep)
    for row, last in zip(added, (1.5, 1.6, 1.4, 1.1, 1.2, 1.0), strict=True):
        row.state, row.score, row.last_score = "finished", 0.0, last
    best, other = sweep.rank_points()
    assert (best.mean, other.mean) == (1.5, 4.0)
    confirmation = sweep.summarize_confirmation()
    assert [point.values["training.learning_rate"] for point in confirmation.points] == [
        0.003,
        0.001,
    ]
    assert [round(estimate.value, 3) for estimate in confirmation.estimates] == [1.5, 1.1], (
        "the last validations"
    )
    assert confirmation.comparison.difference.value == pytest.approx(-0.4)
    assert confirmation.seeds == (2, 3, 4)
    text = repr(SweepResult(sweep))
    assert "confirmed with 3 seeds that were not used for selection, at the last validation" in text
    data = SweepResult(sweep).to_dict()["confirmation"]
    assert data["score"] == "last validation"
    assert data["points"][0]["value"] == pytest.approx(1.5)


def test_a_confirmation_cannot_be_repeated_with_other_seeds(sweep):
    add_confirmation(sweep)
    assert sweep.add_confirmation(3) == []
    with pytest.raises(RunError, match="already confirmed with 3 fresh seeds"):
        sweep.add_confirmation(5)


def test_a_sweep_of_one_setting_has_no_selection(tmp_path):
    settings, experiment, trials = read_sweep(
        write_sweep(tmp_path, "experiment: tiny.neural\nseeds: [0, 1]\n")
    )
    sweep = create_sweep(tmp_path / "runs", "rates", settings, experiment, trials)
    run_sweep(sweep, ScriptedRunner())
    assert "selected" not in repr(SweepResult(sweep))
    with pytest.raises(RunError, match="nothing to confirm"):
        sweep.add_confirmation(3)


def test_long_names_of_a_confirmation_are_replaced_by_numbers():
    trials = expand_grid(SweepSettings(experiment="x", grid={"a": ("b" * 70, "c" * 70)}))
    repeated = reseed_trials(trials, [7, 8])
    assert [trial.name for trial in repeated] == [
        f"confirm-000{i}_seed-{7 + i % 2}" for i in range(4)
    ]
    assert repeated[1].overrides == (trials[0].overrides[0], "training.seed=8")


def test_a_table_of_version_1_is_read(sweep):
    table = json.loads((sweep.path / TRIALS_FILE).read_text())
    table["version"] = 1
    for row in table["trials"]:
        del row["last_score"], row["is_confirmation"]
    (sweep.path / TRIALS_FILE).write_text(json.dumps(table))
    assert [row.is_confirmation for row in open_sweep(sweep.path).rows] == [False] * 4


def test_split_seeds_in_the_grid_are_repetitions_of_a_point(tmp_path):
    text = GRID.replace("training.batch_size: [8]", "split_seed: [0, 1]")
    settings, experiment, trials = read_sweep(write_sweep(tmp_path, text))
    sweep = create_sweep(tmp_path / "runs", "splits", settings, experiment, trials)
    best, other = set_scores(sweep, *(1.0, 2.0, 11.0, 12.0), *(1.1, 2.1, 11.1, 12.2))
    assert best.values == {"training.learning_rate": 0.001}
    assert (len(best.scores), len(set(best.seeds))) == (4, 4)
    ((difference, _, verdict),) = sweep.compare_with_best([best, other])
    assert (difference.n, verdict) == (4, "worse")
    added = sweep.add_confirmation(2)
    assert [(row.trial.seed, row.trial.point["split_seed"]) for row in added[:4]] == [
        (2, 0),
        (3, 0),
        (2, 1),
        (3, 1),
    ]


def test_a_failed_trial_is_left_out_of_the_mean(sweep):
    run_sweep(sweep, ScriptedRunner({FIRST: [TrialResult("failed", "x")] * 2}))
    assert sorted(len(point.scores) for point in sweep.rank_points()) == [1, 2]
    assert sweep.rank_rows()[-1].trial.name == FIRST


def test_a_damaged_or_newer_table_gives_a_message(sweep):
    file = sweep.path / TRIALS_FILE
    table = json.loads(file.read_text())
    for text, message in (
        (json.dumps(table | {"version": 99}), "newer version"),
        ("{", "damaged"),
        ("{}", "damaged"),
    ):
        file.write_text(text)
        with pytest.raises(RunError, match=message):
            open_sweep(sweep.path)


def test_a_sweep_is_found_by_path_by_part_of_its_name_or_as_the_newest(sweep):
    root = sweep.path.parent
    assert find_sweep(None, root) == find_sweep("rates", root) == sweep.path
    assert find_sweep(str(sweep.path), root) == sweep.path
    with pytest.raises(RunError, match="there is no sweep `x`"):
        find_sweep("x", root)


def test_an_unwritable_folder_gives_a_message(tmp_path, sweep):
    (tmp_path / "file").write_text("")
    settings, experiment, trials = read_sweep(tmp_path / "rates.yaml")
    with pytest.raises(RunError, match="no sweep can be created in"):
        create_sweep(tmp_path / "file" / "runs", "rates", settings, experiment, trials)


def test_the_last_error_of_a_log_is_that_of_the_last_attempt(tmp_path):
    file = tmp_path / "x.log"
    file.write_text("==> now begins\nerror: old\n==> later goes on\nnoise\n")
    assert read_last_error(file) == "noise"
    file.write_text("==> now begins\nerror[E1]: bad\n  --> x:1:1\n   = help: y\n")
    assert read_last_error(file) == "error[E1]: bad"
    assert read_last_error(tmp_path / "none") == ""


@pytest.fixture
def folded(tmp_path):
    """Two learning rates and two seeds, each with three folds."""
    text = "experiment: tiny.neural\nseeds: [0, 1]\ngrid: {training.learning_rate: [0.1, 0.2]}\n"
    settings, experiment, trials = read_sweep(write_sweep(tmp_path, text), folds=3)
    return create_sweep(tmp_path / "runs", "folds", settings, experiment, trials)


def test_every_fold_is_a_trial_with_its_own_held_out_data(folded):
    names = [row.trial.name for row in folded.rows]
    assert len(names) == 12
    assert names[0] == "learning_rate-0.1_fold-1-3_seed-0"
    assert folded.rows[0].trial.overrides[-2:] == ('fold="1/3"', "training.seed=0")
    assert folded.fold_count == 3
    assert open_sweep(folded.path).fold_count == 3


def test_a_sweep_is_a_result(folded, tmp_path):
    set_scores(folded, 0.5, 1.5, 1.5, 2.5, 2.5, 3.5, 1.5, 2.5, 2.6, 3.6, 3.4, 4.4)
    check_result(SweepResult(folded), tmp_path)


def test_folds_are_repetitions_of_a_point_with_a_corrected_interval(folded):
    # by rate, fold and seed: fold means 1, 2 and 3 (first rate), one more for the second
    best, other = set_scores(folded, 0.5, 1.5, 1.5, 2.5, 2.5, 3.5, 1.5, 2.5, 2.6, 3.6, 3.4, 4.4)
    assert (best.values, best.mean) == ({"training.learning_rate": 0.1}, 2.0)
    assert best.standard_error == pytest.approx(math.sqrt(1 / 3 + 1 / 2))
    assert len(best.scores) == len(set(best.seeds)) == 6
    ((difference, p, verdict),) = folded.compare_with_best([best, other])
    assert (difference.value, difference.n, verdict) == (pytest.approx(1.0), 3, "worse")
    assert 0 < p < 0.05
    for row in folded.rows:
        row.scores, row.last_score = {"valid/loss": row.score, "valid/accuracy": 0.5}, row.score + 1
    estimates = folded.summarize_folds(best)
    assert (estimates["valid/loss"].value, estimates["last"].value) == (2.0, 3.0)
    assert math.isnan(estimates["valid/accuracy"].low)
    half_width = 4.302653 * math.sqrt(1 / 3 + 1 / 2)
    assert estimates["valid/loss"].high == pytest.approx(2 + half_width, rel=1e-5)
    text = " ".join(repr(SweepResult(folded)).split())
    assert "Means over 3 of 3 folds" in text
    assert "Folds share training examples, so they are not independent" in text
    points = SweepResult(folded).to_dict()["points"]
    assert points[0]["over_folds"]["valid/loss"]["value"] == 2.0


def test_an_interrupted_cross_validation_resumes_with_the_missing_folds(folded):
    first = folded.rows[0].trial.name
    runner = ScriptedRunner({first: [KeyboardInterrupt]}, workers=1)
    with pytest.raises(KeyboardInterrupt):
        run_sweep(folded, runner)
    again = open_sweep(folded.path)
    run_sweep(again, ScriptedRunner())
    assert again.unfinished == []
    assert len(again.rank_points()[0].scores) == 6


def test_a_confirmation_repeats_all_folds(folded):
    set_scores(folded, *range(12))
    assert len(folded.add_confirmation(2)) == 2 * 3 * 2
    for row in folded.rows:
        row.state, row.last_score = "finished", float(sum(map(ord, row.trial.name)) % 97)
    confirmation = folded.summarize_confirmation()
    assert [estimate.n for estimate in confirmation.estimates] == [3, 3]


@pytest.mark.parametrize("name", ["tiny.neural", "tiny.yaml"])
def test_folds_need_no_sweep_file(name, tmp_path):
    write_sweep(tmp_path, "experiment: tiny.neural\n")
    text = "task: supervised\nnetwork: tiny.neural\nvalidation_split: 0.3\n"
    (tmp_path / "tiny.yaml").write_text(text)
    settings, experiment, trials = read_sweep(tmp_path / name, folds=4)
    assert (settings.folds, experiment.name) == (4, name)
    assert [trial.point for trial in trials] == [{"fold": f"{fold}/4"} for fold in (1, 2, 3, 4)]


def test_folds_in_a_sweep_file_and_too_many_of_them(tmp_path):
    text = "experiment: tiny.neural\nfolds: 3\n"
    assert len(read_sweep(write_sweep(tmp_path, text))[2]) == 3
    assert len(read_sweep(tmp_path / "rates.yaml", folds=2)[2]) == 2
    with pytest.raises(TaskError, match="41 examples are too few for 50 folds"):
        read_sweep(write_sweep(tmp_path, text), folds=50)
    with pytest.raises(SettingsError, match="the grid has `fold` too"):
        read_sweep(write_sweep(tmp_path, text + "grid: {fold: [1/3]}\n"))

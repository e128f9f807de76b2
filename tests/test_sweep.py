"""Sweeps without processes: which trials there are, what is refused, and how the loop treats each ending."""

import json
import math

import pytest

from neural.cli import _trials
from neural.core.settings import SettingsError
from neural.sweep import TRIALS, Point, created, find_sweep, opened
from neural.sweeping import go
from neural.tasks.task import TaskError
from neural.tracking.run import Run
from neural.tracking.trouble import RunError
from neural.training.runner import Ended, Runner, last_words
from neural.trials import SweepSettings, fresh_trials, read_sweep, trials_of
from tests.sweeps import write_sweep

GRID = """experiment: tiny.neural
seeds: [0, 1]
grid: {training.learning_rate: [1e-3, 3e-3], training.batch_size: [8]}
set: [training.steps=5]
retries: 1
"""


class Scripted(Runner):
    """Writes each trial's run itself, and ends it as the test wants: a list of endings for a trial's name."""

    threads = 1

    def __init__(self, endings=None, workers=2):
        super().__init__(workers)
        self.endings, self.running, self.started, self.stopped = endings or {}, [], [], False

    @property
    def room(self):
        return len(self.running) < self.workers

    def start(self, job):
        self.started.append(job.name)
        self.running.append(job)

    def ended(self):
        assert len(self.running) <= self.workers
        job = self.running.pop(0)
        ending = self.endings.get(job.name, []).pop(0) if self.endings.get(job.name) else Ended("finished")
        if ending is KeyboardInterrupt:
            self.running.insert(0, job)
            raise KeyboardInterrupt
        old = job.run()
        new = {"settings": {"task": "supervised"}, "program": None}
        run = Run.reopen(old) if old else Run.create(job.folder, job.name, **new)
        run.log(4, {"valid/loss": len(job.name) / 10})
        run.log(5, {"valid/loss": len(job.name) / 10 + 1})
        run.finish("finished" if ending.state == "finished" else "failed", ending.reason)
        return [(job, ending)]

    def stop(self):
        self.stopped = True

    def __exit__(self, *_):
        pass


@pytest.fixture
def sweep(tmp_path):
    settings, experiment, trials = read_sweep(write_sweep(tmp_path, GRID))
    return created(tmp_path / "runs", "rates", settings, experiment, trials)


FIRST, SECOND = "learning_rate-0.001_batch_size-8_seed-0", "learning_rate-0.001_batch_size-8_seed-1"


def test_trials_are_every_seed_with_every_point_under_stable_names(sweep):
    names = [row.trial.name for row in sweep.rows]
    assert names[:3] == [FIRST, SECOND, "learning_rate-0.003_batch_size-8_seed-0"]
    assert len(names) == 4
    assert sweep.rows[1].trial.changes == (
        "training.steps=5", "training.learning_rate=0.001", "training.batch_size=8", "training.seed=1"
    )  # fmt: skip


def test_names_that_would_be_too_long_or_alike_are_numbers():
    long = SweepSettings(experiment="x", grid={"a.b": ("c" * 90, "d")})
    assert [one.name for one in trials_of(long)] == ["trial-0000_seed-0", "trial-0001_seed-0"]
    alike = SweepSettings(experiment="x", grid={"a.b": ("c d", "c-d")})
    assert len({one.name for one in trials_of(alike)}) == 2
    same_ends = SweepSettings(experiment="x", grid={"a.rate": (1,), "b.rate": (2,)})
    assert trials_of(same_ends)[0].name == "a.rate-1_b.rate-2_seed-0"


def test_every_mistake_of_every_trial_is_shown_at_its_line(tmp_path):
    path = write_sweep(tmp_path, """experiment: tiny.neural
grid:
  training.learning_rte: [1e-3]
  training.batch_size: [16, many]
set: [training.steps=none]
""")  # fmt: skip
    with pytest.raises(SettingsError) as wrong:
        read_sweep(path)
    text = str(wrong.value)
    assert text.count("error[") == 3, "once each, not once a trial"
    assert "rates.yaml:3:3" in text and "did you mean `learning_rate`?" in text
    assert "rates.yaml:4:29" in text and "`batch_size` must be a whole number" in text
    assert "rates.yaml:5:7" in text and "`steps` must be a whole number" in text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("experiment: tiny.neural\nseds: [1]\n", "did you mean `seeds`?"),
        ("experiment: tiny.neural\nseeds: []\n", "`seeds` must be a list of whole numbers, one or more"),
        ("experiment: tiny.neural\nseeds: [1, 1]\n", "a seed stands twice"),
        ("experiment: tiny.neural\ngrid: {training.seed: [1]}\n", "write them as `seeds: [0, 1, 2]`"),
        ("experiment: tiny.neural\ngrid: {training.steps: [5, 5]}\n", "a value of `training.steps` stands twice"),
        ("experiment: tiny.neural\ngrid: {training.steps: 5}\n", "`training.steps` must be a list"),
        ("experiment: tiny.neural\ngrid: {training.steps: []}\n", "`training.steps` must be a list of values, one"),
        ("grid: {}\n", "`experiment` is missing"),
        (f"experiment: tiny.neural\ngrid: {{training.steps: [1, 2, 3, 4]}}\nseeds: {[*range(2501)]}", "10,004 trials"),
    ],
)  # fmt: skip
def test_a_sweep_that_makes_no_sense_is_refused(tmp_path, text, said):
    with pytest.raises(SettingsError) as wrong:
        read_sweep(write_sweep(tmp_path, text))
    assert said in str(wrong.value)


def test_what_only_the_network_or_the_data_know_is_found_before_the_first_trial(tmp_path):
    path = write_sweep(tmp_path, "experiment: tiny.neural\ngrid: {training.optimizer: [AdamW, AdamQ]}\n")
    with pytest.raises(TaskError, match=r"AdamQ[^\0]*trial optimizer-AdamQ_seed-0"):
        read_sweep(path)
    path.write_text("experiment: nowhere.yaml\n")
    with pytest.raises(TaskError, match=r"there is no experiment .*nowhere\.yaml"):
        read_sweep(path)


def test_all_trials_run_and_the_table_says_so(sweep):
    seen = []
    go(sweep, Scripted(), lambda row: seen.append((row.trial.name, row.state)))
    assert [state for name, state in seen if name == FIRST] == ["running", "finished"]
    table = json.loads((sweep.path / TRIALS).read_text())
    assert [one["state"] for one in table["trials"]] == ["finished"] * 4
    assert table["writer"] is None
    assert all((sweep.path / one["run"] / "rows.sqlite").exists() for one in table["trials"])
    assert sweep.counts()["state"] == "finished"


def test_a_failed_trial_is_retried_in_its_run_and_then_named(sweep):
    runner = Scripted({FIRST: [Ended("failed", "one"), Ended("failed", "two")], SECOND: [Ended("failed", "one")]})
    go(sweep, runner)
    assert runner.started.count(FIRST) == 2, "once and one retry"
    again = opened(sweep.path)
    failed, recovered = again.rows[0], again.rows[1]
    assert (failed.state, failed.reason, failed.attempts) == ("failed", "two", 2)
    assert (recovered.state, recovered.reason, recovered.attempts) == ("finished", "", 2)
    assert len([one for one in sweep.path.iterdir() if one.is_dir()]) == 4, "no second run for a retried trial"
    assert again.counts() | {"time": 0} == {
        "state": "failed", "trials": 4, "finished": 3, "running": 0, "failed": 1, "stopped": 0, "waiting": 0, "time": 0
    }  # fmt: skip


def test_a_mistake_is_not_tried_again(sweep):
    runner = Scripted({FIRST: [Ended("refused", "error: no such file")]})
    go(sweep, runner)
    assert runner.started.count(FIRST) == 1
    assert sweep.rows[0].state == "failed"


def test_an_interrupted_sweep_goes_on_with_what_is_not_finished(sweep):
    runner = Scripted({SECOND: [KeyboardInterrupt]})
    with pytest.raises(KeyboardInterrupt):
        go(sweep, runner)
    assert runner.stopped
    again = opened(sweep.path)
    assert [row.state for row in again.rows] == ["finished", "stopped", "stopped", "waiting"]
    second = Scripted()
    go(again, second)
    assert FIRST not in second.started
    assert len(second.started) == 3
    assert again.unfinished == []


def test_after_a_kill_the_run_folders_are_the_truth(sweep):
    go(sweep, Scripted())
    table = json.loads((sweep.path / TRIALS).read_text())
    table["writer"] = {"state": "running", "pid": 2**22 + 1, "process": "gone", "host": "elsewhere"}
    table["trials"][0] |= {"state": "running", "score": None}
    table["trials"][1] |= {"state": "waiting", "score": None}
    (sweep.path / TRIALS).write_text(json.dumps(table))
    again = opened(sweep.path)
    assert again.rows[0].state == "stopped"
    runner = Scripted()
    go(again, runner)
    assert runner.started == []
    assert again.rows[0].score == len(FIRST) / 10


def test_a_sweep_that_runs_is_not_run_twice(sweep):
    class Nested(Scripted):
        def ended(self):
            with pytest.raises(RunError, match="is being written by"):
                go(opened(sweep.path), Scripted())
            return super().ended()

    go(sweep, Nested())


def test_points_have_the_mean_and_its_standard_error_best_first(sweep):
    go(sweep, Scripted())
    for row, score in zip(sweep.rows, (3.0, 5.0, 1.0, 2.0), strict=True):
        row.score = score
    best, other = sweep.points()
    assert best.values == {"training.learning_rate": 0.003, "training.batch_size": 8}
    assert (best.mean, best.error) == (1.5, pytest.approx(0.5))
    assert (other.mean, other.error) == (4.0, pytest.approx(1.0))
    assert [row.score for row in sweep.ranked()] == [1.0, 2.0, 3.0, 5.0]
    assert math.isnan(Point({}, (1.0,)).error)


def scored(sweep, *scores):
    """Its trials as finished, each with a score."""
    for row, score in zip(sweep.rows, scores, strict=True):
        row.state, row.score = "finished", score
    return sweep.points()


@pytest.mark.parametrize(
    ("scores", "verdict"),
    [
        ((3.0, 5.0, 1.0, 3.01), "worse"),
        ((1.1, 2.0, 1.0, 2.1), "undecided"),
        ((3.0, math.nan, 1.0, 2.0), "undecided"),
    ],
)
def test_points_are_compared_by_pairs_of_seeds(sweep, scores, verdict):
    ((difference, p, decided),) = sweep.against_best(scored(sweep, *scores))
    assert decided == verdict
    assert (p <= 0.05) == (verdict == "worse")
    assert difference.seeds == (2 if math.isfinite(sum(scores)) else 1)
    assert f" {verdict} " in _trials.said(sweep)
    (first, second) = json.loads(_trials.said(sweep, as_json=True))["points"]
    assert (first["against_best"], second["against_best"]["verdict"]) == (None, verdict)


def test_the_last_validation_stands_beside_the_best(sweep):
    go(sweep, Scripted())
    assert sweep.rows[0].last == sweep.rows[0].score + 1
    assert opened(sweep.path).rows[0].last == sweep.rows[0].last
    best = sweep.points()[0]
    assert best.last_mean == pytest.approx(best.mean + 1)
    (head,) = [line for line in _trials.said(sweep).splitlines() if "against the best" in line]
    assert head.split()[2:5] == ["valid/loss", "last", "seeds"]


def test_the_best_is_said_to_be_selected_and_by_how_much_that_flatters(sweep):
    points = scored(sweep, 3.0, 5.0, 1.0, 2.0)
    selection = sweep.selection(points)
    assert (selection.settings, selection.seeds) == (2, 2)
    # differences of 2 and 3: variance 0.5, half of it per score, over the median of chi² with 1 df
    assert selection.noise == pytest.approx(math.sqrt(0.25 / 0.4549), rel=1e-3)
    assert selection.optimism == pytest.approx(selection.noise * 0.5642 / math.sqrt(2), rel=1e-3)
    text = " ".join(_trials.said(sweep).split())
    assert "selected among 2" in text
    assert "Were all 2 equal, the selected mean would lie about 0.2957 below the truth (0.4 SD of a seed)" in text
    data = json.loads(_trials.said(sweep, as_json=True))
    assert data["selection"]["selected_among"] == 2
    assert data["confirmation"] is None


def test_of_one_seed_nobody_knows_by_how_much_a_selection_flatters(tmp_path):
    text = GRID.replace("seeds: [0, 1]", "seeds: [0]")
    settings, experiment, trials = read_sweep(write_sweep(tmp_path, text))
    sweep = created(tmp_path / "runs", "rates", settings, experiment, trials)
    scored(sweep, 1.0, 2.0)
    text = _trials.said(sweep)
    assert "selected among 2 by its mean over 1 seed" in text
    assert "equal" not in text


def confirmed(sweep, count=3):
    """A finished sweep whose second setting is the best, and what confirms it."""
    go(sweep, Scripted())
    for row, score in zip(sweep.rows, (3.0, 5.0, 1.0, 2.0), strict=True):
        row.score = score
    return sweep.add_confirmation(count)


def test_the_best_and_the_runner_up_are_trained_with_fresh_seeds(sweep):
    added = confirmed(sweep)
    assert [row.trial.seed for row in added] == [2, 3, 4, 2, 3, 4]
    assert [row.trial.point["training.learning_rate"] for row in added] == [0.003] * 3 + [0.001] * 3
    assert added[0].trial.name == "confirm_learning_rate-0.003_batch_size-8_seed-2"
    assert added[0].trial.changes == (
        "training.steps=5",
        "training.learning_rate=0.003",
        "training.batch_size=8",
        "training.seed=2",
    )
    assert sweep.confirmation() is None, "nothing is said before they have finished"
    go(sweep, Scripted())
    assert all(row.done for row in opened(sweep.path).rows)


def test_what_confirms_a_setting_does_not_select_it(sweep):
    added = confirmed(sweep)
    for row, last in zip(added, (1.5, 1.6, 1.4, 1.1, 1.2, 1.0), strict=True):
        row.state, row.score, row.last = "finished", 0.0, last
    best, other = sweep.points()
    assert (best.mean, other.mean) == (1.5, 4.0)
    confirmation = sweep.confirmation()
    assert [point.values["training.learning_rate"] for point in confirmation.points] == [0.003, 0.001]
    assert [round(estimate.value, 3) for estimate in confirmation.estimates] == [1.5, 1.1], "the last validations"
    assert confirmation.comparison.difference.value == pytest.approx(-0.4)
    assert confirmation.seeds == (2, 3, 4)
    text = _trials.said(sweep)
    assert "confirmed with 3 seeds that selected nothing, at the last validation" in text
    data = json.loads(_trials.said(sweep, as_json=True))["confirmation"]
    assert data["score"] == "last validation"
    assert data["points"][0]["value"] == pytest.approx(1.5)


def test_a_confirmation_is_not_repeated_until_it_pleases(sweep):
    confirmed(sweep)
    assert sweep.add_confirmation(3) == []
    with pytest.raises(RunError, match="confirmed with 3 fresh seeds already"):
        sweep.add_confirmation(5)


def test_one_setting_alone_is_not_selected(tmp_path):
    settings, experiment, trials = read_sweep(write_sweep(tmp_path, "experiment: tiny.neural\nseeds: [0, 1]\n"))
    sweep = created(tmp_path / "runs", "rates", settings, experiment, trials)
    go(sweep, Scripted())
    assert "selected" not in _trials.said(sweep)
    with pytest.raises(RunError, match="nothing to confirm"):
        sweep.add_confirmation(3)


def test_long_names_of_a_confirmation_are_numbers():
    trials = trials_of(SweepSettings(experiment="x", grid={"a": ("b" * 70, "c" * 70)}))
    repeated = fresh_trials(trials, [7, 8])
    assert [trial.name for trial in repeated] == [f"confirm-000{i}_seed-{7 + i % 2}" for i in range(4)]
    assert repeated[1].changes == (trials[0].changes[0], "training.seed=8")


def test_a_table_of_the_version_before_is_read(sweep):
    table = json.loads((sweep.path / TRIALS).read_text())
    table["version"] = 1
    for row in table["trials"]:
        del row["last"], row["confirms"]
    (sweep.path / TRIALS).write_text(json.dumps(table))
    assert [row.confirms for row in opened(sweep.path).rows] == [False] * 4


def test_splits_in_the_grid_are_repetitions_of_a_point(tmp_path):
    text = GRID.replace("training.batch_size: [8]", "split_seed: [0, 1]")
    settings, experiment, trials = read_sweep(write_sweep(tmp_path, text))
    sweep = created(tmp_path / "runs", "splits", settings, experiment, trials)
    best, other = scored(sweep, *(1.0, 2.0, 11.0, 12.0), *(1.1, 2.1, 11.1, 12.2))
    assert best.values == {"training.learning_rate": 0.001}
    assert (len(best.scores), len(set(best.seeds))) == (4, 4)
    ((difference, _, verdict),) = sweep.against_best([best, other])
    assert (difference.seeds, verdict) == (4, "worse")
    added = sweep.add_confirmation(2)
    assert [(row.trial.seed, row.trial.point["split_seed"]) for row in added[:4]] == [(2, 0), (3, 0), (2, 1), (3, 1)]


def test_a_failed_trial_counts_in_no_mean(sweep):
    go(sweep, Scripted({FIRST: [Ended("failed", "x")] * 2}))
    assert sorted(len(point.scores) for point in sweep.points()) == [1, 2]
    assert sweep.ranked()[-1].trial.name == FIRST


def test_a_damaged_or_newer_table_is_a_message(sweep):
    file = sweep.path / TRIALS
    table = json.loads(file.read_text())
    for text, said in ((json.dumps(table | {"version": 99}), "newer version"), ("{", "damaged"), ("{}", "damaged")):
        file.write_text(text)
        with pytest.raises(RunError, match=said):
            opened(sweep.path)


def test_a_sweep_is_found_by_path_part_or_as_the_newest(sweep):
    root = sweep.path.parent
    assert find_sweep(None, root) == find_sweep("rates", root) == sweep.path
    assert find_sweep(str(sweep.path), root) == sweep.path
    with pytest.raises(RunError, match="there is no sweep `x`"):
        find_sweep("x", root)


def test_a_read_only_folder_is_a_message_and_leaves_nothing(tmp_path, sweep):
    (tmp_path / "file").write_text("")
    settings, experiment, trials = read_sweep(tmp_path / "rates.yaml")
    with pytest.raises(RunError, match="no sweep can be created in"):
        created(tmp_path / "file" / "runs", "rates", settings, experiment, trials)


def test_last_words_are_the_last_error_of_the_last_attempt(tmp_path):
    file = tmp_path / "x.log"
    file.write_text("==> now begins\nerror: old\n==> later goes on\nnoise\n")
    assert last_words(file) == "noise"
    file.write_text("==> now begins\nerror[E1]: bad\n  --> x:1:1\n   = help: y\n")
    assert last_words(file) == "error[E1]: bad"
    assert last_words(tmp_path / "none") == ""

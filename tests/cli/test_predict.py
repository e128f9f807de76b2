"""`neural predict`, as a user types it."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import neural
from neural.cli.main import main
from tests.cli.finished_runs import PROGRAM
from tests.segmentation_runs import MODEL, write_run
from tests.written_runs import CHARACTERS
from tests.written_runs import write_run as write_language_model

SONG = "river road night\nnight window road\n\ncarry home\nsing again\n"


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("predict") / "runs", labels=True)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    random = np.random.default_rng(0)
    x = random.normal(size=(30, 5, 6)).astype(np.float32)
    words = np.array(["ash", "birch", "cedar"])[random.integers(0, 3, 30)]
    rows = [",".join([*(f"{one:.6f}" for one in row.ravel()), word]) for row, word in zip(x, words, strict=True)]
    (folder / "trees.csv").write_text("\n".join(rows))
    return neural.fit(PROGRAM, folder / "trees.csv", {"training": {"steps": 2}}, runs=folder / "runs"), x, folder


def typed(*words, text=None):
    return CliRunner().invoke(main, ["predict", *map(str, words)], input=text)


def test_every_element_has_its_label_and_its_probability(labelled, tmp_path):
    (tmp_path / "song.txt").write_text(SONG)
    said = json.loads(typed(labelled, tmp_path / "song.txt", "--json").stdout)
    assert said["elements"] == ["river road night", "night window road", "carry home", "sing again"]
    assert said["probability"][0] == 0
    likely = np.array(list(said["label_probabilities"].values()))
    assert likely.sum(axis=0) == pytest.approx(1, abs=1e-5)
    names = list(said["label_probabilities"])
    assert set(names) == {"verse", "chorus"}
    assert said["labels"] == [names[one] for one in likely.argmax(axis=0)]
    assert said["boundaries"] == [at for at, p in enumerate(said["probability"]) if p > said["threshold"]]
    shown = typed(labelled, "-", text=SONG)
    assert shown.stdout.startswith("standard input  4 elements, ")
    assert f"{said['labels'][0]}" in shown.stdout.splitlines()[1]


def test_documents_need_no_truth(labelled, tmp_path):
    rows = [{"title": "one", "lines": ["river road", "sing"]}, {"lines": ["home"], "labels": ["nonsense"]}]
    (tmp_path / "new.jsonl").write_text("\n".join(map(json.dumps, rows)))
    shown = typed(labelled, tmp_path / "new.jsonl", "--json")
    assert shown.exit_code == 0, shown.output
    assert [len(json.loads(one)["elements"]) for one in shown.stdout.splitlines()] == [2, 1]
    (tmp_path / "new.jsonl").write_text('{"lines": ["a"]}\n{"line": ["a"]}')
    shown = typed(labelled, tmp_path / "new.jsonl")
    assert shown.exit_code == 2
    assert "new.jsonl, line 2: `lines` must be a list of texts; did you mean" in shown.stderr


def test_an_old_run_without_attention_and_with_fewer_settings_still_predicts(tmp_path):
    path = write_run(tmp_path / "runs", labels=True, model=MODEL | {"attention_enabled": False})
    settings = json.loads((path / "settings.json").read_text())
    for later in ("told_by", "compose", "longest", "threshold", "split_seed", "preset"):
        del settings[later]
    for later in ("head_diversity_lambda", "boundary_lambda", "class_weights"):
        del settings["training"][later]
    (path / "settings.json").write_text(json.dumps(settings))
    (tmp_path / "songs.jsonl").unlink()
    shown = typed(path, "-", "--json", text=SONG)
    assert shown.exit_code == 0, shown.output
    assert len(json.loads(shown.stdout)["labels"]) == 4


def test_rows_get_classes_by_name_with_probabilities(fitted):
    done, x, folder = fitted
    with neural.modules.late.torch.no_grad():
        expected = done.model(neural.modules.late.torch.from_numpy(x)).numpy()
    np.savez(folder / "rows.npz", x=x)
    np.save(folder / "rows.npy", x)
    (folder / "rows.csv").write_text("\n".join(",".join(f"{one:.6f}" for one in row.ravel()) for row in x))
    for file in ("rows.npz", "rows.npy", "rows.csv", "trees.csv"):
        shown = typed(done.run.path, folder / file, "--json")
        assert shown.exit_code == 0, shown.output
        said = [json.loads(one) for one in shown.stdout.splitlines()]
        assert np.array([one["probabilities"] for one in said]) == pytest.approx(expected, abs=1e-4), file
        assert [one["name"] for one in said] == [("ash", "birch", "cedar")[row.argmax()] for row in expected]
    lines = typed(done.run.path, folder / "rows.npz").stdout.splitlines()
    assert len(lines) == 31
    assert lines[1].split()[1] in ("ash", "birch", "cedar")


def test_rows_that_do_not_fit_are_refused(fitted, tmp_path):
    done, x, _ = fitted
    np.savez(tmp_path / "small.npz", x=x[:, :, :4])
    np.savez(tmp_path / "named.npz", a=x, b=x)
    (tmp_path / "bad.csv").write_text("1,2,3\n1,x,3\n")
    for file, says in (("small.npz", "takes"), ("named.npz", "there is no array `x`"), ("bad.csv", "is not a number"),
                       ("gone.csv", "there is no data")):  # fmt: skip
        shown = typed(done.run.path, tmp_path / file)
        assert shown.exit_code == 2, file
        assert says in shown.stderr, shown.stderr


def test_a_language_model_writes_instead(tmp_path):
    path = write_language_model(tmp_path, vocabulary=list(CHARACTERS))
    shown = typed(path, "-")
    assert shown.exit_code == 2
    assert "neural generate" in shown.stderr

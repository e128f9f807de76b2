"""Every run in a folder in a line; nothing outside of it."""

import json
import os

import pytest

from neural.tracking.run import Run
from neural.tracking.trouble import RunError
from neural.views.board.listing import Listing
from neural.views.board.source import NoSuchRun, Shelf
from tests.views.board.boards import Written, written


def by_name(root):
    return {one["id"]: one for one in Listing(root).briefs()}


def test_a_run_in_a_line(tmp_path):
    made = written(tmp_path, seed=5)
    (one,) = Listing(tmp_path).briefs()
    assert one["id"] == one["name"] == made.name
    assert (one["kind"], one["state"], one["step"], one["steps"], one["seed"]) == ("run", "finished", 100, 1000, 5)
    assert one["best"] == {"name": "valid/loss", "score": 1.5}


def test_a_run_that_is_written_is_seen_to_go_on_and_to_end(tmp_path):
    made, listing = Written(tmp_path), Listing(tmp_path)
    assert listing.briefs()[0]["state"] == "running"
    made.look(50)
    assert listing.briefs()[0]["step"] == 50
    made.run.finish("stopped", "enough")
    assert (listing.briefs()[0]["state"], listing.briefs()[0]["message"]) == ("stopped", "enough")


def test_a_run_whose_process_is_gone_is_lost_although_no_file_changes(tmp_path):
    made, listing = Written(tmp_path), Listing(tmp_path)
    assert listing.briefs()[0]["state"] == "running"
    status = made.path / "status.json"
    said, when = json.loads(status.read_text()), status.stat()
    made.run.close()
    status.write_text(json.dumps({**said, "process": "another boot:1"}))
    os.utime(status, ns=(when.st_atime_ns, when.st_mtime_ns))
    assert listing.briefs()[0]["state"] == "lost"


def test_runs_of_a_sweep_are_listed_below_its_name(tmp_path):
    (tmp_path / "rates").mkdir()
    (tmp_path / "rates" / "trials.json").write_text("{}")
    made = written(tmp_path / "rates", looks=(0,))
    assert list(by_name(tmp_path)) == [f"rates/{made.name}"]
    assert by_name(tmp_path)[f"rates/{made.name}"]["sweep"] == "rates"


def test_what_was_written_about_the_runs_of_a_sweep_is_no_run(tmp_path):
    (tmp_path / "rates" / "dynamics").mkdir(parents=True)
    (tmp_path / "rates" / "trials.json").write_text("{}")
    made = written(tmp_path / "rates", looks=(0,))
    assert list(by_name(tmp_path)) == [f"rates/{made.name}"]
    assert Shelf(Listing(tmp_path))[f"rates/{made.name}"].path == made.path


def test_a_folder_that_is_a_run_is_the_one_run(tmp_path):
    made = written(tmp_path, looks=(0,))
    assert list(by_name(made.path)) == [made.name]


def broken(root, name, **files):
    """A run folder in which some files are not what they should be."""
    path = written(root, name, looks=(0,)).path
    for file, text in files.items():
        (path / file.replace("__", ".")).write_bytes(text)
    return path.name


@pytest.mark.parametrize("files", [
    {"rows__sqlite": b"no database"}, {"settings__json": b"[1, 2"}, {"settings__json": b"[1, 2]"},
    {"settings__json": b"\xff\xfe"},
], ids=str)  # fmt: skip
def test_a_malformed_folder_is_shown_and_the_others_with_it(tmp_path, files):
    name, well = broken(tmp_path, "bad", **files), written(tmp_path, "well", looks=(0,)).name
    found = by_name(tmp_path)
    assert found[well]["state"] == "finished"
    if "rows__sqlite" not in files:   # the rows are read when somebody looks at the run
        assert (found[name]["kind"], found[name]["state"]) == ("broken", "broken")
        assert found[name]["message"]
    else:
        with pytest.raises(RunError, match="damaged"):
            Shelf(Listing(tmp_path))[name]


def test_a_status_that_says_what_no_run_says_is_that_of_a_lost_one(tmp_path):
    name = broken(tmp_path, "bad", status__json=b'{"state": "finished", "facts": 7}')
    found = by_name(tmp_path)[name]
    assert (found["kind"], found["state"], found["message"]) == ("run", "lost", "its status cannot be read")


def test_a_folder_without_rows_is_no_run_and_says_so(tmp_path):
    (tmp_path / "notes").mkdir()
    assert "no rows.sqlite" in by_name(tmp_path)["notes"]["message"]


def test_hidden_folders_and_files_are_not_listed(tmp_path):
    (tmp_path / ".new-17").mkdir()
    (tmp_path / "readme.txt").write_text("")
    assert by_name(tmp_path) == {}


def test_a_link_out_of_the_folder_is_not_followed(tmp_path):
    outside, root = tmp_path / "outside", tmp_path / "runs"
    secret = written(outside, "secret", looks=(0,))
    root.mkdir()
    (root / "link").symlink_to(secret.path)
    assert by_name(root)["link"]["kind"] == "broken"
    assert "not followed" in by_name(root)["link"]["message"]
    with pytest.raises(RunError, match="not followed"):
        Shelf(Listing(root))["link"]


@pytest.mark.parametrize("file", ["program.neural", "settings.json", "rows.sqlite", "checkpoints/step-1.json"])
def test_a_run_with_a_link_to_the_outside_in_it_is_not_opened(tmp_path, file):
    (tmp_path / "secret").write_text("{}")
    root = tmp_path / "runs"
    made = written(root, looks=(0,))
    (made.path / file).unlink(missing_ok=True)
    (made.path / file).symlink_to(tmp_path / "secret")
    assert by_name(root)[made.name]["kind"] == "broken"
    with pytest.raises(RunError, match="not followed"):
        Shelf(Listing(root))[made.name]


def test_a_link_that_stays_inside_is_followed(tmp_path):
    made = written(tmp_path, looks=(0,))
    (tmp_path / "newest").symlink_to(made.path)
    assert by_name(tmp_path)["newest"]["state"] == "finished"


@pytest.mark.parametrize(
    "name", ["..", ".", "", "../outside", "/etc", "x/../../outside", "runs/../..", "\0", "a" * 999], ids=ascii
)
def test_a_name_is_looked_up_and_never_made_into_a_path(tmp_path, name):
    root = tmp_path / "runs"
    written(root, looks=(0,))
    written(tmp_path / "outside", looks=(0,))
    with pytest.raises(NoSuchRun):
        Shelf(Listing(root))[name]


def test_a_name_that_is_no_text_can_be_shown_and_found(tmp_path):
    made = written(tmp_path, looks=(0,))
    made.path.rename(tmp_path / os.fsdecode(b"\xff\xfe"))
    (one,) = Listing(tmp_path).briefs()
    one["id"].encode()
    assert Shelf(Listing(tmp_path))[one["id"]].run.status.state == "finished"


def test_a_run_is_opened_once_for_all_and_again_when_another_takes_its_name(tmp_path):
    made = written(tmp_path, looks=(0,))
    shelf = Shelf(Listing(tmp_path))
    first = shelf[made.name]
    assert shelf[made.name] is first
    other = written(tmp_path / "aside", looks=(0, 50))
    made.path.rename(tmp_path / ".gone")
    other.path.rename(made.path)
    assert shelf[made.name].run.map_steps() == [0, 50]
    assert isinstance(first.run, Run)


def test_a_link_that_leads_to_itself_hides_no_run(tmp_path):
    made = written(tmp_path, looks=(0,))
    (tmp_path / "round").symlink_to("round")
    (made.path / "round").symlink_to("round")
    assert list(by_name(tmp_path)) == [made.name]
    assert Shelf(Listing(tmp_path))[made.name].path == made.path

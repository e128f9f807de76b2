"""`neural new`, as a user types it."""

from click.testing import CliRunner

from neural.cli.main import main


def test_the_end_says_what_to_type_next(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["new", "kindling", "--into", "deep/er"])
    assert done.exit_code == 0, done.output
    _, _, steps = done.output.partition("next\n")
    assert [line.split("  ")[1] for line in steps.splitlines()] == [
        "cd deep/er/kindling", 'pip install -e ".[dev]"', "neural check kindling.neural", "pytest",
        "neural train experiment.yaml",
    ]  # fmt: skip
    readme = (tmp_path / "deep" / "er" / "kindling" / "README.md").read_text(encoding="utf-8")
    assert all(command.split("  ")[1] in readme for command in steps.splitlines()[1:])
    assert all((tmp_path / "deep/er/kindling" / line.split()[0]).is_file() for line in done.output.splitlines()[1:6])


def test_a_mistake_is_a_message_and_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for arguments in (["Kind ling"], ["torch"], ["glow", "--attention", "self"], ["glow", "--into", "glow.txt/x"]):
        (tmp_path / "glow.txt").write_text("")
        done = CliRunner().invoke(main, ["new", *arguments])
        assert done.exit_code == 2, done.output
        assert done.output.startswith("error: ")
    assert [path.name for path in tmp_path.iterdir()] == ["glow.txt"]

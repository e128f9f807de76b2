"""`neural new`, as a user types it."""

from click.testing import CliRunner

from neural.cli.main import main


def test_the_next_commands_are_printed_at_the_end(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["new", "kindling", "--into", "deep/er"])
    assert result.exit_code == 0, result.output
    _, _, steps = result.output.partition("next\n")
    assert [line.split("  ")[1] for line in steps.splitlines()] == [
        "cd deep/er/kindling",
        'pip install -e ".[dev]"',
        "neural check kindling.neural",
        "pytest",
        "neural train experiment.yaml",
    ]
    readme = (tmp_path / "deep" / "er" / "kindling" / "README.md").read_text(encoding="utf-8")
    assert all(command.split("  ")[1] in readme for command in steps.splitlines()[1:])
    assert all(
        (tmp_path / "deep/er/kindling" / line.split()[0]).is_file()
        for line in result.output.splitlines()[1:6]
    )


def test_an_error_is_a_message_and_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for arguments in (
        ["Kind ling"],
        ["torch"],
        ["glow", "--attention", "self"],
        ["glow", "--into", "glow.txt/x"],
    ):
        (tmp_path / "glow.txt").write_text("")
        result = CliRunner().invoke(main, ["new", *arguments])
        assert result.exit_code == 2, result.output
        assert result.output.startswith("error: ")
    assert [path.name for path in tmp_path.iterdir()] == ["glow.txt"]

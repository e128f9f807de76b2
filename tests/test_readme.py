"""The commands and outputs of the README are correct; tests/test_links.py checks its links."""

import re
import shutil
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from torch import nn

from neural.cli.main import main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
COMMANDS = sorted(set(re.findall(r"`neural ([^`…]+)`", README)))
COMMANDS_WITH_PLACEHOLDER = sorted(set(re.findall(r"`neural (\w+)[^`]*…", README)))
"""Commands that need a file or a run of the reader; tests/cli runs each of them."""


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_readme_runs(command, monkeypatch):
    monkeypatch.chdir(ROOT)
    done = CliRunner().invoke(main, command.split())
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("verb", COMMANDS_WITH_PLACEHOLDER)
def test_help_of_a_command_with_a_placeholder_has_an_example(verb):
    done = CliRunner().invoke(main, [verb, "--help"])
    assert done.exit_code == 0
    assert f"$ neural {verb} " in done.output


def test_the_readme_has_commands():
    assert len(COMMANDS) >= 5


def test_lines_have_at_most_120_characters():
    assert max(map(len, README.splitlines())) <= 120


def test_the_table_in_the_readme_is_the_output_of_check(monkeypatch):
    monkeypatch.chdir(ROOT)
    shown = re.search(r"\$ neural (check \S+)\n(.*?)```", README, re.S)
    printed = CliRunner().invoke(main, shown[1].split()).stdout
    assert shown[2].strip() == printed.strip()


def test_the_program_in_the_readme_is_the_example():
    body = (ROOT / "examples/tiny.neural").read_text()
    assert body[body.index("network Tiny") :] in README


def test_the_error_in_the_readme_is_the_output_of_check():
    message = re.search(r"```\n(error\[E0203\].*?)```", README, re.S)[1]
    line = re.search(r" 5 \| (.*)", message)[1]
    text = f"network Bert {{\n  input: (128, 512)\n  layers:\n\n{line}\n}}\n"
    done = CliRunner().invoke(main, ["check", "-"], input=text)
    assert message.replace("bert.neural", "<stdin>").strip() in done.output


def test_the_session_of_the_readme_trains_and_reports(tmp_path, monkeypatch):
    session = re.search(r"```\n(neural train .*?)```", README, re.S)[1]
    commands = [line.partition("  #")[0].split()[1:] for line in session.splitlines()]
    assert [words[0] for words in commands] == ["train", "report"]
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    for words in commands:
        fewer_steps = ["--set", "training.steps=4"] if words[0] == "train" else []
        done = CliRunner().invoke(main, [*words, *fewer_steps])
        assert done.exit_code == 0, done.output
    assert (tmp_path / "report.html").is_file()


def test_the_python_of_the_readme_runs(tmp_path, monkeypatch):
    code = re.search(r"```python\n(.*?)```", README, re.S)[1]
    program = (ROOT / "examples/tiny.neural").read_text()
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples/tiny.neural").write_text(program)
    (tmp_path / "net.neural").write_text(program.replace("(100, 64)", "(6, 64)"))
    monkeypatch.chdir(tmp_path)
    random = torch.Generator().manual_seed(0)
    names = {
        name: torch.randn(24, 6, 64, generator=random).numpy() for name in ("X", "X_new", "X_test")
    }
    names |= {name: torch.arange(24).numpy() % 10 for name in ("y", "y_test")}
    names |= dict(zip("qkv", torch.randn(3, 2, 4, 10, 8, generator=random), strict=True))
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    names["any_torch_model"] = nn.TransformerEncoder(layer, 2).eval()
    names["inputs"] = torch.randn(2, 5, 32, generator=random)
    exec(compile(code.replace("epochs=20", "epochs=1"), "README.md", "exec"), names)
    assert (tmp_path / "page.html").is_file()
    assert len(names["capture"].layer_names()) == 2

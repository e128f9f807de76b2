"""Errors that a user can correct are one family, which the command line catches in one place."""

import ast
import errno
from pathlib import Path

from click.testing import CliRunner

from neural.cli.main import main
from neural.core.errors import (
    CommandFailedError,
    NeuralError,
    TaskError,
    find_user_error,
    format_error,
)

SOURCE = Path(__file__).parents[2] / "src" / "neural"


def read_error_classes() -> dict[str, list[str]]:
    """Name of every exception class of the package → names of its bases."""
    return {
        node.name: [ast.unparse(base) for base in node.bases]
        for file in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
        and any(ast.unparse(base).endswith(("Error", "Exception")) for base in node.bases)
    }


def test_every_error_is_a_neural_error() -> None:
    classes = read_error_classes()

    def is_neural_error(name: str) -> bool:
        return name == "NeuralError" or any(map(is_neural_error, classes.get(name, [])))

    assert len(classes) > 30
    # a signal that the parser raises to itself is no error
    assert [name for name in classes if not is_neural_error(name)] == ["RecoverySignal"]


def test_only_the_entry_point_turns_errors_into_exit_codes() -> None:
    catchers = [
        file.relative_to(SOURCE).as_posix()
        for file in (SOURCE / "cli").glob("*.py")
        if "find_user_error" in file.read_text(encoding="utf-8")
    ]
    assert catchers == ["cli/main.py"]


def test_a_hint_ends_the_message() -> None:
    error = NeuralError("there is no run", hint="`neural train` makes one")
    assert str(error) == "there is no run; `neural train` makes one"
    assert error.hint == "`neural train` makes one"
    assert (NeuralError("x").exit_code, CommandFailedError("x").exit_code) == (2, 1)


def test_errors_of_libraries_that_a_user_can_correct() -> None:
    too_long = OSError(errno.ENAMETOOLONG, "too long", "x" * 200)
    assert str(find_user_error(too_long)) == "x" * 60 + "…: the file name is too long"
    assert str(find_user_error(MemoryError())) == "there is not enough memory for it"
    assert find_user_error(ValueError("a bug")) is None
    task_error = TaskError("no data")
    assert find_user_error(task_error) is task_error


def test_messages_cannot_control_the_terminal() -> None:
    assert "\x1b" not in format_error(NeuralError("a\x1b[2J"))
    assert format_error(NeuralError("error[E0203]: x")) == "error[E0203]: x"


def test_the_command_line_prints_the_message_and_exits_with_the_code(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["show", "nothing", "--runs", str(tmp_path)])
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")

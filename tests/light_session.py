"""A first session in a process that cannot import the packages of the extras.

    python tests/light_session.py FOLDER

The packages are hidden from every finder, as if they were not installed. Prints JSON: exit code,
output and traceback of each command, the runs that the board lists, and which hidden packages were
imported all the same.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path

HIDDEN_PACKAGES = ("scipy", "sklearn", "matplotlib", "PIL", "joblib", "fontTools", "contourpy")
PROGRAM = """network Digits {
  input: (8, 8, 1)
  layers:
    Conv2D(8, kernel_size=4, strides=4)
    Reshape((-1, 8))
    TransformerEncoder(num_heads=2, d_model=8, dff=16) * 2
    GlobalAveragePooling1D()
    Output(10, activation="softmax")
  loss: "sparse_categorical_crossentropy"
  optimizer: Adam(learning_rate=0.003)
  train {
    steps: 12
    batch_size: 16
    data: "digits"
  }
}
"""
TEXT = "Cats purr. Cats sleep all day. A cat hunts mice. Stars burn hydrogen. The sun is a star. "
COMMANDS = (
    "check net.neural",
    "train net.neural --quiet",
    "runs",
    "show",
    "top --once",
    "analyze",
    "ablate --examples 32",
    "evaluate",
    "predict Digits digits",
    "report",
    "report --plots plots",
    "segment text.txt",
    "debug net.neural",
    "doctor",
    "layers",
    "figure",
    "figure --help",
    "dynamics --theory C=3 m=10",
    "calibrate songs/run",
    "export --to torch",
)


class HidingFinder:
    """Asks another finder, but not for hidden packages."""

    def __init__(self, finder: object) -> None:
        self.finder = finder

    def find_spec(self, name: str, path: object = None, target: object = None) -> object:
        if name.partition(".")[0] in HIDDEN_PACKAGES:
            return None
        return self.finder.find_spec(name, path, target)

    def __getattr__(self, name: str) -> object:
        return getattr(self.finder, name)


def main() -> None:
    """Run the commands in the folder."""
    root, folder = Path(__file__).parents[1], Path(sys.argv[1])
    sys.meta_path[:] = map(HidingFinder, sys.meta_path)
    sys.path.insert(0, str(root))
    os.chdir(folder)
    from click.testing import CliRunner

    from neural.cli.main import main as command
    from tests.segmentation_runs import write_run

    (folder / "net.neural").write_text(PROGRAM)
    (folder / "text.txt").write_text(TEXT * 4)
    songs = write_run(folder / "songs", labels=True, validation_split=0.3, confidence=9.0)
    results = {}
    for line in (*COMMANDS, *(f"{name} --help" for name in command.list_commands(None))):
        words = line.replace("songs/run", str(songs)).split()
        result = CliRunner().invoke(command, words)
        is_bug = result.exception is not None and not isinstance(result.exception, SystemExit)
        results[line] = {
            "exit_code": result.exit_code,
            "output": result.output,
            "traceback": "".join(traceback.format_exception(result.exception)) if is_bug else "",
        }
    from tests.board.boards import create_client

    with create_client(folder / "runs") as client:
        board = [run["name"] for run in client.get("/api/runs").json()["runs"]]
    imported = {name.partition(".")[0] for name in sys.modules} & set(HIDDEN_PACKAGES)
    print(json.dumps({"commands": results, "board": board, "imported": sorted(imported)}))


if __name__ == "__main__":
    main()

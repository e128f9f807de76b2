"""Small runs to test with."""

from pathlib import Path

from neural.runs.run import Run


def create_run(root: Path, name: str = "small") -> Run:
    return Run.create(
        root,
        name,
        settings={"training": {"steps": 7}},
        program="network A {}\n",
        environment={"a": 1},
    )

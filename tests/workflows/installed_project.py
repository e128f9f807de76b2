"""A project of `neural new` whose entry points are found as if it were installed."""

import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from neural.nn.attention import registry as attention


@contextmanager
def use_installed_project(project: Path) -> Iterator[None]:
    """Put the metadata and the source of a project on the path, and work in its folder."""
    metadata = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    name = metadata["name"]
    info = project.parent / "installed" / f"{name}-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
    groups = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in lines.items())
        for group, lines in metadata["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n".join(groups))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(project / "src"))
        patch.syspath_prepend(str(info.parent))
        patch.setattr(attention, "_entry_point_cache", None)
        patch.setattr(attention, "_loaded", dict(attention._loaded))
        patch.chdir(project)
        yield
    for module in [module for module in sys.modules if module.partition(".")[0] == name]:
        del sys.modules[module]

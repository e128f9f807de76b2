"""Intervals, tests and quantiles are computed in `stats` and nowhere else, by an import when needed."""

import ast
import re
from pathlib import Path

import pytest

import neural

SOURCE = Path(neural.__file__).parent
TREES = {
    path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text("utf-8"))
    for path in sorted(SOURCE.rglob("*.py"))
}
NODES_OUTSIDE = {
    name: list(ast.walk(tree)) for name, tree in TREES.items() if not name.startswith("stats/")
}
DISTRIBUTIONS = re.compile(
    r"stdtr|ndtr|gammainc|chdt|fdtr|bdtr|btdt|betainc|pdtr|kolmog|smirnov|erf"
)
"""Distribution functions of scipy.special, by parts of their names."""
NORMAL_QUANTILES = {1.645, 1.96, 2.576}
QUANTILES = {"quantile", "nanquantile", "percentile", "nanpercentile"}
DESCRIPTIONS = {
    "workflows/compare.py": "the upper end of a plot's axis",
    "tasks/segmentation/line_wrapping.py": "the width at which the lines of a text are wrapped",
}
"""Files with a quantile of data that says nothing about other data."""
ARRAYS_OF_INTERVALS = {
    "findings/patching_effects.py": "of thousands of heads and positions",
    "tasks/segmentation/calibration_error.py": "of the bins of a reliability diagram",
}


def name_forbidden(node):
    """What a node uses that only `stats` may use; empty for all others."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names if alias.name.startswith("scipy.stats")]
    if isinstance(node, ast.ImportFrom) and node.module == "scipy":
        return [alias.name for alias in node.names if alias.name == "stats"]
    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("scipy.stats"):
        return [node.module]
    if isinstance(node, ast.ImportFrom) and node.module == "scipy.special":
        return [alias.name for alias in node.names if DISTRIBUTIONS.search(alias.name)]
    if isinstance(node, ast.ImportFrom) and node.module == "statistics":
        return [alias.name for alias in node.names if alias.name == "NormalDist"]
    if isinstance(node, ast.Attribute) and node.attr == "NormalDist":
        return ["NormalDist"]
    if isinstance(node, ast.Constant) and node.value in NORMAL_QUANTILES:
        return [str(node.value)]
    return []


def is_quantile(node):
    return isinstance(node, ast.Attribute) and node.attr in QUANTILES


def is_interval_class(node):
    """Whether it is a class with the fields `low` and `high`."""
    if not isinstance(node, ast.ClassDef):
        return False
    return {"low", "high"} <= {
        item.target.id for item in node.body if isinstance(item, ast.AnnAssign)
    }


def find_files(condition):
    return {name for name, nodes in NODES_OUTSIDE.items() if any(map(condition, nodes))}


def test_no_other_module_uses_a_distribution():
    assert find_files(name_forbidden) == set()


def test_other_quantiles_describe_data():
    assert find_files(is_quantile) == set(DESCRIPTIONS)


def test_there_is_one_class_of_intervals():
    assert find_files(is_interval_class) == set(ARRAYS_OF_INTERVALS)


def test_scipy_is_imported_when_it_is_needed():
    """It takes longer than the rest of a command; the theory of focus models is imported itself."""
    for name, tree in TREES.items():
        if not name.startswith("tasks/focus/theory/"):
            for node in tree.body:
                modules = [alias.name for alias in getattr(node, "names", [])]
                modules.append(getattr(node, "module", None) or "")
                assert not [m for m in modules if m.split(".")[0] == "scipy"], name


@pytest.mark.parametrize(
    "code",
    [
        "from scipy.stats import t",
        "import scipy.stats",
        "from scipy import stats",
        "from scipy.special import stdtrit",
        "from statistics import NormalDist",
        "low = mean - 1.96 * error",
    ],
)
def test_forbidden_code_is_found(code):
    assert [name for node in ast.walk(ast.parse(code)) for name in name_forbidden(node)]

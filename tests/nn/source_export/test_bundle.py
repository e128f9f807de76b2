"""Exported source of classes, ours and users': it has the same meaning under any names."""

import importlib
import itertools
import subprocess
import sys
import textwrap

import pytest
import torch

import neural
from neural.nn.attention import registry as attention
from neural.nn.layers import registry as layers
from neural.nn.source_export.symbols import SourceExportError
from tests.nn.source_export.test_standalone_file import assert_exported_equal

HEADER = """
from __future__ import annotations
from typing import ClassVar
from neural.language.declaration import float_field, int_field
from neural.language.shapes import Cost
from neural.nn.attention.self import Self
from neural.nn.lazy_torch import Module, nn, torch
from neural.nn.mask import Mask
from neural.nn.mechanism import Mechanism
"""
BODY = """
    def attend(self, q, k, v, mask, dropout=0.0, extra=None):
        return self.weights(q, k, mask, extra) @ v

    def cost(self, heads, queries, keys, width):
        return Cost()
"""
PLAIN = (
    """
class Mine(Mechanism):
    def weights(self, q, k, mask, extra=None):
        product = helper(q, k)
        keep = mask.to_keep_mask(q.shape[-2], k.shape[-2], q.device)
        product = product if keep is None else product.masked_fill(~keep, -30.0)
        return product.softmax(dim=-1) * (1 if keep is None else keep)
"""
    + BODY
)
package_numbers = itertools.count()


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Function that writes a package with a unique name and imports its module `attention`."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(attention, "_added", {})
    monkeypatch.setattr(layers, "_added", {})
    name = f"colliding_{next(package_numbers)}"

    def write(**files):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "__init__.py").touch()
        for stem, text in files.items():
            (folder / f"{stem}.py").write_text(textwrap.dedent(text).replace("PACKAGE", name))
        importlib.invalidate_caches()
        return importlib.import_module(f"{name}.attention")

    yield write
    for module in [path for path in sys.modules if path.partition(".")[0] == name]:
        del sys.modules[module]


def register(module):
    return attention.add(module.Mine)


def network(*lines, size="(None, 8)"):
    return f"network A {{\n  input: {size}\n  layers:\n    " + "\n    ".join(lines) + "\n}"


def check_network(*lines, folder, size="(None, 8)"):
    mask = torch.arange(9) < torch.tensor([[9], [5], [1]])
    return assert_exported_equal(network(*lines, size=size), folder, mask)


MINE = 'TransformerEncoder(num_heads=2, attention="mine")'

# Helpers of a user's module; each has the name of a definition in neural.nn.
COLLISIONS = {
    "a function of another mechanism": (
        """
        def dot_product_scores(q, k):
            return 3 * (q @ k.transpose(-1, -2))
        helper = dot_product_scores
        """,
        'TransformerEncoder(num_heads=2, attention="topk", k=3)',
    ),
    "a softmax that is not one": (
        """
        def masked_softmax(x):
            return x / 7
        def helper(q, k):
            return masked_softmax(q @ k.transpose(-1, -2))
        """,
        "TransformerEncoder(num_heads=2)",
    ),
    "constants and block functions": (
        """
        BLOCK_SIZE = 3
        def attend_in_blocks(x):
            return x * BLOCK_SIZE
        def helper(q, k):
            return attend_in_blocks(q) @ k.transpose(-1, -2)
        """,
        'TransformerEncoder(num_heads=2, attention="localized", window=3)',
    ),
    "a builtin that others use": (
        """
        def sum(x):
            return x * 0.5
        def helper(q, k):
            return sum(q) @ k.transpose(-1, -2)
        """,
        'TransformerEncoder(num_heads=2, attention="uniform")',
    ),
    "names of torch": (
        """
        def functional(x):
            return x.tanh()
        Tensor = 5
        def helper(q, k):
            return Tensor * functional(q) @ k.transpose(-1, -2)
        """,
        'TransformerEncoder(num_heads=2, attention="linear")',
    ),
    "a local variable and an argument of one name": (
        """
        def replace(q):
            return q + 1
        def fused_attention(q, replace):
            dot_product_scores = replace(q)
            return [dot_product_scores for dot_product_scores in [dot_product_scores]][0]
        def helper(q, k):
            return fused_attention(q, replace) @ k.transpose(-1, -2)
        """,
        'TransformerEncoder(num_heads=2, attention="sparse")',
    ),
}


@pytest.mark.parametrize(("helpers", "other"), COLLISIONS.values(), ids=list(COLLISIONS))
@pytest.mark.parametrize("mine_first", [True, False], ids=["mine first", "mine last"])
def test_names_of_a_user_do_not_collide_with_ours(package, tmp_path, helpers, other, mine_first):
    register(package(attention=HEADER + textwrap.dedent(helpers) + PLAIN))
    check_network(*([MINE, other] if mine_first else [other, MINE]), folder=tmp_path)


def test_two_of_our_own_modules_may_use_one_name(tmp_path):
    blocks = [
        "linear",
        "localized",
        "topk",
        "entmax15",
        "sparsemax",
        "sparse",
        "additive",
        "hard",
        "uniform",
    ]
    lines = [f'TransformerEncoder(num_heads=2, attention="{name}")' for name in blocks]
    check_network(
        *lines,
        'TransformerDecoder(num_heads=2, attention="boundary_aware")',
        "Dense(5)",
        folder=tmp_path,
    )


IMPORTS = {
    "under another name": ("from PACKAGE.helpers import dot_product_scores as helper", "helper"),
    "from a package, relative": ("from .helpers import dot_product_scores as helper", "helper"),
    "a module, by attribute": ("from PACKAGE import helpers", "helpers.dot_product_scores"),
    "a module, relative": ("from . import helpers as tools", "tools.dot_product_scores"),
    "a module under another name": (
        "import PACKAGE.helpers as self_tools",
        "self_tools.dot_product_scores",
    ),
    "a module by its whole name": ("import PACKAGE.helpers", "PACKAGE.helpers.dot_product_scores"),
    "everything": ("from .helpers import *", "dot_product_scores"),
    "by way of another module": ("from .more import again as helper", "helper"),
}


@pytest.mark.parametrize(("line", "name"), IMPORTS.values(), ids=list(IMPORTS))
def test_imports_inside_a_package_are_followed(package, tmp_path, line, name):
    module = package(
        helpers="OFFSET = 1.5\ndef dot_product_scores(q, k):\n"
        "    return 2 * q @ k.transpose(-1, -2) + OFFSET\n",
        more="from .helpers import dot_product_scores as again\n",
        attention=f"{HEADER}{line}\n{PLAIN.replace('helper(q, k)', f'{name}(q, k)')}",
    )
    register(module)
    check_network(MINE, 'TransformerEncoder(num_heads=2, attention="topk", k=3)', folder=tmp_path)


def test_imports_inside_a_function_are_followed(package, tmp_path):
    module = package(
        helpers="def dot_product_scores(q, k):\n    return 2 * (q @ k.transpose(-1, -2))\n",
        attention=f"""{HEADER}
def helper(q, k):
    from .helpers import dot_product_scores
    import math
    return dot_product_scores(q, k) * math.sqrt(2)
{PLAIN}""",
    )
    register(module)
    check_network('TransformerEncoder(num_heads=2, attention="topk", k=3)', MINE, folder=tmp_path)


def test_an_alias_is_not_shadowed_by_a_local_variable(package, tmp_path):
    module = package(
        helpers="def dot_product_scores(q, k):\n    return 2 * (q @ k.transpose(-1, -2))\n",
        attention=f"""{HEADER}
from .helpers import dot_product_scores as product
def helper(q, k, dot_product_scores=0.5):
    return product(q, k) * dot_product_scores
{PLAIN}""",
    )
    register(module)
    check_network(MINE, folder=tmp_path)


KINDS = {
    "decorators": """
        import functools
        def twice(function):
            @functools.wraps(function)
            def wrapped(*arguments):
                return 2 * function(*arguments)
            return wrapped
        @twice
        def helper(q, k):
            return q @ k.transpose(-1, -2)
        """,
    "annotated and unpacked constants": """
        FACTOR: float = 2.5
        FIRST, SECOND = 1.5, 3
        FACTOR += 1
        def helper(q, k):
            return (q * FIRST) @ k.transpose(-1, -2) * FACTOR / SECOND
        """,
    "a table that is filled later": """
        TABLE = {"a": 1.0}
        TABLE["b"] = 2.0
        TABLE.update(c=3.0)
        def helper(q, k):
            return q @ k.transpose(-1, -2) * len(TABLE) * TABLE["c"]
        """,
    "definitions under conditions": """
        try:
            import no_such_package_at_all as fast
        except ImportError:
            fast = None
        if fast is None:
            def helper(q, k):
                return 2 * q @ k.transpose(-1, -2)
        else:
            helper = fast
        """,
    "state that a function sets": """
        FACTOR = 1.0
        def prepare():
            global FACTOR
            FACTOR = 4.0
        def helper(q, k):
            prepare()
            return FACTOR * q @ k.transpose(-1, -2)
        """,
    "comprehensions, lambdas and walruses": """
        scale = 0.5
        pick = lambda scale: scale[0]
        def helper(q, k):
            parts = [scale * q for scale in (1.0, 2.0)]
            if (total := pick(parts)) is not None:
                return total @ k.transpose(-1, -2) * scale
        """,
    "a class that is used before its definition": """
        def helper(q, k):
            return Child().run(q, k)
        class Parent:
            other: ClassVar[str] = "Child"
            def run(self, q, k):
                return self.factor * q @ k.transpose(-1, -2) if isinstance(self, Child) else None
        class Child(Parent):
            factor = 3.0
        """,
    "names in f-strings": """
        def dot_product_scores(x):
            return x + 1
        NAMES = {f"{dot_product_scores(1)}": 2.0, "é" f"ü{dot_product_scores(5)}": 3.0}
        def helper(q, k):
            factor = NAMES[f"{dot_product_scores(1)}"] + NAMES[f'''é{
                f"ü{dot_product_scores(5)}"}''']
            return q @ k.transpose(-1, -2) * factor
        """,
    "annotations in quotes": """
        class dot_product_scores:
            factor = 2.0
        def helper(q: "torch.Tensor", k: "torch.Tensor", made: "dot_product_scores | None" = None):
            made = made or dot_product_scores()
            return q @ k.transpose(-1, -2) * made.factor
        """,
}


@pytest.mark.parametrize("helpers", KINDS.values(), ids=list(KINDS))
def test_definitions_of_any_kind_are_copied(package, tmp_path, helpers):
    register(package(attention=HEADER + textwrap.dedent(helpers) + PLAIN))
    check_network(MINE, 'TransformerEncoder(num_heads=2, attention="topk", k=3)', folder=tmp_path)


def test_class_variables_and_methods_that_run_are_kept(package, tmp_path):
    module = package(
        attention=f"""{HEADER}
class Mine(Mechanism):
    factor: ClassVar[float] = 3.0
    sharpness: float = float_field("How sharp.", default=1.5, above=0)
    size: int = int_field("Something.", default=2)

    def weights(self, q, k, mask, extra=None):
        product = self.factor * self.sharpness * self.example_extra(q, k) / self.size
        return product.softmax(dim=-1)

    def example_extra(self, q, k):
        return q @ k.transpose(-1, -2)

    def build_learned(self, width, heads, head_width):
        return Scorer(width)
{BODY}

class Scorer(Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def cost(self, x):
        return self.linear(x)

    def shape(self, x):
        return self.cost(x).mean(dim=-1)

    def forward(self, x):
        return self.shape(x)
"""
    )
    register(module)
    block = 'TransformerEncoder(num_heads=2, attention="mine", sharpness=0.5)'
    _, theirs, _ = check_network(block, folder=tmp_path)
    assert theirs.transformer_encoder.attention.sublayer.mechanism.sharpness == 0.5


def test_a_mechanism_may_hold_and_extend_another(package, tmp_path):
    module = package(
        attention=f"""{HEADER}
from neural.language.declaration import entry_field
from neural.nn.attention import registry
from neural.nn.attention.topk import Topk

class Mine(Topk):
    inner: Mechanism = entry_field(registry, "Another.", default=Topk(k=2))

    def weights(self, q, k, mask, extra=None):
        return (super().weights(q, k, mask, extra) + self.inner.weights(q, k, mask, extra)) / 2
"""
    )
    register(module)
    for block in ('attention="mine"', "attention=mine(k=3, inner=sparsemax())"):
        check_network(f"TransformerEncoder(num_heads=2, {block})", folder=tmp_path)


def test_a_layer_of_plain_torch_modules_is_written(package, tmp_path):
    module = package(
        attention="""
from neural.language.layer import Layer
from neural.language.shapes import Cost
from torch import nn

class Wave(Layer):
    '''Sines.'''
    def shape(self, x):
        return x
    def cost(self, x):
        return Cost()
    def build(self, x):
        return nn.Sequential(nn.LayerNorm(x[-1]), Sine(), nn.Sequential(nn.ELU(alpha=0.5)))

class Sine(nn.Module):
    def forward(self, x):
        return x.sin()
"""
    )
    layers.add(module.Wave)
    check_network("Wave()", "Dense(3)", folder=tmp_path)


def test_a_layer_whose_module_has_unknown_arguments_is_refused_by_name(package):
    module = package(
        attention="""
from neural.language.layer import Layer
from neural.language.shapes import Cost
from torch import nn

class Times(Layer):
    '''Twice as much.'''
    def shape(self, x):
        return x
    def cost(self, x):
        return Cost()
    def build(self, x):
        return Factor(2)

class Factor(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor
    def forward(self, x):
        return x * self.factor
"""
    )
    layers.add(module.Times)
    with pytest.raises(
        SourceExportError, match=r"^times: the arguments of `Factor` are unknown; derive it from"
    ):
        neural.parse(network("Times()")).to_pytorch()


def test_a_class_inside_a_function_is_refused_by_name(package):
    module = package(
        attention=HEADER
        + "def make():\n"
        + textwrap.indent(PLAIN, "    ")
        + "    return Mine\nMine = make()\n"
    )
    register(module)
    with pytest.raises(
        SourceExportError, match=r"^transformer_encoder: `Mine` is defined inside a function of"
    ):
        neural.parse(network(MINE)).to_pytorch()


def test_a_module_used_as_a_value_is_refused_with_its_line(package):
    module = package(
        helpers="def dot_product_scores(q, k):\n    return q @ k.transpose(-1, -2)\n",
        attention=f"{HEADER}from . import helpers\n"
        f"def helper(q, k):\n    return getattr(helpers, 'dot_product_scores')(q, k)\n{PLAIN}",
    )
    register(module)
    with pytest.raises(
        SourceExportError, match=r"attention, line 12: uses the module `.*helpers` as a value"
    ):
        neural.parse(network(MINE)).to_pytorch()


def test_a_dependency_by_string_is_found_when_the_file_runs(package):
    module = package(
        attention=f"{HEADER}def hidden(q, k):\n    return q @ k.transpose(-1, -2)\n"
        f"def helper(q, k):\n    return globals()['hidden'](q, k)\n{PLAIN}"
    )
    register(module)
    with pytest.raises(
        SourceExportError, match=r"does not match the network: it fails at .*KeyError: 'hidden'"
    ):
        neural.parse(network(MINE)).to_pytorch()


def test_a_file_beside_a_single_module_is_copied(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(attention, "_added", {})
    (tmp_path / "alone_helpers.py").write_text(
        "def dot_product_scores(q, k):\n    return q @ k.transpose(-1, -2)\n"
    )
    text = f"{HEADER}from alone_helpers import dot_product_scores as helper\n{PLAIN}"
    (tmp_path / "alone_attention.py").write_text(text)
    register(importlib.import_module("alone_attention"))
    written = neural.parse(network(MINE)).to_pytorch()
    assert "alone_" not in written
    check_network(MINE, folder=tmp_path)
    for name in ("alone_attention", "alone_helpers"):
        del sys.modules[name]


def test_libraries_are_imported_and_named(package, tmp_path):
    module = package(
        attention=f"{HEADER}import numpy as np\ndef helper(q, k):\n"
        f"    return q @ k.transpose(-1, -2) * np.sqrt(2.0)\n{PLAIN}"
    )
    register(module)
    written = neural.parse(network(MINE)).to_pytorch()
    assert "import numpy as np" in written
    assert "needs torch, numpy." in written
    check_network(MINE, folder=tmp_path)


def test_a_linter_finds_no_undefined_or_unused_name_in_the_file(tmp_path):
    blocks = [
        f'TransformerEncoder(num_heads=2, attention="{name}", positional="relative")'
        for name in attention.names()
    ]
    more = ['TransformerDecoder(num_heads=2, positional="rotary")', "LSTM(5)", "Dense(5)"]
    text = network(*blocks, *more, 'Residual(Conv1D(5, padding="same"), GaussianNoise(0.1))')
    path = tmp_path / "net.py"
    path.write_text(neural.parse(text).to_pytorch())
    result = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--select=F", path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout

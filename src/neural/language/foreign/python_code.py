"""Write a `.neural` program for simple Python code: `keras.Sequential([…])`, `model.add(…)`, modules.

The result has the foreign names of the code; a check of it translates them. Code that computes
something (functions, branches, several inputs) is not understood.
"""

from __future__ import annotations

import ast

SETTING_VARIABLES = {
    "criterion": "loss",
    "loss_fn": "loss",
    "loss_function": "loss",
    "loss": "loss",
    "optimizer": "optimizer",
    "optim": "optimizer",
    "opt": "optimizer",
    "scheduler": "scheduler",
    "lr_scheduler": "scheduler",
}
"""Variables of a training script → sections of a network."""

FUNCTION_LAYERS = {
    "relu": "ReLU",
    "gelu": "GELU",
    "silu": "SiLU",
    "tanh": "Tanh",
    "sigmoid": "Sigmoid",
    "softmax": "Softmax",
    "log_softmax": "LogSoftmax",
    "flatten": "Flatten",
}
"""Functions in `forward` → the layers that do the same."""


class _Constants(ast.NodeTransformer):
    """Replaces variables such as `vocab_size = 1000` by their values."""

    def __init__(self, values: dict[str, ast.expr]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.values.get(node.id, node)


def write_program(code: str) -> str | None:
    """A program with the layers and settings of Python code; None if it has no simple network."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    constants: dict[str, ast.expr] = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    layers: list[ast.expr] = []
    settings: list[str] = []
    for statement in tree.body:
        _read_statement(_Constants(constants).visit(statement), layers, settings)
    if not layers:
        return None
    lines = [f"    {ast.unparse(layer)}" for layer in layers]
    first = layers[0]
    is_linear = isinstance(first, ast.Call) and _get_base(first) == "Linear" and first.args
    if is_linear and isinstance(first, ast.Call) and isinstance(first.args[0], ast.Constant):
        settings.insert(0, f"input: ({ast.unparse(first.args[0])},)")
    sections = "".join(f"  {setting}\n" for setting in dict.fromkeys(settings))
    return "network Model {\n  layers:\n" + "\n".join(lines) + f"\n{sections}}}\n"


def _read_statement(node: ast.stmt, layers: list[ast.expr], settings: list[str]) -> None:
    """Add the layers and settings of one statement."""
    if isinstance(node, ast.ClassDef):
        layers += _read_module(node)
        return
    value = getattr(node, "value", None)
    if not isinstance(value, ast.Call) or not isinstance(node, ast.Assign | ast.Expr):
        return
    base = _get_base(value)
    target = node.targets[0] if isinstance(node, ast.Assign) else None
    if base == "Sequential":
        layers += _list_layers(value)
    elif base == "add" and target is None:
        layers += value.args
    elif base in ("compile", "fit", "TrainingArguments"):
        named = [item for item in value.keywords if item.arg is not None]
        arguments = ", ".join(f"{item.arg}={ast.unparse(item.value)}" for item in named)
        settings.append(f"{base}({arguments})")
    elif isinstance(target, ast.Name) and target.id in SETTING_VARIABLES:
        settings.append(f"{SETTING_VARIABLES[target.id]}: {ast.unparse(value)}")


def _list_layers(call: ast.Call) -> list[ast.expr]:
    """The layers of `Sequential(…)`, or the call itself."""
    if _get_base(call) != "Sequential":
        return [call]
    lists = (item.elts if isinstance(item, ast.List | ast.Tuple) else [item] for item in call.args)
    return [layer for items in lists for layer in items]


def _read_module(node: ast.ClassDef) -> list[ast.expr]:
    """The layers of a module of PyTorch in the order of `forward`; [] if that does more than call."""
    methods = {item.name: item for item in node.body if isinstance(item, ast.FunctionDef)}
    if "__init__" not in methods or "forward" not in methods:
        return []
    attributes = {
        target.attr: _list_layers(statement.value)
        for statement in methods["__init__"].body
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call)
        for target in statement.targets
        if isinstance(target, ast.Attribute)
    }
    layers: list[ast.expr] = []
    for statement in methods["forward"].body:
        value = statement.value if isinstance(statement, ast.Assign | ast.Return) else None
        if value is None or not _read_forward(value, attributes, layers):
            return []
    return layers


def _read_forward(
    node: ast.expr, attributes: dict[str, list[ast.expr]], layers: list[ast.expr]
) -> bool:
    """Add the layers that an expression such as `F.relu(self.fc(x))` calls; False if unclear."""
    if isinstance(node, ast.Name):
        return True
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    owner, name = node.func.value, node.func.attr
    if isinstance(owner, ast.Name) and owner.id == "self":
        is_clear = len(node.args) == 1 and name in attributes
        if not is_clear or not _read_forward(node.args[0], attributes, layers):
            return False
        layers += attributes[name]
        return True
    is_function = isinstance(owner, ast.Name) and owner.id in ("F", "torch")
    if name in FUNCTION_LAYERS and is_function and node.args:
        is_clear = _read_forward(node.args[0], attributes, layers)
    else:  # `x.flatten(1)`
        is_clear = name in ("flatten", "view") and _read_forward(owner, attributes, layers)
    layers.append(ast.parse(f"{FUNCTION_LAYERS.get(name, 'Flatten')}()", mode="eval").body)
    return is_clear


def _get_base(call: ast.Call) -> str:
    """The last part of the name of a call."""
    name = call.func
    return name.attr if isinstance(name, ast.Attribute) else getattr(name, "id", "")

"""Names of a statement that belong to its module."""

import ast
import textwrap

import pytest

from neural.nn.source_export.scopes import bound_names, collect_identifiers, find_name_uses


def find_uses(text):
    return list(find_name_uses(ast.parse(textwrap.dedent(text)).body))


def find_names(text):
    return {use.name for use in find_uses(text)}


CASES = {
    "arguments and assignments are local": (
        "def f(a, *b, c=C, **d):\n    e = a + G\n    return e + b + d",
        {"C", "G"},
    ),
    "a name assigned later is local everywhere": ("def f():\n    print(x)\n    x = 1", {"print"}),
    "global names are the module's": ("def f():\n    global x\n    x = 1", {"x"}),
    "nonlocal names are not": (
        "def f():\n    x = 1\n    def g():\n        nonlocal x\n        x = 2",
        set(),
    ),
    "comprehensions bind their targets": ("y = [x + z for x in xs if x]", {"y", "z", "xs"}),
    "a walrus binds outside a comprehension": (
        "def f():\n    [last := x for x in xs]\n    return last",
        {"xs"},
    ),
    "lambdas bind their arguments": ("f = lambda x, y=D: x + y + z", {"f", "D", "z"}),
    "methods do not see names of the class body": (
        "class A:\n    x = 1\n    def f(self):\n        return x",
        {"x"},
    ),
    "a class body sees its own names once they are bound": (
        "class A:\n    y = x\n    x = y\n    z = x",
        {"x"},
    ),
    "decorators and bases are evaluated outside": (
        "@deco(x)\nclass A(B, metaclass=M):\n    pass",
        {"deco", "x", "B", "M"},
    ),
    "except, with and for bind": (
        "def f():\n    try:\n        pass\n    except E as e:\n        e\n"
        "    with o() as p:\n        p\n    for q in r:\n        q",
        {"E", "o", "r"},
    ),
    "match binds": (
        "def f(x):\n    match x:\n        case [a, *b]:\n            return a, b\n"
        "        case {'k': c, **d}:\n            return c, d",
        set(),
    ),
    "strings in annotations are annotations": (
        "def f(x: 'A', y: Literal['B']) -> 'C | D': ...",
        {"A", "C", "D", "Literal"},
    ),
}


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=list(CASES))
def test_names_are_resolved_as_in_python(text, expected):
    assert find_names(text) == expected


def test_a_use_has_its_attribute_chain_and_the_local_names():
    (use,) = find_uses("def f(a):\n    b = 1\n    return pack.deep.name")
    assert [node.attr for node in use.chain] == ["deep", "name"]
    assert use.local_names == {"a", "b"}
    assert not use.at_import


def test_uses_at_import_are_distinguished_from_uses_in_calls():
    at_import = {
        use.name: use.at_import for use in find_uses("@deco\ndef f(x: T = d):\n    return g")
    }
    assert at_import == {"deco": True, "d": True, "T": False, "g": False}


def test_an_import_inside_a_function_is_recorded():
    (use,) = find_uses("def f():\n    from a import b\n    return b")
    assert isinstance(use.local_import, ast.ImportFrom)


def test_bound_names_and_identifiers():
    tree = ast.parse(
        "import a.b, c as d\ntry:\n    x = 1\nexcept E as e:\n    def g(h): k = 1"
    ).body
    assert bound_names(tree) == {"a", "d", "x", "e", "g"}
    assert {"a", "d", "x", "E", "e", "g", "h", "k"} <= set(collect_identifiers(tree))

"""The real server over pipes, in one conversation."""

import pytest

from tests.lsp.editor_client import Editor

URI = "file:///somewhere/net.neural"
TEXT = """\
# сеть 🧠
network A {
  input: (13, 12)
  layers:
    Dnse(5)  # 🧠
    TransformerEncoder(num_heads=5, d_model=12)
    Output(2, activation="softmax")
  loss: "sparse_categorical_crossentropy"
}
"""
RIGHT = TEXT.replace("Dnse(5)", "Dense(12)").replace("num_heads=5", "num_heads=3")


@pytest.fixture(scope="module")
def editor():
    editor = Editor()
    editor.capabilities = editor.initialize()
    yield editor
    assert editor.close() == (0, b"")


@pytest.fixture(scope="module")
def diagnostics(editor):
    return editor.open(URI, TEXT)["diagnostics"]


def position_of(text, word, offset=0):
    """LSP position (UTF-16) of a word's start, or of a character in it."""
    before = text[: text.index(word) + offset]
    return {
        "line": before.count("\n"),
        "character": len(before.rpartition("\n")[2].encode("utf-16-le")) // 2,
    }


def make_params(position=None, **fields):
    return {"textDocument": {"uri": URI}, **({"position": position} if position else {}), **fields}


def change_text(editor, text):
    change = {"textDocument": {"uri": URI, "version": 2}, "contentChanges": [{"text": text}]}
    editor.send("textDocument/didChange", change)
    return editor.wait_for_notification("textDocument/publishDiagnostics")


def test_the_server_announces_its_capabilities(editor):
    provided = [
        name for name, value in editor.capabilities.items() if name.endswith("Provider") and value
    ]
    expected = {"hover", "completion", "documentFormatting", "codeAction", "documentSymbol"}
    assert {f"{name}Provider" for name in expected} <= set(provided)


def test_diagnostics_have_code_range_help_and_related_information(diagnostics):
    first, second, third = diagnostics
    assert (first["code"], first["range"]["start"]) == ("E0201", position_of(TEXT, "Dnse"))
    assert first["message"].endswith("help: did you mean `Dense`?")
    assert first["codeDescription"]["href"].endswith("E0201.md")
    assert second["code"] == "E0203"
    (related,) = second["relatedInformation"]
    assert related["location"]["range"]["start"] == position_of(TEXT, "d_model=12")
    assert third["code"] == "E0301"  # the misspelt layer does not hide it


def test_a_quick_fix_may_change_two_lines(editor):
    text = TEXT.replace("Dnse(5)", "nn.Linear(12, 5)\n    nn.ReLU()")
    assert text != TEXT
    found = change_text(editor, text)["diagnostics"]
    span = next(item["range"] for item in found if "nn.ReLU" in item["message"])
    (action,) = editor.request(
        "textDocument/codeAction", make_params(range=span, context={"diagnostics": found})
    )
    edits = action["edit"]["changes"][URI]
    assert action["title"] == "Leave it out"
    assert [edit["newText"] for edit in edits] == ["", 'Dense(5, activation="relu")']
    change_text(editor, TEXT)


def test_a_quick_fix_replaces_the_misspelt_word(editor, diagnostics):
    span = diagnostics[0]["range"]
    (action,) = editor.request(
        "textDocument/codeAction", make_params(range=span, context={"diagnostics": diagnostics})
    )
    (edit,) = action["edit"]["changes"][URI]
    assert (edit["newText"], edit["range"]) == ("Dense", span)


def test_after_a_change_the_text_is_checked_again(editor, diagnostics):
    published = change_text(editor, RIGHT)
    assert (
        published["version"],
        [diagnostic for diagnostic in published["diagnostics"] if diagnostic["severity"] == 1],
    ) == (
        2,
        [],
    )


def test_hover_completion_and_symbols_answer(editor, diagnostics):
    change_text(editor, RIGHT)
    hover = editor.request("textDocument/hover", make_params(position_of(RIGHT, "Transf", 3)))
    assert "`(B, 13, 12)` → `(B, 13, 12)`" in hover["contents"]["value"]
    assert hover["range"]["start"] == position_of(RIGHT, "Transf")
    items = editor.request(
        "textDocument/completion", make_params(position_of(RIGHT, '"softmax"', 1))
    )
    item = next(candidate for candidate in items if candidate["label"] == "tanh")
    assert item["textEdit"]["range"]["end"] == position_of(RIGHT, '"softmax"', 8)
    items = editor.request("textDocument/completion", make_params(position_of(RIGHT, "Transf")))
    assert (
        next(candidate for candidate in items if candidate["label"] == "Dense")["textEdit"][
            "newText"
        ]
        == "Dense()"
    )
    (network,) = editor.request("textDocument/documentSymbol", make_params())
    assert [candidate["name"] for candidate in network["children"]] == ["input", "layers", "loss"]


def test_formatting_is_one_edit_of_the_text(editor, diagnostics):
    change_text(editor, RIGHT.replace("Dense(12)", "Dense( 12 )"))
    options = {"tabSize": 2, "insertSpaces": True}
    (edit,) = editor.request("textDocument/formatting", make_params(options=options))
    assert "Dense(12)  # 🧠" in edit["newText"]
    assert edit["range"]["start"] == {"line": 0, "character": 0}
    change_text(editor, edit["newText"])
    assert editor.request("textDocument/formatting", make_params(options=options)) == []


def test_experiments_are_checked_and_closing_clears_diagnostics(editor):
    uri = "file:///somewhere/small.yaml"
    published = editor.open(
        uri, "task: supervised\nnetwork: net.neural\ntraining:\n  step: 3\n", language="yaml"
    )
    assert [diagnostic["code"] for diagnostic in published["diagnostics"]] == ["E0801"]
    editor.send("textDocument/didClose", {"textDocument": {"uri": uri}})
    assert editor.wait_for_notification("textDocument/publishDiagnostics") == {
        "uri": uri,
        "diagnostics": [],
    }


def test_a_missing_file_has_no_hover_and_no_symbols(editor):
    missing = {"textDocument": {"uri": "file:///nowhere/gone.neural"}}
    assert (
        editor.request("textDocument/hover", {**missing, "position": {"line": 0, "character": 0}})
        is None
    )
    assert editor.request("textDocument/documentSymbol", missing) == []

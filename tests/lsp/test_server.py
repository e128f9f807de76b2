"""The real server over pipes: one conversation, as an editor has it."""

import pytest

from tests.lsp.talking import Editor

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
    editor.able = editor.initialize()
    yield editor
    assert editor.close() == (0, b"")


@pytest.fixture(scope="module")
def opened(editor):
    return editor.open(URI, TEXT)["diagnostics"]


def place(text, word, behind=0):
    """Line and UTF-16 unit of a word's start, or of a letter in it."""
    before = text[: text.index(word) + behind]
    return {"line": before.count("\n"), "character": len(before.rpartition("\n")[2].encode("utf-16-le")) // 2}


def about(position=None, **more):
    return {"textDocument": {"uri": URI}, **({"position": position} if position else {}), **more}


def changed(editor, text):
    change = {"textDocument": {"uri": URI, "version": 2}, "contentChanges": [{"text": text}]}
    editor.say("textDocument/didChange", change)
    return editor.told("textDocument/publishDiagnostics")


def test_it_says_what_it_can_do(editor):
    able = [name for name, value in editor.able.items() if name.endswith("Provider") and value]
    wanted = {"hover", "completion", "documentFormatting", "codeAction", "documentSymbol"}
    assert {f"{name}Provider" for name in wanted} <= set(able)


def test_mistakes_come_with_code_place_help_and_related_places(opened):
    first, second = opened
    assert (first["code"], first["range"]["start"]) == ("E0201", place(TEXT, "Dnse"))
    assert first["message"].endswith("help: did you mean `Dense`?")
    assert first["codeDescription"]["href"].endswith("E0201.md")
    assert second["code"] == "E0203"
    (related,) = second["relatedInformation"]
    assert related["location"]["range"]["start"] == place(TEXT, "d_model=12")


def test_a_quick_fix_replaces_the_misspelt_word(editor, opened):
    where = opened[0]["range"]
    (action,) = editor.ask("textDocument/codeAction", about(range=where, context={"diagnostics": opened}))
    (edit,) = action["edit"]["changes"][URI]
    assert (edit["newText"], edit["range"]) == ("Dense", where)


def test_after_a_change_the_text_is_checked_again(editor, opened):
    said = changed(editor, RIGHT)
    assert (said["version"], [one for one in said["diagnostics"] if one["severity"] == 1]) == (2, [])


def test_hover_completion_and_symbols_answer(editor, opened):
    changed(editor, RIGHT)
    found = editor.ask("textDocument/hover", about(place(RIGHT, "Transf", 3)))
    assert "`(B, 13, 12)` → `(B, 13, 12)`" in found["contents"]["value"]
    assert found["range"]["start"] == place(RIGHT, "Transf")
    offers = editor.ask("textDocument/completion", about(place(RIGHT, '"softmax"', 1)))
    offer = next(one for one in offers if one["label"] == "tanh")
    assert offer["textEdit"]["range"]["end"] == place(RIGHT, '"softmax"', 8)
    offers = editor.ask("textDocument/completion", about(place(RIGHT, "Transf")))
    assert next(one for one in offers if one["label"] == "Dense")["textEdit"]["newText"] == "Dense()"
    (network,) = editor.ask("textDocument/documentSymbol", about())
    assert [one["name"] for one in network["children"]] == ["input", "layers", "loss"]


def test_formatting_is_one_edit_of_the_whole_text(editor, opened):
    changed(editor, RIGHT.replace("Dense(12)", "Dense( 12 )"))
    options = {"tabSize": 2, "insertSpaces": True}
    (edit,) = editor.ask("textDocument/formatting", about(options=options))
    assert "Dense(12)  # 🧠" in edit["newText"]
    assert edit["range"]["start"] == {"line": 0, "character": 0}
    changed(editor, edit["newText"])
    assert editor.ask("textDocument/formatting", about(options=options)) == []


def test_experiments_are_checked_and_what_is_closed_is_forgotten(editor):
    uri = "file:///somewhere/small.yaml"
    said = editor.open(uri, "task: supervised\nnetwork: net.neural\ntraining:\n  step: 3\n", language="yaml")
    assert [one["code"] for one in said["diagnostics"]] == ["E0801"]
    editor.say("textDocument/didClose", {"textDocument": {"uri": uri}})
    assert editor.told("textDocument/publishDiagnostics") == {"uri": uri, "diagnostics": []}


def test_about_a_text_that_is_nowhere_there_is_nothing_to_say(editor):
    nowhere = {"textDocument": {"uri": "file:///nowhere/gone.neural"}}
    assert editor.ask("textDocument/hover", {**nowhere, "position": {"line": 0, "character": 0}}) is None
    assert editor.ask("textDocument/documentSymbol", nowhere) == []

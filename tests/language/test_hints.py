"""Hints for users of Keras, PyTorch and Hugging Face: what they say, and how many programs they fix."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from neural.core.diagnostics import Diagnostic, apply_fixes
from neural.language.check import check
from neural.language.foreign import argument_names, training_names
from neural.language.foreign import names as foreign_names
from neural.language.train_options import TrainOptions
from neural.optim.catalogue import CATALOGUE
from tests.language.foreign_snippets import COLLECTIONS, find_failure, load_snippets, repair

ROOT = Path(__file__).parents[2]


def write_program(layers: str = "Dense(5)", rest: str = "", input_shape: str = "(100, 64)") -> str:
    return f"network Small {{\n  input: {input_shape}\n  layers:\n    {layers}\n{rest}}}\n"


def get_diagnostics(text: str) -> tuple[Diagnostic, ...]:
    return check(text, CATALOGUE).diagnostics


def get_single_help(text: str) -> str:
    """The help of the only diagnostic."""
    (diagnostic,) = get_diagnostics(text)
    return diagnostic.helps[0]


# --- how many programs are right after the hints --------------------------------------------------


@pytest.mark.parametrize(
    ("collection", "minimum"),
    [("development", 65), ("held_out", 22), ("independent", 59), ("judgement", 50)],
)
def test_most_programs_of_other_users_are_right_after_their_hints(collection, minimum):
    snippets = load_snippets(collection)
    failures = {snippet.name: find_failure(snippet) for snippet in snippets}
    right = [name for name, failure in failures.items() if not failure]
    assert len(right) >= minimum, f"{len(right)} of {len(snippets)}"


def test_the_development_collection_is_large_enough_and_has_all_three_libraries():
    snippets = load_snippets("development")
    assert len(snippets) >= 60
    assert {snippet.origin for snippet in snippets} == {"keras", "torch", "hf"}
    assert len({snippet.name for snippet in snippets}) == len(snippets)


def test_every_program_that_is_meant_is_right():
    for collection in COLLECTIONS:
        for snippet in load_snippets(collection):
            assert not check(snippet.meant, CATALOGUE).errors, snippet.name


def test_every_program_that_is_written_needs_a_hint():
    for collection in COLLECTIONS:
        for snippet in load_snippets(collection):
            assert get_diagnostics(snippet.written), snippet.name


# --- the hints, word by word ----------------------------------------------------------------------

SOFTMAX = 'Output(5, activation="softmax")'
SIGMOID = 'Output(5, activation="sigmoid")'


@pytest.mark.parametrize("loss", ["CrossEntropyLoss()", '"crossentropy"', '"cross_entropy"'])
def test_cross_entropy_after_softmax_is_sparse_categorical(loss):
    text = write_program(SOFTMAX, f"  loss: {loss}\n")
    assert get_single_help(text) == "did you mean `sparse_categorical_crossentropy`?"
    assert '  loss: "sparse_categorical_crossentropy"\n' in repair(text)


@pytest.mark.parametrize("layer", [SIGMOID, "Dense(1)"])
def test_cross_entropy_after_sigmoid_or_one_unit_is_binary(layer):
    text = write_program(layer, '  loss: "crossentropy"\n')
    assert get_single_help(text) == "did you mean `binary_crossentropy`?"


LAYER_HINTS = {
    "TransformerEncoder(dim=64, num_heads=4)": (
        "did you mean `d_model`?",
        "TransformerEncoder(d_model=64, num_heads=4)",
    ),
    "TransformerEncoder(units=64, num_heads=4)": (
        "did you mean `d_model`?",
        "TransformerEncoder(d_model=64, num_heads=4)",
    ),
    "TransformerEncoder(num_heads=4, layers=6)": (
        "`* 6` behind the layer makes 6 copies",
        "TransformerEncoder(num_heads=4) * 6",
    ),
    "Dense(5)\n    ReLU()": (
        'an activation is an argument: `Dense(5, activation="relu")`',
        'Dense(5, activation="relu")',
    ),
    "nn.Linear(64, 10)": ("`nn.Linear(64, 10)` is `Dense(10)` here", "Dense(10)"),
    "layers.Dense(64, 'relu')": (
        '`layers.Dense(64, "relu")` is `Dense(64, "relu")` here',
        'Dense(64, "relu")',
    ),
    "model.add(Dense(10))": ("`model.add(Dense(10))` is `Dense(10)` here", "Dense(10)"),
    'Dense(10, name="head")': ("leave it out: layers have no names", "Dense(10)"),
    "Dense(10, activation=nn.GELU())": ("did you mean `gelu`?", 'Dense(10, activation="gelu")'),
}


@pytest.mark.parametrize("written", LAYER_HINTS)
def test_a_foreign_layer_gets_its_equivalent(written):
    help_text, repaired = LAYER_HINTS[written]
    text = write_program(written)
    assert get_single_help(text) == help_text
    assert repair(text) == write_program(repaired)


def test_a_positional_activation_needs_no_hint():
    assert not check(write_program('Dense(64, "relu")'), CATALOGUE).errors


def test_an_activation_that_no_layer_can_take_is_explained_without_a_fix():
    (diagnostic,) = get_diagnostics(write_program("BatchNormalization()\n    ReLU()"))
    assert diagnostic.helps == (
        'an activation is an argument of a layer: `Dense(…, activation="relu")`',
    )
    assert diagnostic.fix is None


def test_an_input_shape_in_a_layer_becomes_a_section():
    text = "network Small {\n  layers:\n    Dense(5, input_shape=(28, 28))\n}\n"
    assert get_single_help(text) == "it is a section of the network: `input: (28, 28)`"
    assert repair(text) == ("network Small {\n  input: (28, 28)\n  layers:\n    Dense(5)\n}\n")


def test_an_input_shape_that_contradicts_the_section_is_not_dropped():
    text = write_program("Dense(5, input_shape=(28, 28))")
    (diagnostic,) = get_diagnostics(text)
    assert (diagnostic.code, diagnostic.fix) == ("E0202", None)


@pytest.mark.parametrize("path", ["clean.csv", "./data/clean.csv", "data/clean-1.csv"])
def test_a_file_name_without_quotes_is_one_error(path):
    text = write_program(rest=f"  train {{\n    data: {path}\n  }}\n")
    assert get_single_help(text) == f'a word is written in quotes: `"{path}"`'
    assert f'data: "{path}"' in repair(text)


def test_a_comment_inside_a_foreign_call_is_not_lost():
    text = write_program("nn.Linear(\n      64,\n      10,  # classes\n    )")
    (diagnostic,) = get_diagnostics(text)
    assert diagnostic.fix is None
    assert diagnostic.helps == ("`nn.Linear(64, 10)` is `Dense(10)` here",)


def test_each_fix_alone_is_right_too():
    text = write_program("nn.Linear(64, 10)\n    nn.ReLU()")
    linear, relu = get_diagnostics(text)
    assert apply_fixes(text, [linear])[0] == write_program("Dense(10)\n    nn.ReLU()")
    assert apply_fixes(text, [relu])[0] == write_program('Dense(10, activation="relu")')


def test_keys_of_train_and_of_the_optimizer_find_their_places():
    rest = '  loss: "mse"\n  optimizer: "adamw"\n  lr: 2e-5\n  epochs = 3\n  batch_size = 8\n'
    repaired = repair(write_program(rest=rest))
    assert not check(repaired, CATALOGUE).errors
    (network,) = check(repaired, CATALOGUE).networks
    assert repr(network.optimizer) == "AdamW(learning_rate=2e-05)"
    assert network.train == TrainOptions(epochs=3, batch_size=8)


# --- nothing is changed silently ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "repaired", "words"),
    [
        ("layers.LSTM(8)", "LSTM(8, return_sequences=false)", "only the last position"),
        (
            "Bidirectional(LSTM(8))",
            "LSTM(8, return_sequences=false, bidirectional=true)",
            "only the last position",
        ),
        ("GlobalMaxPooling1D()", "MaxPooling1D(100)\n    Flatten()", "`MaxPooling1D(100)`"),
        ("SimpleRNN(8, return_sequences=True)", "GRU(8, return_sequences=true)", "nearest"),
        ("SpatialDropout1D(0.2)", "Dropout(0.2)", "single values"),
        ("Dense(8)\n    LeakyReLU(0.3)", 'Dense(8, activation="leaky_relu")', "slope"),
        ("Dense(8)\n    Mish()", 'Dense(8, activation="silu")', "nearest"),
        (
            "Dense(8)\n    nn.BatchNorm1d(8)\n    nn.ReLU()",
            'Dense(8, activation="relu")\n    BatchNormalization()',
            "before the normalization",
        ),
        ("nn.Conv1d(64, 8, 3, bias=False)", "Conv1D(8, kernel_size=3)", "always has its bias"),
        ("Conv1d(8, kernel_size=3)", "Conv1D(8, kernel_size=3)", "`Conv1D(8, kernel_size=3)`"),
        (
            "TransformerEncoder(num_heads=4, dropout=0.1, attention_dropout=0.2)",
            "TransformerEncoder(num_heads=4, dropout=0.1)",
            "`dropout_rate` says it for the whole layer",
        ),
        (
            'TransformerEncoder(num_heads=4, attn_implementation="sdpa")',
            "TransformerEncoder(num_heads=4)",
            "does not change the result",
        ),
        (
            "nn.TransformerEncoderLayer(64, 4)",
            'TransformerEncoder(d_model=64, num_heads=4, norm="post")',
            'norm="post"',
        ),
        (
            "nn.TransformerEncoderLayer(64, 4, norm_first=True)",
            'TransformerEncoder(d_model=64, num_heads=4, norm="pre")',
            'norm="pre"',
        ),
        (
            "BertLayer(num_attention_heads=4)",
            'TransformerEncoder(num_heads=4, norm="post", activation="gelu")',
            'norm="post", activation="gelu"',
        ),
        (
            'BertLayer(num_attention_heads=4, hidden_act="relu")',
            'TransformerEncoder(num_heads=4, activation="relu", norm="post")',
            'norm="post"',
        ),
    ],
)
def test_a_repair_that_changes_something_says_so(written, repaired, words):
    text = write_program(written)
    assert repair(text) == write_program(repaired)
    assert words in " ".join(item.helps[0] for item in get_diagnostics(text))


def test_a_bert_model_has_post_norm_and_the_activation_that_is_given():
    sizes = "vocab_size=100, hidden_size=64, num_attention_heads=4"
    default = repair(write_program(f"BertModel({sizes})", input_shape="(100,)"))
    assert 'num_heads=4, norm="post", activation="gelu")' in default
    text = write_program(f'BertModel({sizes}, hidden_act="relu")', input_shape="(100,)")
    assert repair(text).count("activation=") == 1
    assert not check(repair(text), CATALOGUE).errors


@pytest.mark.parametrize(
    ("written", "repaired"),
    [
        (
            "PositionalEmbedding(128, 64)",
            'PositionalEncoding(max_len=128, encoding_type="learned")',
        ),
        ("SinusoidalPositionalEmbedding(64, 128)", "PositionalEncoding(max_len=128)"),
    ],
)
def test_the_width_of_positions_is_that_of_the_input(written, repaired):
    text = repair(write_program(written))
    assert text == write_program(repaired)
    assert not check(text, CATALOGUE).errors


def test_an_option_that_the_loss_does_not_have_is_named():
    text = write_program(SOFTMAX, "  loss: CrossEntropyLoss(ignore_index=-1)\n")
    assert get_single_help(text) == (
        "did you mean `sparse_categorical_crossentropy`?; "
        "`ignore_index`: not available, the loss has no such option"
    )


def test_causal_padding_is_explained_without_a_fix():
    (diagnostic,) = get_diagnostics(write_program('Conv1D(8, 3, padding="causal")'))
    assert (diagnostic.code, diagnostic.fix) == ("E0217", None)
    assert diagnostic.helps[0].startswith("causal padding is not available")


@pytest.mark.parametrize("layer", ["AveragePooling1D(2)", "GroupNorm(4, 64)", "Concatenate()"])
def test_a_layer_without_a_counterpart_gets_no_fix(layer):
    (diagnostic,) = get_diagnostics(write_program(layer))
    assert (diagnostic.code, diagnostic.fix) == ("E0201", None)
    assert "did you mean" not in diagnostic.helps[0]


def test_the_batch_is_no_part_of_the_input():
    text = write_program("LSTM(8)", input_shape="(None, 48, 7)")
    assert get_single_help(text) == "leave the batch out: `input: (48, 7)`"
    assert repair(text) == write_program("LSTM(8)", input_shape="(48, 7)")


def test_a_size_that_a_layer_says_too_is_left_out():
    rest = '  loss: "mse"\n  num_classes: 5\n'
    assert get_single_help(write_program(rest=rest)) == "leave it out: a layer says 5"
    assert "num_classes" in repair(write_program(rest='  loss: "mse"\n  num_classes: 6\n'))


def test_patches_are_a_convolution_and_a_sequence():
    text = write_program("PatchEmbedding(patch_size=8, embed_dim=32)", input_shape="(32, 32, 3)")
    repaired = "Conv2D(32, kernel_size=8, strides=8)\n    Reshape((-1, 32))"
    assert repair(text) == write_program(repaired, input_shape="(32, 32, 3)")


def test_an_open_length_is_no_batch():
    assert not get_diagnostics(write_program("LSTM(8)", '  loss: "mse"\n', "(None, 7)"))


def test_channels_are_put_last_only_with_a_message():
    first = write_program("Conv2d(3, 8, 3)\n    ReLU()", input_shape="(3, 32, 32)")
    help_text = get_diagnostics(first)[0].helps[0]
    assert help_text.endswith("channels are last here: `input: (32, 32, 3)`")
    repaired = 'Conv2D(8, kernel_size=3, activation="relu")'
    assert repair(first) == write_program(repaired, input_shape="(32, 32, 3)")
    last = write_program("Conv2d(32, kernel_size=3)", input_shape="(32, 32, 3)")
    assert "input: (32, 32, 3)" in repair(last)


@pytest.mark.parametrize(
    ("optimizer", "repaired"),
    [("RMSprop(0.01, rho=0.9)", "Adam(0.01)"), ("Adafactor(lr=1e-3)", "AdamW(learning_rate=1e-3)")],
)
def test_the_nearest_optimizer_is_called_the_nearest(optimizer, repaired):
    text = write_program(rest=f'  loss: "mse"\n  optimizer: {optimizer}\n')
    assert "does not exist here" in get_single_help(text)
    assert f"  optimizer: {repaired}\n" in repair(text)


@pytest.mark.parametrize(
    ("rest", "rate"),
    [
        (
            "scheduler: CosineAnnealingLR(T_max=1000, eta_min=1e-5)",
            "CosineDecay(1e-3, 1000, alpha=0.01)",
        ),
        (
            "lr_scheduler: get_linear_schedule_with_warmup(optimizer, 100, 1000)",
            "LinearDecay(1e-3, 900, warmup_steps=100)",
        ),
        (
            "scheduler: MultiStepLR([30, 80], gamma=0.1)",
            "PiecewiseConstantDecay([30, 80], [0.001, 0.0001, 1e-05])",
        ),
        ("warmup_steps: 500", "Warmup(500, 1e-3)"),
        (
            'train {\n    max_steps: 1000\n    lr_scheduler_type: "cosine"\n    warmup_ratio: 0.1\n  }',
            "CosineDecay(1e-3, 900, warmup_steps=100)",
        ),
    ],
)
def test_a_schedule_becomes_the_learning_rate(rest, rate):
    text = write_program(rest=f'  loss: "mse"\n  optimizer: AdamW(lr=1e-3)\n  {rest}\n')
    repaired = repair(text)
    assert f"AdamW(learning_rate={rate})" in repaired or f"AdamW(lr={rate})" in repaired
    assert not check(repaired, CATALOGUE).errors


# --- Python and JSON ------------------------------------------------------------------------------

PYTHON = {
    "module": "import torch\n\nclass Net(nn.Module):\n    def forward(self, x):\n        return x\n",
    "sequential": "model = keras.Sequential([\n    layers.Dense(64),\n])\n",
    "add": "model.add(Dense(12, input_dim=8))\n",
    "function": "def build(size):\n    return Dense(size)\n",
}


@pytest.mark.parametrize("name", PYTHON)
@pytest.mark.parametrize("fragment", [False, True])
def test_python_is_one_error_that_names_the_way_out(name, fragment):
    (diagnostic,) = check(PYTHON[name], CATALOGUE, fragment=fragment).diagnostics
    assert diagnostic.code == "E0114"
    assert diagnostic.message == "this is Python, not a `.neural` program"
    assert "`neural new`" in diagnostic.helps[0]
    assert "docs/coming-from.md" in diagnostic.helps[1]
    assert (ROOT / "docs" / "coming-from.md").exists()


def test_trained_weights_of_others_are_a_matter_of_import():
    code = 'model = AutoModel.from_pretrained("bert-base-uncased")'
    (diagnostic,) = get_diagnostics(f"{code}\n")
    assert diagnostic.code == "E0114"
    assert any("`neural import`" in text for text in diagnostic.helps)
    layer = 'AutoModel.from_pretrained("bert-base-uncased")'
    assert "`neural import`" in get_single_help(write_program(layer))


def write_module(forward: str) -> str:
    return (
        "import torch\nfrom torch import nn\nsize = 32\n\n"
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.fc1 = nn.Linear(8, size)\n        self.fc2 = nn.Linear(size, 2)\n\n"
        f"    def forward(self, x):\n        {forward}\n\n"
        "criterion = nn.CrossEntropyLoss()\n"
        "optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)\n"
    )


def test_simple_python_is_translated():
    repaired = repair(write_module("return self.fc2(F.relu(self.fc1(x)))"))
    (network,) = check(repaired, CATALOGUE).networks
    assert [repr(item.layer) for item in network.layers] == [
        'Dense(32, activation="relu")',
        "Dense(2)",
    ]
    assert repr(network.loss) == "sparse_categorical_crossentropy()"
    assert repr(network.optimizer) == "Adam()"


@pytest.mark.parametrize(
    "forward",
    ["return self.fc2(self.fc1(x) + x)", "return self.fc2(x, x)", "return self.other(self.fc1(x))"],
)
def test_python_that_computes_is_not_translated(forward):
    (diagnostic,) = get_diagnostics(write_module(forward))
    assert (diagnostic.code, diagnostic.fix) == ("E0114", None)


def test_json_is_one_error():
    (diagnostic,) = get_diagnostics('{\n  "hidden_size": 768,\n  "num_attention_heads": 12\n}\n')
    assert diagnostic.message == "this is JSON, not a `.neural` program"


def test_an_import_above_a_network_is_left_out():
    text = write_program()
    (diagnostic,) = get_diagnostics(f"import torch\n{text}")
    assert diagnostic.code == "E0114"
    assert repair(f"import torch\n{text}") == text


@pytest.mark.parametrize(
    "text",
    [
        write_program(),
        "Adam(\n  learning_rate=ExponentialDecay(0.1, 100, 0.9)\n)\n",
        "# import torch\nDense(5)\n",
        "network Model {\n  input: (3,)\n  layers:\n    Dense(5)\n}\n",
    ],
)
def test_a_program_is_not_taken_for_python(text):
    codes = [item.code for item in check(text, CATALOGUE, fragment=True).diagnostics]
    assert "E0114" not in codes


# --- independent errors ---------------------------------------------------------------------------


def get_codes(layers: str) -> list[str]:
    return [diagnostic.code for diagnostic in get_diagnostics(write_program(layers))]


@pytest.mark.parametrize(
    ("layer", "code"),
    [
        ("Dens(32)", "E0201"),
        ("nn.Linear(64, 32)", "E0201"),
        ('Dense(32, activation="rleu")', "E0213"),
        ('Dense(32, activaton="relu")', "E0202"),
        ("Dense(32, kernel_regularizer=5)", "E0202"),
    ],
)
def test_shape_errors_behind_a_wrong_layer_are_reported_too(layer, code):
    behind = "TransformerEncoder(num_heads=2, d_model=64)\n    Reshape((7, 7))"
    assert get_codes(f"{layer}\n    {behind}") == [code, "E0301", "E0304"]


def test_a_wrong_layer_causes_no_further_errors():
    behind = "TransformerEncoder(num_heads=2, d_model=32)\n    Reshape((3200,))"
    assert get_codes(f"Dens(32)\n    {behind}") == ["E0201"]
    assert get_codes(f"Mystery(32)\n    {behind}") == ["E0201"]
    assert get_codes(f"Conv1D(32, strides=0)\n    {behind}") == ["E0207"]


def test_shape_errors_before_an_unknown_layer_are_reported_too():
    assert get_codes("Reshape((7, 7))\n    Mystery(3)") == ["E0304", "E0201"]


# --- the tables -----------------------------------------------------------------------------------


def test_every_name_of_the_tables_exists_here():
    layers = CATALOGUE.layers
    names = {entry.name for entry in foreign_names.LAYERS.values() if entry.name}
    assert names <= set(layers.names())
    arguments = {
        argument
        for registry in (layers, CATALOGUE.optimizers)
        for name in registry.names()
        for argument in registry.get(name).argument_specs()
    }
    targets = {target for group in argument_names.ARGUMENTS.values() for target in group}
    assert targets - {argument_names.COPIES, "rotary_base"} <= arguments
    losses = {*training_names.LOSSES.values(), *training_names.NEAREST_LOSSES.values()}
    assert losses <= set(CATALOGUE.losses.names())
    optimizers = {*training_names.OPTIMIZERS.values(), *training_names.NEAREST_OPTIMIZERS.values()}
    assert optimizers <= set(CATALOGUE.optimizers.names())
    assert set(training_names.TRAIN_KEYS.values()) <= set(TrainOptions.argument_specs())
    parts = {part.name for item in foreign_names.COMPOUNDS.values() for part in item.parts}
    assert parts <= set(layers.names())


def test_no_foreign_layer_has_the_name_of_a_layer_here():
    tables = (foreign_names.LAYERS, foreign_names.MISSING_LAYERS, foreign_names.COMPOUNDS)
    for table in (*tables, foreign_names.POOLINGS):
        assert not set(table) & set(CATALOGUE.layers.names())


def test_no_word_is_in_two_tables_of_layers():
    tables = (foreign_names.LAYERS, foreign_names.MISSING_LAYERS, foreign_names.COMPOUNDS)
    names = [name for table in (*tables, foreign_names.POOLINGS) for name in table]
    assert len(names) == len(set(names))


def read_documented_rows() -> list[tuple[str, str]]:
    """The rows of the table "What you write elsewhere" in the docs."""
    text = (ROOT / "docs" / "coming-from.md").read_text(encoding="utf-8")
    section = text.partition("## What you write elsewhere")[2].partition("\n## ")[0]
    return re.findall(r"^\| `(.+?)` \| `(.+?)` \|$", section, re.M)


def test_the_table_of_the_docs_says_what_the_hints_say():
    rows = read_documented_rows()
    assert len(rows) >= 20
    for written, here in rows:
        text = f"network Small {{\n  input: (30, 64)\n  layers:\n    Dense(64)\n  {written}\n}}\n"
        if not re.match(r"(loss|optimizer|epochs|train|data|learning_rate)\b", written):
            text = text.replace(f"    Dense(64)\n  {written}", f"    Flatten()\n    {written}")
            text = text.replace("(30, 64)", "(28, 28, 1)") if "onv2" in written else text
            text = text.replace("    Flatten()\n", "")
        if written.startswith("data"):
            text = text.replace(f"  {written}", f"  train {{\n    {written}\n  }}")
        shown = " ".join(repair(text).split())
        assert here in shown, (written, shown)


# --- speed ----------------------------------------------------------------------------------------


def test_hints_need_no_torch():
    code = (
        "import sys; from neural.language.check import check; "
        "from neural.optim.catalogue import CATALOGUE; "
        f"check({write_program('nn.Linear(64, 10)')!r}, CATALOGUE); "
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

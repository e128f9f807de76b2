"""Experiments guessed for data: the task, the keys and the reasons."""

import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from neural.core.diagnostics import SourceText
from neural.core.errors import TaskError
from neural.core.experiment_guess import ExperimentGuess
from neural.core.settings import SettingsError
from neural.tasks import registry as tasks
from neural.training.guess_experiment import add_overrides, guess_experiment, is_data
from neural.training.load_task import load_task, read_experiment

TEXT = "the cat sat on a mat while the old dog ran to the red barn "


def write_table(path, columns):
    """Write a CSV table from columns by name."""
    rows = zip(*columns.values(), strict=True)
    lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines))
    return path


def write_classes(folder, write_file):
    """Write four files in each of two class folders."""
    for name in ("cats", "dogs"):
        (folder / name).mkdir(parents=True)
        for number in range(4):
            write_file(folder / name / str(number))
    return folder


@pytest.mark.parametrize(("repeats", "preset"), [(20, "tiny"), (12_000, "nanogpt_cpu")])
def test_a_text_is_a_language_model_with_a_preset_for_its_size(repeats, preset, tmp_path):
    path = tmp_path / "novel.txt"
    path.write_text(TEXT * repeats)
    guess = guess_experiment(path)
    assert guess.settings == {
        "task": "language_model",
        "name": "novel",
        "data": str(path),
        "preset": preset,
    }
    assert "a language model of its characters" in guess.reasons[0]


def test_a_table_with_words_as_target_is_a_classification(tmp_path):
    rng = np.random.default_rng(0)
    columns = {
        "customer_id": range(60),
        "age": ["" if row == 7 else int(rng.integers(18, 80)) for row in range(60)],
        "city": rng.choice(["Paris", "Rome", "Oslo"], 60),
        "remark": [f"remark {row}" for row in range(60)],
        "kind": rng.choice(["new", "old"], 60),
    }
    guess = guess_experiment(write_table(tmp_path / "data.csv", columns))
    assert guess.settings["table"] == {
        "target": "kind",
        "id": "customer_id",
        "drop": ("remark",),
        "categorical": ("city", "kind"),
        "impute": "median",
        "standardize": True,
    }
    assert "2 classes (new, old)" in guess.reasons[0]
    assert "remark" in guess.reasons[-1]
    task = load_task(tmp_path / "data.csv")
    assert task.network.input == (4,), "age and three cities"
    assert task.network.output == (2,)


@pytest.mark.parametrize(
    ("target", "is_class"),
    [
        (np.arange(60) % 3, True),
        (np.arange(60) / 7, False),
        (np.arange(60), False),
    ],
    ids=["few whole numbers", "fractions", "many whole numbers"],
)
def test_numbers_are_classes_if_they_are_whole_and_few(target, is_class, tmp_path):
    columns = {"a": np.linspace(0, 1, 60), "price": target}
    path = write_table(tmp_path / "data.csv", columns)
    guess = guess_experiment(path)
    assert ("classes" in guess.reasons[0]) == is_class
    network = load_task(path).network
    assert network.output == ((3,) if is_class else (1,))
    assert guess.settings.get("standardize_target", False) == (not is_class)


def test_the_target_is_found_by_its_name_wherever_it_is(tmp_path):
    columns = {"label": ["a", "b"] * 20, "x": range(40), "z": range(40)}
    guess = guess_experiment(write_table(tmp_path / "data.csv", columns))
    assert guess.settings["table"]["target"] == "label"


def test_a_rare_category_that_is_held_out_does_not_change_the_network(tmp_path):
    """The network has an input per category of the training rows, known only after the split."""
    cities = [f"city{row // 2}" for row in range(60)]
    columns = {"city": cities, "x": range(60), "kind": ["new", "old"] * 30}
    for name in ("first.csv", "second.csv"):
        path = write_table(tmp_path / name, columns)
        task = load_task(path)
        assert task.network.input == (len(task.data.preprocessor.output_names),)
        columns["city"] = [*cities[:-1], "only once"]


def test_a_table_without_header_is_named_by_column_numbers(tmp_path):
    rows = [f"{row},{row % 5},{row % 2}" for row in range(40)]
    (tmp_path / "data.csv").write_text("\n".join(rows))
    assert guess_experiment(tmp_path / "data.csv").settings["table"]["target"] == 3
    assert load_task(tmp_path / "data.csv").network.output == (2,)


def test_a_folder_per_class_of_images_is_a_classification(tmp_path):
    pixels = np.arange(30 * 21, dtype=np.uint8).reshape(30, 21) % 251
    folder = write_classes(
        tmp_path / "pets", lambda path: Image.fromarray(pixels).save(f"{path}.png")
    )
    guess = guess_experiment(folder)
    assert guess.settings["task"] == "supervised"
    assert "8 images in 2 folders (cats, dogs)" in guess.reasons[0]
    assert load_task(folder).network.input == (20, 20, 1)


def test_a_folder_per_class_of_texts_is_a_classification(tmp_path):
    folder = write_classes(
        tmp_path / "reviews", lambda path: path.with_suffix(".txt").write_text("über " * 30)
    )
    assert "8 texts in 2 folders" in guess_experiment(folder).reasons[0]
    assert load_task(folder).network.takes_token_ids


@pytest.mark.parametrize(
    ("text", "task", "preset"),
    [
        ("road night\nriver home\n\ncarry home\nsing again\n", "segmentation", "songs"),
        (
            "# One\n\n"
            + "A sentence about the first of the topics in this text. " * 3
            + "\n\n# Two\n\n"
            + "Another one is about the second topic, and it is longer. " * 3,
            "segmentation",
            "articles",
        ),
        ("one paragraph without any mark of a boundary\n" * 3, "language_model", "tiny"),
    ],
    ids=["stanzas", "headings", "no boundaries"],
)
def test_a_folder_of_texts_is_a_segmentation_if_its_files_have_segments(
    text, task, preset, tmp_path
):
    folder = tmp_path / "folder"
    folder.mkdir()
    for number in range(12):
        (folder / f"{number}.txt").write_text(text)
    settings = guess_experiment(folder).settings
    assert (settings["task"], settings["preset"]) == (task, preset)


def test_a_folder_of_few_or_long_texts_is_a_language_model(tmp_path):
    stanzas = "road night\nriver home\n\ncarry home\nsing again\n\n"
    for name, count, repeats in (("few", 3, 1), ("long", 12, 3000)):
        (tmp_path / name).mkdir()
        for number in range(count):
            (tmp_path / name / f"{number}.txt").write_text(stanzas * repeats)
        assert guess_experiment(tmp_path / name).settings["task"] == "language_model"


def test_documents_in_json_lines_are_a_segmentation_and_rows_a_table(tmp_path):
    (tmp_path / "songs.jsonl").write_text('{"lines": ["a", "b", "c"], "boundaries": [2]}\n' * 12)
    assert guess_experiment(tmp_path / "songs.jsonl").settings["task"] == "segmentation"
    (tmp_path / "rows.jsonl").write_text(
        "".join(f'{{"x": {row}, "kind": "{"ab"[row % 2]}"}}\n' for row in range(20))
    )
    assert guess_experiment(tmp_path / "rows.jsonl").settings["task"] == "supervised"


def test_a_task_of_another_package_takes_part(tmp_path, monkeypatch):
    (tmp_path / "notes.txt").write_text("words")
    guess = ExperimentGuess({"task": "focus", "data": "notes.txt"}, ("focus data",), 1.0)
    monkeypatch.setattr(tasks.get("focus"), "guess", lambda path, overrides: guess)
    assert guess_experiment(tmp_path / "notes.txt") is guess


def test_a_folder_with_the_name_of_a_data_set_is_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "handbook").mkdir()
    (tmp_path / "handbook" / "a.txt").write_text("words " * 100)
    assert guess_experiment(Path("handbook")).settings["data"] == "./handbook"


def test_unknown_data_is_answered_with_what_is_known(tmp_path):
    (tmp_path / "data.bin").write_bytes(b"\0\1")
    with pytest.raises(TaskError, match=r"no task can be guessed .* captions, focus, language_mod"):
        guess_experiment(tmp_path / "data.bin")


def test_programs_experiments_and_runs_are_no_data(tmp_path):
    (tmp_path / "net.neural").write_text("")
    (tmp_path / "net.txt").write_text("network Tiny {\n")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "status.json").write_text("{}")
    assert not any(
        is_data(tmp_path / name) for name in ("net.neural", "net.txt", "run", "missing.txt")
    )


def test_the_yaml_of_a_guess_has_its_settings():
    settings = {
        "task": "supervised",
        "name": "no",
        "data": "über: 1.csv",
        "table": {"target": 3, "drop": ["a b", "c: d"], "standardize": True},
        "network": "network Tiny {\n\n  input: (3,)\n}\n",
    }
    text = ExperimentGuess(settings, (), 1.0).to_yaml()
    assert 'name: "no"' in text, "a bare word would be false"
    experiment = read_experiment(SourceText("guess.yaml", text))
    assert (experiment.name, experiment.data) == ("no", "über: 1.csv")
    assert experiment.network == settings["network"]
    assert experiment.table.drop == ("a b", "c: d")


def write_patients(folder, rows=60):
    """Write a table with numbers, categories, dates, notes and two possible targets."""
    rng = np.random.default_rng(0)
    columns = {
        "age": rng.integers(18, 80, rows),
        "ward": rng.choice(["a", "b"], rows),
        "admitted": [f"2024-01-{1 + row % 5:02}" for row in range(rows)],
        "note": [f"note {row}" for row in range(rows)],
        "stay_days": np.round(rng.normal(9, 2, rows), 2),
        "outcome": rng.choice(["home", "other"], rows),
    }
    return write_table(folder / "patients.csv", columns)


def test_the_guess_follows_the_target_of_the_user(tmp_path):
    path = write_patients(tmp_path)
    guess = guess_experiment(path, ["table.target=stay_days", "training.steps=2"])
    assert guess.settings["table"]["target"] == "stay_days"
    assert guess.settings["table"]["categorical"] == ("ward", "outcome")
    assert "predicts `stay_days`, a number" in guess.reasons[0]
    assert guess.used_overrides == ("table.target=stay_days",)
    task = load_task(path, ["table.target=stay_days", "training.steps=2"])
    assert task.experiment.table.target == "stay_days"
    assert task.experiment.training.steps == 2


@pytest.mark.parametrize(
    ("override", "table", "width"),
    [
        ("table.drop=[ward]", {"drop": ("ward", "admitted", "note")}, 2),
        ("table.features=[ward, age]", {"features": ("ward", "age")}, 3),
        ("table.categorical=[admitted]", {"categorical": ("ward", "admitted", "outcome")}, 9),
        ("table.id=note", {"id": "note", "drop": ("admitted",)}, 4),
        ("table.group=ward", {"group": "ward"}, 2),
        ("table.standardize=false", {"standardize": False}, 4),
        ("table={target: ward, drop: [age]}", {"target": "ward"}, 3),
    ],
)
def test_the_guess_follows_the_columns_of_the_user(override, table, width, tmp_path):
    path = write_patients(tmp_path)
    settings = guess_experiment(path, [override]).settings["table"]
    assert {key: settings[key] for key in table} == table
    assert load_task(path, [override]).network.input == (width,)


def test_a_wrong_override_of_the_table_is_a_message(tmp_path):
    path = write_patients(tmp_path)
    with pytest.raises(TaskError, match=r"no column `stay_dayz`.*did you mean `stay_days`"):
        guess_experiment(path, ["table.target=stay_dayz"])
    with pytest.raises(SettingsError, match="traget"):
        guess_experiment(path, ["table.traget=stay_days"])


def test_the_reason_for_leaving_a_column_out_is_that_of_its_cells(tmp_path):
    path = tmp_path / "data.csv"
    lines = [
        f'2024-01-{1 + row % 5:02},"1,{row}",ok,text {row},{row / 2},x{row % 2}'
        for row in range(20)
    ]
    path.write_text("\n".join(["day,price,state,remark,size,kind", *lines]))
    guess = guess_experiment(path)
    assert guess.reasons[1:] == (
        "1 column of numbers is 1 input",
        "left out, because the cells are dates: day",
        "left out, because it looks like a number with a decimal comma: price",
        "left out, because all rows have the same text: state",
        "left out, because almost every row has another text: remark",
    )


def test_a_table_without_a_usable_column_is_a_message(tmp_path):
    lines = [f"2024-01-{1 + row:02},x{row % 2}" for row in range(20)]
    (tmp_path / "data.csv").write_text("\n".join(["day,kind", *lines]))
    with pytest.raises(TaskError, match=r"no column is left for the inputs; .*dates: `day`"):
        guess_experiment(tmp_path / "data.csv")


def test_decimal_commas_are_read_and_named(tmp_path):
    lines = [f"{row},5;{row % 7};{'xy'[row % 2]}" for row in range(30)]
    (tmp_path / "data.csv").write_text("\n".join(["size;age;kind", *lines]))
    guess = guess_experiment(tmp_path / "data.csv")
    assert "2 columns of numbers are 2 inputs" in guess.reasons
    note = "data.csv: numbers with a decimal comma are read in `size`"
    assert note in guess.reasons
    assert note in load_task(tmp_path / "data.csv").notes


@pytest.mark.parametrize(("rows", "has_test"), [(199, False), (200, True)])
def test_a_table_of_enough_rows_gets_test_rows(rows, has_test, tmp_path):
    path = write_patients(tmp_path, rows)
    settings = guess_experiment(path).settings
    assert (settings.get("test"), settings.get("stratify")) == (
        (0.2, True) if has_test else (None, None)
    )
    assert len(load_task(path).data.test_indices) == (40 if has_test else 0)
    numbers = guess_experiment(path, ["table.target=stay_days"]).settings
    assert "stratify" not in numbers
    assert ("test" in numbers) == has_test


def test_a_spreadsheet_should_be_saved_as_csv(tmp_path):
    (tmp_path / "data.xlsx").write_bytes(b"PK\3\4\0\xff")
    with pytest.raises(TaskError, match=r"data.xlsx is a spreadsheet; save it as CSV"):
        guess_experiment(tmp_path / "data.xlsx")


def test_overrides_are_shown_and_saved_with_the_guess():
    guess = ExperimentGuess({"task": "language_model", "training": {"seed": 1}}, ("a text",), 1.0)
    changed = add_overrides(guess, ["training.steps=100", "preset=full"])
    assert changed.settings == {
        "task": "language_model",
        "training": {"seed": 1, "steps": 100},
        "preset": "full",
    }


@pytest.mark.parametrize("overrides", [(), ("table.categorical=[age]",), ("table.drop=[age]",)])
def test_one_word_among_many_numbers_is_named_and_the_column_not_left_out(overrides, tmp_path):
    ages = ["forty" if row == 5 else 18 + row % 70 for row in range(300)]
    columns = {"age": ages, "size": range(300), "kind": ["new", "old"] * 150}
    path = write_table(tmp_path / "data.csv", columns)
    if overrides:
        guess_experiment(path, overrides)
        return
    with pytest.raises(
        TaskError,
        match=r"data.csv: line 7, column `age`: 1 of 300 cells is not a number \(`forty`\); .*"
        r"`table.categorical: \[age\]`.*`table.drop: \[age\]`",
    ):
        guess_experiment(path)


def test_words_among_few_whole_numbers_are_categories(tmp_path):
    rooms = ["6+" if row % 20 == 0 else 1 + row % 5 for row in range(100)]
    columns = {"rooms": rooms, "size": range(100), "kind": ["new", "old"] * 50}
    guess = guess_experiment(write_table(tmp_path / "data.csv", columns))
    assert guess.settings["table"]["categorical"] == ("rooms", "kind")


def test_a_column_of_many_texts_is_left_out_for_this_reason(tmp_path):
    streets = [f"street {row % 60}" for row in range(300)]
    columns = {"street": streets, "size": range(300), "kind": ["new", "old"] * 150}
    guess = guess_experiment(write_table(tmp_path / "data.csv", columns))
    assert "left out, because it has 60 different texts: street" in guess.reasons


def test_ten_thousand_columns_take_time_in_proportion(tmp_path):
    seconds = {}
    for count in (10, 1_000, 10_000):  # the first imports modules
        columns = {f"c{number}": (number, 1, 2) for number in range(count)}
        path = write_table(tmp_path / f"{count}.csv", columns)
        start = time.process_time()
        guess_experiment(path)
        seconds[count] = time.process_time() - start
    assert seconds[10_000] < 25 * seconds[1_000]


def test_a_target_of_one_value_is_named(tmp_path):
    columns = {"size": range(30), "y": ["x"] * 30}
    path = write_table(tmp_path / "data.csv", columns)
    with pytest.raises(TaskError, match=r"data.csv: the target `y` is `x` in every row; "):
        guess_experiment(path)

"""Headlines of captured models."""

from click.testing import CliRunner

from neural.cli.main import main
from neural.report.run_report import build_page_data
from neural.runs.run import Run
from tests.hugging_face_folders import (
    TEXTS,
    build_gpt2,
    plant_previous_token_head,
    save_folder,
    train_tokenizer,
)


def watch(tmp_path, *models):
    tokenizer = train_tokenizer()
    folders = [
        save_folder(tmp_path / f"checkpoint-{number}", model(tokenizer), tokenizer)
        for number, model in enumerate(models)
    ]
    arguments = ["watch", *map(str, folders), "-i", TEXTS[0], "--save", "--name", "planted"]
    result = CliRunner().invoke(main, [*arguments, "--runs", str(tmp_path / "runs")])
    assert result.exit_code == 0, result.output
    (path,) = (tmp_path / "runs").iterdir()
    with Run.open(path) as run:
        (experiment,) = build_page_data([run])["experiments"]
    return experiment


def test_one_model_has_its_roles_in_the_headline(tmp_path):
    experiment = watch(tmp_path, lambda tokenizer: plant_previous_token_head(build_gpt2(tokenizer)))
    assert experiment["headline"] == "1 of 4 heads has a role: 1 previous token"
    assert experiment["figures"][0]["kind"] == "head_grid"
    assert experiment["link"]["route"]["layer"] == 1 and experiment["link"]["route"]["head"] == 0


def test_a_series_of_checkpoints_says_that_the_role_was_found(tmp_path):
    def untrained(tokenizer):
        return plant_previous_token_head(build_gpt2(tokenizer), sharpness=0.0)

    def trained(tokenizer):
        return plant_previous_token_head(build_gpt2(tokenizer))

    experiment = watch(tmp_path, untrained, untrained, trained, trained)
    assert experiment["headline"] == "From uniform attention, 1 of 4 heads found a role"

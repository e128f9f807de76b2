"""`neural compile`, as a user types it."""

import pytest
from click.testing import CliRunner

from neural import compiling
from neural.cli.main import main

LINEAR = """network Linear {
  input: (9, 8)
  layers:
    TransformerEncoder(num_heads=2, attention="linear")
    Dense(3)
}
"""


def typed(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "net.neural"
    path.write_text(LINEAR)
    return path


def test_a_network_with_names_that_meet_runs_as_written(program, tmp_path):
    out = tmp_path / "net.py"
    done = typed("compile", program, "-o", out)
    assert done.exit_code == 0, done.output
    assert (
        "equal to the network at (2, 9, 8), (3, 8, 8), (1, 5, 8): the largest difference is"
        in done.stderr
    )
    namespace = {"__name__": "__main__"}
    exec(compile(out.read_text(), "net", "exec", dont_inherit=True), namespace)
    assert "LinearNetwork" in namespace


def test_a_file_that_differs_is_not_put_in_place(program, tmp_path, monkeypatch):
    write = compiling.write_network
    monkeypatch.setattr(
        compiling,
        "write_network",
        lambda given: write(given)._replace(text=write(given).text.replace("elu(", "relu(")),
    )
    out = tmp_path / "net.py"
    out.write_text("old")
    for words in (["compile", program, "-o", out], ["compile", program]):
        done = typed(*words)
        assert done.exit_code == 2
        assert not done.stdout
        assert "is not the network: it differs by" in done.stderr
        assert done.stderr.strip().endswith("nothing was written")
        assert "Traceback" not in done.stderr
    assert out.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["net.neural", "net.py"]


def test_json_needs_no_comparison(program):
    done = typed("compile", program, "--to", "json")
    assert done.exit_code == 0 and '"Linear"' in done.stdout

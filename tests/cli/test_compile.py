"""`neural compile`, as a user types it."""

import pytest
from click.testing import CliRunner

from neural.cli.main import main
from neural.workflows import compile as compile_workflow

LINEAR = """network Linear {
  input: (9, 8)
  layers:
    TransformerEncoder(num_heads=2, attention="linear")
    Dense(3)
}
"""


def invoke(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "net.neural"
    path.write_text(LINEAR)
    return path


def test_a_network_whose_names_collide_with_python_compiles(program, tmp_path):
    out = tmp_path / "net.py"
    result = invoke("compile", program, "-o", out)
    assert result.exit_code == 0, result.output
    assert (
        "equal to the network at (2, 9, 8), (3, 8, 8), (1, 5, 8): the largest difference is"
        in result.stderr
    )
    namespace = {"__name__": "__main__"}
    exec(compile(out.read_text(), "net", "exec", dont_inherit=True), namespace)
    assert "LinearNetwork" in namespace


def test_a_file_that_differs_is_not_put_in_place(program, tmp_path, monkeypatch):
    write = compile_workflow.write_network
    monkeypatch.setattr(
        compile_workflow,
        "write_network",
        lambda network: write(network)._replace(text=write(network).text.replace("elu(", "relu(")),
    )
    out = tmp_path / "net.py"
    out.write_text("old")
    for words in (["compile", program, "-o", out], ["compile", program]):
        result = invoke(*words)
        assert result.exit_code == 2
        assert not result.stdout
        assert "does not match the network: it differs by" in result.stderr
        assert result.stderr.strip().endswith("nothing was written")
        assert "Traceback" not in result.stderr
    assert out.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["net.neural", "net.py"]


def test_json_needs_no_comparison(program):
    result = invoke("compile", program, "--to", "json")
    assert result.exit_code == 0 and '"Linear"' in result.stdout

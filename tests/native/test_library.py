"""The native library: its levels, its switches, its threads, and what happens without it."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from neural.native.library import (
    LEVELS,
    NativeFunction,
    NativeLibraryError,
    available_levels,
    connect_torch_threads,
    current_level,
    find_library,
    force_level,
    load_library,
    native_available,
    no_kernels,
)

pytestmark = pytest.mark.needs_compiler
ROOT = Path(__file__).parents[2]


def run_python(code: str, **variables: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, **variables}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )


def test_the_library_was_built_and_the_best_level_is_used():
    """Without this test, a failed build would only make everything slower."""
    assert load_library() is not None
    assert available_levels()[0] == "baseline"
    assert current_level() == available_levels()[-1]


@pytest.mark.parametrize("level", available_levels())
def test_a_level_can_be_forced(level):
    square = NativeFunction("squared_relu_forward", "pp ii")
    values, out = np.array([-1.0, 3.0], np.float32), np.empty(2, np.float32)
    with force_level(level):
        assert current_level() == level
        square(values.ctypes.data, out.ctypes.data, 2, 1)
    assert out.tolist() == [0, 9]


def test_the_environment_chooses_a_level():
    code = "from neural.native.library import current_level; print(current_level())"
    assert run_python(code, NEURAL_KERNELS="baseline").stdout == "baseline\n"
    assert run_python(code, NEURAL_KERNELS="off").stdout == "None\n"
    message = run_python(code, NEURAL_KERNELS="fast").stderr
    assert "NEURAL_KERNELS=fast: this machine has on, off, baseline" in message


def test_a_library_that_is_not_there_is_named():
    code = "from neural.native.library import load_library; load_library()"
    message = run_python(code, NEURAL_NATIVE_LIBRARY="nowhere.so").stderr
    assert "NEURAL_NATIVE_LIBRARY: there is no file nowhere.so" in message


def test_a_broken_library_is_named_with_a_way_out(tmp_path):
    file = tmp_path / "broken.so"
    file.write_bytes(b"no library")
    code = "from neural.native.library import native_available; print(native_available())"
    done = run_python(code, NEURAL_NATIVE_LIBRARY=str(file))
    assert "broken.so cannot be loaded" in done.stderr
    assert "NEURAL_KERNELS=off does without it" in done.stderr
    done = run_python(code, NEURAL_NATIVE_LIBRARY=str(file), NEURAL_KERNELS="off")
    assert done.stdout == "False\n"


def test_no_kernels_nests():
    with no_kernels():
        with no_kernels():
            assert not native_available()
        assert not native_available()
    assert native_available()


def test_a_function_that_does_not_exist_is_named():
    with pytest.raises(NativeLibraryError, match="no function nothing_like_this"):
        NativeFunction("nothing_like_this", "p")(0)
    with no_kernels(), pytest.raises(NativeLibraryError, match="kernels are off"):
        NativeFunction("squared_relu_forward", "pp ii")(0, 0, 0, 1)
    with pytest.raises(NativeLibraryError, match="is not among"), force_level("avx1024"):
        pass


def test_importing_the_loader_imports_neither_torch_nor_numpy():
    code = "import sys, neural.native.library; print({'torch', 'numpy'} & set(sys.modules))"
    assert run_python(code).stdout == "set()\n"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_kernels_share_torchs_openmp_runtime_and_respect_its_thread_count():
    """One runtime in the process; as many threads as torch.set_num_threads says."""
    code = """
import torch
from neural.nn.activations import SquaredReLU
def count_threads():
    return len(__import__("os").listdir("/proc/self/task"))
torch.set_num_threads(1)
x = torch.randn(1000, 1000)
SquaredReLU()(x)
before = count_threads()
torch.set_num_threads(3)
SquaredReLU()(x)
print(count_threads() - before, torch.get_num_threads())
(x @ x).sum()
print(count_threads() - before)
maps = open("/proc/self/maps").read().split()
print(len({path for path in maps if "libgomp" in path or "libiomp" in path or "libomp" in path}))
"""
    done = run_python(code, OMP_NUM_THREADS="3")
    assert done.stdout.split() == ["2", "3", "2", "1"], done


def test_the_library_needs_no_runtime_but_that_of_c():
    """No C++ runtime and no OpenMP: so it loads wherever Python does, and brings no threads."""
    import torch  # noqa: F401 - its threads are connected

    path = find_library()
    assert path is not None
    names = path.read_bytes()
    assert b"libstdc++" not in names
    assert b"libgomp" not in names
    assert connect_torch_threads()


def test_the_levels_are_those_of_the_source():
    source = (ROOT / "src/neural/native/levels.cpp").read_text(encoding="utf-8")
    documented = source.partition("// Bits 0 ")[2].partition(":")[0]
    assert [name for name in LEVELS if name in documented.replace(",", " ").split()] == list(LEVELS)


def test_kernels_run_without_torch_on_one_thread():
    code = """
import sys
import numpy as np
from neural.native.library import NativeFunction
values = np.linspace(-1, 1, 100_000, dtype=np.float32)
out = np.empty_like(values)
NativeFunction("squared_relu_forward", "pp ii")(
    values.ctypes.data, out.ctypes.data, values.size, 8
)
assert np.array_equal(out, np.maximum(values, 0) ** 2)
assert "torch" not in sys.modules
print("equal")
"""
    assert run_python(code).stdout == "equal\n"

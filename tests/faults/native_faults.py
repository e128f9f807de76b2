"""Faults of native kernels: each a small change of a C++ source, and tests that must notice it."""

from dataclasses import dataclass

KERNELS = "tests/nn/kernels/"
MEASURES = "tests/contract/test_measures.py::"
LOCALIZED = "tests/nn/attention/test_localized.py::test_all_shapes_on_every_level"


@dataclass(frozen=True)
class NativeFault:
    """A change of one kernel; the tests pass without it and fail with it."""

    name: str
    kernel: str
    """File in native/kernels, without its suffix."""
    old: str
    """Text that is in the file exactly once."""
    new: str
    tests: tuple[str, ...]


NATIVE_FAULTS = (
    NativeFault(
        "the window is off by one",
        "localized",
        "causal ? position + 1 : position + reach + 1;",
        "causal ? position + 1 : position + reach;",
        (LOCALIZED,),
    ),
    NativeFault(
        "the gradient of a softmax forgets its mean",
        "localized",
        "load(weight + c) * (load(grad_score + c) - mean) * shape.scale",
        "load(weight + c) * load(grad_score + c) * shape.scale",
        (LOCALIZED,),
    ),
    NativeFault(
        "the previous token is the current one",
        "attention_statistics",
        "single[1] = row.score(query - 1, end);",
        "single[1] = row.score(query, end);",
        (MEASURES + "test_the_pass_over_rows_equals_the_reference[none-previous_token_mass]",),
    ),
    NativeFault(
        "a sink has a distance",
        "attention_statistics",
        "const int64_t extra_key = max_of(row.low, end);",
        "const int64_t extra_key = row.high;",
        (MEASURES + "test_the_pass_over_rows_equals_the_reference[extra-span]",),
    ),
    NativeFault(
        "the gradient of a norm is its factor alone",
        "normalize_rotate",
        "result[d] = factor * result[d] - projection * vector[d];",
        "result[d] = factor * result[d];",
        (KERNELS + "test_normalize_rotate.py::test_values_and_gradients_equal_those_of_torch",),
    ),
    NativeFault(
        "the gradient of a bias loses its sum over queries",
        "flash_bias",
        "store(grad_bias + j, load(grad_bias + j) + ds);",
        "store(grad_bias + j, ds);",
        (KERNELS + "test_boundary_aware.py::test_every_level_equals_the_definition",),
    ),
    NativeFault(
        "additive attention's gradient of u has the wrong factor",
        "additive",
        "float(-2 * sum.grad_u[d])",
        "float(2 * sum.grad_u[d])",
        (KERNELS + "test_additive.py::test_every_level_equals_the_definition",),
    ),
    NativeFault(
        "causal linear attention does not see its own position",
        "linear_attention",
        "sum(buffers.products + i * CHUNK, i + 1)",
        "sum(buffers.products + i * CHUNK, i)",
        (KERNELS + "test_linear.py::test_every_level_equals_the_definition",),
    ),
    NativeFault(
        "the forget gate of the LSTM is forgotten",
        "segmenter",
        "forget * load(cell + i) + input * change",
        "load(cell + i) + input * change",
        ("tests/tasks/segmentation/test_numpy_segmenter.py",),
    ),
    NativeFault(
        "Muon does not decay the weights",
        "muon_step",
        "row[j] * settings.decay - rate",
        "row[j] - rate",
        ("tests/optim/test_batched_muon.py",),
    ),
)

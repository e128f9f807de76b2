"""Faults of native kernels: each a small change of a C++ source, and tests that must notice it."""

from dataclasses import dataclass

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
)

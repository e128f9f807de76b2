"""`neural.interventions` offers the changes of heads and of blocks."""

import inspect

import neural
from neural.capture import blocks, interventions


def test_all_public_changes_are_offered():
    offered = set(neural.interventions.__all__)
    for module in (blocks, interventions):
        for name, function in inspect.getmembers(module, inspect.isfunction):
            returns = str(inspect.signature(function).return_annotation)
            if function.__module__ == module.__name__ and returns.endswith("Intervention"):
                assert name in offered
                assert getattr(neural.interventions, name) is function
    assert {"zero", "zero_mlp", "skip_layer", "patch_residual", "record_residual"} <= offered

"""What is wrong with an experiment file: its settings alone, without the data and the network that it names."""

from __future__ import annotations

import re

from neural.core.diagnostics import Diagnostic, Source

_TASK = re.compile(r"""^task[ \t]*:[ \t]*["']?([\w-]+)""", re.M)


def experiment_diagnostics(text: str) -> tuple[Diagnostic, ...]:
    """Every mistake in the settings; nothing about a YAML file that does not look like an experiment."""
    named = _TASK.search(text)
    if named is None:
        return ()
    from neural.core.settings import SettingsError  # pydantic, only for files that begin like one of ours
    from neural.tasks import registry
    from neural.tasks.experiment import read_experiment

    if registry.guess(named[1]) is None:
        return ()
    try:
        read_experiment(Source("experiment.yaml", text), choose=lambda name: registry.get(name).Settings)
    except SettingsError as wrong:
        return wrong.diagnostics
    return ()

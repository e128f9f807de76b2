"""Experiments of synthetic runs, as headlines are written about them."""

from neural.report.headline import ExperimentGroup
from neural.report.run_report import analyze_group
from tests.findings.synthetic_runs import write_synthetic_run


def write_group(root, label="model", *, seeds=1, folds=0, scores=None, **data):
    """A group of runs; `scores(seed, fold)` are its scalars, `data` as of `write_synthetic_run`."""
    settings = data.pop("settings", {})
    runs = [
        write_synthetic_run(
            root,
            seed,
            scalars=scores(seed, fold) if scores else data.get("scalars"),
            settings=settings
            | {"name": f"{label}_seed-{seed}"}
            | ({"fold": f"{fold}/{folds}"} if folds else {}),
            **{key: value for key, value in data.items() if key != "scalars"},
        )
        for fold in (range(1, folds + 1) if folds else [None])
        for seed in range(seeds)
    ]
    return create_group(label, runs)


def create_group(label, runs):
    """A group of runs that are on disk."""
    run_ids = [run.name for run in runs]
    return ExperimentGroup(
        label=label, runs=runs, run_ids=run_ids, findings=analyze_group(runs, run_ids)
    )

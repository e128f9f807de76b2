"""Contract of the calibration methods: defined for all scores, never worse, equal after loading."""

import json
import sys

import numpy as np
import pytest

from neural.core.names import normalize_name
from neural.tasks.segmentation.calibration import registry
from neural.tasks.segmentation.calibration_selection import calibrator_from_dict
from neural.tasks.segmentation.probability import (
    check_scores,
    log_loss,
    probabilities_to_margins,
    scores_to_probabilities,
)

N = 211
every_method = pytest.mark.parametrize("name", registry.names())


def make_scores(width: int, *, count: int = N, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Scores of an overconfident model that favours the first class, with the true classes."""
    random = np.random.default_rng(seed)
    scores = random.normal(0, 3, (count, width)) if width > 1 else random.normal(-1, 3, count)
    right = scores_to_probabilities(0.5 * scores + (np.arange(width) if width > 1 else 0.7))
    if width == 1:
        return scores, (random.random(count) < right).astype(int)
    return scores, (random.random((count, 1)) > right.cumsum(axis=1)).sum(axis=1).clip(0, width - 1)


def make_cases(width: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Inputs of a fit, by difficulty."""
    scores, truth = make_scores(width)
    shape = (N,) if width == 1 else (N, width)
    likely = (scores > 0).astype(int) if width == 1 else scores.argmax(axis=1)
    certain = (likely if width == 1 else np.eye(width)[likely]).astype(float)
    return {
        "usual": (scores, truth),
        "one element": (scores[:1], truth[:1]),
        "two elements": (scores[:2], np.array([1, 0])),
        "one class": (scores, np.ones(N, int)),
        "the other class": (scores, np.zeros(N, int)),
        "all right": (scores, likely),
        "all wrong": (scores, 1 - likely if width == 1 else (likely + 1) % width),
        "all alike": (np.full(shape, 2.5), truth),
        "all zero": (np.zeros(shape), truth),
        "few different": (np.round(scores), truth),
        "huge": (scores * 1e8, truth),
        "tiny": (scores * 1e-8, truth),
        "infinite": (np.where(scores > 0, np.inf, -np.inf), truth),
        "one far away": (np.concatenate([scores[:-1], 1e6 * scores[-1:]]), truth),
        "certain and sometimes wrong": (probabilities_to_margins(certain), truth),
        "32 bits": (scores.astype(np.float32), truth),
    }


CASES = {width: make_cases(width) for width in (1, 2, 3)}
accepted_widths = pytest.mark.parametrize(
    ("name", "width"),
    [
        (name, width)
        for name in registry.names()
        for width in CASES
        if registry.get(name).accepts(check_scores(CASES[width]["usual"][0]))
    ],
)
every_case = pytest.mark.parametrize("case", CASES[1])


@accepted_widths
@every_case
def test_a_fit_is_never_worse_than_no_calibration(name, width, case):
    scores, truth = CASES[width][case]
    fitted = registry.get(name).fit(scores, truth)
    assert log_loss(fitted(scores), truth) <= log_loss(
        scores_to_probabilities(check_scores(scores)), truth
    )


@accepted_widths
@every_case
def test_probabilities_are_probabilities_also_of_other_scores(name, width, case):
    fitted = registry.get(name).fit(*CASES[width][case])
    for other, _ in CASES[width].values():
        p = fitted(other)
        assert p.shape == other.shape
        assert p.dtype == np.float64
        assert ((p >= 0) & (p <= 1)).all()
        if width > 1:
            np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)


@accepted_widths
@every_case
def test_a_loaded_calibration_gives_what_the_fitted_one_gave(name, width, case, tmp_path):
    fitted = registry.get(name).fit(*CASES[width][case])
    (tmp_path / "saved.json").write_text(
        json.dumps(fitted.to_dict(), allow_nan=False), encoding="utf-8"
    )
    loaded = calibrator_from_dict(json.loads((tmp_path / "saved.json").read_text(encoding="utf-8")))
    assert type(loaded) is type(fitted)
    for scores, _ in CASES[width].values():
        np.testing.assert_allclose(loaded(scores), fitted(scores), rtol=0, atol=1e-7)


@accepted_widths
def test_an_unfitted_method_changes_nothing(name, width):
    scores, _ = CASES[width]["usual"]
    np.testing.assert_allclose(
        registry.get(name)()(scores), scores_to_probabilities(scores), rtol=1e-12
    )


@accepted_widths
def test_the_order_of_the_elements_does_not_matter(name, width):
    scores, truth = CASES[width]["usual"]
    order = np.random.default_rng(1).permutation(N)
    first, second = (
        registry.get(name).fit(scores[indices], truth[indices]) for indices in (np.arange(N), order)
    )
    np.testing.assert_allclose(first(scores), second(scores), rtol=1e-6)


@accepted_widths
def test_only_differences_between_logits_matter(name, width):
    scores, truth = CASES[width]["usual"]
    if width == 1:
        two = np.stack([np.full(N, 3.0), scores + 3], axis=1)
        if registry.get(name).accepts(two):
            yes = registry.get(name).fit(two, truth)(two)[:, 1]
            np.testing.assert_allclose(
                yes, registry.get(name).fit(scores, truth)(scores), rtol=1e-6
            )
    else:
        moved = scores + np.arange(N)[:, None]
        fitted = registry.get(name).fit(scores, truth)
        np.testing.assert_allclose(
            registry.get(name).fit(moved, truth)(scores), fitted(scores), rtol=1e-6
        )
        np.testing.assert_allclose(fitted(moved), fitted(scores), rtol=1e-9)


@pytest.mark.parametrize(
    "name", [name for name in registry.names() if registry.get(name).is_monotonic]
)
@every_case
def test_a_larger_margin_never_gets_a_smaller_probability(name, case):
    method = registry.get(name)
    rising = np.linspace(-50, 50, 1001)
    width = 1 if method.accepts(rising) else 2
    fitted = method.fit(*CASES[width][case])
    yes = fitted(rising) if width == 1 else fitted(np.stack([0 * rising, rising], axis=1))[:, 1]
    assert (np.diff(yes) >= -1e-12).all()


@accepted_widths
def test_empty_scores_are_transformed_but_cannot_be_fitted(name, width):
    empty = np.empty((0,) if width == 1 else (0, width))
    method = registry.get(name)
    assert method.fit(*CASES[width]["usual"])(empty).shape == empty.shape
    with pytest.raises(ValueError, match="nothing to calibrate on"):
        method.fit(empty, np.empty(0, int))


@accepted_widths
def test_invalid_input_is_refused(name, width):
    scores, truth = CASES[width]["usual"]
    method = registry.get(name)
    with pytest.raises(ValueError, match="211 scores, but the truth has the shape"):
        method.fit(scores, truth[:-1])
    classes = max(width, 2)
    for wrong in (
        np.full(N, classes),
        np.full(N, -1),
        np.full(N, 0.5),
        np.full(N, np.nan),
        np.full(N, "yes"),
    ):
        with pytest.raises(ValueError, match=f"integers from 0 to {classes - 1}"):
            method.fit(scores, wrong)
    broken = scores.copy()
    broken[3] = np.nan
    for use in (lambda: method.fit(broken, truth), lambda: method()(broken)):
        with pytest.raises(ValueError, match="scores are NaN"):
            use()
    with pytest.raises(ValueError, match=r"margins, \(n,\), or logits"):
        method()(scores.reshape(N, -1)[:, :1])


@every_method
def test_a_method_refuses_scores_it_does_not_accept(name):
    method = registry.get(name)
    for width, sentence in ((1, "margins"), (3, "logits of 3 classes")):
        scores, truth = CASES[width]["usual"]
        if not method.accepts(scores):
            with pytest.raises(ValueError, match=f"{name} does not apply to {sentence}"):
                method.fit(scores, truth)


@every_method
def test_invalid_saved_parameters_are_refused(name):
    saved = registry.get(name)().to_dict()
    with pytest.raises(ValueError, match="cannot have the parameters"):
        calibrator_from_dict({**saved, "unheard_of": 1.0})
    for key in saved.keys() - {"method"}:
        for wrong in (float("nan"), "words", ["words"]):
            with pytest.raises(
                ValueError, match=f"`{key}` of a {name} calibration must be numbers"
            ):
                calibrator_from_dict({**saved, key: wrong})


@every_method
def test_a_method_has_a_file_of_its_own_name_and_docstrings(name):
    entry = registry.get(name)
    folder, _, stem = entry.__module__.rpartition(".")
    assert stem == name == entry.name()
    assert normalize_name(stem) == normalize_name(entry.__name__)
    assert folder == registry.package or not folder.startswith("neural.")
    assert vars(entry).get("__doc__")
    assert entry.summary()[-1] in ".:"
    assert sys.modules[entry.__module__].__doc__

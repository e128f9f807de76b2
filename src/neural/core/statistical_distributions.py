"""Distribution functions and quantiles that tests and confidence intervals need.

Normal, Student's t and gamma distribution, for single numbers. Their relative error is below 1e-12;
for quantiles of Student's t near the median, that is the absolute error
(tests/core/test_statistical_distributions.py compares them with scipy and with mpmath). They are
here because scipy would be the largest requirement of the package after torch:
docs/decisions/0011-light-install.md.

Quantiles are found by Newton's method on the log of a tail probability. In the variable used here
it is concave, so the iteration converges from every start.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache
from statistics import NormalDist

import numpy as np

MAX_TERMS = 100_000
"""Terms of a series or a continued fraction; about the square root of the shape is needed."""
MAX_NEWTON_STEPS = 100
LAST_NEWTON_STEP = 1e-10
"""A step this small ends Newton's method: it squares the error, so nothing is left of it."""
MAX_LOG = 709.0
"""exp and sinh of larger numbers overflow."""
PRECISION = 1e-16
"""Relative size of a term that ends a series."""
TINY = 1e-300
"""Replaces 0 in the denominators of a continued fraction (Lentz's method)."""
MAX_SQUARED = 1e150
"""Larger numbers are not squared, because the square overflows."""
ASYMPTOTIC_SHAPE = 50.0
"""From here on, differences of log Γ use an expansion: log Γ itself is large and loses digits."""
NODE_DISTANCE, MAX_NODE = 1 / 16, 6.0
"""Grid of the double exponential quadrature; chosen for a relative error of 1e-13.

The distance is for the curvature at many degrees of freedom, the range for the heavy tail at few."""


def normal_cdf(x: float) -> float:
    """Probability that a standard normal value is at most `x`; accurate in both tails."""
    return 0.5 * math.erfc(-x / math.sqrt(2))


def normal_quantile(probability: float) -> float:
    """The standard normal value with this lower tail probability; ±∞ for 1 and 0."""
    if probability in (0.0, 1.0):
        return math.copysign(math.inf, probability - 0.5)
    return NormalDist().inv_cdf(probability)


def student_t_cdf(degrees: float, t: float) -> float:
    """Probability that Student's t with `degrees` of freedom is at most `t`; NaN for NaN."""
    if not degrees > 0 or math.isnan(t):
        return math.nan
    if math.isinf(degrees):
        return normal_cdf(t)
    if t == 0 or math.isinf(t):
        return 0.5 + 0.5 * (t > 0) - 0.5 * (t < 0)
    tail = math.exp(_log_student_tail(degrees, abs(t)))
    return tail if t < 0 else 1.0 - tail


@lru_cache(maxsize=4096)  # intervals ask for the same few again and again
def student_t_quantile(degrees: float, probability: float) -> float:
    """The value of Student's t with this lower tail probability; NaN where there is none."""
    if not (degrees > 0 and 0 <= probability <= 1):
        return math.nan
    if math.isinf(degrees) or probability in (0.0, 0.5, 1.0):
        return normal_quantile(probability)
    tail = min(probability, 1.0 - probability)

    def compute_slope(u: float, log_tail: float) -> float:
        t = math.sinh(u)
        return -math.exp(_log_student_density(degrees, t) - log_tail) * math.cosh(u)

    # t = sinh u: like t itself near 0, where log t has no bounds, and like log t far out, where
    # the log of the tail is linear in log t.
    u = _solve(
        lambda u: _log_student_tail(degrees, math.sinh(u)),
        compute_slope,
        target=math.log(tail),
        start=math.asinh(-normal_quantile(tail)),
    )
    return math.copysign(math.sinh(u), probability - 0.5)


def gamma_quantile(shape: float, probability: float) -> float:
    """The value of the gamma distribution of scale 1 with this lower tail probability.

    Half the chi-squared quantile of 2 · `shape` degrees of freedom.
    """
    if probability in (0.0, 1.0):
        return 0.0 if probability == 0.0 else math.inf
    # Wilson and Hilferty: the cube root of a gamma value is nearly normal.
    deviation = 1 / (9 * shape)
    cube_root = 1 - deviation + normal_quantile(probability) * math.sqrt(deviation)
    start = (
        math.log(shape) + 3 * math.log(cube_root)
        if cube_root > 0.1
        else (math.log(probability) + math.lgamma(shape + 1)) / shape
    )
    if start < -MAX_LOG:
        return 0.0  # smaller than the smallest number
    is_lower = probability <= 0.5
    compute_tail = _log_lower_gamma if is_lower else _log_upper_gamma

    def compute_slope(u: float, log_tail: float) -> float:
        log_density = _log_gamma_term(shape, math.exp(u)) + math.log(shape)  # of log x
        return (1 if is_lower else -1) * math.exp(log_density - log_tail)

    u = _solve(  # in u = log x, since x covers many orders of magnitude
        lambda u: compute_tail(shape, math.exp(u)),
        compute_slope,
        target=math.log(probability) if is_lower else math.log1p(-probability),
        start=start,
    )
    return math.exp(u)


def _solve(
    compute: Callable[[float], float],
    compute_slope: Callable[[float, float], float],
    *,
    target: float,
    start: float,
) -> float:
    """The u at which `compute(u)` is `target`, by Newton's method.

    `compute_slope` takes u and the value there.
    """
    u = start
    for _ in range(MAX_NEWTON_STEPS):
        value = compute(u)
        step = (value - target) / compute_slope(u, value)
        u = min(u - step, MAX_LOG)
        if abs(step) <= LAST_NEWTON_STEP:
            break
    return u


def _log_student_density(degrees: float, t: float) -> float:
    """Log density of Student's t."""
    ratio = t / math.sqrt(degrees)
    log_ratio = math.log1p(ratio * ratio) if abs(ratio) < MAX_SQUARED else 2 * math.log(abs(ratio))
    return -(degrees + 1) / 2 * log_ratio - 0.5 * math.log(degrees) - _log_beta_half(degrees / 2)


@lru_cache(maxsize=256)  # a two-sided test asks for the same |t| twice
def _log_student_tail(degrees: float, t: float) -> float:
    """Log probability that Student's t exceeds `t` ≥ 0.

    The integral over s ≥ 0 of density(t + s) / density(t), by double exponential quadrature. Both
    densities have the same large factors, so that nothing is lost far out or for many degrees of
    freedom. The scale of s is the distance over which the density falls by about 1/e.
    """
    if t < MAX_SQUARED:
        scale = 1.0 if t < 1 else (degrees + t * t) / ((degrees + 1) * t)
        linear, square = (part / (degrees + t * t) for part in (2 * t * scale, scale * scale))
    else:
        scale = t / (degrees + 1)
        linear, square = 2 * scale / t, (scale / t) ** 2
    exponent = -(degrees + 1) / 2
    nodes, weights = _create_nodes()
    # exp and log1p of `math`, because those of numpy differ in the last bit between processors
    logs = np.fromiter(map(math.log1p, (nodes * (linear + square * nodes)).tolist()), float)
    densities = np.fromiter(map(math.exp, (exponent * logs).tolist()), float)
    integral = math.fsum((weights * densities).tolist())
    return _log_student_density(degrees, t) + math.log(scale) + math.log(integral)


@cache
def _create_nodes() -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of the double exponential quadrature over s ≥ 0 (Takahasi and Mori, 1974).

    The trapezoidal rule in x with s = exp(π/2 · sinh x).
    """
    count = round(MAX_NODE / NODE_DISTANCE)
    nodes, weights = [], []
    for index in range(-count, count + 1):
        x = index * NODE_DISTANCE
        s = math.exp(math.pi / 2 * math.sinh(x))
        nodes.append(s)
        weights.append(NODE_DISTANCE * math.pi / 2 * math.cosh(x) * s)
    return np.array(nodes), np.array(weights)


def _log_beta_half(a: float) -> float:
    """Log of the beta function B(a, 1/2)."""
    if a < ASYMPTOTIC_SHAPE:
        return math.lgamma(a) + math.lgamma(0.5) - math.lgamma(a + 0.5)
    # Γ(a + ½) / Γ(a) = √a · (1 − 1/(8a) + 1/(128a²) + …)
    inverse = 1 / a
    series = 1 + inverse * (
        -1 / 8
        + inverse
        * (
            1 / 128
            + inverse
            * (
                5 / 1024
                + inverse * (-21 / 32768 + inverse * (-399 / 262144 + inverse * 869 / 4194304))
            )
        )
    )
    return 0.5 * math.log(math.pi / a) - math.log(series)


def _log_gamma_term(shape: float, x: float) -> float:
    """log(x^a · e^(−x) / Γ(a + 1)) for the shape a."""
    if x == 0:
        return -math.inf
    if shape < 25:
        return shape * math.log(x) - x - math.lgamma(shape + 1)
    # Stirling's formula: the large terms of log Γ cancel against a · log x − x.
    excess = (x - shape) / shape
    square = 1 / (shape * shape)
    correction = (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680))) / shape
    log_ratio = math.log1p(excess) if abs(excess) < 0.5 else math.log(x / shape)
    return -shape * (excess - log_ratio) - 0.5 * math.log(2 * math.pi * shape) - correction


def _log_lower_gamma(shape: float, x: float) -> float:
    """Log probability that a gamma value is at most `x`."""
    if x > shape + 1:
        return math.log1p(-math.exp(_log_upper_gamma(shape, x)))
    total = term = 1.0
    for k in range(1, MAX_TERMS):
        term *= x / (shape + k)
        total += term
        if term <= PRECISION * total:
            break
    return _log_gamma_term(shape, x) + math.log(total)


def _log_upper_gamma(shape: float, x: float) -> float:
    """Log probability that a gamma value exceeds `x`."""
    if x <= shape + 1:
        return math.log1p(-math.exp(_log_lower_gamma(shape, x)))
    base = x + 1 - shape
    numerator, denominator = 1 / TINY, 1 / base
    fraction = denominator
    for k in range(1, MAX_TERMS):
        coefficient = -k * (k - shape)
        base += 2
        denominator = 1 / (coefficient * denominator + base or TINY)
        numerator = base + coefficient / numerator or TINY
        factor = denominator * numerator
        fraction *= factor
        if abs(factor - 1) <= 2 * PRECISION:
            break
    return _log_gamma_term(shape, x) + math.log(shape) + math.log(fraction)

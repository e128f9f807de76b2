"""A number with its 95 % interval: the only interval of the project, and the only way to print it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

ERROR_RATE = 0.05
"""Share of intervals that may miss the true value."""
MIN_INTERVAL_VALUES = 3
"""Fewer values have no interval: that of two is 25 times as wide as their distance."""
SHARE_METRICS = ("accuracy", "confidence", "f1", "precision", "recall", "saif")
"""Metrics from 0 to 1, by the ends of their names."""
POSITIVE_METRICS = ("bits", "loss", "mae", "perplexity")
"""Metrics of the package's tasks that are never negative, by the ends of their names."""
ROUNDING_TOLERANCE = 1e-12
"""A smaller number is a rounding error, and so is a smaller standard deviation relative to a mean."""
MAX_DECIMALS = 6
FIXED_POINT_RANGE = 1e-4, 1e9
"""Other numbers are printed with an exponent."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean, share, score or difference, with its 95 % interval."""

    value: float
    """NaN without data; infinite if a value is."""
    low: float = math.nan
    """Lower end; NaN if there is no interval."""
    high: float = math.nan
    """Upper end; NaN if there is no interval."""
    n: int = 0
    """Number of values that it rests on: seeds, documents, windows of text, simulations.

    Fewer than MIN_INTERVAL_VALUES have no interval, whatever ends are given.
    """

    def __post_init__(self) -> None:
        if self.n < MIN_INTERVAL_VALUES:
            object.__setattr__(self, "low", math.nan)
            object.__setattr__(self, "high", math.nan)

    @classmethod
    def from_error(cls, value: float, error: float, degrees: float, n: int) -> Self:
        """With Student's t interval of a standard error and its degrees of freedom."""
        if n < MIN_INTERVAL_VALUES or math.isnan(error):
            return cls(value, n=n)
        from scipy.special import stdtrit

        half_width = -float(stdtrit(degrees, ERROR_RATE / 2)) * error
        return cls(value, value - half_width, value + half_width, n)

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], *, n: int) -> Self:
        """Inverse of `to_dict`, which leaves out `n`."""
        value, low, high = (
            math.nan if saved[key] is None else saved[key] for key in ("value", "low", "high")
        )
        return cls(value, low, high, n)

    def to_dict(self, count: str = "") -> dict[str, float | int | None]:
        """JSON data; NaN and infinities become None. `count` is the key of `n`, such as "seeds"."""
        ends = {"value": self.value, "low": self.low, "high": self.high}
        data: dict[str, float | int | None] = {
            key: end if math.isfinite(end) else None for key, end in ends.items()
        }
        return data | ({count: self.n} if count else {})

    def map(self, convert: Callable[[float], float]) -> Self:
        """Value and ends converted by a function that never falls."""
        return replace(
            self, value=convert(self.value), low=convert(self.low), high=convert(self.high)
        )

    def clip(self, least: float = -math.inf, most: float = math.inf) -> Self:
        """With the interval inside bounds of the true value, so that no coverage is lost."""
        low, high = np.clip([self.low, self.high], least, most).tolist()
        return replace(self, low=low, high=high)

    def to_score(self, metric: str) -> Self:
        """With the interval inside the bounds of a metric, which are known by its name."""
        is_share = metric.endswith(SHARE_METRICS)
        least = 0.0 if is_share or metric.endswith(POSITIVE_METRICS) else -math.inf
        most = 1.0 if is_share else math.inf
        if not least <= self.value <= most:  # another metric of that name
            return self
        return self.clip(least, most)

    def to_percent(self) -> Self:
        """Value and interval times 100."""
        return self.map(lambda share: 100 * share)

    @property
    def has_interval(self) -> bool:
        """Whether both ends are known."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    def __str__(self) -> str:
        return self.format()

    def format(self, *, signed: bool = False) -> str:
        """`0.891 (0.861 … 0.921)`; the value alone without an interval, "none" without a value.

        All three numbers have the decimals that show two digits of the width of the interval.
        """
        value = self.format_value(signed=signed)
        return f"{value} ({self.format_interval(signed=signed)})" if self.has_interval else value

    def format_value(self, *, signed: bool = False) -> str:
        """The value as in `format`, for a column of its own."""
        return self._format(self.value, signed=signed)

    def format_interval(self, *, signed: bool = False) -> str:
        """`0.861 … 0.921`; a dash without an interval."""
        if not self.has_interval:
            return "–"
        low, high = (self._format(end, signed=signed) for end in (self.low, self.high))
        return f"{low} … {high}"

    def _format(self, number: float, *, signed: bool) -> str:
        sign = "+" if signed else ""
        if not self.has_interval or self.low == self.high or not math.isfinite(number):
            return format_number(number, sign)
        # the exponent of the width after it is rounded to two digits
        decimals = 1 - int(f"{self.high - self.low:.1e}".partition("e")[2])
        size = max(abs(self.low), abs(self.high))
        if FIXED_POINT_RANGE[0] <= size < FIXED_POINT_RANGE[1]:
            decimals = min(max(decimals, 0), MAX_DECIMALS)
            number = round(number, decimals) + 0.0  # no negative zero
            text = f"{number:{sign},.{decimals}f}"
        else:
            text = f"{number:{sign}.{max(0, decimals + math.floor(math.log10(size)))}e}"
        return text.replace("-", "−")


def format_number(value: float, sign: str = "") -> str:
    """Format with three significant digits and a typographic minus sign; "+" as `sign` shows plus.

    Numbers below ROUNDING_TOLERANCE become 0; NaN and infinities become "none".
    """
    if not math.isfinite(value):
        return "none"
    value = 0.0 if abs(value) < ROUNDING_TOLERANCE else value
    text = f"{value:{sign},.0f}" if abs(value) >= 1000 else f"{value:{sign}.3g}"
    return text.replace("-", "−")


def summarize_simulations(values: np.ndarray) -> Estimate:
    """The mean of simulated values, with the range of the central 90 % of them."""
    low, high = np.quantile(values, (0.05, 0.95)).tolist()
    return Estimate(float(values.mean()), low, high, len(values))

"""A learning rate that is constant between given steps, as in Keras."""

from __future__ import annotations

from neural.language.argument_types import FloatType, IntType, ListType
from neural.language.declaration import argument_field
from neural.language.shapes import ShapeError
from neural.optim.schedule import Schedule


class PiecewiseConstantDecay(Schedule):
    """values[0] up to and including step boundaries[0], then values[1], and so on."""

    boundaries: tuple[int, ...] = argument_field(
        ListType(IntType(at_least=0), "steps"),
        "The last step at which each value applies; the last value has no end.",
    )
    values: tuple[float, ...] = argument_field(
        ListType(FloatType(above=0), "rates"), "The rates; one more than there are boundaries."
    )

    def verify(self) -> None:
        """Check that boundaries increase, and that there is one more value than boundaries.

        ShapeError is the language's error for any invalid argument; E0220 is its code.
        """
        if len(self.values) != len(self.boundaries) + 1:
            count = len(self.boundaries)
            subject = f"{count} boundaries need" if count != 1 else "1 boundary needs"
            raise ShapeError(
                "E0220", f"{subject} {count + 1} values, got {len(self.values)}", at=["values"]
            )
        if list(self.boundaries) != sorted(set(self.boundaries)):
            raise ShapeError("E0220", "boundaries must increase", at=["boundaries"])

    def learning_rate_at(self, step: float) -> float:
        """The value of the interval that contains the step."""
        return self.values[sum(step > boundary for boundary in self.boundaries)]

    @property
    def peak_learning_rate(self) -> float:
        """The largest value."""
        return max(self.values)

    @classmethod
    def example(cls) -> Schedule:
        """Three values."""
        return cls(boundaries=(2, 5), values=(0.1, 0.01, 0.001))

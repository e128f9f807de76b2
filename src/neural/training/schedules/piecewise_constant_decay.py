"""A rate that changes at given steps."""

from __future__ import annotations

from neural.language.declaration import setting
from neural.language.kinds import Numbers, Real, Whole
from neural.language.shapes import Misfit
from neural.training.schedule import Schedule


class PiecewiseConstantDecay(Schedule):
    """values[0] up to and including boundaries[0], then values[1], and so on."""

    boundaries: tuple[int, ...] = setting(
        Numbers(Whole(at_least=0), "steps"), "The last step of each value but the last."
    )
    values: tuple[float, ...] = setting(Numbers(Real(above=0), "rates"), "One more than there are boundaries.")

    def verify(self) -> None:
        """Boundaries rise; between and around them lie the values."""
        if len(self.values) != len(self.boundaries) + 1:
            count = len(self.boundaries)
            said = f"{count} boundaries need" if count != 1 else "1 boundary needs"
            raise Misfit("E0220", f"{said} {count + 1} values, got {len(self.values)}", at=["values"])
        if list(self.boundaries) != sorted(set(self.boundaries)):
            raise Misfit("E0220", "boundaries must rise", at=["boundaries"])

    def at(self, step: float) -> float:
        """The value of the stretch that the step is in."""
        return self.values[sum(step > boundary for boundary in self.boundaries)]

    @property
    def peak(self) -> float:
        """The largest value."""
        return max(self.values)

    @classmethod
    def tiny(cls) -> Schedule:
        """Three values."""
        return cls(boundaries=(2, 5), values=(0.1, 0.01, 0.001))

"""The extra `figures`: matplotlib, which all modules that draw files import."""

from __future__ import annotations

from neural.core.optional_packages import import_optional


def require_figures(feature: str) -> None:
    """MissingPackageError with the install command if matplotlib is not installed.

    Called before a module that draws is imported, and before work that would be lost.
    """
    import_optional("matplotlib", feature=feature, extra="figures")

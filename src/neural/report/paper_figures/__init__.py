"""Kinds of figures for papers: one file each, named like the kind."""

from neural.core.registry import Registry
from neural.report.paper_figure import FigureKind

registry = Registry(__name__, FigureKind, noun="figure", spelling="file")

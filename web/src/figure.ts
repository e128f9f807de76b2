// A figure: the picture of a finding or of a headline.
//
// Data of a figure come from Python: `figure` of a finding (findings/check.py) or of a headline
// (report/headlines/). `kind` is the name of the file in src/figures/ that draws it; nothing else
// has to be edited to add a kind. The default export of the file describes the figure:
//
//   export default { component: PhaseBands } satisfies FigureDefinition

import type { ComponentChild } from "preact"

import type { DataSource } from "./data_source"
import type { Table } from "./export/csv"
import type { Navigate, Route } from "./route"
import type { Run } from "./run_data"
import type { Theme } from "./theme"

/** Data of a figure: its kind and whatever that kind needs. */
export interface FigureData {
  kind: string
  [key: string]: unknown
}

export interface FigureProps {
  figure: FigureData
  /** The runs that the finding or headline is about. */
  runs: Run[]
  source: DataSource
  /** Where a click may lead: the view at a step, layer and head. */
  navigate: Navigate
  route: Route
  theme: Theme
  /** Whether the figure is in a card of the first view, where space is small. */
  isCard?: boolean
}

/** The default export of a file in src/figures/. */
export interface FigureDefinition {
  component: (props: FigureProps) => ComponentChild
  /** Numbers of the figure, for CSV. */
  table?: (figure: FigureData) => Table
}

export interface Figure extends FigureDefinition {
  /** Name of the file without its ending: the kind of the figure. */
  key: string
}

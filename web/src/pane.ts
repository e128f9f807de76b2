// A pane: one tab of the page, with an address of its own.
//
// One file in src/panes/ (report and board) or src/board/panes/ (board only) adds a pane; nothing
// else has to be edited. build.mjs collects the files. The file name is the pane's key, which is
// what stands in the address (`#/curves`). The default export describes the pane:
//
//   export default {
//     title: "Curves",
//     order: 20,
//     applies: ({ run }) => run !== null,
//     component: CurvesPane,
//   } satisfies PaneDefinition

import type { ComponentChild } from "preact"

import type { DataSource } from "./data_source"
import type { Navigate, Route } from "./route"
import type { Group, Index, Run } from "./run_data"
import type { Theme } from "./theme"

/** What `applies` decides on. */
export interface PaneData {
  /** The selected run; null before there is one. */
  run: Run | null
  index: Index
}

export interface PaneProps extends PaneData {
  source: DataSource
  /** All runs that are drawn together. */
  runs: Run[]
  groups: Group[]
  route: Route
  navigate: Navigate
  theme: Theme
}

/** The default export of a file in a panes folder. */
export interface PaneDefinition {
  /** Text of the tab. */
  title: string
  /** Text of the tab for a run, if it depends on what the pane shows. */
  titleFor?: (data: PaneData) => string
  /** Position among the tabs, ascending. Panes of the report use 10 … 99. */
  order: number
  /** Whether there is anything to show. If not, the tab is left out. */
  applies: (data: PaneData) => boolean
  component: (props: PaneProps) => ComponentChild
  /** What a run lacks if the pane applies only to other runs of the page, and how to get it. */
  missing?: string
  /** Its part of the digest, which is what is printed; panes without one are left out there. */
  digest?: (props: PaneProps) => ComponentChild
  /** Position in the digest, if another than that of the tab. */
  digestOrder?: number
  /** Whether the step slider is shown above the pane. */
  hasStepSlider?: boolean | ((run: Run | null) => boolean)
}

export interface Pane extends PaneDefinition {
  /** Name of the file without its ending. */
  key: string
}

export function sortPanes(panes: Pane[]): Pane[] {
  return [...panes].sort((a, b) => a.order - b.order || a.key.localeCompare(b.key))
}

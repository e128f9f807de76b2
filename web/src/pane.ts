// A view with an address of its own. The board adds more of them.

import type { ComponentChild } from "preact"

import type { Group, Index, Run } from "./model"
import type { Go, Place } from "./place"
import type { DataSource } from "./source"
import type { Theme } from "./theme"

export interface ViewProps {
  source: DataSource
  index: Index
  /** The run that is looked at; null before there is one. */
  run: Run | null
  /** All runs that are drawn together. */
  runs: Run[]
  groups: Group[]
  place: Place
  go: Go
  theme: Theme
}

export interface Pane {
  key: string
  title: string
  /** Whether there is anything to show. */
  shown?: (run: Run | null, index: Index) => boolean
  /** Whether the step slider stands above it. */
  slides?: boolean
  View: (props: ViewProps) => ComponentChild
}

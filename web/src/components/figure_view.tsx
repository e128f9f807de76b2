// A figure of any kind, drawn by its file in src/figures/.

import figures from "figures:../figures"
import { Picture } from "../export"
import type { FigureProps } from "../figure"
import { stripDate } from "../format"
import { findRun } from "./linked_text"

/** The figure; nothing if this page does not know its kind, such as one of a newer version. */
export function FigureView(props: FigureProps) {
  const definition = figures.find((entry) => entry.key === props.figure.kind)
  if (!definition) return null
  const { table } = definition
  const { figure, runs } = props
  // a page of many runs shows the figures of all of them: the file is named after the run drawn
  const run = findRun(String(figure.run), runs) ?? (runs.length === 1 ? runs[0] : undefined)
  const name = [...(run ? [stripDate(run.name)] : []), definition.key].join("-")
  return (
    <Picture name={name} csv={table ? () => table(figure) : undefined} isCard={props.isCard}>
      <definition.component {...props} />
    </Picture>
  )
}

// A figure of any kind, drawn by its file in src/figures/.

import figures from "figures:../figures"
import type { FigureProps } from "../figure"

/** The figure; nothing if this page does not know its kind, such as one of a newer version. */
export function FigureView(props: FigureProps) {
  const definition = figures.find((entry) => entry.key === props.figure.kind)
  return definition ? <definition.component {...props} /> : null
}

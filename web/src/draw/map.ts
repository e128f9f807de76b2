// Tables as pictures, a pixel for every number; what has none stays clear.

import { visible, type LayerMaps } from "../maps"
import type { Theme } from "../theme"
import { pixels } from "./colours"

/** One head's attention; what a causal query cannot see stays clear. */
export function drawMap(canvas: HTMLCanvasElement, maps: LayerMaps, head: number, theme: Theme): void {
  const { queries, keys, cells } = maps
  const table = pixels(theme)
  const from = head * queries * keys
  painted(canvas, queries, keys, (out) => {
    for (let query = 0; query < queries; query++) {
      const seen = query * keys + visible(maps, query)
      for (let at = query * keys; at < seen; at++) out[at] = table[cells[from + at]]
    }
  })
}

/** Any numbers between two ends. */
export function drawTable(
  canvas: HTMLCanvasElement, values: ArrayLike<number>, rows: number, columns: number, ends: [number, number], theme: Theme,
): void {
  const table = pixels(theme)
  const [low, high] = ends
  painted(canvas, rows, columns, (out) => {
    for (let at = 0; at < out.length; at++) {
      const share = (values[at] - low) / (high - low)
      if (Number.isFinite(share)) out[at] = table[Math.round(255 * Math.min(1, Math.max(0, share)))]
    }
  })
}

/** The cell of a picture of so many rows and columns that the pointer is over. */
export function cellAt(event: MouseEvent, canvas: HTMLCanvasElement, rows: number, columns: number): [row: number, column: number] {
  const place = canvas.getBoundingClientRect()
  const cell = (part: number, size: number, count: number) => Math.max(0, Math.min(count - 1, Math.floor((part / size) * count)))
  return [cell(event.clientY - place.top, place.height, rows), cell(event.clientX - place.left, place.width, columns)]
}

function painted(canvas: HTMLCanvasElement, rows: number, columns: number, fill: (out: Uint32Array) => void): void {
  if (canvas.width !== columns || canvas.height !== rows) {
    canvas.width = columns
    canvas.height = rows
  }
  const context = canvas.getContext("2d")!
  const image = context.createImageData(columns, rows)
  fill(new Uint32Array(image.data.buffer))
  context.putImageData(image, 0, 0)
}

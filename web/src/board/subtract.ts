// One layer's maps minus another's, as numbers and as a picture of two colours.

import { visible, type LayerMaps } from "../maps"
import type { Theme } from "../theme"

export interface Subtracted extends Omit<LayerMaps, "cells"> {
  /** Weight in A minus weight in B, [head, query, key]. */
  values: Float32Array
}

export interface Moved {
  layer: number
  head: number
  /** How much of a row's attention lies elsewhere, on average: 0 none, 1 all of it. */
  moved: number
  query: number
  key: number
  value: number
}

type Colour = [number, number, number]
const COLOURS: Record<Theme, { less: Colour; none: Colour; more: Colour }> = {
  light: { less: [11, 94, 168], none: [250, 250, 250], more: [190, 78, 0] },
  dark: { less: [95, 176, 240], none: [26, 31, 38], more: [245, 160, 75] },
}
export const ENDS: Record<Theme, string[]> = { light: [rgb("light", "less"), rgb("light", "more")], dark: [rgb("dark", "less"), rgb("dark", "more")] }

export function subtracted(a: LayerMaps, b: LayerMaps): Subtracted {
  const { cells, ...rest } = a
  const values = Float32Array.from(cells, (one, at) => (one / 255) ** 2 - (b.cells[at] / 255) ** 2)
  return { ...rest, causal: a.causal && b.causal, values }
}

/** The heads that moved most, each with the pair that changed most. */
export function strongest(layers: Subtracted[], most: number): Moved[] {
  const found: Moved[] = []
  layers.forEach((maps, layer) => {
    const size = maps.queries * maps.keys
    for (let head = 0; head < maps.heads; head++) {
      let sum = 0
      let best = head * size
      for (let at = head * size; at < (head + 1) * size; at++) {
        sum += Math.abs(maps.values[at])
        if (Math.abs(maps.values[at]) > Math.abs(maps.values[best])) best = at
      }
      const cell = best - head * size
      found.push({ layer, head, moved: sum / 2 / maps.queries, query: Math.floor(cell / maps.keys), key: cell % maps.keys, value: maps.values[best] })
    }
  })
  return found.sort((x, y) => y.moved - x.moved).slice(0, most)
}

/** One colour where A is more, the other where B is; on a square-root scale, as maps are. */
export function drawDifference(canvas: HTMLCanvasElement, maps: Subtracted, head: number, theme: Theme): void {
  const { queries, keys, values } = maps
  canvas.width = keys
  canvas.height = queries
  const context = canvas.getContext("2d")!
  const image = context.createImageData(keys, queries)
  const { less, none, more } = COLOURS[theme]
  for (let query = 0; query < queries; query++) {
    for (let key = 0; key < visible(maps, query); key++) {
      const value = values[(head * queries + query) * keys + key]
      const share = Math.sqrt(Math.min(1, Math.abs(value)))
      const end = value < 0 ? less : more
      const at = 4 * (query * keys + key)
      for (let part = 0; part < 3; part++) image.data[at + part] = none[part] + (end[part] - none[part]) * share
      image.data[at + 3] = 255
    }
  }
  context.putImageData(image, 0, 0)
}

function rgb(theme: Theme, end: "less" | "more"): string {
  return `rgb(${COLOURS[theme][end].join(" ")})`
}

// Difference of two attention maps, as numbers and as a heatmap with a diverging colour scale.

import { countVisibleKeys, type LayerMaps } from "../attention_maps"
import type { Theme } from "../theme"

export interface MapDifference extends Omit<LayerMaps, "cells"> {
  /** Weight in A minus weight in B, [head, query, key]. */
  values: Float32Array
}

export interface HeadChange {
  layer: number
  head: number
  /** Total variation distance between the rows of A and B, averaged over queries: 0 … 1. */
  movedShare: number
  query: number
  key: number
  value: number
}

type Colour = [number, number, number]
const DIVERGING_COLOURS: Record<Theme, { less: Colour; none: Colour; more: Colour }> = {
  light: { less: [11, 94, 168], none: [250, 250, 250], more: [190, 78, 0] },
  dark: { less: [95, 176, 240], none: [26, 31, 38], more: [245, 160, 75] },
}
export const DIVERGING_ENDS: Record<Theme, string[]> = {
  light: [formatExtreme("light", "less"), formatExtreme("light", "more")],
  dark: [formatExtreme("dark", "less"), formatExtreme("dark", "more")],
}

export function subtractMaps(a: LayerMaps, b: LayerMaps): MapDifference {
  const { cells, ...rest } = a
  const values = Float32Array.from(
    cells,
    (cell, index) => (cell / 255) ** 2 - (b.cells[index] / 255) ** 2,
  )
  return { ...rest, causal: a.causal && b.causal, values }
}

/** Heads by how much attention moved, largest first, each with the pair that changed most. */
export function rankHeadChanges(layers: MapDifference[], limit: number): HeadChange[] {
  const changes: HeadChange[] = []
  layers.forEach((maps, layer) => {
    const size = maps.queries * maps.keys
    for (let head = 0; head < maps.heads; head++) {
      let sum = 0
      let largest = head * size
      for (let index = head * size; index < (head + 1) * size; index++) {
        sum += Math.abs(maps.values[index])
        if (Math.abs(maps.values[index]) > Math.abs(maps.values[largest])) largest = index
      }
      const cell = largest - head * size
      changes.push({
        layer,
        head,
        movedShare: sum / 2 / maps.queries,
        query: Math.floor(cell / maps.keys),
        key: cell % maps.keys,
        value: maps.values[largest],
      })
    }
  })
  return changes.sort((first, second) => second.movedShare - first.movedShare).slice(0, limit)
}

/** One colour where A is larger, the other where B is. Square-root scale, as for maps. */
export function drawDifference(
  canvas: HTMLCanvasElement,
  maps: MapDifference,
  head: number,
  theme: Theme,
): void {
  const { queries, keys, values } = maps
  canvas.width = keys
  canvas.height = queries
  const context = canvas.getContext("2d")!
  const image = context.createImageData(keys, queries)
  const { less, none, more } = DIVERGING_COLOURS[theme]
  for (let query = 0; query < queries; query++) {
    for (let key = 0; key < countVisibleKeys(maps, query); key++) {
      const value = values[(head * queries + query) * keys + key]
      const share = Math.sqrt(Math.min(1, Math.abs(value)))
      const extreme = value < 0 ? less : more
      const pixel = 4 * (query * keys + key)
      for (let channel = 0; channel < 3; channel++)
        image.data[pixel + channel] = none[channel] + (extreme[channel] - none[channel]) * share
      image.data[pixel + 3] = 255
    }
  }
  context.putImageData(image, 0, 0)
}

function formatExtreme(theme: Theme, extreme: "less" | "more"): string {
  return `rgb(${DIVERGING_COLOURS[theme][extreme].join(" ")})`
}

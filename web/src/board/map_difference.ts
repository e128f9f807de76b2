// Difference of two attention maps, as numbers and as a heatmap with a diverging colour scale.

import { cellWeight, type LayerMaps } from "../attention_maps"
import { divergingColour } from "../draw/colours"
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

export function subtractMaps(a: LayerMaps, b: LayerMaps): MapDifference {
  const { cells, ...rest } = a
  const values = new Float32Array(cells.length)
  for (let index = 0; index < cells.length; index++)
    values[index] = cellWeight(a, cells[index]) - cellWeight(b, b.cells[index])
  return { ...rest, visible: a.visible.map((seen, pair) => seen | b.visible[pair]), values }
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
  const { queries, keys, values, visible } = maps
  canvas.width = keys
  canvas.height = queries
  const context = canvas.getContext("2d")!
  const image = context.createImageData(keys, queries)
  for (let pair = 0; pair < visible.length; pair++) {
    if (!visible[pair]) continue
    const value = values[head * visible.length + pair]
    const root = Math.sign(value) * Math.sqrt(Math.min(1, Math.abs(value)))
    image.data.set([...divergingColour(root, theme), 255], 4 * pair)
  }
  context.putImageData(image, 0, 0)
}

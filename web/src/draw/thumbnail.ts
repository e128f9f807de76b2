// Small pictures of attention maps: large maps are reduced first, so that many heads stay cheap.

import type { LayerMaps } from "../attention_maps"
import type { Theme } from "../theme"
import { drawAttentionMap } from "./heatmap"

/** Positions of a thumbnail; a larger map is reduced by a whole factor. */
const MAX_THUMBNAIL_SIZE = 64

export function drawThumbnail(
  canvas: HTMLCanvasElement,
  maps: LayerMaps,
  head: number,
  theme: Theme,
): void {
  const factor = Math.ceil(Math.max(maps.queries, maps.keys) / MAX_THUMBNAIL_SIZE)
  if (factor <= 1) drawAttentionMap(canvas, maps, head, theme)
  else drawAttentionMap(canvas, reduceMap(maps, head, factor), 0, theme)
}

/** One head with `factor` × `factor` cells in one: the cell of the largest magnitude, so that thin lines stay. */
export function reduceMap(maps: LayerMaps, head: number, factor: number): LayerMaps {
  const queries = Math.ceil(maps.queries / factor)
  const keys = Math.ceil(maps.keys / factor)
  const cells = maps.signed ? new Int8Array(queries * keys) : new Uint8Array(queries * keys)
  const visible = new Uint8Array(queries * keys)
  const offset = head * maps.queries * maps.keys
  for (let query = 0; query < maps.queries; query++)
    for (let key = 0; key < maps.keys; key++) {
      const pair = query * maps.keys + key
      const cell = maps.cells[offset + pair]
      const index = Math.floor(query / factor) * keys + Math.floor(key / factor)
      visible[index] |= maps.visible[pair]
      if (Math.abs(cell) > Math.abs(cells[index])) cells[index] = cell
    }
  const first = Math.floor(maps.first / factor)
  return { ...maps, heads: 1, queries, keys, first, cells, visible }
}

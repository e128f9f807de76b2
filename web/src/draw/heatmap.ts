// Heatmaps on a canvas, one pixel per value; missing values stay transparent.

import { countVisibleKeys, type LayerMaps } from "../attention_maps"
import type { Theme } from "../theme"
import { getPixels, getSignedPixels } from "./colours"

/** Attention map of one head; keys masked by causality stay transparent. Signed maps diverge from 0. */
export function drawAttentionMap(
  canvas: HTMLCanvasElement,
  maps: LayerMaps,
  head: number,
  theme: Theme,
): void {
  const { queries, keys, cells } = maps
  const table = maps.signed ? getSignedPixels(theme) : getPixels(theme)
  const firstLevel = maps.signed ? -128 : 0
  const offset = head * queries * keys
  paint(canvas, queries, keys, (pixels) => {
    for (let query = 0; query < queries; query++) {
      const end = query * keys + countVisibleKeys(maps, query)
      for (let index = query * keys; index < end; index++)
        pixels[index] = table[cells[offset + index] - firstLevel]
    }
  })
}

/** Heatmap of values within `range`; NaN stays transparent. */
export function drawHeatmap(
  canvas: HTMLCanvasElement,
  values: ArrayLike<number>,
  rows: number,
  columns: number,
  range: [number, number],
  theme: Theme,
): void {
  const table = getPixels(theme)
  const [low, high] = range
  paint(canvas, rows, columns, (pixels) => {
    for (let index = 0; index < pixels.length; index++) {
      const share = (values[index] - low) / (high - low)
      if (Number.isFinite(share))
        pixels[index] = table[Math.round(255 * Math.min(1, Math.max(0, share)))]
    }
  })
}

/** The cell under the pointer. */
export function findCell(
  event: MouseEvent,
  canvas: HTMLCanvasElement,
  rows: number,
  columns: number,
): [row: number, column: number] {
  const box = canvas.getBoundingClientRect()
  const clampIndex = (offset: number, size: number, count: number) =>
    Math.max(0, Math.min(count - 1, Math.floor((offset / size) * count)))
  return [
    clampIndex(event.clientY - box.top, box.height, rows),
    clampIndex(event.clientX - box.left, box.width, columns),
  ]
}

function paint(
  canvas: HTMLCanvasElement,
  rows: number,
  columns: number,
  fill: (pixels: Uint32Array) => void,
): void {
  if (canvas.width !== columns || canvas.height !== rows) {
    canvas.width = columns
    canvas.height = rows
  }
  const context = canvas.getContext("2d")!
  const image = context.createImageData(columns, rows)
  fill(new Uint32Array(image.data.buffer))
  context.putImageData(image, 0, 0)
}

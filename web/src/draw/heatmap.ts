// Heatmaps on a canvas, one pixel per value; missing values stay transparent.

import { cellWeight, type LayerMaps } from "../attention_maps"
import type { AttentionMatrix } from "../attention_matrix"
import type { Theme } from "../theme"
import { getPixels, getSignedPixels } from "./colours"
import type { WeightScaleName } from "./weight_scale"

/** Attention map of one head; masked keys stay transparent. Signed maps diverge from 0. */
export function drawAttentionMap(
  canvas: HTMLCanvasElement,
  maps: LayerMaps,
  head: number,
  theme: Theme,
  scale?: WeightScaleName,
): void {
  const { queries, keys, cells, visible } = maps
  const table = maps.signed ? getSignedPixels(theme, scale) : getPixels(theme, scale)
  const firstLevel = maps.signed ? -128 : 0
  const offset = head * queries * keys
  paint(canvas, queries, keys, (pixels) => {
    for (let index = 0; index < visible.length; index++)
      if (visible[index]) pixels[index] = table[cells[offset + index] - firstLevel]
  })
}

/** Difference of two maps of one head; the colours diverge from 0. */
export function drawMapDifference(
  canvas: HTMLCanvasElement,
  maps: LayerMaps,
  base: LayerMaps,
  head: number,
  theme: Theme,
  scale?: WeightScaleName,
): void {
  const { queries, keys } = maps
  const table = getSignedPixels(theme, scale)
  const [weights, baseWeights] = [listWeights(maps), listWeights(base)]
  const [firstLevel, firstBaseLevel] = [maps.signed ? -128 : 0, base.signed ? -128 : 0]
  const limit = Math.max(maps.scale, base.scale)
  const offset = head * queries * keys
  paint(canvas, queries, keys, (pixels) => {
    for (let index = 0; index < pixels.length; index++) {
      if (!maps.visible[index] && !base.visible[index]) continue
      const difference =
        (weights[maps.cells[offset + index] - firstLevel] -
          baseWeights[base.cells[offset + index] - firstBaseLevel]) /
        limit
      const root = Math.sqrt(Math.min(1, Math.abs(difference)))
      pixels[index] = table[128 + Math.round(127 * (difference < 0 ? -root : root))]
    }
  })
}

const levelWeights = new Map<number, Float32Array>()

/** The weight of each of the 256 levels of a map; cached, since all heads of most runs share it. */
function listWeights(maps: LayerMaps): Float32Array {
  const key = maps.signed ? maps.scale : 0
  let weights = levelWeights.get(key)
  if (!weights) {
    weights = Float32Array.from({ length: 256 }, (_, index) =>
      cellWeight(maps, maps.signed ? index - 128 : index),
    )
    if (levelWeights.size > 100) levelWeights.clear() // every signed map has a scale of its own
    levelWeights.set(key, weights)
  }
  return weights
}

/** Rows and columns of padding are drawn this opaque, so that the grey behind them shows. */
const PADDING_ALPHA = 0x55

/** A matrix of weights; invisible pairs stay transparent, padding is half transparent. */
export function drawMatrix(
  canvas: HTMLCanvasElement,
  matrix: AttentionMatrix,
  theme: Theme,
  scale?: WeightScaleName,
  paddedRows: boolean[] = [],
  paddedColumns: boolean[] = [],
): void {
  const { rows, columns, values, visible } = matrix
  const table = matrix.signed ? getSignedPixels(theme, scale) : getPixels(theme, scale)
  paint(canvas, rows, columns, (pixels) => {
    for (let row = 0; row < rows; row++)
      for (let column = 0; column < columns; column++) {
        const index = row * columns + column
        if (!visible[index]) continue
        const value = values[index] / matrix.scale
        const root = Math.sqrt(Math.min(1, Math.abs(value)))
        const level = matrix.signed
          ? 128 + Math.round(127 * (value < 0 ? -root : root))
          : Math.round(255 * root)
        pixels[index] =
          paddedRows[row] || paddedColumns[column]
            ? ((table[level] & 0xffffff) | (PADDING_ALPHA << 24)) >>> 0
            : table[level]
      }
  })
}

/** Heatmap of values from −limit to limit; the colours diverge from 0. */
export function drawValues(
  canvas: HTMLCanvasElement,
  values: ArrayLike<number>,
  rows: number,
  columns: number,
  limit: number,
  theme: Theme,
): void {
  if (!rows || !columns) return
  const table = getSignedPixels(theme, "linear")
  paint(canvas, rows, columns, (pixels) => {
    for (let index = 0; index < pixels.length; index++) {
      const value = Math.max(-1, Math.min(1, values[index] / limit))
      // the table is by ±127·√|value|
      pixels[index] = table[128 + Math.round(127 * Math.sign(value) * Math.sqrt(Math.abs(value)))]
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

// Attention of one head, or of several heads combined, as a matrix of weights: what the views of the
// attention pane draw. Everything here is pure; the maps come from attention_maps.ts.

import { cellWeight, type LayerMaps } from "./attention_maps"

/** Rows are queries and columns are keys; after `transposeMatrix` it is the other way round. */
export interface AttentionMatrix {
  rows: number
  columns: number
  /** Weights, [row, column]. */
  values: Float32Array
  /** 0 where a pair is masked. */
  visible: Uint8Array
  /** Column at the position of the first row, if both are positions of one sequence. */
  first: number
  /** Whether values may be negative: signed mechanisms, and differences of two steps. */
  signed: boolean
  /** Largest |value| that the colours show. */
  scale: number
}

export type Combination = "mean" | "maximum"

/** A cell of one row with its weight. */
export interface RankedCell {
  column: number
  weight: number
}

export interface TokenLine {
  row: number
  column: number
  weight: number
}

export function extractHead(maps: LayerMaps, head: number): AttentionMatrix {
  const size = maps.queries * maps.keys
  const values = new Float32Array(size)
  for (let index = 0; index < size; index++)
    values[index] = cellWeight(maps, maps.cells[head * size + index])
  return { ...shapeOf(maps), values, visible: maps.visible }
}

/**
 * Mean or maximum over all heads of `layers`. Layers of another shape than the first are left out;
 * the maximum of signed weights is the one that is farthest from 0.
 */
export function combineHeads(layers: LayerMaps[], combination: Combination): AttentionMatrix {
  const [reference] = layers
  const size = reference.queries * reference.keys
  const values = new Float32Array(size)
  const visible = new Uint8Array(size)
  let heads = 0
  let scale = 1
  let signed = false
  for (const maps of layers) {
    if (maps.queries !== reference.queries || maps.keys !== reference.keys) continue
    for (let index = 0; index < size; index++) visible[index] |= maps.visible[index]
    for (let cell = 0; cell < maps.heads * size; cell++) {
      const weight = cellWeight(maps, maps.cells[cell])
      const index = cell % size
      if (combination === "mean") values[index] += weight
      else if (Math.abs(weight) > Math.abs(values[index])) values[index] = weight
    }
    heads += maps.heads
    scale = Math.max(scale, maps.scale)
    signed ||= maps.signed
  }
  if (combination === "mean")
    for (let index = 0; index < size; index++) values[index] /= Math.max(1, heads)
  return { ...shapeOf(reference), values, visible, signed, scale }
}

/** `matrix` − `base`; null if their shapes differ. A pair counts as visible if it is in either. */
export function subtractMatrix(
  matrix: AttentionMatrix,
  base: AttentionMatrix,
): AttentionMatrix | null {
  if (matrix.rows !== base.rows || matrix.columns !== base.columns) return null
  return {
    ...matrix,
    values: matrix.values.map((value, index) => value - base.values[index]),
    visible: matrix.visible.map((value, index) => value | base.visible[index]),
    signed: true,
    scale: Math.max(matrix.scale, base.scale),
  }
}

/** Keys as rows: who attends to each key. */
export function transposeMatrix(matrix: AttentionMatrix): AttentionMatrix {
  const { rows, columns, values, visible } = matrix
  const turned = {
    ...matrix,
    rows: columns,
    columns: rows,
    values: new Float32Array(values.length),
    visible: new Uint8Array(values.length),
    first: -matrix.first,
  }
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++) {
      turned.values[column * rows + row] = values[row * columns + column]
      turned.visible[column * rows + row] = visible[row * columns + column]
    }
  return turned
}

/** The visible cells of a row, the largest |weight| first; equal weights in the order of their columns. */
export function rankRow(matrix: AttentionMatrix, row: number, limit: number): RankedCell[] {
  const cells: RankedCell[] = []
  for (let column = 0; column < matrix.columns; column++) {
    const index = row * matrix.columns + column
    if (matrix.visible[index]) cells.push({ column, weight: matrix.values[index] })
  }
  return cells
    .sort((a, b) => Math.abs(b.weight) - Math.abs(a.weight) || a.column - b.column)
    .slice(0, limit)
}

/** All visible pairs with |weight| ≥ `minWeight`, except those of weight 0, row by row. */
export function listLines(matrix: AttentionMatrix, minWeight: number): TokenLine[] {
  const lines: TokenLine[] = []
  for (let row = 0; row < matrix.rows; row++)
    for (let column = 0; column < matrix.columns; column++) {
      const index = row * matrix.columns + column
      const weight = matrix.values[index]
      if (matrix.visible[index] && weight !== 0 && Math.abs(weight) >= minWeight)
        lines.push({ row, column, weight })
    }
  return lines
}

/** Up to `count` of some ascending steps, evenly chosen; the first and the last are always among them. */
export function sampleSteps(steps: number[], count: number): number[] {
  if (steps.length <= count) return steps
  const indices = Array.from({ length: count }, (_, index) =>
    Math.round((index * (steps.length - 1)) / (count - 1)),
  )
  return [...new Set(indices)].map((index) => steps[index])
}

const PADDING = /^(?:<pad>|<\|pad\|>|\[pad\]|<blank>)+$/i
/** Labels that some tasks give to padding, but that may also be the text of a token. */
const POSSIBLE_PADDING = new Set(["", "·"])

/**
 * Whether each key is padding. Its label says so, as `<pad>` does; an empty label or `·` means
 * padding if no query sees the key.
 */
export function findPaddedKeys(labels: string[] | undefined, maps: LayerMaps): boolean[] {
  const { visible } = maps
  return Array.from({ length: maps.keys }, (_, key) => {
    const label = labels?.[key]
    if (label === undefined) return false
    if (PADDING.test(label)) return true
    if (!POSSIBLE_PADDING.has(label)) return false
    for (let query = 0; query < maps.queries; query++)
      if (visible[query * maps.keys + key]) return false
    return true
  })
}

/** Position of the last label that is not padding, as far as labels tell; 511 without labels. */
export function findLastToken(labels: string[] | undefined): number {
  if (!labels?.length) return 511
  const last = labels.findLastIndex((label) => !PADDING.test(label) && !POSSIBLE_PADDING.has(label))
  return last < 0 ? labels.length - 1 : last
}

/** Whether each query is padding: by its label, or because it is the position of a padded key. */
export function findPaddedQueries(
  labels: string[] | undefined,
  maps: LayerMaps,
  paddedKeys: boolean[],
  isOneSequence: boolean,
): boolean[] {
  return Array.from(
    { length: maps.queries },
    (_, query) =>
      PADDING.test(labels?.[query] ?? "") ||
      (isOneSequence && (paddedKeys[maps.first + query] ?? false)),
  )
}

/** Whether queries are positions of the keys' sequence, as in self-attention: their labels agree. */
export function isOneSequence(
  queries: string[] | undefined,
  keys: string[] | undefined,
  maps: Pick<LayerMaps, "queries" | "keys" | "first">,
): boolean {
  if (maps.first < 0 || maps.first + maps.queries > maps.keys) return false
  if (!queries?.length || !keys?.length) return !queries?.length && !keys?.length
  return queries.slice(0, maps.queries).every((label, query) => label === keys[query + maps.first])
}

/**
 * The row to start with, never padding: the last query, which sees the most keys if there is a causal
 * mask, or the first key, which the most queries see.
 */
export function findFirstRow(padded: boolean[], direction: "queries" | "keys"): number {
  const row = direction === "keys" ? padded.indexOf(false) : padded.lastIndexOf(false)
  return row < 0 ? padded.length - 1 : row
}

function shapeOf(maps: LayerMaps): Omit<AttentionMatrix, "values" | "visible"> {
  const { queries, keys, first, signed, scale } = maps
  return { rows: queries, columns: keys, first, signed, scale }
}

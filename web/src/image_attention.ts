// Attention over the image of a vision transformer: which weights belong to which patch.

import { weightAt, type StepMaps } from "./attention_maps"
import { decodeBase64, lastIndexUpTo, type Run } from "./run_data"

/** The image of the probe. Weights are 16-bit integers, 65535·√weight. */
export interface ProbeImage {
  /** Base64 of a PNG that shows exactly the patches. */
  png: string
  grid: [rows: number, columns: number]
  /** Position of the upper left patch; the others follow row by row. */
  first_patch: number
  /** Positions of the sequence, patches and others. */
  tokens: number
  /** Names of the layers that attend over the image. */
  layers: string[]
  prefix_names: string[]
  /** The query of `rows` and `rollout`: CLS, or the mean of all patches. */
  query: string
  /** Steps of `rows` and `rollout`. */
  steps: number[]
  /** Heads of `rows`; layers with fewer heads have zeros. */
  heads: number
  /** [step, layer, head, token]: base64, or integers after an update. */
  rows: string | Uint16Array
  /** [step, layer, token]: rollout up to each layer. */
  rollout: string | Uint16Array
  /** Whether a step has a rollout. */
  has_rollout: boolean[]
}

/** Weights of one query over all positions. */
export interface ImageRow {
  name: string
  weights: number[]
  /** Index of the patch that attends; null: CLS, or the mean of all patches. */
  patch: number | null
  /** Whether another patch could be chosen: pages with reduced maps have the row of CLS only. */
  canSelect: boolean
}

interface Cells {
  rows: Uint16Array
  rollout: Uint16Array
}

const decodedCells = new WeakMap<ProbeImage, Cells>()

function readCells(image: ProbeImage): Cells {
  let cells = decodedCells.get(image)
  if (!cells) {
    const decode = (data: string | Uint16Array) =>
      typeof data === "string" ? new Uint16Array(decodeBase64(data).buffer) : data
    cells = { rows: decode(image.rows), rollout: decode(image.rollout) }
    decodedCells.set(image, cells)
  }
  return cells
}

function sliceWeights(cells: Uint16Array, index: number, length: number): number[] {
  const row = cells.subarray(index * length, (index + 1) * length)
  return Array.from(row, (cell) => (cell / 65535) ** 2)
}

/** Weights of the selected query in one head; null if the layer does not attend over the image. */
export function readImageRow(
  run: Run,
  image: ProbeImage,
  maps: StepMaps,
  layer: number,
  head: number,
  query: number | undefined,
): ImageRow | null {
  const layerMaps = maps.layers[layer]
  if (!layerMaps || head >= layerMaps.heads || !image.layers.includes(layerMaps.name)) return null
  const { first_patch: first, tokens } = image
  const isComplete =
    (run.downsampling[String(maps.step)] ?? 1) === 1 &&
    layerMaps.queries === tokens &&
    layerMaps.keys === tokens
  const patchCount = image.grid[0] * image.grid[1]
  const isPatch = query !== undefined && query >= first && query < first + patchCount
  const isToken = query !== undefined && query < tokens && (isPatch || query < first)
  if (isComplete && isToken) {
    const weights = Array.from({ length: tokens }, (_, key) =>
      weightAt(layerMaps, head, query, key),
    )
    return {
      name: isPatch ? `patch ${namePatch(image, query - first)}` : image.prefix_names[query],
      weights,
      patch: isPatch ? query - first : null,
      canSelect: true,
    }
  }
  const step = lastIndexUpTo(image.steps, maps.step)
  // the page leaves steps out if there are too many; the rows of another step would be wrong
  if (step >= 0 && image.steps[step] === maps.step) {
    const index = (step * run.layers.length + layer) * image.heads + head
    const weights = sliceWeights(readCells(image).rows, index, tokens)
    return { name: image.query, weights, patch: null, canSelect: isComplete }
  }
  if (!isComplete || !image.prefix_names.length) return null
  return readImageRow(run, { ...image, steps: [] }, maps, layer, head, 0)
}

/** Rollout up to a layer at the step of the maps; null if there is none. */
export function readRollout(
  run: Run,
  image: ProbeImage,
  maps: StepMaps,
  layer: number,
): ImageRow | null {
  const step = lastIndexUpTo(image.steps, maps.step)
  if (step < 0 || image.steps[step] !== maps.step || !image.has_rollout[step]) return null
  if (!image.layers.includes(maps.layers[layer]?.name ?? "")) return null
  const index = step * run.layers.length + layer
  const weights = sliceWeights(readCells(image).rollout, index, image.tokens)
  return { name: image.query, weights, patch: null, canSelect: false }
}

/** Row and column of a patch: `2,3`. */
export function namePatch(image: ProbeImage, patch: number): string {
  const columns = image.grid[1]
  return `${Math.floor(patch / columns)},${patch % columns}`
}

/** Append the rows of an update of a live run. */
export function mergeImage(
  known: ProbeImage | null | undefined,
  update: ProbeImage | null | undefined,
): ProbeImage | null {
  if (!known || !update || known.tokens !== update.tokens) return update ?? known ?? null
  const keptCount = known.steps.filter((step) => step < (update.steps[0] ?? Infinity)).length
  const join = (key: "rows" | "rollout") => {
    const [first, second] = [readCells(known)[key], readCells(update)[key]]
    const cellsPerStep = known.steps.length ? first.length / known.steps.length : 0
    const joined = new Uint16Array(keptCount * cellsPerStep + second.length)
    joined.set(first.subarray(0, keptCount * cellsPerStep))
    joined.set(second, keptCount * cellsPerStep)
    return joined
  }
  return {
    ...update,
    heads: update.heads || known.heads,
    steps: [...known.steps.slice(0, keptCount), ...update.steps],
    rows: join("rows"),
    rollout: join("rollout"),
    has_rollout: [...known.has_rollout.slice(0, keptCount), ...update.has_rollout],
  }
}

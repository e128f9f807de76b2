// Queries and keys of one head, and their products: what makes a score large.

import { decodeBase64, type HeadVectors } from "./run_data"

export interface DecodedVectors {
  /** Numbers per vector. */
  width: number
  /** [query, dimension] and [key, dimension]. */
  queries: Float32Array
  keys: Float32Array
  /** Factor of the dot products. */
  scoreScale: number
}

export function decodeVectors(layer: HeadVectors, head: number): DecodedVectors {
  const [heads, keyHeads, queryCount, keyCount, width] = layer.shape
  // consecutive heads share a key head (grouped-query attention)
  const keyHead = Math.floor((head * keyHeads) / heads)
  return {
    width,
    queries: decodeHead(layer.queries, layer.query_scale, head, queryCount * width),
    keys: decodeHead(layer.keys, layer.key_scale, keyHead, keyCount * width),
    scoreScale: layer.score_scale,
  }
}

function decodeHead(base64: string, scale: number, head: number, size: number): Float32Array {
  const bytes = new DataView(decodeBase64(base64).buffer)
  return Float32Array.from(
    { length: size },
    (_, index) => bytes.getInt16(2 * (head * size + index), true) * scale,
  )
}

/**
 * Weights of some keys: the softmax of their scores, which has more digits than the maps; null if it
 * is not what the maps have, because a bias was added or the mechanism is another.
 */
export function computeWeights(
  scores: ArrayLike<number>,
  keys: number[],
  stored: ArrayLike<number>,
): number[] | null {
  const largest = Math.max(...keys.map((key) => scores[key]))
  const powers = keys.map((key) => Math.exp(scores[key] - largest))
  const sum = powers.reduce((total, power) => total + power, 0)
  const weights = powers.map((power) => power / sum)
  return weights.every((weight, index) => Math.abs(weight - stored[index]) < 0.02) ? weights : null
}

/** Products of one query with every key, [key, dimension], and their scaled sums, [key]. */
export function multiplyQuery(
  vectors: DecodedVectors,
  query: number,
): { products: Float32Array; scores: Float32Array } {
  const { width, queries, keys, scoreScale } = vectors
  const products = new Float32Array(keys.length)
  const scores = new Float32Array(keys.length / width)
  for (let index = 0; index < keys.length; index++) {
    const key = Math.floor(index / width)
    products[index] = queries[query * width + (index % width)] * keys[index]
    scores[key] += products[index] * scoreScale
  }
  return { products, scores }
}

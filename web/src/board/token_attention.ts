// Attention weights that a generated token was predicted with, per head.

import { formatHead } from "../format"
import type { GenerationStart, GeneratedToken } from "./api"

export interface HeadWeights {
  name: string
  /** One per key; they sum to 1. */
  weights: Float32Array
}

/** Weights of all heads, layer by layer. */
export function decodeHeadWeights(token: GeneratedToken, start: GenerationStart): HeadWeights[] {
  const maxHeads = Math.max(...start.heads)
  return start.layers.flatMap((_, layer) =>
    Array.from({ length: start.heads[layer] }, (_, head) => {
      const offset = (layer * maxHeads + head) * token.keys
      const weights = Float32Array.from(
        token.weights.subarray(offset, offset + token.keys),
        (cell) => (cell / 255) ** 2,
      )
      return { name: formatHead(layer, head), weights }
    }),
  )
}

/** The keys with the largest weights, descending; weights up to 0.01 are left out. */
export function topKeys(weights: Float32Array, limit: number): [key: number, weight: number][] {
  return [...weights]
    .map((weight, key): [number, number] => [key, weight])
    .sort((a, b) => b[1] - a[1])
    .slice(0, limit)
    .filter(([, weight]) => weight > 0.01)
}

// What a written character was predicted from, head by head.

import { headName } from "../numbers"
import type { Begun, Piece } from "./server"

export interface Look {
  name: string
  /** By key; they sum to 1. */
  weights: Float32Array
}

/** All heads of all layers, in order. */
export function looks(piece: Piece, begun: Begun): Look[] {
  const most = Math.max(...begun.heads)
  return begun.layers.flatMap((_, layer) =>
    Array.from({ length: begun.heads[layer] }, (_, head) => {
      const from = (layer * most + head) * piece.keys
      const weights = Float32Array.from(piece.seen.subarray(from, from + piece.keys), (one) => (one / 255) ** 2)
      return { name: headName(layer, head), weights }
    }),
  )
}

/** The keys that get most, the first first. */
export function strongestKeys(weights: Float32Array, most: number): [key: number, weight: number][] {
  return [...weights].map((weight, key): [number, number] => [key, weight]).sort((a, b) => b[1] - a[1]).slice(0, most).filter(([, weight]) => weight > 0.01)
}

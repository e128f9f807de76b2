import assert from "node:assert/strict"
import { test } from "node:test"

import { decodeHeadWeights, topKeys } from "../../src/board/token_attention"

const start = { prompt: ["a"], layers: ["x", "y"], heads: [1, 2] }
// stored for two heads per layer, though the first layer has only one
const weights = Uint8Array.from([255, 0, 0, 0, 0, 255, 0, 0])

test("every head of a layer gets its weights, padding is left out", () => {
  const rows = decodeHeadWeights({ text: "b", first: 0, keys: 2, weights }, start)
  assert.deepEqual(
    rows.map((head) => head.name),
    ["L0 h0", "L1 h0", "L1 h1"],
  )
  assert.deepEqual(
    rows.map((head) => [...head.weights]),
    [
      [1, 0],
      [0, 1],
      [0, 0],
    ],
  )
})

test("the keys with the largest weights come first, without negligible ones", () => {
  assert.deepEqual(topKeys(Float32Array.from([0.25, 0, 0.75]), 4), [
    [2, 0.75],
    [0, 0.25],
  ])
})

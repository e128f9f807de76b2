import assert from "node:assert/strict"
import { test } from "node:test"

import { computeWeights, decodeVectors, multiplyQuery } from "../src/head_vectors"
import type { HeadVectors } from "../src/run_data"

function encode(values: number[]): string {
  return Buffer.from(Int16Array.from(values).buffer).toString("base64")
}

test("products are those of the query with the keys of its group of heads", () => {
  const layer: HeadVectors = {
    shape: [2, 1, 1, 2, 2], // two heads share the keys
    queries: encode([9, 9, 1, -2]),
    keys: encode([3, 4, 5, 6]),
    query_scale: 0.5,
    key_scale: 2,
    score_scale: 0.1,
  }
  const { products, scores } = multiplyQuery(decodeVectors(layer, 1), 0)
  assert.deepEqual([...products], [3, -8, 5, -12])
  assert.deepEqual(
    [...scores].map((score) => Math.round(score * 1000) / 1000),
    [-0.5, -0.7],
  )
})

test("weights are the softmax of the scores of visible keys, if the maps agree", () => {
  const scores = [0, Math.log(3), 99]
  const weights = computeWeights(scores, [0, 1], [0.247, 0.751])!
  assert.ok(Math.abs(weights[0] - 0.25) < 1e-9 && Math.abs(weights[1] - 0.75) < 1e-9)
  assert.equal(computeWeights(scores, [0, 1], [0.9, 0.1]), null) // a bias was added
})

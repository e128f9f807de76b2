// What the board computes by itself: subtracted maps, what a character looked at, the address of a comparison.

import assert from "node:assert/strict"
import { describe, test } from "node:test"

import { looks, strongestKeys } from "../src/board/looked"
import { joined, others } from "../src/board/others"
import { strongest, subtracted } from "../src/board/subtract"
import type { LayerMaps } from "../src/maps"

function layer(cells: number[], heads = 1): LayerMaps {
  return { name: "a", heads, queries: 2, keys: 2, causal: false, first: 0, cells: Uint8Array.from(cells) }
}

describe("A − B", () => {
  test("is a difference of weights, not of the bytes that they are kept as", () => {
    const { values } = subtracted(layer([255, 0, 0, 255]), layer([0, 255, 0, 255]))
    assert.deepEqual([...values], [1, -1, 0, 0])
  })
  test("the head that moved most comes first, with the pair that changed most", () => {
    const a = layer([255, 0, 255, 0, 255, 0, 0, 255], 2)
    const b = layer([255, 0, 255, 0, 255, 0, 255, 0], 2)
    const [first, second] = strongest([subtracted(a, b)], 2)
    const { layer: row, head, query, key, value, moved } = first
    assert.deepEqual({ row, head, query, key, value, moved }, { row: 0, head: 1, query: 1, key: 0, value: -1, moved: 0.5 })
    assert.deepEqual([second.head, second.moved], [0, 0])
  })
})

describe("what a character was predicted from", () => {
  const begun = { prompt: ["a"], layers: ["x", "y"], heads: [1, 2] }
  const seen = Uint8Array.from([255, 0, 0, 0, 0, 255, 0, 0]) // two heads for every layer; the first has only one of them
  test("every head that a layer has, and no other", () => {
    const rows = looks({ text: "b", first: 0, keys: 2, seen }, begun)
    assert.deepEqual(rows.map((one) => one.name), ["L0 h0", "L1 h0", "L1 h1"])
    assert.deepEqual(rows.map((one) => [...one.weights]), [[1, 0], [0, 1], [0, 0]])
  })
  test("the strongest keys, without those that get next to nothing", () => {
    assert.deepEqual(strongestKeys(Float32Array.from([0.25, 0, 0.75]), 4), [[2, 0.75], [0, 0.25]])
  })
})

test("names with any signs survive the address", () => {
  const ids = ["a,b", "sweep/run", "<img>", "50%"]
  assert.deepEqual(others({ pane: "compare", with: joined(ids) }), ids)
  assert.deepEqual(others({ pane: "compare" }), [])
  assert.equal(joined([]), undefined)
})

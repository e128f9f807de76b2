import assert from "node:assert/strict"
import { test } from "node:test"

import type { LayerMaps } from "../src/attention_maps"
import {
  combineHeads,
  extractHead,
  findFirstRow,
  findLastToken,
  findPaddedKeys,
  findPaddedQueries,
  isOneSequence,
  listLines,
  rankRow,
  sampleSteps,
  subtractMatrix,
  transposeMatrix,
} from "../src/attention_matrix"

/** Maps of weights, [head][query][key], as they are stored. */
function storeMaps(weights: number[][][], options: Partial<LayerMaps> = {}): LayerMaps {
  return {
    name: "layer",
    heads: weights.length,
    queries: weights[0].length,
    keys: weights[0][0].length,
    visible: new Uint8Array(weights[0].length * weights[0][0].length).fill(1),
    first: 0,
    signed: false,
    scale: 1,
    cells: Uint8Array.from(weights.flat(2), (weight) => Math.round(255 * Math.sqrt(weight))),
    ...options,
  }
}

function assertClose(actual: ArrayLike<number>, expected: number[]): void {
  assert.equal(actual.length, expected.length)
  for (const [index, value] of expected.entries())
    assert.ok(Math.abs(actual[index] - value) < 0.004, `${[...Array.from(actual)]} ≠ ${expected}`)
}

const TWO_HEADS = [
  [
    [1, 0],
    [0.25, 0.75],
  ],
  [
    [1, 0],
    [0.75, 0.25],
  ],
]

test("mean and maximum over heads are those of the weights", () => {
  const maps = storeMaps(TWO_HEADS)
  assertClose(combineHeads([maps], "mean").values, [1, 0, 0.5, 0.5])
  assertClose(combineHeads([maps], "maximum").values, [1, 0, 0.75, 0.75])
  const single = storeMaps([TWO_HEADS[0]])
  // each head counts alike, so the layer of two heads counts twice
  assertClose(combineHeads([maps, single], "mean").values, [1, 0, 1.25 / 3, 1.75 / 3])
  const other = storeMaps([[[1]]])
  assertClose(combineHeads([maps, other], "mean").values, [1, 0, 0.5, 0.5])
})

test("the maximum of signed weights is the farthest from 0", () => {
  const cells = Int8Array.from([127, -127, -64, 64])
  const signed = storeMaps([[[0, 0]], [[0, 0]]], { signed: true, scale: 2, cells })
  const { values, scale } = combineHeads([signed], "maximum")
  assert.deepEqual([values[0], values[1], scale], [2, -2, 2])
})

test("a difference is signed, and differences of other shapes do not exist", () => {
  const maps = storeMaps(TWO_HEADS)
  const difference = subtractMatrix(extractHead(maps, 0), extractHead(maps, 1))!
  assertClose(difference.values, [0, 0, -0.5, 0.5])
  assert.ok(difference.signed)
  assert.equal(subtractMatrix(extractHead(maps, 0), extractHead(storeMaps([[[1]]]), 0)), null)
})

test("transposed, rows are keys", () => {
  const maps = storeMaps(TWO_HEADS, { visible: Uint8Array.of(1, 0, 1, 1) })
  const turned = transposeMatrix(extractHead(maps, 0))
  assertClose(turned.values, [1, 0.25, 0, 0.75])
  assert.deepEqual([...turned.visible], [1, 1, 0, 1])
})

test("a weight of 0 is visible unless the mask hides it, in one head or in several", () => {
  const maps = storeMaps([[[0, 0.5, 0, 0.5, 0]]], { visible: Uint8Array.of(1, 1, 1, 1, 0) })
  assert.deepEqual([...extractHead(maps, 0).visible], [1, 1, 1, 1, 0])
  assert.deepEqual([...combineHeads([maps], "mean").visible], [1, 1, 1, 1, 0])
})

test("a row is ranked by weight; masked keys are not in it", () => {
  const maps = storeMaps([[[0, 0.2, 0.5, 0.2, 0.1]]], { visible: Uint8Array.of(0, 1, 1, 1, 1) })
  assert.deepEqual(
    rankRow(extractHead(maps, 0), 0, 3).map(({ column }) => column),
    [2, 1, 3],
  )
  assert.equal(rankRow(extractHead(maps, 0), 0, 9).length, 4)
})

test("lines are the pairs with enough weight, row by row", () => {
  const lines = listLines(extractHead(storeMaps(TWO_HEADS), 0), 0.5)
  assert.deepEqual(
    lines.map(({ row, column }) => [row, column]),
    [
      [0, 0],
      [1, 1],
    ],
  )
})

test("padding is known by its label, or by an empty label that the mask hides", () => {
  const row = [0.5, 0.5, 0]
  const maps = storeMaps([[row, row, row]], { visible: Uint8Array.of(1, 1, 0, 1, 1, 0, 1, 1, 0) })
  assert.deepEqual(findPaddedKeys(["a", "", ""], maps), [false, false, true])
  assert.deepEqual(findPaddedKeys(["a", "<pad>", "[PAD]"], maps), [false, true, true])
  assert.deepEqual(findPaddedKeys(undefined, maps), [false, false, false])
  const padded = findPaddedQueries(["a", "", ""], maps, [false, false, true], true)
  assert.deepEqual(padded, [false, false, true])
  assert.equal(findFirstRow(padded, "queries"), 1)
  assert.equal(findFirstRow([true, false, true], "keys"), 1)
})

test("the last token is before the padding", () => {
  assert.equal(findLastToken(["a", "", "b", "", "<pad>"]), 2)
  assert.equal(findLastToken([""]), 0)
  assert.equal(findLastToken(undefined), 511)
})

test("queries and keys are one sequence if their labels agree", () => {
  const maps = { queries: 2, keys: 3, first: 1 }
  assert.ok(isOneSequence(["b", "c"], ["a", "b", "c"], maps))
  assert.ok(!isOneSequence(["x", "y"], ["a", "b", "c"], maps))
  assert.ok(isOneSequence(undefined, undefined, maps))
  assert.ok(!isOneSequence(undefined, ["a", "b", "c"], maps))
})

test("steps are sampled evenly, with the first and the last", () => {
  assert.deepEqual(sampleSteps([0, 5], 8), [0, 5])
  const steps = sampleSteps(
    Array.from({ length: 25 }, (_, index) => 15 * index),
    8,
  )
  assert.deepEqual([steps.length, steps[0], steps[7]], [8, 0, 360])
})

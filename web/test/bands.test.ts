import assert from "node:assert/strict"
import { test } from "node:test"

import { band, ends, lines, mean, smoothed } from "../src/bands"
import type { Measure, Run } from "../src/model"

test("seeds become their mean and the standard error around it, where all of them have the step", () => {
  const curves = [{ steps: [1, 2, 3], values: [1, 2, 5] }, { steps: [2, 3], values: [4, 7] }]
  const line = band("tiny", curves)
  assert.equal(line.label, "tiny (2 seeds)")
  assert.deepEqual(line.steps, [2, 3])
  assert.deepEqual(line.values, [3, 6])
  assert.deepEqual(line.low, [2, 5]) // standard error of 2 and 4: √(2/2) = 1
  assert.deepEqual(line.high, [4, 7])
})

test("where a seed has no number there is a gap, not a mean of the others", () => {
  const line = band("x", [{ steps: [1, 2], values: [1, null] }, { steps: [1, 2], values: [3, 4] }])
  assert.deepEqual(line.values, [2, null])
})

test("one run alone is its own line, without a band", () => {
  const groups = [{ label: "a", data: "", runs: ["r"], findings: [] }]
  const drawn = lines(groups, [{ id: "r" } as Run], () => ({ steps: [1], values: [2] }))
  assert.deepEqual(drawn, [{ label: "a", steps: [1], values: [2] }])
})

test("means and ends leave out what is not a number", () => {
  assert.equal(mean([1, NaN, 3]), 2)
  assert.equal(mean([NaN]), null)
  assert.deepEqual(ends({ values: Float32Array.from([NaN, 2, -1]) } as Measure), [-1, 2])
  assert.deepEqual(ends({ values: Float32Array.from([2]) } as Measure), [1.5, 2.5])
})

test("smoothing begins at the first value and keeps gaps", () => {
  assert.deepEqual(smoothed([4, null, 4], 5), [4, null, 4])
})

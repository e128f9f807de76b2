import assert from "node:assert/strict"
import { test } from "node:test"

import {
  aggregateSeeds,
  valueRange,
  aggregateGroups,
  finiteMean,
  smoothValues,
} from "../src/aggregation"
import type { Measure, Run } from "../src/run_data"

test("seeds become mean and standard error at the steps that all of them have", () => {
  const curves = [
    { steps: [1, 2, 3], values: [1, 2, 5] },
    { steps: [2, 3], values: [4, 7] },
  ]
  const line = aggregateSeeds("tiny", curves)
  assert.equal(line.label, "tiny (2 seeds)")
  assert.deepEqual(line.steps, [2, 3])
  assert.deepEqual(line.values, [3, 6])
  assert.deepEqual(line.low, [2, 5]) // standard error of 2 and 4: √(2/2) = 1
  assert.deepEqual(line.high, [4, 7])
})

test("a value missing in one seed is a gap, not the mean of the others", () => {
  const line = aggregateSeeds("x", [
    { steps: [1, 2], values: [1, null] },
    { steps: [1, 2], values: [3, 4] },
  ])
  assert.deepEqual(line.values, [2, null])
})

test("a single run is a line without a band", () => {
  const groups = [{ label: "a", data: "", runs: ["r"], findings: [] }]
  const lines = aggregateGroups(groups, [{ id: "r" } as Run], () => ({ steps: [1], values: [2] }))
  assert.deepEqual(lines, [{ label: "a", steps: [1], values: [2] }])
})

test("mean and range ignore NaN", () => {
  assert.equal(finiteMean([1, NaN, 3]), 2)
  assert.equal(finiteMean([NaN]), null)
  assert.deepEqual(valueRange({ values: Float32Array.from([NaN, 2, -1]) } as Measure), [-1, 2])
  assert.deepEqual(valueRange({ values: Float32Array.from([2]) } as Measure), [1.5, 2.5])
})

test("smoothing starts at the first value and keeps gaps", () => {
  assert.deepEqual(smoothValues([4, null, 4], 5), [4, null, 4])
})

import assert from "node:assert/strict"
import { test } from "node:test"

import {
  aggregateSeeds,
  colourRange,
  isNoisy,
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
  assert.deepEqual(lines, [{ label: "a", key: "a", steps: [1], values: [2] }])
})

test("mean and range ignore NaN", () => {
  assert.equal(finiteMean([1, NaN, 3]), 2)
  assert.equal(finiteMean([NaN]), null)
  assert.deepEqual(valueRange({ values: Float32Array.from([NaN, 2, -1]) } as Measure), [-1, 2])
  assert.deepEqual(valueRange({ values: Float32Array.from([NaN]) } as Measure), [NaN, NaN])
})

test("smoothing keeps gaps and straight lines, and averages noise up to the ends", () => {
  assert.deepEqual(smoothValues([4, null, 4], 8), [4, null, 4])
  const line = Array.from({ length: 40 }, (_, index) => 10 - index / 4)
  smoothValues(line, 16).forEach((value, index) => {
    assert.ok(Math.abs(value! - line[index]) < 1e-9, "an average that lags is above a falling line")
  })
  const noisy = line.map((value, index) => value + (index % 2 ? 1 : -1))
  const smoothed = smoothValues(noisy, 16) as number[]
  assert.ok([0, 39].every((index) => Math.abs(smoothed[index] - line[index]) < 0.5))
  assert.ok(smoothed.slice(8, 32).every((value, index) => Math.abs(value - line[index + 8]) < 0.1))
})

test("colours of a nearly constant measure do not show its rounding errors", () => {
  const measure = { values: Float32Array.from([0.5, 0.5000001]), unit: "share" } as Measure
  const [low, high] = colourRange(measure)
  assert.ok(high - low >= 0.01 && low < 0.5 && high > 0.5)
  assert.deepEqual(
    colourRange({ values: Float32Array.from([NaN]), unit: "share" } as Measure),
    [0, 1],
  )
})

test("noise is told from schedules and trends", () => {
  const random = Array.from({ length: 100 }, (_, index) => ((index * 7919) % 101) / 101)
  assert.ok(isNoisy(random))
  assert.ok(isNoisy(random.map((value, index) => 5 / (1 + index) + value / 10)))
  assert.ok(!isNoisy(random.map((_, index) => Math.cos(index / 30))))
  assert.ok(!isNoisy(new Array(100).fill(1)))
  assert.ok(!isNoisy(random.slice(0, 10)))
})

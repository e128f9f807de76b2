import assert from "node:assert/strict"
import { test } from "node:test"

import { describeRepetitions, formatInterval } from "../../src/components/run_table"
import type { Run } from "../../src/run_data"

const run = (seed: number | null, fold: string | null = null) => ({ seed, fold }) as Run

test("repetitions are seeds, folds, or both", () => {
  assert.equal(describeRepetitions([run(0)]), "seed 0")
  assert.equal(describeRepetitions([run(null)]), "–")
  assert.equal(describeRepetitions([run(3, "2/5")]), "fold 2/5, seed 3")
  assert.equal(describeRepetitions([run(0), run(1), run(2)]), "3 seeds")
  assert.equal(describeRepetitions([run(null), run(null)]), "2 runs")
  assert.equal(describeRepetitions([run(0, "1/2"), run(0, "2/2")]), "2 folds")
  const both = [run(0, "1/2"), run(1, "1/2"), run(0, "2/2"), run(1, "2/2")]
  assert.equal(describeRepetitions(both), "2 folds × 2 seeds")
})

test("an interval has both ends or none", () => {
  assert.equal(formatInterval({ value: 1, low: 0.5, high: 1.5 }), "0.500 … 1.50")
  assert.equal(formatInterval({ value: 1, low: null, high: null }), "–")
})

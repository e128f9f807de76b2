import assert from "node:assert/strict"
import test from "node:test"

import { chooseSamples, explainScore, parseSteps } from "../src/sample_columns"

const roles = (steps: number[], chosen: number[], slider?: number) =>
  chooseSamples(steps, chosen, slider).map(({ step, role }) => `${step} ${role}`)

test("few samples are all shown", () => {
  assert.deepEqual(roles([90, 180, 270], []), ["90 first", "180 sample 2", "270 last"])
  assert.deepEqual(roles([90], []), ["90 last"])
  assert.deepEqual(roles([], []), [])
})

test("of many samples the first, the middle, the last and that of the slider are shown", () => {
  const steps = [0, 10, 20, 30, 40, 50, 60]
  assert.deepEqual(roles(steps, []), ["0 first", "30 middle", "60 last"])
  assert.deepEqual(roles(steps, [], 45), ["0 first", "30 middle", "40 at the slider", "60 last"])
})

test("chosen steps replace the usual ones; unknown ones are ignored", () => {
  const steps = [0, 10, 20, 30, 40, 50]
  assert.deepEqual(roles(steps, [10, 20, 99], 50), ["10 chosen", "20 chosen", "50 at the slider"])
  assert.deepEqual(roles(steps, [99]), ["0 first", "20 middle", "50 last"])
})

test("steps are read from the address", () => {
  assert.deepEqual(parseSteps("90,180,x,-1"), [90, 180])
  assert.deepEqual(parseSteps(undefined), [])
})

test("a score has the description of its measure", () => {
  const descriptions = { distinct: "different n-grams", segments: "similarity", bits: "bits" }
  assert.equal(explainScore("generation/distinct_3", descriptions), "different n-grams")
  assert.equal(explainScore("generation/segment_coherence", descriptions), "similarity")
  assert.equal(explainScore("generation/bits", descriptions), "bits")
  assert.equal(explainScore("generation/other", descriptions), "")
})

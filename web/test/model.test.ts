import assert from "node:assert/strict"
import { test } from "node:test"

import { decodeRun, lastUpTo, mergeRun, valuesAt, type Run, type WrittenRun } from "../src/model"

const base64 = (values: number[]) => btoa(String.fromCharCode(...new Uint8Array(Float32Array.from(values).buffer)))

function written(steps: number[], values: number[], more: Partial<WrittenRun> = {}): WrittenRun {
  const measure = { unit: "nats", says: "", axes: "head" as const, steps, shape: [steps.length, 1, 2], data: base64(values) }
  return {
    id: "a", scalars: { loss: { steps, values: steps.map(Number) } }, measures: { entropy: measure }, map_steps: steps, events: [],
    ...more,
  } as unknown as WrittenRun
}

test("the last number that is not above a limit is found, and none before the first", () => {
  assert.deepEqual([0, 4, 5, 9, 100].map((limit) => lastUpTo([5, 9, 13], limit)), [-1, -1, 0, 1, 2])
})

test("a measure is read as 32-bit floats, and asked for a step it gives the last look", () => {
  const { measures } = decodeRun(written([10, 20], [1, 2, 3, NaN]))
  assert.deepEqual([...valuesAt(measures.entropy, 15)!], [1, 2])
  assert.deepEqual([...valuesAt(measures.entropy, 99)!], [3, NaN])
  assert.equal(valuesAt(measures.entropy, 9), null)
})

test("news are added behind what was known, and a step that comes again counts once", () => {
  const old: Run = decodeRun(written([10, 20], [1, 2, 3, 4]))
  const merged = mergeRun(old, decodeRun(written([20, 30], [5, 6, 7, 8], { state: "finished" })))
  assert.deepEqual(merged.scalars.loss, { steps: [10, 20, 30], values: [10, 20, 30] })
  assert.deepEqual(merged.measures.entropy.steps, [10, 20, 30])
  assert.deepEqual([...merged.measures.entropy.values], [1, 2, 5, 6, 7, 8])
  assert.deepEqual(merged.measures.entropy.shape, [3, 1, 2])
  assert.deepEqual(merged.map_steps, [10, 20, 30])
  assert.equal(merged.state, "finished")
})

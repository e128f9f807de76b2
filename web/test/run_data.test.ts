import assert from "node:assert/strict"
import { test } from "node:test"

import {
  decodeCurve,
  decodeRun,
  lastIndexUpTo,
  lastRowStep,
  mergeRun,
  valuesAtStep,
  type Run,
  type EncodedRun,
} from "../src/run_data"

const base64 = (values: number[]) =>
  btoa(String.fromCharCode(...new Uint8Array(Float32Array.from(values).buffer)))

function encodeRun(steps: number[], values: number[], extra: Partial<EncodedRun> = {}): EncodedRun {
  const measure = {
    unit: "nats",
    description: "",
    axes: "head" as const,
    steps,
    shape: [steps.length, 1, 2],
    data: base64(values),
  }
  return {
    id: "a",
    scalars: { loss: { steps, values: steps.map(Number) } },
    measures: { entropy: measure },
    map_steps: steps,
    events: [],
    ...extra,
  } as unknown as EncodedRun
}

test("lastIndexUpTo finds the last value up to a limit, and -1 before the first", () => {
  assert.deepEqual(
    [0, 4, 5, 9, 100].map((limit) => lastIndexUpTo([5, 9, 13], limit)),
    [-1, -1, 0, 1, 2],
  )
})

test("the newest row counts, not the step of the progress report, which may be ahead of the rows", () => {
  assert.equal(lastRowStep(decodeRun(encodeRun([10, 20], [1, 2, 3, 4], { step: 27 }))), 20)
  assert.equal(lastRowStep(decodeRun(encodeRun([], [], { step: 27 }))), -1)
})

test("measures are decoded as 32-bit floats; a step gets the values of the last snapshot before it", () => {
  const { measures } = decodeRun(encodeRun([10, 20], [1, 2, 3, NaN]))
  assert.deepEqual([...valuesAtStep(measures.entropy, 15)!], [1, 2])
  assert.deepEqual([...valuesAtStep(measures.entropy, 99)!], [3, NaN])
  assert.equal(valuesAtStep(measures.entropy, 9), null)
})

test("an update is appended, and a step that is repeated is replaced", () => {
  const known: Run = decodeRun(encodeRun([10, 20], [1, 2, 3, 4]))
  const merged = mergeRun(
    known,
    decodeRun(encodeRun([20, 30], [5, 6, 7, 8], { state: "finished" })),
  )
  assert.deepEqual(merged.scalars.loss, { steps: [10, 20, 30], values: [10, 20, 30] })
  assert.deepEqual(merged.measures.entropy.steps, [10, 20, 30])
  assert.deepEqual([...merged.measures.entropy.values], [1, 2, 5, 6, 7, 8])
  assert.deepEqual(merged.measures.entropy.shape, [3, 1, 2])
  assert.deepEqual(merged.map_steps, [10, 20, 30])
  assert.equal(merged.state, "finished")
})

test("a growing curve stays within the limit and keeps all of its newest points", () => {
  const empty = { scalars: {}, measures: {}, map_steps: [], events: [] } as unknown as Run
  let run = empty
  for (let step = 0; step < 20_000; step += 100) {
    const steps = Array.from({ length: 100 }, (_, index) => step + index)
    run = mergeRun(run, { ...empty, scalars: { loss: { steps, values: steps } } })
  }
  const { steps, values } = run.scalars.loss
  assert.ok(steps.length <= 4000)
  assert.deepEqual(
    steps.slice(-1000),
    Array.from({ length: 1000 }, (_, index) => 19_000 + index),
  )
  assert.deepEqual(steps, values)
  assert.equal(steps[0], 0)
})

test("a packed curve has the steps and values that were stored", () => {
  const values = Float32Array.of(1.5, Number.NaN, -2.25)
  const text = btoa(String.fromCharCode(...new Uint8Array(values.buffer)))
  assert.deepEqual(decodeCurve({ steps: { start: 10, every: 5, count: 3 }, values: text }), {
    steps: [10, 15, 20],
    values: [1.5, null, -2.25],
  })
  const plain = { steps: [1, 4], values: [0.1, null] }
  assert.deepEqual(decodeCurve(plain), plain)
})

import assert from "node:assert/strict"
import { test } from "node:test"

import {
  cellIndex,
  countColumnDecimals,
  countDecimals,
  currentColumn,
  decodeClass,
  findColumn,
  formatChange,
  formatEstimate,
  rankHeads,
  type Importance,
} from "../src/importance_data"
import { chooseColumns } from "../src/components/importance_picture"
import { decodeRun, mergeRun, snapshotSteps, type EncodedRun } from "../src/run_data"

const base64 = (values: number[]) =>
  btoa(String.fromCharCode(...new Uint8Array(Float32Array.from(values).buffer)))

/** Two steps, two layers with two heads and one. */
function createImportance(extra: Partial<Importance> = {}): Importance {
  const change = base64([0, 0, 0, NaN, 0.25, -0.5, 0.75, NaN])
  return {
    heads: [2, 1],
    shape: [2, 2, 2],
    steps: [100, 200],
    unit: "nats",
    metric: "loss",
    gradient: change,
    classes: [
      { name: "all tokens", share: null, change, se: base64(Array(8).fill(0.01)) },
      { name: "digits", share: 0.1, change: base64([0, 0, 0, NaN, 2, 1, 0, NaN]), se: change },
    ],
    ...extra,
  } as Importance
}

test("heads are ordered by their importance at the end, for the chosen class of tokens", () => {
  const importance = createImportance()
  const whole = decodeClass(importance, undefined)
  assert.deepEqual(rankHeads(importance, whole), [
    [1, 0],
    [0, 0],
    [0, 1],
  ])
  const digits = decodeClass(importance, "digits")
  assert.deepEqual(rankHeads(importance, digits), [
    [0, 0],
    [0, 1],
    [1, 0],
  ])
  assert.equal(digits.gradient, null)
  assert.equal(decodeClass(importance, "no such class"), whole)
  assert.equal(whole.change[cellIndex(importance, 1, [1, 0])], 0.75)
})

test("a step is marked at the first column at or after it, and shown at the last one up to it", () => {
  const importance = createImportance()
  assert.deepEqual(
    [null, 50, 100, 150, 201].map((step) => findColumn(importance, step)),
    [null, 0, 0, 1, null],
  )
  assert.deepEqual(
    [undefined, 50, 100, 199, 500].map((step) => currentColumn(importance, step)),
    [1, 0, 0, 0, 1],
  )
})

test("changes have the digits of their error", () => {
  assert.equal(formatChange(0.4123, 0.0231, "nats"), "0.41 ± 0.02 nats")
  assert.equal(formatChange(-0.4123, 0.0131), "−0.412 ± 0.013")
  assert.equal(formatChange(-0.0001, 0.02), "0.00 ± 0.02")
  assert.equal(formatChange(0.5, null, "nats"), "0.500 nats")
  assert.equal(formatChange(NaN, 0.1), "–")
  assert.equal(formatEstimate(0.40511, countDecimals(0.0231)), "0.41")
  assert.equal(countColumnDecimals([0.02, 0.004, null, 0]), 3)
  assert.equal(formatChange(0.4856, 0.0203, "", 3), "0.486 ± 0.020")
})

test("labels of columns do not overlap and the current one has one", () => {
  assert.deepEqual(chooseColumns(3, 2, 300), [0, 1, 2])
  const many = chooseColumns(100, 57, 400)
  assert.ok(many.includes(57) && many.includes(0) && many.includes(99))
  for (let index = 1; index < many.length; index++)
    assert.ok((many[index] - many[index - 1]) * 4 >= 44)
})

function encodeRun(importance: Importance | null, heads: number[]): EncodedRun {
  return {
    id: "a",
    heads,
    scalars: {},
    measures: {},
    map_steps: [10],
    events: [],
    importance,
  } as unknown as EncodedRun
}

test("importance is a measure of the heads, and its steps are those of the slider", () => {
  const run = decodeRun(encodeRun(createImportance(), [2, 1]))
  assert.equal(run.measures.importance.values[4], 0.25)
  assert.deepEqual(snapshotSteps(run), [10, 100, 200])
  const other = decodeRun(encodeRun(createImportance(), [3, 3]))
  assert.equal(other.measures.importance, undefined)
})

test("an update without importance keeps what the page has", () => {
  const known = decodeRun(encodeRun(createImportance(), [2, 1]))
  const merged = mergeRun(known, decodeRun(encodeRun(null, [2, 1])))
  assert.equal(merged.importance, known.importance)
  const newer = createImportance({ steps: [100, 300] })
  assert.equal(mergeRun(known, decodeRun(encodeRun(newer, [2, 1]))).importance, newer)
})

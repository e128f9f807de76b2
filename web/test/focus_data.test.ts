import assert from "node:assert/strict"
import { test } from "node:test"

import { focusAt, formatShare, type MosaicExample, type RecordedFocus } from "../src/focus_data"
import { snapshotSteps, type Run } from "../src/run_data"

function encode(levels: number[]): string {
  return btoa(String.fromCharCode(...levels))
}

const example = (index: number, tiles: number): MosaicExample => ({
  index,
  label: 0,
  tiles: Array.from({ length: tiles }, (_, position) => position),
  foreground: [1],
  images: "",
  words: null,
})

// two steps, two examples of three and two tiles, padded to three
const recorded: RecordedFocus = {
  paradigm: "soft",
  seed: 0,
  steps: [10, 20],
  weights: encode([255, 0, 0, 51, 204, 0, 0, 255, 0, 102, 153, 0]),
  predicted: [
    [0, 1],
    [2, 1],
  ],
  probability: encode([255, 51, 102, 0]),
}
const examples = [example(4, 3), example(9, 2)]

test("the focus is that of the last recorded step up to the asked one", () => {
  assert.deepEqual(focusAt(recorded, examples, 0, 10).weights, [1, 0, 0])
  assert.deepEqual(focusAt(recorded, examples, 0, 19).weights, [1, 0, 0])
  assert.deepEqual(focusAt(recorded, examples, 0, 25), {
    step: 20,
    weights: [0, 1, 0],
    predicted: 2,
    probability: 0.4,
  })
})

test("before the first recorded step it is that of the first", () => {
  assert.equal(focusAt(recorded, examples, 0, 0).step, 10)
})

test("an example has as many weights as tiles", () => {
  assert.deepEqual(focusAt(recorded, examples, 1, 10), {
    step: 10,
    weights: [0.2, 0.8],
    predicted: 1,
    probability: 0.2,
  })
})

test("shares are written without a leading zero", () => {
  assert.deepEqual([0.891, 1, 0].map(formatShare), [".89", "1.00", ".00"])
})

test("the slider has the steps of recorded examples", () => {
  const run = { map_steps: [], measures: {}, example_steps: [0, 10] } as unknown as Run
  assert.deepEqual(snapshotSteps(run), [0, 10])
})

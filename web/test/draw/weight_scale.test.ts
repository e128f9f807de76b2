import assert from "node:assert/strict"
import { test } from "node:test"

import {
  parseWeightScale,
  SCALE_WEIGHTS,
  scaleWeight,
  WEIGHT_SCALES,
} from "../../src/draw/weight_scale"

test("the legend's weights are at the beginning, in the middle and at the end of the scale", () => {
  for (const scale of WEIGHT_SCALES)
    assert.deepEqual(
      SCALE_WEIGHTS[scale].map((weight) => Math.round(1000 * scaleWeight(weight, scale)) / 1000),
      [0, 0.5, 1],
    )
})

test("negative weights mirror positive ones; larger ones are cut", () => {
  assert.equal(scaleWeight(-0.25, "square root"), -0.5)
  assert.equal(scaleWeight(3, "linear"), 1)
  assert.equal(scaleWeight(0, "logarithmic"), 0)
})

test("an unknown name in the address is the default", () => {
  assert.equal(parseWeightScale("cubic"), "square root")
  assert.equal(parseWeightScale("linear"), "linear")
})

import assert from "node:assert/strict"
import { test } from "node:test"

import { formatWeight } from "../src/format"

test("a weight has no more digits than a map of 8 bits", () => {
  const weights = [1, 0.9534947872161865, 0.0047, 0.000138, 0, -0.25]
  assert.deepEqual(weights.map(formatWeight), [
    "1.00",
    "0.95",
    "0.005",
    "< 0.001",
    "< 0.001",
    "−0.25",
  ])
})

import assert from "node:assert/strict"
import { test } from "node:test"

import type { AttentionMatrix } from "../../src/attention_matrix"
import { MAX_LINES, selectLines } from "../../src/components/attention_lines"

function createMatrix(rows: number, columns: number, values: number[]): AttentionMatrix {
  return {
    rows,
    columns,
    values: Float32Array.from(values),
    visible: new Uint8Array(rows * columns).fill(1),
    first: 0,
    signed: false,
    scale: 1,
  }
}

test("without a token, weak lines are left out; of a token, all are shown", () => {
  const matrix = createMatrix(2, 2, [0.999, 0.001, 0.5, 0.5])
  assert.equal(selectLines([{ matrix }], null).lines.length, 3)
  const { lines } = selectLines([{ matrix }], { side: "key", index: 1 })
  assert.deepEqual(
    lines.map(({ row, column }) => [row, column]),
    [
      [0, 1],
      [1, 1],
    ],
  )
})

test("of too many lines, the strongest are kept in their order", () => {
  const values = Array.from({ length: 2 * MAX_LINES }, (_, index) => 0.1 + 0.0001 * (index % 4000))
  const matrix = createMatrix(2, MAX_LINES, values)
  const { lines, leftOut } = selectLines([{ matrix }], null)
  assert.ok(lines.length > 0 && lines.length <= MAX_LINES)
  assert.equal(lines.length + leftOut, values.length)
  const weakest = Math.min(...lines.map(({ weight }) => weight))
  const stronger = matrix.values.filter((weight) => weight >= weakest).length
  assert.equal(lines.length, stronger)
})

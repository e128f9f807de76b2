import assert from "node:assert/strict"
import { test } from "node:test"

import type { LayerMaps } from "../../src/attention_maps"
import { rankHeadChanges, subtractMaps } from "../../src/board/map_difference"

function createMaps(cells: number[], heads = 1): LayerMaps {
  return {
    name: "a",
    heads,
    queries: 2,
    keys: 2,
    visible: Uint8Array.of(1, 1, 1, 1),
    first: 0,
    signed: false,
    scale: 1,
    cells: Uint8Array.from(cells),
  }
}

test("A − B is the difference of weights, not of the stored bytes", () => {
  const { values } = subtractMaps(createMaps([255, 0, 0, 255]), createMaps([0, 255, 0, 255]))
  assert.deepEqual([...values], [1, -1, 0, 0])
})

test("the head that moved most comes first, with the pair that changed most", () => {
  const a = createMaps([255, 0, 255, 0, 255, 0, 0, 255], 2)
  const b = createMaps([255, 0, 255, 0, 255, 0, 255, 0], 2)
  const [first, second] = rankHeadChanges([subtractMaps(a, b)], 2)
  const { layer: row, head, query, key, value, movedShare } = first
  assert.deepEqual(
    { row, head, query, key, value, movedShare },
    { row: 0, head: 1, query: 1, key: 0, value: -1, movedShare: 0.5 },
  )
  assert.deepEqual([second.head, second.movedShare], [0, 0])
})

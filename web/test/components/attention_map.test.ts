import assert from "node:assert/strict"
import { test } from "node:test"

import { findDarkestColumns, layOutMap, pickTicks } from "../../src/components/attention_map"

const measure = (text: string) => 6 * text.length
const sentences = Array.from({ length: 64 }, (_, index) => `a sentence of many words, ${index}`)

for (const width of [320, 560])
  test(`all labels and the map are inside a picture of ${width} pixels`, () => {
    const layout = layOutMap(64, 64, sentences, sentences, width, measure)
    assert.ok(layout.left + layout.mapWidth <= width)
    assert.ok(layout.isVertical)
    for (const text of layout.rowTexts) assert.ok(measure(text) < layout.left)
    for (const text of layout.columnTexts) assert.ok(measure(text) < layout.top)
  })

test("short labels are horizontal", () => {
  const letters = [..."abcdef"]
  assert.ok(!layOutMap(6, 6, letters, letters, 500, measure).isVertical)
})

test("a map with few columns and many rows is not higher than the page", () => {
  const rows = Array.from({ length: 200 }, (_, index) => String(index))
  const { mapHeight, cell } = layOutMap(200, 3, rows, ["a", "b", "c"], 560, measure)
  assert.ok(mapHeight < 1000 && cell > 0)
})

test("single characters have all their labels where words are thinned", () => {
  const letters = Array.from({ length: 64 }, () => "x")
  assert.equal(layOutMap(64, 64, letters, letters, 640, measure).every, 1)
  assert.equal(layOutMap(64, 64, sentences, sentences, 640, measure).every, 2)
})

test("of a thinned axis, the column under the pointer and the darkest ones have labels", () => {
  const values = new Float32Array(8)
  values[5] = 0.9
  const matrix = { rows: 1, columns: 8, values, visible: new Uint8Array(8).fill(1), first: 0 }
  const darkest = findDarkestColumns({ ...matrix, signed: false, scale: 1 })
  assert.equal(darkest[0], 5)
  const ticks = pickTicks([..."abcdefgh"], { every: 2 }, [1, 5])
  const indices = ticks.map(({ index }) => index)
  assert.ok(indices.includes(1) && indices.includes(5))
  assert.ok(indices.every((index, at) => at === 0 || index - indices[at - 1] >= 2))
})

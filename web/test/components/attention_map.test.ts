import assert from "node:assert/strict"
import { test } from "node:test"

import { layOutMap } from "../../src/components/attention_map"

const measure = (text: string) => 6 * text.length
const sentences = Array.from({ length: 64 }, (_, index) => `a sentence of many words, ${index}`)

for (const width of [320, 560])
  test(`all labels and the map are inside a picture of ${width} pixels`, () => {
    const layout = layOutMap(64, 64, sentences, sentences, width, measure)
    assert.ok(layout.left + layout.mapWidth <= width)
    assert.ok(layout.isVertical)
    for (const { text } of layout.rowTicks) assert.ok(measure(text) < layout.left)
    for (const { text } of layout.columnTicks) assert.ok(measure(text) < layout.top)
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

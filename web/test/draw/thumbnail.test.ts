// Thumbnails of large maps.

import assert from "node:assert/strict"
import { test } from "node:test"

import type { LayerMaps } from "../../src/attention_maps"
import { reduceMap } from "../../src/draw/thumbnail"

function createMaps(cells: number[], size: number, signed = false): LayerMaps {
  const heads = cells.length / size ** 2
  const stored = signed ? Int8Array.from(cells) : Uint8Array.from(cells)
  const visible = Uint8Array.from({ length: size ** 2 }, (_, pair) =>
    Number(pair % size <= Math.floor(pair / size)),
  )
  const shape = { heads, queries: size, keys: size, visible, first: 0 }
  return { name: "layer", ...shape, signed, scale: 1, cells: stored }
}

test("a reduced map keeps the largest cell of every block of its head", () => {
  // biome-ignore format: rows of maps
  const cells = [
    9, 9, 9,
    9, 9, 9,
    9, 9, 9,
    1, 0, 0,
    2, 3, 0,
    0, 7, 5,
  ]
  const reduced = reduceMap(createMaps(cells, 3), 1, 2)
  assert.deepEqual([reduced.heads, reduced.queries, reduced.keys], [1, 2, 2])
  assert.deepEqual([...reduced.cells], [3, 0, 7, 5])
  assert.deepEqual([...reduced.visible], [1, 0, 1, 1])
})

test("a signed map keeps the cell of the largest magnitude", () => {
  const reduced = reduceMap(createMaps([1, -8, 3, 4], 2, true), 0, 2)
  assert.deepEqual([...reduced.cells], [-8])
})

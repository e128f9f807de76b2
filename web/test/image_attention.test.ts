import assert from "node:assert/strict"
import { test } from "node:test"

import type { StepMaps } from "../src/attention_maps"
import {
  mergeImage,
  namePatch,
  readImageRow,
  readRollout,
  type ProbeImage,
} from "../src/image_attention"
import type { Run } from "../src/run_data"

const TOKENS = 7 // CLS and 2 × 3 patches

/** Cells of maps, 255·√weight, as the 16-bit integers of rows. */
const encode = (cells: number[]) =>
  btoa(String.fromCharCode(...new Uint8Array(Uint16Array.from(cells, (cell) => 257 * cell).buffer)))

/** One layer with two heads. The CLS row of head h at step s has the cell 10·(s + 1) + h everywhere. */
function makeImage(steps: number[], extra: Partial<ProbeImage> = {}): ProbeImage {
  const fill = (value: number) => new Array<number>(TOKENS).fill(value)
  return {
    png: "",
    grid: [2, 3],
    first_patch: 1,
    tokens: TOKENS,
    layers: ["attention"],
    prefix_names: ["CLS"],
    query: "CLS",
    steps,
    heads: 2,
    rows: encode(steps.flatMap((step) => [...fill(10 * (step + 1)), ...fill(10 * (step + 1) + 1)])),
    rollout: encode(steps.flatMap((step) => fill(step + 1))),
    has_rollout: steps.map(() => true),
    ...extra,
  }
}

/** Maps whose cell is 100·head + 10·query + key, for small numbers. */
function makeMaps(step: number, size = TOKENS): StepMaps {
  const cells = new Uint8Array(2 * size * size)
  cells.forEach((_, index) => {
    const [head, query, key] = [
      Math.floor(index / size / size),
      Math.floor(index / size) % size,
      index % size,
    ]
    cells[index] = 100 * head + 10 * query + key
  })
  const shape = {
    heads: 2,
    queries: size,
    keys: size,
    visible: new Uint8Array(size ** 2).fill(1),
    first: 0,
  }
  return { step, layers: [{ name: "attention", ...shape, signed: false, scale: 1, cells }] }
}

const run = { layers: ["attention"], downsampling: {} } as unknown as Run
const toCells = (weights: number[]) => weights.map((weight) => Math.round(255 * Math.sqrt(weight)))

test("without a query, the row of CLS is that of the step and the head", () => {
  const row = readImageRow(run, makeImage([0, 2]), makeMaps(2), 0, 1, undefined)!
  assert.deepEqual([row.name, row.patch, row.canSelect], ["CLS", null, true])
  assert.deepEqual(toCells(row.weights), new Array(TOKENS).fill(31))
})

test("a query is a row of the map", () => {
  const row = readImageRow(run, makeImage([0]), makeMaps(0), 0, 1, 5)!
  assert.deepEqual([row.name, row.patch], ["patch 1,1", 4])
  assert.deepEqual(toCells(row.weights), [150, 151, 152, 153, 154, 155, 156])
  assert.equal(readImageRow(run, makeImage([0]), makeMaps(0), 0, 1, 99)!.name, "CLS")
})

test("cut and reduced maps give the row of CLS only", () => {
  const reduced = { ...run, downsampling: { "0": 2 } } as Run
  for (const [pageRun, maps] of [
    [run, makeMaps(0, 5)],
    [reduced, makeMaps(0)],
  ] as const) {
    const row = readImageRow(pageRun, makeImage([0]), maps, 0, 0, 3)!
    assert.deepEqual([row.name, row.canSelect], ["CLS", false])
    assert.deepEqual(toCells(row.weights), new Array(TOKENS).fill(10))
  }
})

test("a step without rows uses complete maps, and nothing instead of another step", () => {
  const row = readImageRow(run, makeImage([0]), makeMaps(4), 0, 0, undefined)!
  assert.deepEqual(toCells(row.weights), [0, 1, 2, 3, 4, 5, 6])
  assert.equal(readImageRow(run, makeImage([0]), makeMaps(4, 5), 0, 0, undefined), null)
  assert.equal(readRollout(run, makeImage([0]), makeMaps(4), 0), null)
})

test("layers that do not attend over the image have no row", () => {
  const image = makeImage([0], { layers: ["another"] })
  assert.equal(readImageRow(run, image, makeMaps(0), 0, 0, undefined), null)
  assert.equal(readRollout(run, image, makeMaps(0), 0), null)
})

test("rollout is that of the step", () => {
  const row = readRollout(run, makeImage([0, 2]), makeMaps(2), 0)!
  assert.deepEqual(toCells(row.weights), new Array(TOKENS).fill(3))
  const without = makeImage([0], { has_rollout: [false] })
  assert.equal(readRollout(run, without, makeMaps(0), 0), null)
})

test("an update appends steps, and replaces those that were trained again", () => {
  const merged = mergeImage(makeImage([0, 2, 3]), makeImage([3, 4]))!
  assert.deepEqual(merged.steps, [0, 2, 3, 4])
  for (const step of merged.steps) {
    const row = readImageRow(run, merged, makeMaps(step, 5), 0, 1, undefined)!
    assert.deepEqual(toCells(row.weights), new Array(TOKENS).fill(10 * (step + 1) + 1))
  }
  const unchanged = mergeImage(makeImage([0, 2]), makeImage([], { heads: 0 }))!
  assert.deepEqual([unchanged.steps, unchanged.heads], [[0, 2], 2])
  assert.equal(mergeImage(null, null), null)
})

test("patches are named by row and column", () => {
  assert.deepEqual(
    [0, 2, 3, 5].map((patch) => namePatch(makeImage([0]), patch)),
    ["0,0", "0,2", "1,0", "1,2"],
  )
})

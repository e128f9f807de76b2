import assert from "node:assert/strict"
import { test } from "node:test"
import { deflateSync } from "node:zlib"

import { decodeStep, squared, visible, weight } from "../src/maps"

/** As neural/tracking/quantised.py and neural/views/report_data.py write. */
function step(name: string, numbers: number[], cells: number[]): Uint8Array<ArrayBuffer> {
  const ints = new Uint8Array(Int32Array.from(numbers).buffer)
  const body = Buffer.concat([Buffer.from("NMAP"), Buffer.from([1]), ints, deflateSync(Uint8Array.from(cells))])
  const told = Buffer.from(name, "utf8")
  const sizes = [Buffer.alloc(2), Buffer.alloc(4)]
  sizes[0].writeUInt16LE(told.length)
  sizes[1].writeUInt32LE(body.length)
  const whole = Buffer.concat([Buffer.from("NSTP"), Buffer.from([1, 1, 0, 0, 0]), sizes[0], told, sizes[1], body])
  return Uint8Array.from(whole) as Uint8Array<ArrayBuffer>
}

test("a causal map is put back into its square", async () => {
  const { layers } = await decodeStep(step("block.0.é", [1, 2, 3, 1, 1], [255, 0, 1, 2, 3]), 7)
  const { cells: _, ...told } = layers[0]
  assert.deepEqual(told, { name: "block.0.é", heads: 1, queries: 2, keys: 3, causal: true, first: 1 })
  assert.deepEqual([...layers[0].cells], [255, 0, 0, 1, 2, 3])
  assert.equal(weight(layers[0], 0, 0, 0), 1)
  assert.deepEqual([0, 1].map((query) => visible(layers[0], query)), [2, 3])
})

test("a map that is not causal is as it was written", async () => {
  const { layers } = await decodeStep(step("cross", [2, 1, 2, 0, 0], [1, 2, 3, 4]), 0)
  assert.deepEqual([...layers[0].cells], [1, 2, 3, 4])
})

test("bytes that are no maps are refused in words", async () => {
  await assert.rejects(decodeStep(new Uint8Array(20), 0), /not the maps of a step/)
  const other = step("a", [1, 1, 1, 0, 0], [1])
  other[4] = 9
  await assert.rejects(decodeStep(other, 0), /version 9/)
})

test("a query before the first key sees nothing", () => {
  assert.deepEqual([...squared(Uint8Array.from([9]), 1, 2, 2, -1)], [0, 0, 9, 0])
})

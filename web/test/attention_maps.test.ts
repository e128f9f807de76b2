import assert from "node:assert/strict"
import { test } from "node:test"
import { deflateSync } from "node:zlib"

import { alignLayers, decodeStep, weightAt } from "../src/attention_maps"

/** Encode one layer as the Python side does. */
function encodeStep(
  name: string,
  header: number[],
  cells: number[],
  scale?: number,
  version = scale === undefined ? 1 : 2,
): Uint8Array<ArrayBuffer> {
  const headerBytes = new Uint8Array(Int32Array.from(header).buffer)
  const body = Buffer.concat([
    Buffer.from("NMAP"),
    Buffer.from([version]),
    headerBytes,
    new Uint8Array(Float32Array.from(scale === undefined ? [] : [scale]).buffer),
    deflateSync(Uint8Array.from(cells)),
  ])
  const nameBytes = Buffer.from(name, "utf8")
  const sizes = [Buffer.alloc(2), Buffer.alloc(4)]
  sizes[0].writeUInt16LE(nameBytes.length)
  sizes[1].writeUInt32LE(body.length)
  const file = Buffer.concat([
    Buffer.from("NSTP"),
    Buffer.from([1, 1, 0, 0, 0]),
    sizes[0],
    nameBytes,
    sizes[1],
    body,
  ])
  return Uint8Array.from(file) as Uint8Array<ArrayBuffer>
}

test("a causal map is expanded to full rows", async () => {
  const { layers } = await decodeStep(
    encodeStep("block.0.é", [1, 2, 3, 1, 1], [255, 0, 1, 2, 3]),
    7,
  )
  const { cells: _, visible, ...header } = layers[0]
  assert.deepEqual(header, {
    name: "block.0.é",
    heads: 1,
    queries: 2,
    keys: 3,
    first: 1,
    signed: false,
    scale: 1,
  })
  assert.deepEqual([...layers[0].cells], [255, 0, 0, 1, 2, 3])
  assert.equal(weightAt(layers[0], 0, 0, 0), 1)
  assert.deepEqual([...visible], [1, 1, 0, 1, 1, 1])
})

test("a recorded mask is shown, and visible weights of 0 are not taken for masked ones", async () => {
  // pairs 0, 1, 4 and 8 of 9 are visible: a window; the first has weight 0 in both heads
  const stored = [0b00010011, 0b1, 0, 255, 9, 7, 0, 1, 2, 3]
  const bytes = encodeStep("window", [2, 3, 3, 0, 0], stored, undefined, 3)
  const [maps] = (await decodeStep(bytes, 0)).layers
  assert.deepEqual([...maps.visible], [1, 1, 0, 0, 1, 0, 0, 0, 1])
  const cells = [0, 255, 0, 0, 9, 0, 0, 0, 7, 0, 1, 0, 0, 2, 0, 0, 0, 3]
  assert.deepEqual([...maps.cells], cells)
})

test("a signed map has negative weights, beyond −1 by its scale", async () => {
  const header = [1, 2, 2, 1, 0]
  const { layers } = await decodeStep(encodeStep("signed", header, [127, 129, 64], 2), 0)
  assert.deepEqual([...layers[0].cells], [127, 0, -127, 64])
  assert.equal(layers[0].signed, true)
  assert.equal(weightAt(layers[0], 0, 0, 0), 2)
  assert.equal(weightAt(layers[0], 0, 1, 0), -2)
  assert.ok(Math.abs(weightAt(layers[0], 0, 1, 1) - 2 * (64 / 127) ** 2) < 1e-9)
})

test("a map that is not causal is unchanged", async () => {
  const { layers } = await decodeStep(encodeStep("cross", [2, 1, 2, 0, 0], [1, 2, 3, 4]), 0)
  assert.deepEqual([...layers[0].cells], [1, 2, 3, 4])
})

test("other formats and versions are rejected with a message", async () => {
  await assert.rejects(decodeStep(new Uint8Array(20), 0), /not a file of attention maps/)
  const unknown = encodeStep("a", [1, 1, 1, 0, 0], [1])
  unknown[4] = 9
  await assert.rejects(decodeStep(unknown, 0), /version 9/)
})

test("a query before the first key has no visible keys", async () => {
  const { layers } = await decodeStep(encodeStep("late", [1, 2, 2, 1, -1], [9]), 0)
  assert.deepEqual([...layers[0].cells], [0, 0, 9, 0])
})

test("a layer without maps at a step keeps its place", () => {
  const visible = new Uint8Array(4).fill(1)
  const layer = { queries: 2, keys: 2, visible, first: 0, signed: false, scale: 1 }
  const cells = new Uint8Array(4)
  const maps = { step: 7, layers: [{ ...layer, name: "b", heads: 1, cells }] }
  const aligned = alignLayers(maps, ["a", "b"])
  assert.deepEqual(
    aligned.layers.map(({ name, heads }) => [name, heads]),
    [
      ["a", 0],
      ["b", 1],
    ],
  )
  assert.equal(alignLayers(maps, ["b"]), maps)
})

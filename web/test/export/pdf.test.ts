import assert from "node:assert/strict"
import { test } from "node:test"

import { writePdf } from "../../src/export/pdf"
import type { Drawing, Shape, TextShape } from "../../src/export/shapes"

const BLACK: [number, number, number, number] = [0, 0, 0, 1]

function makeText(text: string, rest: Partial<TextShape> = {}): TextShape {
  return {
    kind: "text",
    text,
    x: 10,
    y: 20,
    anchor: "start",
    size: 12,
    width: 50,
    angle: 0,
    fill: BLACK,
    isBold: false,
    isMonospaced: false,
    ...rest,
  }
}

const SHAPES: Shape[] = [
  {
    kind: "path",
    commands: [["M", 0, 0], ["L", 40, 30], ["C", 1, 2, 3, 4, 5, 6], ["Z"]],
    fill: [255, 0, 0, 0.5],
    stroke: BLACK,
    strokeWidth: 1.5,
    dash: [6, 4],
    clip: [0, 0, 30, 30],
  },
  makeText("loss (nats) \\ 1.3"),
  {
    kind: "image",
    box: [10, 30, 40, 20],
    pixels: { width: 2, height: 1, data: new Uint8ClampedArray([255, 0, 0, 255, 0, 0, 255, 128]) },
    isPixelated: true,
    opacity: 1,
  },
]

async function write(shapes: Shape[] = SHAPES): Promise<{ text: string; missing: string[] }> {
  const drawing: Drawing = { width: 200, height: 100, shapes }
  const { bytes, missing } = await writePdf(drawing, "A title")
  return { text: Buffer.from(bytes).toString("latin1"), missing }
}

test("every offset of the cross-reference table leads to its object", async () => {
  const { text } = await write()
  assert.ok(text.startsWith("%PDF-1.4"))
  assert.ok(text.endsWith("%%EOF\n"))
  const start = Number(/startxref\n(\d+)\n/.exec(text)![1])
  const [, count] = /^xref\n0 (\d+)\n/.exec(text.slice(start))!
  const rows = text
    .slice(start)
    .split("\n")
    .slice(3, 2 + Number(count))
  assert.equal(rows.length, Number(count) - 1)
  rows.forEach((row, index) => {
    assert.equal(row.length, 19) // and the line break: 20 bytes each
    assert.ok(text.slice(Number(row.slice(0, 10))).startsWith(`${index + 1} 0 obj\n`))
  })
})

test("the length of every stream is the one that is stated", async () => {
  const { text } = await write()
  const streams = [...text.matchAll(/\/Length (\d+) >>\nstream\n/g)]
  assert.equal(streams.length, 3) // content, colours and transparency of the image
  for (const stream of streams) {
    const end = stream.index + stream[0].length + Number(stream[1])
    assert.ok(text.slice(end).startsWith("\nendstream"))
  }
})

test("the page has the size of the drawing in points", async () => {
  assert.match((await write()).text, /\/MediaBox \[0 0 150 75\]/)
})

test("text is text, with its brackets escaped, in a standard font", async () => {
  const { text } = await write()
  assert.ok(text.includes("(loss \\(nats\\) \\\\ 1.3) Tj"))
  assert.ok(text.includes("/BaseFont /Helvetica /Encoding /WinAnsiEncoding"))
  assert.ok(text.includes("/Title (A title)"))
})

test("there is no date, and the same drawing gives the same bytes", async () => {
  const [first, second] = [await write(), await write()]
  assert.equal(first.text, second.text)
  assert.ok(!first.text.includes("Date"))
})

test("text at its end or middle is moved by its width in Helvetica", async () => {
  const readX = async (anchor: TextShape["anchor"]) =>
    Number(/ ([\d.-]+) 20 Tm/.exec((await write([makeText("11", { anchor })])).text)![1])
  const width = 2 * 0.556 * 12
  assert.equal(await readX("start"), 10)
  assert.ok(Math.abs((await readX("middle")) - (10 - width / 2)) < 0.01)
  assert.ok(Math.abs((await readX("end")) - (10 - width)) < 0.01)
})

test("turned text is turned", async () => {
  const { text } = await write([makeText("up", { angle: -90 })])
  assert.match(text, /Tf 0 -1 -1 0 10 20 Tm/)
})

test("characters of other alphabets are reported, signs are written with others", async () => {
  const { text, missing } = await write([makeText("a → b … −1 ␣ 中 é €")])
  assert.deepEqual(missing, ["中"])
  assert.ok(text.includes("(a -> b \\205 \\2261 _ ? \\351 \\200) Tj"))
})

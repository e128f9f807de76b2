import assert from "node:assert/strict"
import { test } from "node:test"

import { formatCsv } from "../../src/export/csv"
import { fitDrawing, parseColour, parsePath, type Shape } from "../../src/export/shapes"
import { escapeXml, writeSvg } from "../../src/export/svg"

const LINE: Shape = {
  kind: "path",
  commands: [
    ["M", 10, 10],
    ["L", 30, 20],
  ],
  fill: null,
  stroke: [11, 102, 176, 0.25],
  strokeWidth: 2,
  dash: [],
}

const TEXT: Shape = {
  kind: "text",
  text: "<b> & L2 h1",
  x: 40,
  y: 12,
  anchor: "end",
  size: 11,
  width: 20,
  angle: -90,
  fill: [0, 0, 0, 1],
  isBold: true,
  isMonospaced: false,
}

test("an SVG has its size, text as text and colours with opacity", () => {
  const svg = writeSvg(fitDrawing([LINE, TEXT], 4), 'a "title"', () => "")
  assert.ok(svg.startsWith('<?xml version="1.0" encoding="UTF-8"?>'))
  assert.match(svg, /<title>a &quot;title&quot;<\/title>/)
  assert.match(svg, /text-anchor="end" transform="rotate\(-90 [\d.]+ [\d.]+\)"/)
  assert.match(svg, />&lt;b&gt; &amp; L2 h1<\/text>/)
  assert.match(svg, /stroke="#0b66b0" stroke-opacity="0.25" stroke-width="2"/)
})

test("a drawing is cropped to its shapes, with a margin", () => {
  const { width, height, shapes } = fitDrawing([LINE], 4)
  assert.deepEqual([width, height], [20 + 2 + 8, 10 + 2 + 8])
  assert.deepEqual((shapes[0] as typeof LINE & { commands: unknown }).commands, [
    ["M", 5, 5],
    ["L", 25, 15],
  ])
})

test("what is outside of a clip does not enlarge the drawing", () => {
  const { width } = fitDrawing([{ ...LINE, clip: [10, 10, 5, 5] }], 0)
  assert.equal(width, 5)
})

test("control characters are left out of XML", () => {
  assert.equal(escapeXml("a\u0000\u001bb\ud800c\n"), "abc\n")
})

test("paths are read with relative and short forms", () => {
  assert.deepEqual(parsePath("M1,2l3 4h-1V0z"), [
    ["M", 1, 2],
    ["L", 4, 6],
    ["L", 3, 6],
    ["L", 3, 0],
    ["Z"],
  ])
  assert.deepEqual(parsePath("m1 1 2 2"), [
    ["M", 1, 1],
    ["L", 3, 3],
  ])
  assert.deepEqual(parsePath("M0 0Q3 3 6 0")?.[1], ["C", 2, 2, 4, 2, 6, 0])
  assert.deepEqual(parsePath("M0 0C1 1 2 1 3 0S5-1 6 0")?.[2], ["C", 4, -1, 5, -1, 6, 0])
  assert.equal(parsePath("M0 0A1 1 0 0 0 2 2"), null)
})

test("colours are read as browsers compute them", () => {
  assert.deepEqual(parseColour("rgb(1, 2, 3)"), [1, 2, 3, 1])
  assert.deepEqual(parseColour("rgb(1 2 3 / 20%)"), [1, 2, 3, 0.2])
  assert.deepEqual(parseColour("#0b66b033")?.slice(0, 3), [11, 102, 176])
  assert.deepEqual(parseColour("color(srgb 1 0.5 0 / 0.5)", 0.5), [255, 128, 0, 0.25])
  assert.equal(parseColour("rgba(0, 0, 0, 0)"), null)
  assert.equal(parseColour("none"), null)
})

test("CSV has all digits, empty fields for missing values and quotes where needed", () => {
  const rows = [
    [1, 0.1 + 0.2, null],
    [2, Number.NaN, 'say "a, b"'],
    [3, -1, "=1+1"],
  ]
  assert.equal(
    formatCsv({ head: ["step", "loss", "note"], rows }),
    'step,loss,note\r\n1,0.30000000000000004,\r\n2,,"say ""a, b"""\r\n3,-1,\'=1+1\r\n',
  )
})

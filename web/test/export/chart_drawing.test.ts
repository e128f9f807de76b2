import assert from "node:assert/strict"
import { test } from "node:test"

import { drawChart, type ChartState } from "../../src/export/chart_drawing"
import type { PathShape, TextShape } from "../../src/export/shapes"

/** A chart of 100 × 50 pixels at (30, 10), on a screen with two device pixels per pixel. */
function makeChart(rest: Partial<ChartState> = {}): ChartState {
  return {
    data: [
      [0, 5, 10],
      [0, 1, 2],
    ],
    series: [{ scale: "x" }, { scale: "y", stroke: () => "#0b66b0", width: 1.5 }],
    axes: [
      {
        scale: "x",
        side: 2,
        stroke: "#56616f",
        grid: { stroke: "#dfe4ea" },
        _splits: [0, 10],
        _values: ["0", "10"],
      },
      { scale: "y", side: 3, stroke: "#56616f", _splits: [0, 2], _values: ["0", "2.0"] },
    ],
    bands: [],
    width: 140,
    height: 80,
    bbox: { left: 60, top: 20, width: 200, height: 100 },
    valToPos: (value, scale) => (scale === "x" ? value * 10 : 50 - value * 25),
    ...rest,
  }
}

function draw(rest: Partial<ChartState> = {}) {
  const shapes = drawChart(makeChart(rest), "step", 2)
  return {
    texts: shapes.filter((shape): shape is TextShape => shape.kind === "text"),
    paths: shapes.filter((shape): shape is PathShape => shape.kind === "path"),
  }
}

function findLines(paths: PathShape[]): PathShape[] {
  return paths.filter((path) => path.stroke?.[0] === 11 && !path.fill)
}

test("ticks are those of the screen, at their places", () => {
  const { texts } = draw()
  assert.deepEqual(
    texts.map(({ text, x, anchor }) => [text, x, anchor]),
    [
      ["0", 30, "middle"],
      ["10", 130, "middle"],
      ["0", 23, "end"],
      ["2.0", 23, "end"],
      ["step", 20, "end"], // outside of the plotting area, where no line is
    ],
  )
})

test("a line goes through its points", () => {
  const [line, ...others] = findLines(draw().paths)
  assert.deepEqual(line.commands, [
    ["M", 30, 60],
    ["L", 80, 35],
    ["L", 130, 10],
  ])
  assert.equal(others.length, 0)
})

test("NaN interrupts a line; a step of another line does not", () => {
  const broken = draw({
    data: [
      [0, 1, 2, 3, 4, 5],
      [1, 1, null, 1, undefined, 1],
    ],
  })
  assert.deepEqual(
    findLines(broken.paths).map((line) => line.commands.length),
    [2, 2],
  )
})

test("hidden lines are left out and bands are filled", () => {
  const chart = {
    data: [
      [0, 10],
      [1, 1],
      [0, 0],
      [2, 2],
    ],
    series: [
      { scale: "x" },
      { scale: "y", stroke: "#0b66b0", show: false },
      { scale: "y", stroke: "transparent", width: 0 },
      { scale: "y", stroke: "transparent", width: 0 },
    ],
    bands: [{ series: [3, 2], fill: "#0b66b033" }],
  }
  const { paths } = draw(chart as Partial<ChartState>)
  assert.equal(findLines(paths).length, 0)
  const band = paths.find((path) => path.fill)
  assert.equal(band?.commands.length, 4)
  assert.ok(Math.abs(band!.fill![3] - 0.2) < 0.01)
})

test("a single point and marked points are dots", () => {
  const single = draw({ data: [[5], [1]] })
  assert.equal(single.paths.filter((path) => path.fill).length, 1)
  const marked = draw({
    series: [
      { scale: "x" },
      { scale: "y", stroke: "#0b66b0", points: { show: () => false, filter: () => [0, 2] } },
    ],
  })
  assert.equal(marked.paths.filter((path) => path.fill).length, 2)
})

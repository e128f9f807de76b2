// Shapes of a line chart: axes, ticks, grid, bands, lines and points as uPlot shows them, zoom included.

import type uPlot from "uplot"

import {
  ellipseCommands,
  parseColour,
  type Command,
  type Paint,
  type PathShape,
  type Shape,
} from "./shapes"

/** What is read of a chart; `_splits` and `_values` are the ticks that uPlot drew. */
export interface ChartState {
  data: ArrayLike<ArrayLike<number | null | undefined>>
  series: unknown[]
  axes: unknown[]
  bands?: unknown[] | null
  width: number
  height: number
  /** Box of the plotting area in device pixels. */
  bbox: { left: number; top: number; width: number; height: number }
  valToPos: (value: number, scale: string, canvasPixels?: boolean) => number
}

interface Axis {
  scale?: string
  side?: number
  show?: boolean
  label?: string | null
  stroke?: unknown
  grid?: { stroke?: unknown; width?: number; show?: boolean }
  _splits?: (number | null)[] | null
  _values?: (string | number | null)[] | null
}

interface Series {
  scale?: string
  show?: boolean
  stroke?: unknown
  fill?: unknown
  width?: number
  dash?: number[]
  alpha?: number
  spanGaps?: boolean
  points?: { show?: unknown; filter?: unknown; size?: number }
}

const FONT_SIZE = 11
const LABEL_PAINT: Paint = [86, 97, 111, 1]

/** `xLabel` is the name of the horizontal axis; `ratio`: device pixels per CSS pixel. */
export function drawChart(
  chart: ChartState | uPlot,
  xLabel = "step",
  ratio = devicePixelRatio,
): Shape[] {
  const state = chart as ChartState
  const [left, top] = [state.bbox.left / ratio, state.bbox.top / ratio]
  const [width, height] = [state.bbox.width / ratio, state.bbox.height / ratio]
  const xScale = (state.series[0] as Series).scale ?? "x"
  const toX = (value: number) => left + state.valToPos(value, xScale)
  const toY = (value: number, scale: string) => top + state.valToPos(value, scale)
  const shapes: Shape[] = []
  for (const axis of state.axes as Axis[]) {
    if (axis.show === false) continue
    const isAcross = axis.side === 2 || axis.side === 0 || axis.scale === xScale
    const text = resolvePaint(axis.stroke, chart) ?? LABEL_PAINT
    const grid = resolvePaint(axis.grid?.stroke, chart)
    const splits = axis._splits ?? []
    splits.forEach((value, index) => {
      if (value === null || value === undefined) return
      const position = isAcross ? toX(value) : toY(value, axis.scale ?? "y")
      const [start, end] = isAcross ? [left, left + width] : [top, top + height]
      if (position < start - 0.5 || position > end + 0.5) return
      if (grid && axis.grid?.show !== false)
        shapes.push(
          isAcross
            ? drawLine(
                [
                  [position, top],
                  [position, top + height],
                ],
                grid,
                axis.grid?.width ?? 1,
              )
            : drawLine(
                [
                  [left, position],
                  [left + width, position],
                ],
                grid,
                axis.grid?.width ?? 1,
              ),
        )
      const label = axis._values?.[index]
      if (label === null || label === undefined || label === "") return
      shapes.push(
        isAcross
          ? drawLabel(String(label), position, top + height + 16, "middle", text)
          : axis.side === 1
            ? drawLabel(String(label), left + width + 7, position + 4, "start", text)
            : drawLabel(String(label), left - 7, position + 4, "end", text),
      )
    })
    if (axis.label)
      shapes.push(
        isAcross
          ? drawLabel(axis.label, left + width / 2, state.height - 4, "middle", text)
          : { ...drawLabel(axis.label, 10, top + height / 2, "middle", text), angle: -90 },
      )
  }
  const clip: [number, number, number, number] = [left - 1, top - 1, width + 2, height + 2]
  const curves = (state.series as Series[]).map((series, index) =>
    index
      ? readPoints(
          state.data[0],
          state.data[index] ?? [],
          series.spanGaps ?? false,
          (step, value) => [toX(step), toY(value, series.scale ?? "y")],
        )
      : [],
  )
  for (const band of (state.bands ?? []) as { series: [number, number]; fill?: unknown }[]) {
    const [high, low] = band.series.map((index) => curves[index].flat())
    const fill = resolvePaint(band.fill, chart)
    const isShown = band.series.every((index) => (state.series[index] as Series).show !== false)
    if (!fill || !isShown || !high.length || !low.length) continue
    const outline = [...high, ...low.reverse()]
    shapes.push({ ...drawLine(outline, fill, 0), fill, stroke: null, clip })
  }
  ;(state.series as Series[]).forEach((series, index) => {
    const stroke = resolvePaint(series.stroke, chart, index)
    if (!index || series.show === false || !stroke) return
    stroke[3] *= series.alpha ?? 1
    const strokeWidth = series.width ?? 1
    for (const points of curves[index])
      if (points.length > 1 && strokeWidth > 0)
        shapes.push({ ...drawLine(points, stroke, strokeWidth), dash: series.dash ?? [], clip })
    for (const [x, y] of findMarked(state, series, index, curves[index].flat()))
      shapes.push({ ...drawDot(x, y, (series.points?.size ?? 5) / 2, stroke), clip })
  })
  // left of the ticks, where no line is; below them there may be other text
  if (xLabel) shapes.push(drawLabel(xLabel, left - 10, top + height + 16, "end", LABEL_PAINT))
  return shapes
}

type Point = [x: number, y: number]

/** Points of a series as lines: null ends a line, undefined is a step that the series does not have. */
function readPoints(
  steps: ArrayLike<number | null | undefined>,
  values: ArrayLike<number | null | undefined>,
  spanGaps: boolean,
  toPoint: (step: number, value: number) => Point,
): Point[][] {
  const lines: Point[][] = [[]]
  for (let row = 0; row < steps.length; row++) {
    const value = values[row]
    if (value === null && !spanGaps) lines.push([])
    if (value === null || value === undefined) continue
    const point = toPoint(steps[row] as number, value)
    if (point.every(Number.isFinite)) lines.at(-1)!.push(point)
  }
  return lines.filter((points) => points.length)
}

/** Points with a marker: all, or those that the filter of the series names. */
function findMarked(chart: ChartState, series: Series, index: number, points: Point[]): Point[] {
  const call = (value: unknown, ...rest: unknown[]) =>
    typeof value === "function" ? value(chart, index, ...rest) : value
  const isMarked = call(series.points?.show, 0, chart.data[0].length - 1)
  const rows = call(series.points?.filter, isMarked) as number[] | null | undefined
  if (!rows) return isMarked || points.length === 1 ? points : []
  const values = chart.data[index]
  const places = new Map<number, Point>()
  let place = 0
  for (let row = 0; row < values.length; row++)
    if (values[row] !== null && values[row] !== undefined) places.set(row, points[place++])
  return rows.map((row) => places.get(row)).filter((point): point is Point => point !== undefined)
}

function drawLine(points: Point[], stroke: Paint, strokeWidth: number): PathShape {
  const commands = points.map(([x, y], index): Command => [index ? "L" : "M", x, y])
  return { kind: "path", commands, fill: null, stroke, strokeWidth, dash: [], isRound: true }
}

function drawDot(x: number, y: number, radius: number, fill: Paint): PathShape {
  const commands = ellipseCommands(x, y, radius, radius)
  return { kind: "path", commands, fill, stroke: null, strokeWidth: 0, dash: [] }
}

function drawLabel(
  text: string,
  x: number,
  y: number,
  anchor: "start" | "middle" | "end",
  fill: Paint,
) {
  return {
    kind: "text" as const,
    ...{ text, x, y, anchor, fill },
    size: FONT_SIZE,
    width: text.length * FONT_SIZE * 0.6,
    angle: 0,
    isBold: false,
    isMonospaced: false,
  }
}

/** uPlot stores colours as functions of the chart and the index of the series. */
function resolvePaint(value: unknown, chart: unknown, index = 0): Paint | null {
  const colour = typeof value === "function" ? value(chart, index) : value
  return typeof colour === "string" ? parseCssColour(colour) : null
}

/** Also `rgb(1 2 3 / 20%)` and #rgb, as our palettes write them. */
function parseCssColour(text: string): Paint | null {
  const short = /^#([0-9a-f])([0-9a-f])([0-9a-f])$/i.exec(text)
  return parseColour(
    short
      ? `#${short
          .slice(1)
          .map((digit) => digit + digit)
          .join("")}`
      : text,
  )
}

// Line chart over steps (uPlot). Charts of one group share the crosshair, the zoom and the hidden lines.

import type { ComponentChild, RefObject } from "preact"
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks"
import uPlot from "uplot"

import type { Line } from "../aggregation"
import { useChartGroup, type ChartGroup } from "../chart_group"
import { drawChart, ExportMenu, registerVectorCanvas, type Table } from "../export"
import { formatInteger } from "../format"
import "../styles/charts.css"
import type { Theme } from "../theme"
import {
  chooseLogTicks,
  chooseStepTicks,
  chooseTicks,
  formatReading,
  findShownRange,
  padRange,
  type Ticks,
} from "../ticks"

export interface ChartLine extends Line {
  colour: string
  isDashed?: boolean
  /** Drawn with a wider line. */
  isSelected?: boolean
  /** Moving average; the stored values are drawn faint behind it. */
  smoothed?: (number | null)[]
  /** One of many: drawn faint, without an entry in the legend. */
  isFaint?: boolean
}

interface Props {
  title: string
  unit?: string
  description?: string
  lines: ChartLine[]
  theme: Theme
  height?: number
  log?: boolean
  logX?: boolean
  /** Step of the slider, drawn as a vertical line. */
  step?: number
  onStep?: (step: number) => void
  legend?: boolean
  /** Charts that share crosshair, zoom and hidden lines; without it the chart has its own. */
  group?: ChartGroup
  /** Steps of the whole axis; without it those of the lines. */
  xRange?: [number, number]
  /** Draw at once, not when scrolled into view: for printing. */
  isEager?: boolean
  /** Takes the whole width. */
  isWide?: boolean
  /** Buttons after the title. */
  tools?: ComponentChild
  /** The stored points; without it those of the lines. */
  csv?: () => Table
}

/** Curves with at most this many points have a marker at each. */
const MAX_MARKED_POINTS = 30
/** With more lines than this, or smoothed ones, the values at the cursor are in a box over the chart. */
const MAX_INLINE_VALUES = 3
const MAX_BOXED_VALUES = 6
const FONT = "11px system-ui"
const [TICK_SIZE, TICK_GAP, OFFSET_HEIGHT] = [4, 5, 16]

export function LineChart({
  title,
  unit,
  description,
  lines,
  theme,
  height = 220,
  log = false,
  logX = false,
  step,
  onStep,
  legend = true,
  group: sharedGroup,
  xRange,
  isEager = false,
  isWide = false,
  tools,
  csv,
}: Props) {
  const group = useChartGroup(sharedGroup)
  const figure = useRef<HTMLElement>(null)
  const container = useRef<HTMLDivElement>(null)
  const offsets = { x: useRef<HTMLSpanElement>(null), y: useRef<HTMLSpanElement>(null) }
  const chart = useRef<uPlot | null>(null)
  const marker = useRef(step)
  const isInView = useInView(figure, isEager)
  const shown = useMemo(
    () => lines.filter((line) => !group.hidden.has(lineKey(line))),
    [lines, group.hidden],
  )
  const isLog =
    log && shown.some((line) => line.values.some((value) => value !== null && value > 0))
  const table = useMemo(() => alignLines(shown, isLog, logX), [shown, isLog, logX])
  const isEmpty = !lines.some((line) => line.values.some((value) => value !== null))
  const canDraw = table[0].length > 0 && !isEmpty
  const [first, last] = xRange ?? [table[0][0], table[0][table[0].length - 1]]
  const range = group.range ?? padSteps(first, last, logX)
  const rangeRef = useRef(range)
  rangeRef.current = range
  // the chart is created again only if this key changes; new values are set on the existing chart
  const chartKey = useMemo(
    () =>
      JSON.stringify(
        shown.map((line) => [
          line.colour,
          line.isDashed,
          line.isSelected,
          line.isFaint,
          Boolean(line.low),
          Boolean(line.smoothed),
          line.steps.length <= MAX_MARKED_POINTS,
        ]),
      ),
    [shown],
  )
  const onStepRef = useRef(onStep)
  onStepRef.current = onStep
  const latest = useRef({ shown, group })
  latest.current = { shown, group }

  // a layout effect: before printing, charts out of view are created without a frame in between
  useLayoutEffect(() => {
    const element = container.current
    if (!element || !isInView) return
    const onCursor = (plot: uPlot) => {
      const { shown, group } = latest.current
      const index = plot.cursor.idx
      if (index === null || index === undefined) group.point(null)
      else
        group.point(
          plot.data[0][index],
          shown.length > MAX_BOXED_VALUES ? findNearestLine(plot, shown) : "",
        )
    }
    const plot = new uPlot(
      buildOptions(shown, {
        width: element.clientWidth || 320,
        height,
        isLog,
        logX,
        marker,
        range: rangeRef,
        offsets,
        onCursor,
        onZoom: (zoom) => latest.current.group.zoom(zoom),
      }),
      table,
      element,
    )
    chart.current = plot
    registerVectorCanvas(plot.ctx.canvas, () => drawChart(plot))
    const onClick = () => {
      const index = plot.cursor.idx
      if (index !== null && index !== undefined && onStepRef.current)
        onStepRef.current(plot.data[0][index])
    }
    plot.over.addEventListener("click", onClick)
    const observer = new ResizeObserver(() => {
      if (element.clientWidth && element.clientWidth !== plot.width)
        plot.setSize({ width: element.clientWidth, height })
    })
    observer.observe(element)
    return () => {
      observer.disconnect()
      plot.destroy()
      chart.current = null
    }
  }, [chartKey, canDraw, theme, height, isLog, logX, isInView])

  useEffect(() => {
    const plot = chart.current
    if (!plot) return
    plot.batch(() => {
      if (plot.data !== table) plot.setData(table, false)
      plot.setScale("x", { min: range[0], max: range[1] })
    })
  }, [table, range[0], range[1]])

  useEffect(() => {
    marker.current = step
    chart.current?.redraw(false)
  }, [step, chartKey, theme])

  // the crosshair of the other charts
  useEffect(() => {
    const plot = chart.current
    if (!plot || plot.over.matches(":hover")) return
    const isInside = group.step !== null && group.step >= range[0] && group.step <= range[1]
    plot.setCursor({ left: isInside ? plot.valToPos(group.step!, "x") : -10, top: 0 }, false)
  }, [group.step])

  // every chart of a group is rendered whenever the pointer moves: what does not depend on it is kept
  const { width, summary, left } = useMemo(
    () => ({
      width: valueWidth(shown),
      summary: describeChart(title, unit, shown),
      left: isLog ? countNotPositive(shown) : 0,
    }),
    [shown, title, unit, isLog],
  )
  const read = (line: ChartLine) => ({ line, reading: readLine(line, group.step) })
  const coloured = shown.filter((line) => !line.isFaint).map(read)
  // of many lines, only the one nearest to the pointer is read, in all charts
  const isCrowded = shown.length > MAX_BOXED_VALUES
  const nearest =
    isCrowded && group.nearest
      ? shown.filter((line) => lineKey(line) === group.nearest).map(read)[0]
      : undefined
  const isBoxed =
    coloured.length > MAX_INLINE_VALUES || coloured.some(({ line }) => line.smoothed !== undefined)
  // curves of one metric mostly have the same steps: say once which one was read
  const stepsRead = new Set(coloured.map(({ reading }) => reading.at))
  const commonStep = lines.length > 1 && stepsRead.size === 1 ? [...stepsRead][0] : undefined
  const shareStep = (reading: LineReading) =>
    commonStep === undefined ? reading : { ...reading, at: undefined }
  return (
    <figure class={isWide ? "chart wide" : "chart"} ref={figure} data-chart={title}>
      <figcaption>
        <span class="chart-title">
          <b title={description} class={description ? "term" : undefined}>
            {title}
          </b>
          {unit ? <span class="muted"> {unit}</span> : null}
        </span>
        <span class="chart-tools" data-export="omit">
          {tools}
          {canDraw ? (
            <ExportMenu
              name={title}
              picture={() => prepareForSaving(figure.current)}
              csv={csv ?? (() => tabulateLines(title, lines))}
            />
          ) : null}
        </span>
        {canDraw ? (
          <span class="cursor-value" data-step={group.step ?? undefined} data-export="omit">
            {group.step !== null ? (
              <span class="muted">
                step {formatInteger(group.step)}
                {commonStep !== undefined ? `, values at ${formatInteger(commonStep)}` : ""}{" "}
              </span>
            ) : null}
            {lines.length === 1 && shown.length ? (
              <Reading
                {...readLine(shown[0], group.step)}
                width={width}
                isLast={group.step === null}
              />
            ) : !legend && group.step !== null && !isBoxed && !isCrowded ? (
              coloured.map(({ line, reading }) => (
                <span key={lineKey(line)} class="line-value" data-line={lineKey(line)}>
                  <i style={{ background: line.colour }} />
                  <Reading {...shareStep(reading)} width={width} />
                </span>
              ))
            ) : null}
            {nearest && group.step !== null ? (
              <span class="line-value" data-line={lineKey(nearest.line)}>
                <i style={{ background: nearest.line.colour }} />
                {nearest.line.label} <Reading {...shareStep(nearest.reading)} width={width} />
              </span>
            ) : null}
          </span>
        ) : null}
      </figcaption>
      {canDraw ? (
        <div class="plot-frame">
          <div
            ref={container}
            class={onStep ? "plot clickable" : "plot"}
            style={{ minHeight: `${height}px` }}
            role="img"
            aria-label={summary}
          />
          <span class="axis-offset up" ref={offsets.y} />
          <span class="axis-offset across" ref={offsets.x} />
          {!legend && lines.length > 1 && group.step !== null && isBoxed && !isCrowded ? (
            <ul
              class={group.step > (range[0] + range[1]) / 2 ? "value-box left" : "value-box"}
              data-export="omit"
            >
              {coloured.map(({ line, reading }) => (
                <li key={lineKey(line)} data-line={lineKey(line)}>
                  <i style={{ background: line.colour }} />
                  <Reading {...shareStep(reading)} width={width} />
                </li>
              ))}
            </ul>
          ) : null}
        </div>
      ) : (
        <p class="muted" style={isEmpty ? undefined : { minHeight: `${height}px` }}>
          {isEmpty
            ? `all ${formatInteger(table[0].length)} values are NaN`
            : lines.length > shown.length && !shown.length
              ? "all lines are hidden"
              : "no step above 0"}
        </p>
      )}
      {log && canDraw && (left > 0 || !isLog) ? (
        <p class="chart-note">
          {isLog
            ? `${formatInteger(left)} values ≤ 0 are not on this scale`
            : "linear: no value is above 0"}
        </p>
      ) : null}
      {legend || lines.length > 1 ? (
        <Legend
          isSavedOnly={!legend}
          lines={lines}
          group={group}
          describe={
            legend
              ? (line) =>
                  group.hidden.has(lineKey(line)) ? null : group.step === null ? (
                    describeGap(line)
                  ) : (
                    <Reading {...shareStep(readLine(line, group.step))} width={width} />
                  )
              : undefined
          }
        />
      ) : null}
    </figure>
  )
}

/** Names and colours of lines. A click hides a line, a double click or a click with Shift leaves only it. */
export function Legend({
  lines,
  group,
  describe,
  isSavedOnly = false,
}: {
  /** Only in the saved picture of a chart: on the page, several charts share a legend. */
  isSavedOnly?: boolean
  lines: ChartLine[]
  group: ChartGroup
  describe?: (line: ChartLine) => ComponentChild
}) {
  const coloured = lines.filter((line) => !line.isFaint)
  const keys = lines.map(lineKey)
  const faint = lines.length - coloured.length
  return (
    <ul class={isSavedOnly ? "legend saved-only" : "legend"}>
      {coloured.map((line) => {
        const key = lineKey(line)
        const isHidden = group.hidden.has(key)
        return (
          <li key={key} class={isHidden ? "off" : undefined}>
            <button
              type="button"
              aria-pressed={!isHidden}
              title="click: hide or show; double-click or Shift-click: only this line"
              onClick={(event) => (event.shiftKey ? group.solo(key, keys) : group.toggle(key))}
              onDblClick={() => group.solo(key, keys)}
            >
              <i style={{ background: swatch(line) }} />
              {line.label}
              <b> {describe?.(line)}</b>
            </button>
          </li>
        )
      })}
      {faint ? (
        <li class="more">and {formatInteger(faint)} more, faint: point at one to read its name</li>
      ) : null}
    </ul>
  )
}

/** CSS background that looks like the line. */
function swatch({ colour, isDashed }: ChartLine): string {
  return isDashed
    ? `repeating-linear-gradient(90deg, ${colour} 0 5px, transparent 5px 8px)`
    : colour
}

/** A row per stored point. */
export function tabulateLines(name: string, lines: Line[]): Table {
  return {
    head: ["line", "step", name],
    rows: lines.flatMap(({ label, steps, values }) =>
      steps.map((step, index) => [label, step, values[index]]),
    ),
  }
}

/** Show the legend while the picture is read, which is done before this task ends. */
function prepareForSaving(figure: HTMLElement | null): Element | null {
  figure?.classList.add("saving")
  queueMicrotask(() => figure?.classList.remove("saving"))
  return figure
}

/** What identifies a line in all charts of a group. */
export function lineKey(line: Line): string {
  return line.key ?? line.label
}

interface LineReading {
  value: number | null
  smoothed?: number | null
  /** The step of the value, if it is not the one asked for. */
  at?: number
  isMissing?: boolean
}

/** The stored value first; a moving average is named as one. */
function Reading({
  value,
  smoothed,
  at,
  isMissing,
  width,
  isLast = false,
}: LineReading & { width: number; isLast?: boolean }) {
  if (isMissing) return null
  return (
    <>
      {isLast ? <span class="muted">last </span> : null}
      <b data-value={value ?? "NaN"}>{value === null ? "NaN" : formatReading(value, width)}</b>
      {at !== undefined ? <span class="muted"> at {formatInteger(at)}</span> : null}
      {smoothed !== undefined && smoothed !== null ? (
        <span class="muted"> smoothed {formatReading(smoothed, width)}</span>
      ) : null}
    </>
  )
}

/** The stored value nearest to a step; without a step the last one. */
function readLine(line: ChartLine, step: number | null): LineReading {
  const index = step === null ? line.steps.length - 1 : findNearest(line.steps, step)
  if (index < 0) return { value: null, isMissing: true }
  return {
    value: line.values[index],
    smoothed: line.smoothed?.[index],
    at: step !== null && line.steps[index] !== step ? line.steps[index] : undefined,
  }
}

/** Index of the value nearest to `target` in an ascending list; -1 if it is empty. */
export function findNearest(ascending: ArrayLike<number>, target: number): number {
  let [low, high] = [0, ascending.length - 1]
  while (low < high) {
    const middle = (low + high) >> 1
    if (ascending[middle] < target) low = middle + 1
    else high = middle
  }
  return low > 0 && target - ascending[low - 1] <= ascending[low] - target ? low - 1 : high
}

/** Key of the line nearest to the pointer. */
function findNearestLine(plot: uPlot, lines: ChartLine[]): string {
  const { idx, top } = plot.cursor
  if (idx === null || idx === undefined || top === undefined || top < 0) return ""
  const step = plot.data[0][idx]
  let [best, distance] = ["", Infinity]
  for (const line of lines) {
    const value = line.values[findNearest(line.steps, step)]
    if (value === null || value === undefined) continue
    const offset = Math.abs(plot.valToPos(value, "y") - top)
    if (offset < distance) [best, distance] = [lineKey(line), offset]
  }
  return best
}

/** Whether an element has been in view. All are before printing. */
function useInView(element: RefObject<Element | null>, isEager: boolean): boolean {
  const [wasInView, setInView] = useState(isEager || typeof IntersectionObserver === "undefined")
  useEffect(() => {
    if (wasInView || !element.current) return
    const show = () => setInView(true)
    const observer = new IntersectionObserver(
      (entries) => entries.some((entry) => entry.isIntersecting) && show(),
      { rootMargin: "300px" },
    )
    observer.observe(element.current)
    addEventListener("beforeprint", show)
    return () => {
      observer.disconnect()
      removeEventListener("beforeprint", show)
    }
  }, [wasInView])
  return wasInView || isEager
}

/** Since when a line is NaN; empty if its last value is finite. */
function describeGap(line: Line): string {
  const lastFinite = line.values.findLastIndex((value) => value !== null)
  return lastFinite >= 0 && lastFinite < line.values.length - 1
    ? `NaN since step ${formatInteger(line.steps[lastFinite + 1])}`
    : ""
}

/** The chart in words, for screen readers. */
function describeChart(title: string, unit: string | undefined, lines: ChartLine[]): string {
  const ends = lines
    .filter((line) => !line.isFaint)
    .map(({ label, steps, values }) => {
      const format = (index: number) =>
        `${values[index] === null ? "NaN" : formatReading(values[index]!, 0)} at step ${formatInteger(steps[index])}`
      const text = steps.length > 1 ? `${format(0)}, ${format(steps.length - 1)}` : format(0)
      return lines.length > 1 ? `${label}: ${text}` : text
    })
  return `${title}${unit ? ` in ${unit}` : ""} over steps. ${ends.join("; ")}`
}

function countNotPositive(lines: ChartLine[]): number {
  return lines.reduce(
    (sum, line) => sum + line.values.filter((value) => value !== null && value <= 0).length,
    0,
  )
}

/** Distance of the largest from the smallest value. */
function valueWidth(lines: ChartLine[]): number {
  let [low, high] = [Infinity, -Infinity]
  for (const line of lines)
    for (const value of line.values)
      if (value !== null) {
        if (value < low) low = value
        if (value > high) high = value
      }
  return high > low ? high - low : 0
}

/** All steps; a single one is in the middle. */
function padSteps(first: number, last: number, isLog: boolean): [number, number] {
  const low = isLog ? Math.max(first, Math.min(1, last)) : first
  if (low < last) return [low, last]
  return isLog ? [low / 2, low * 2] : [low - 1, low + 1]
}

interface ChartOptions {
  width: number
  height: number
  isLog: boolean
  logX: boolean
  marker: { current: number | undefined }
  range: { current: [number, number] }
  offsets: Record<"x" | "y", RefObject<HTMLSpanElement | null>>
  onCursor: (plot: uPlot) => void
  onZoom: (range: [number, number] | null) => void
}

function buildOptions(lines: ChartLine[], options: ChartOptions): uPlot.Options {
  const colour = (name: string) =>
    getComputedStyle(document.documentElement).getPropertyValue(name).trim()
  const [muted, border, accent] = [colour("--muted"), colour("--border"), colour("--accent")]
  const axis: uPlot.Axis = {
    stroke: muted,
    grid: { stroke: border, width: 1 },
    ticks: { stroke: border, width: 1, size: TICK_SIZE },
    gap: TICK_GAP,
    font: FONT,
    // uPlot chooses no ticks here: with this increment it accepts whatever `splits` returns
    incrs: () => [5],
    space: () => 0,
    filter: (_, splits) => splits,
  }
  const ticks: { x: Ticks; y: Ticks } = {
    x: { values: [], labels: [], offset: "" },
    y: { values: [], labels: [], offset: "" },
  }
  const series: uPlot.Series[] = [{}]
  const bands: uPlot.Band[] = []
  // many faint lines together stay lighter than those with a colour
  const faintness = Math.max(0.1, 0.35 / Math.sqrt(lines.length / MAX_BOXED_VALUES))
  for (const line of lines) {
    const isMarked = line.steps.length <= MAX_MARKED_POINTS && !line.isFaint
    const appearance: uPlot.Series = {
      stroke: line.colour,
      width: line.isSelected ? 2.5 : line.isFaint ? 1 : 1.5,
      spanGaps: false,
      ...(line.isDashed ? { dash: [6, 4] } : {}),
      ...(line.isFaint ? { alpha: faintness } : {}),
    }
    series.push({
      ...appearance,
      ...(line.smoothed ? { alpha: 0.3, width: 1 } : {}),
      points: {
        show: isMarked,
        size: 5,
        filter: (plot, index, isShown) => (isShown ? null : findIsolated(plot.data[index])),
      },
    })
    if (line.low && line.high) {
      const seriesIndex = series.length
      const edge = { stroke: "transparent", width: 0, spanGaps: false, points: { show: false } }
      series.push(edge, edge)
      bands.push({ series: [seriesIndex + 1, seriesIndex], fill: fade(line.colour) })
    }
    if (line.smoothed) series.push({ ...appearance, points: { show: false } })
  }
  const xTicks = options.logX
    ? (low: number, high: number, count: number) =>
        chooseLogTicks(low, high, count, chooseStepTicks)
    : chooseStepTicks
  const yTicks = options.isLog ? chooseLogTicks : chooseTicks
  return {
    width: options.width,
    height: options.height,
    legend: { show: false },
    padding: [
      () => (ticks.y.offset ? OFFSET_HEIGHT : 8),
      () => Math.max(8, Math.ceil(Math.max(0, ...ticks.x.labels.map(measureText)) / 2)),
      0,
      0,
    ],
    cursor: {
      y: false,
      points: { show: false },
      move: (plot, left, top) => [snapToStep(plot, left), top],
      drag: { x: true, y: false, setScale: false },
      bind: {
        dblclick: () => () => {
          options.onZoom(null)
          return null
        },
      },
    },
    scales: {
      x: {
        time: false,
        distr: options.logX ? 3 : 1,
        range: () => options.range.current,
      },
      y: {
        distr: options.isLog ? 3 : 1,
        range: (plot, low, high) => {
          const [steps, ...columns] = plot.data
          const lines = columns.filter((_, index) => plot.series[index + 1]?.show !== false)
          const shown = findShownRange(steps, lines, options.range.current) ?? [low, high]
          return padRange(...shown, options.isLog)
        },
      },
    },
    series,
    bands,
    axes: [
      {
        ...axis,
        size: () => 26 + (ticks.x.offset ? OFFSET_HEIGHT : 0),
        splits: (plot, _, low, high) => {
          ticks.x = fitTicks(xTicks, low, high, plot.bbox.width / uPlot.pxRatio)
          return ticks.x.values
        },
        values: () => ticks.x.labels,
      },
      {
        ...axis,
        size: (_, labels) =>
          TICK_SIZE + TICK_GAP + 3 + Math.ceil(Math.max(12, ...(labels ?? []).map(measureText))),
        splits: (plot, _, low, high) => {
          ticks.y = yTicks(low, high, Math.max(2, plot.bbox.height / uPlot.pxRatio / 36))
          return ticks.y.values
        },
        values: () => ticks.y.labels,
      },
    ],
    hooks: {
      setCursor: [options.onCursor],
      setSelect: [
        (plot) => {
          const { left, width } = plot.select
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
          if (width < 4) return
          options.onZoom([plot.posToVal(left, "x"), plot.posToVal(left + width, "x")])
        },
      ],
      draw: [
        (plot) => {
          showOffset(options.offsets.x.current, ticks.x.offset)
          showOffset(options.offsets.y.current, ticks.y.offset)
          const step = options.marker.current
          if (step === undefined) return
          const x = Math.round(plot.valToPos(step, "x", true))
          if (!(x >= plot.bbox.left && x <= plot.bbox.left + plot.bbox.width)) return
          plot.ctx.fillStyle = accent
          plot.ctx.fillRect(x, plot.bbox.top, devicePixelRatio, plot.bbox.height)
        },
      ],
    },
  }
}

/** The position of the nearest step, so that the crosshair stands where the values are read. */
function snapToStep(plot: uPlot, left: number): number {
  const isDragging = (plot.cursor.event?.buttons ?? 0) > 0
  // the other charts of a group show the step of the one under the pointer
  if (left < 0 || isDragging || !plot.data[0].length || !plot.over.matches(":hover")) return left
  return plot.valToPos(plot.data[0][plot.posToIdx(left)], "x")
}

/** As many ticks as have space side by side. */
function fitTicks(
  choose: (low: number, high: number, count: number) => Ticks,
  low: number,
  high: number,
  width: number,
): Ticks {
  for (let count = Math.max(2, Math.floor(width / 50)); ; count--) {
    const ticks = choose(low, high, count)
    const widest = Math.max(...ticks.labels.map(measureText))
    if (count <= 2 || ticks.labels.length * (widest + 12) <= width + widest) return ticks
  }
}

function showOffset(element: HTMLElement | null, offset: string): void {
  if (element) element.textContent = offset && `${offset} +`
}

let measuringContext: CanvasRenderingContext2D | null = null

/** Width of an axis label in CSS pixels. */
function measureText(text: string): number {
  if (!measuringContext) {
    measuringContext = document.createElement("canvas").getContext("2d")!
    measuringContext.font = FONT
  }
  return measuringContext.measureText(text).width
}

/** Indices of values with NaN on both sides, which no line shows; null if there are none. */
function findIsolated(values: ArrayLike<number | null | undefined>): number[] | null {
  const isolated: number[] = []
  let before: number | null = null
  let candidate = -1
  let hasGap = false
  for (let index = 0; index <= values.length; index++) {
    const value = index < values.length ? values[index] : null
    if (value === undefined) continue // another line's step
    if (value === null) {
      if (index < values.length) hasGap = true
      if (candidate >= 0) isolated.push(candidate)
      candidate = -1
    } else candidate = before === null ? index : -1
    before = value
  }
  return hasGap && isolated.length ? isolated : null
}

/**
 * uPlot's format: one list of steps for all lines. Null is a gap (NaN, or not on a logarithmic scale);
 * undefined is a step that the line does not have, which its line passes.
 */
export function alignLines(lines: ChartLine[], isLog = false, logX = false): uPlot.AlignedData {
  const steps = unionSteps(lines).filter((step) => !logX || step > 0)
  const columnOf = new Map(steps.map((step, index) => [step, index]))
  const columns: (number | null | undefined)[][] = []
  for (const line of lines) {
    const hasBand = line.low && line.high
    for (const values of [line.values, hasBand && line.low, hasBand && line.high, line.smoothed]) {
      if (!values) continue
      const column = new Array<number | null | undefined>(steps.length).fill(undefined)
      line.steps.forEach((step, index) => {
        const position = columnOf.get(step)
        const value = values[index]
        if (position !== undefined)
          column[position] = value === null || (isLog && value <= 0) ? null : value
      })
      columns.push(column)
    }
  }
  return [steps, ...columns] as uPlot.AlignedData
}

/** All steps, ascending. Lines mostly have the same ones, which are not merged. */
function unionSteps(lines: ChartLine[]): number[] {
  const distinct: number[][] = []
  for (const { steps } of lines)
    if (
      !distinct.some(
        (known) => known.length === steps.length && known.every((s, i) => s === steps[i]),
      )
    )
      distinct.push(steps)
  return distinct.length === 1 ? distinct[0] : [...new Set(distinct.flat())].sort((a, b) => a - b)
}

function fade(colour: string): string {
  return colour.startsWith("#") ? `${colour}33` : colour.replace(")", " / 20%)")
}

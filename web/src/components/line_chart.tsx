// Line chart over steps (uPlot) with a legend that shows the values at the cursor.

import { useEffect, useMemo, useRef, useState } from "preact/hooks"
import uPlot from "uplot"

import type { Line } from "../aggregation"
import { formatNumber, formatInteger } from "../format"
import type { Theme } from "../theme"

export interface ChartLine extends Line {
  colour: string
  isDashed?: boolean
  /** Drawn with a wider line. */
  isSelected?: boolean
}

interface Props {
  title: string
  unit?: string
  description?: string
  lines: ChartLine[]
  theme: Theme
  height?: number
  log?: boolean
  /** Step of the slider, drawn as a vertical line. */
  step?: number
  onStep?: (step: number) => void
  legend?: boolean
}

export function LineChart({
  title,
  unit,
  description,
  lines,
  theme,
  height = 220,
  log = false,
  step,
  onStep,
  legend = true,
}: Props) {
  const container = useRef<HTMLDivElement>(null)
  const chart = useRef<uPlot | null>(null)
  const marker = useRef(step)
  const [hovered, setHovered] = useState<number | null>(null)
  const table = useMemo(() => alignLines(lines), [lines])
  const empty = !lines.some((line) => line.values.some((value) => value !== null))
  // the chart is created again only if this key changes; new values are set on the existing chart, so
  // that updates of a live run keep the zoom
  const chartKey = JSON.stringify(
    lines.map(({ colour, isDashed, isSelected, low, steps }) => [
      colour,
      isDashed,
      isSelected,
      Boolean(low),
      steps.length === 1,
    ]),
  )
  const onStepRef = useRef(onStep)
  onStepRef.current = onStep

  useEffect(() => {
    const element = container.current
    if (!element) return
    const plot = new uPlot(
      buildOptions(lines, {
        width: element.clientWidth || 320,
        height,
        log,
        marker,
        setHovered,
      }),
      table,
      element,
    )
    chart.current = plot
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
  }, [chartKey, empty, theme, height, log])

  useEffect(() => {
    if (chart.current && chart.current.data !== table) updateData(chart.current, table)
  }, [table])

  useEffect(() => {
    marker.current = step
    chart.current?.redraw(false)
  }, [step, chartKey, theme])

  const index = hovered !== null && hovered < table[0].length ? hovered : null
  const readValue = (line: ChartLine) =>
    index === null ? describeGap(line) : formatNumber(nearestValue(line, table[0][index]))
  return (
    <figure class="chart">
      <figcaption title={description}>
        <b>{title}</b>
        {unit ? <span class="muted"> {unit}</span> : null}
        {lines.length && !empty ? (
          <span class="cursor-value">
            {index !== null ? (
              <span class="muted">step {formatInteger(table[0][index])} </span>
            ) : null}
            {legend ? null : <b>{readValue(lines[0])}</b>}
          </span>
        ) : null}
      </figcaption>
      {empty ? (
        <p class="muted">all {formatInteger(table[0].length)} values are NaN</p>
      ) : (
        <div ref={container} class={onStep ? "plot clickable" : "plot"} />
      )}
      {legend ? (
        <ul class="legend">
          {lines.map((line) => (
            <li key={line.label}>
              <i style={{ background: line.colour }} />
              {line.label}
              <b> {readValue(line)}</b>
            </li>
          ))}
        </ul>
      ) : null}
    </figure>
  )
}

/** Set new values and keep the zoom. */
function updateData(plot: uPlot, table: uPlot.AlignedData): void {
  const [{ min, max }, steps] = [plot.scales.x, plot.data[0]]
  const isZoomed = (min ?? -Infinity) > steps[0] || (max ?? Infinity) < steps[steps.length - 1]
  plot.setData(table, !isZoomed)
  if (isZoomed) plot.redraw()
}

/** Since when a line is NaN; empty if its last value is finite. */
function describeGap(line: Line): string {
  const lastFinite = line.values.findLastIndex((value) => value !== null)
  return lastFinite >= 0 && lastFinite < line.values.length - 1
    ? `NaN since step ${formatInteger(line.steps[lastFinite + 1])}`
    : ""
}

type Marker = { current: number | undefined }

function buildOptions(
  lines: ChartLine[],
  options: {
    width: number
    height: number
    log: boolean
    marker: Marker
    setHovered: (index: number | null) => void
  },
): uPlot.Options {
  const colour = (name: string) =>
    getComputedStyle(document.documentElement).getPropertyValue(name).trim()
  const [muted, border, accent] = [colour("--muted"), colour("--border"), colour("--accent")]
  const axis = {
    stroke: muted,
    grid: { stroke: border, width: 1 },
    ticks: { stroke: border, width: 1, size: 4 },
    font: "11px system-ui",
  }
  const series: uPlot.Series[] = [{}]
  const bands: uPlot.Band[] = []
  for (const line of lines) {
    const appearance = {
      stroke: line.colour,
      width: line.isSelected ? 2.5 : 1.5,
      spanGaps: true,
      points: { show: line.steps.length === 1 },
    }
    series.push(line.isDashed ? { ...appearance, dash: [6, 4] } : appearance)
    if (line.low && line.high) {
      const seriesIndex = series.length
      const edge = { stroke: "transparent", width: 0, spanGaps: true, points: { show: false } }
      series.push(edge, edge)
      bands.push({ series: [seriesIndex + 1, seriesIndex], fill: fade(line.colour) })
    }
  }
  return {
    width: options.width,
    height: options.height,
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: true, y: false } },
    scales: { x: { time: false }, y: { distr: options.log ? 3 : 1 } },
    series,
    bands,
    axes: [
      { ...axis, size: 30, values: (_, ticks) => ticks.map(formatStep) },
      {
        ...axis,
        size: 52,
        values: (_, ticks, __, ___, spacing) =>
          ticks.map((value) =>
            value === null ? "" : options.log ? formatNumber(value) : formatTick(value, spacing),
          ),
      },
    ],
    hooks: {
      setCursor: [(plot) => options.setHovered(plot.cursor.idx ?? null)],
      draw: [
        (plot) => {
          const step = options.marker.current
          if (step === undefined) return
          const x = Math.round(plot.valToPos(step, "x", true))
          if (x < plot.bbox.left || x > plot.bbox.left + plot.bbox.width) return
          plot.ctx.fillStyle = accent
          plot.ctx.fillRect(x, plot.bbox.top, devicePixelRatio, plot.bbox.height)
        },
      ],
    },
  }
}

/** uPlot's format: one list of steps for all lines; null where a line has no value. */
export function alignLines(lines: ChartLine[]): uPlot.AlignedData {
  const steps = [...new Set(lines.flatMap((line) => line.steps))].sort((a, b) => a - b)
  const columnOf = new Map(steps.map((step, index) => [step, index]))
  const columns: (number | null)[][] = []
  for (const line of lines) {
    for (const values of [
      line.values,
      line.low && line.high ? line.low : null,
      line.low && line.high ? line.high : null,
    ]) {
      if (!values) continue
      const column = new Array<number | null>(steps.length).fill(null)
      line.steps.forEach((step, index) => {
        column[columnOf.get(step)!] = values[index]
      })
      columns.push(column)
    }
  }
  return [steps, ...columns] as uPlot.AlignedData
}

function nearestValue(line: Line, step: number): number | null {
  let best: number | null = null
  let distance = Infinity
  line.steps.forEach((lineStep, index) => {
    if (line.values[index] !== null && Math.abs(lineStep - step) < distance)
      [best, distance] = [line.values[index], Math.abs(lineStep - step)]
  })
  return best
}

/** With as many digits as distinguish neighbouring ticks. */
function formatTick(value: number, spacing: number): string {
  if (Math.abs(value) >= 1e5 || spacing < 1e-5) return value === 0 ? "0" : value.toExponential(0)
  let digits = 0
  while (digits < 6 && Math.abs(spacing * 10 ** digits - Math.round(spacing * 10 ** digits)) > 1e-6)
    digits++
  return value.toFixed(digits).replace("-", "−")
}

function formatStep(step: number): string {
  return Math.abs(step) >= 10_000 ? `${step / 1000}k` : String(step)
}

function fade(colour: string): string {
  return colour.startsWith("#") ? `${colour}33` : colour.replace(")", " / 20%)")
}

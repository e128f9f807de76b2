// Curves over steps: a chart with a legend that shows the values under the pointer.

import { useEffect, useMemo, useRef, useState } from "preact/hooks"
import uPlot from "uplot"

import type { Line } from "../bands"
import { number, whole } from "../numbers"
import type { Theme } from "../theme"

export interface Drawn extends Line {
  colour: string
  dashed?: boolean
  /** Drawn wider, above the others. */
  chosen?: boolean
}

interface Props {
  title: string
  unit?: string
  says?: string
  lines: Drawn[]
  theme: Theme
  height?: number
  log?: boolean
  /** Where the slider is. */
  step?: number
  onStep?: (step: number) => void
  legend?: boolean
}

export function Lines({ title, unit, says, lines, theme, height = 220, log = false, step, onStep, legend = true }: Props) {
  const box = useRef<HTMLDivElement>(null)
  const chart = useRef<uPlot | null>(null)
  const mark = useRef(step)
  const [hovered, setHovered] = useState<number | null>(null)
  const table = useMemo(() => aligned(lines), [lines])
  const empty = !lines.some((line) => line.values.some((one) => one !== null))
  // what a chart is made for; other numbers are put into the same one, so that a zoom outlives the news of a running training
  const made = JSON.stringify(lines.map(({ colour, dashed, chosen, low, steps }) => [colour, dashed, chosen, Boolean(low), steps.length === 1]))
  const pick = useRef(onStep)
  pick.current = onStep

  useEffect(() => {
    const place = box.current
    if (!place) return
    const plot = new uPlot(options(lines, { width: place.clientWidth || 320, height, log, mark, setHovered }), table, place)
    chart.current = plot
    const click = () => {
      const at = plot.cursor.idx
      if (at !== null && at !== undefined && pick.current) pick.current(plot.data[0][at])
    }
    plot.over.addEventListener("click", click)
    const watcher = new ResizeObserver(() => {
      if (place.clientWidth && place.clientWidth !== plot.width) plot.setSize({ width: place.clientWidth, height })
    })
    watcher.observe(place)
    return () => {
      watcher.disconnect()
      plot.destroy()
      chart.current = null
    }
  }, [made, empty, theme, height, log])

  useEffect(() => {
    if (chart.current && chart.current.data !== table) renew(chart.current, table)
  }, [table])

  useEffect(() => {
    mark.current = step
    chart.current?.redraw(false)
  }, [step, made, theme])

  const at = hovered !== null && hovered < table[0].length ? hovered : null
  const read = (line: Drawn) => (at === null ? since(line) : number(valueNear(line, table[0][at])))
  return (
    <figure class="chart">
      <figcaption title={says}>
        <b>{title}</b>
        {unit ? <span class="soft"> {unit}</span> : null}
        {lines.length && !empty ? <span class="at">{at !== null ? <span class="soft">step {whole(table[0][at])} </span> : null}{legend ? null : <b>{read(lines[0])}</b>}</span> : null}
      </figcaption>
      {empty ? <p class="soft">none of its {whole(table[0].length)} values is a number</p> : <div ref={box} class={onStep ? "plot picks" : "plot"} />}
      {legend ? (
        <ul class="legend">
          {lines.map((line) => (
            <li key={line.label}>
              <i style={{ background: line.colour }} />
              {line.label}
              <b> {read(line)}</b>
            </li>
          ))}
        </ul>
      ) : null}
    </figure>
  )
}

/** Other numbers in the same chart; where a reader has zoomed in, it stays where it is. */
function renew(plot: uPlot, table: uPlot.AlignedData): void {
  const [{ min, max }, steps] = [plot.scales.x, plot.data[0]]
  const zoomed = (min ?? -Infinity) > steps[0] || (max ?? Infinity) < steps[steps.length - 1]
  plot.setData(table, !zoomed)
  if (zoomed) plot.redraw()
}

/** From where on a line has no number; nothing where it has one at its end. */
function since(line: Line): string {
  const last = line.values.findLastIndex((one) => one !== null)
  return last >= 0 && last < line.values.length - 1 ? `no number since step ${whole(line.steps[last + 1])}` : ""
}

type Mark = { current: number | undefined }

function options(
  lines: Drawn[], how: { width: number; height: number; log: boolean; mark: Mark; setHovered: (at: number | null) => void },
): uPlot.Options {
  const colour = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()
  const [soft, faint, accent] = [colour("--soft"), colour("--line"), colour("--accent")]
  const axis = { stroke: soft, grid: { stroke: faint, width: 1 }, ticks: { stroke: faint, width: 1, size: 4 }, font: "11px system-ui" }
  const series: uPlot.Series[] = [{}]
  const bands: uPlot.Band[] = []
  for (const line of lines) {
    const look = { stroke: line.colour, width: line.chosen ? 2.5 : 1.5, spanGaps: true, points: { show: line.steps.length === 1 } }
    series.push(line.dashed ? { ...look, dash: [6, 4] } : look)
    if (line.low && line.high) {
      const at = series.length
      const edge = { stroke: "transparent", width: 0, spanGaps: true, points: { show: false } }
      series.push(edge, edge)
      bands.push({ series: [at + 1, at], fill: faded(line.colour) })
    }
  }
  return {
    width: how.width,
    height: how.height,
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: true, y: false } },
    scales: { x: { time: false }, y: { distr: how.log ? 3 : 1 } },
    series,
    bands,
    axes: [
      { ...axis, size: 30, values: (_, ticks) => ticks.map(short) },
      { ...axis, size: 52, values: (_, ticks, __, ___, apart) => ticks.map((one) => (one === null ? "" : how.log ? number(one) : tick(one, apart))) },
    ],
    hooks: {
      setCursor: [(plot) => how.setHovered(plot.cursor.idx ?? null)],
      draw: [
        (plot) => {
          const step = how.mark.current
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

/** One list of steps for all lines; null where a line has no value. */
export function aligned(lines: Drawn[]): uPlot.AlignedData {
  const steps = [...new Set(lines.flatMap((one) => one.steps))].sort((a, b) => a - b)
  const places = new Map(steps.map((step, at) => [step, at]))
  const columns: (number | null)[][] = []
  for (const line of lines) {
    for (const values of [line.values, line.low && line.high ? line.low : null, line.low && line.high ? line.high : null]) {
      if (!values) continue
      const column = new Array<number | null>(steps.length).fill(null)
      line.steps.forEach((step, at) => (column[places.get(step)!] = values[at]))
      columns.push(column)
    }
  }
  return [steps, ...columns] as uPlot.AlignedData
}

function valueNear(line: Line, step: number): number | null {
  let best: number | null = null
  let distance = Infinity
  line.steps.forEach((one, at) => {
    if (line.values[at] !== null && Math.abs(one - step) < distance) [best, distance] = [line.values[at], Math.abs(one - step)]
  })
  return best
}

/** With as many digits as tell it from its neighbours. */
function tick(value: number, apart: number): string {
  if (Math.abs(value) >= 1e5 || apart < 1e-5) return value === 0 ? "0" : value.toExponential(0)
  let digits = 0
  while (digits < 6 && Math.abs(apart * 10 ** digits - Math.round(apart * 10 ** digits)) > 1e-6) digits++
  return value.toFixed(digits).replace("-", "−")
}

function short(step: number): string {
  return Math.abs(step) >= 10_000 ? `${step / 1000}k` : String(step)
}

function faded(colour: string): string {
  return colour.startsWith("#") ? `${colour}33` : colour.replace(")", " / 20%)")
}

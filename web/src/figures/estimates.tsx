// Estimates with their intervals as dots and bars on one axis, against a reference such as 0.

import type { Table } from "../export/csv"
import type { FigureData, FigureDefinition, FigureProps } from "../figure"
import { formatNumber } from "../format"
import { chooseTicks } from "../ticks"
import "../styles/findings.css"

interface Row {
  label: string
  number: { value: number | null; low?: number | null; high?: number | null }
  /** Values that the number is the mean of, if they are too few for an interval. */
  values?: number[]
  /** The number in words; by default value, interval and unit. */
  text?: string
}

interface EstimatesFigure {
  kind: "estimates"
  rows: Row[]
  /** Unit of all numbers. One that begins with "of " marks shares, which are shown in percent. */
  unit?: string
  /** Where a line is drawn, such as 0; without one, the axis fits the numbers. */
  reference?: number
  /** A range of values, such as that which a claim predicts. */
  band?: { low: number; high: number; label: string }
  /** Ends of the axis, if they shall not depend on the numbers. */
  range?: [number, number]
}

function Estimates({ figure }: FigureProps) {
  const { rows: allRows, unit = "", reference, band, range } = figure as unknown as EstimatesFigure
  const rows = allRows.filter((row) => row.number.value !== null)
  if (!rows.length) return null
  const isShare = unit.startsWith("of ")
  const format = (value: number) => formatNumber(isShare ? 100 * value : value)
  const ends = rows.flatMap(({ number, values = [] }) =>
    [number.value, number.low, number.high, ...values].filter(
      (end): end is number => typeof end === "number",
    ),
  )
  const shown = [
    ...ends,
    ...(reference === undefined ? [] : [reference]),
    ...(band ? [band.low, band.high] : []),
  ]
  const [low, high] = range ?? widen(Math.min(...shown), Math.max(...shown))
  const toX = (value: number) => `${(100 * (value - low)) / (high - low)}%`
  const scale = isShare ? 100 : 1
  const ticks = chooseTicks(scale * low, scale * high, 4)
  return (
    <div
      class="figure-estimates"
      role="img"
      aria-label={rows.map((row) => `${row.label}: ${describe(row, format)}`).join("; ")}
    >
      {rows.map((row) => {
        const { value, low: start, high: end } = row.number
        return [
          <span key={`${row.label} label`} class="label">
            {row.label}
          </span>,
          <span key={`${row.label} track`} class="track">
            {band ? (
              <span
                class="band"
                title={band.label}
                style={{
                  left: toX(band.low),
                  width: `${(100 * (band.high - band.low)) / (high - low)}%`,
                }}
              />
            ) : null}
            {reference !== undefined && reference >= low && reference <= high ? (
              <span class="reference" style={{ left: toX(reference) }} />
            ) : null}
            {typeof start === "number" && typeof end === "number" ? (
              <span
                class="interval"
                style={{ left: toX(start), width: `${(100 * (end - start)) / (high - low)}%` }}
              />
            ) : null}
            {row.values?.map((seed, index) => (
              <span key={index} class="dot seed" style={{ left: toX(seed) }} />
            ))}
            <span class="dot" style={{ left: toX(value!) }} />
          </span>,
          <span key={`${row.label} value`} class="value">
            {describe(row, format)}
            {isShare && row.text === undefined ? " %" : ""}
          </span>,
        ]
      })}
      <span />
      <span class="axis" aria-hidden="true">
        {ticks.values.map((value, index) => (
          <span key={value} style={{ left: toX(value / scale) }}>
            {ticks.labels[index]}
          </span>
        ))}
      </span>
      <span class="muted">{band ? `shaded: ${band.label}` : ""}</span>
    </div>
  )
}

function describe({ number, text }: Row, format: (value: number) => string): string {
  if (text !== undefined) return text
  const hasInterval = typeof number.low === "number" && typeof number.high === "number"
  const interval = hasInterval ? ` (${format(number.low!)} … ${format(number.high!)})` : ""
  return format(number.value!) + interval
}

/** A range with a margin, so that no dot is cut. */
function widen(low: number, high: number): [number, number] {
  const margin = 0.06 * (high - low) || Math.abs(high) || 1
  return [low - margin, high + margin]
}

function tabulate(figure: FigureData): Table {
  const { rows } = figure as unknown as EstimatesFigure
  return {
    head: ["name", "value", "low", "high"],
    rows: rows.map(({ label, number }) => [
      label,
      number.value,
      number.low ?? null,
      number.high ?? null,
    ]),
  }
}

export default { component: Estimates, table: tabulate } satisfies FigureDefinition

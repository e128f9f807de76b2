// Estimates with their intervals as dots and bars on one axis, with a line at 0 where it is in range.

import { formatNumber } from "../format"
import type { FigureDefinition, FigureProps } from "../figure"
import type { Interval } from "../run_data"

interface Row {
  label: string
  number: Interval
}

const [WIDTH, ROW_HEIGHT, LABEL_WIDTH, VALUE_WIDTH] = [420, 22, 130, 60]

/** `figure.rows`: a label and an estimate each; `figure.unit`: the unit of all of them. */
function Estimates({ figure }: FigureProps) {
  const rows = (figure.rows as Row[]).filter((row) => row.number.value !== null)
  if (!rows.length) return null
  const ends = rows.flatMap(({ number }) =>
    [number.value, number.low, number.high].filter((end): end is number => end !== null),
  )
  const [low, high] = [Math.min(0, ...ends), Math.max(0, ...ends)]
  const toX = (value: number) =>
    LABEL_WIDTH + ((value - low) / (high - low || 1)) * (WIDTH - LABEL_WIDTH - VALUE_WIDTH)
  const height = rows.length * ROW_HEIGHT + 4
  return (
    <svg
      class="estimates"
      viewBox={`0 0 ${WIDTH} ${height}`}
      role="img"
      aria-label={rows.map((row) => `${row.label} ${formatNumber(row.number.value)}`).join(", ")}
    >
      <line class="zero" x1={toX(0)} x2={toX(0)} y1={0} y2={height} />
      {rows.map(({ label, number }, index) => {
        const y = index * ROW_HEIGHT + ROW_HEIGHT / 2 + 2
        return (
          <g key={label}>
            <text x={LABEL_WIDTH - 8} y={y + 4} text-anchor="end">
              {label}
            </text>
            {number.low !== null && number.high !== null ? (
              <line class="interval" x1={toX(number.low)} x2={toX(number.high)} y1={y} y2={y} />
            ) : null}
            <circle cx={toX(number.value!)} cy={y} r={4} />
            <text x={WIDTH - VALUE_WIDTH + 8} y={y + 4}>
              {formatNumber(number.value)}
            </text>
          </g>
        )
      })}
    </svg>
  )
}

export default { component: Estimates } satisfies FigureDefinition

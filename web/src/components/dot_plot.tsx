// Means with their intervals on one axis, and the values of single seeds as small dots.

import { Picture } from "../export"
import type { FocusScore } from "../focus_data"
import { formatNumber } from "../format"
import "../styles/focus.css"
import { chooseTicks, padRange } from "../ticks"

export interface DotRow {
  key: string
  label: string
  colour: string
  score: FocusScore
}

interface Props {
  title: string
  /** What the score is, in one sentence. */
  description: string
  name: string
  rows: DotRow[]
  /** Whether values are shares, which end at 0 and 1. */
  isShare?: boolean
}

const [ROW_HEIGHT, AXIS_HEIGHT, TICK_COUNT] = [26, 18, 3]
/** Ends of the axis in percent of the width, so that dots at the ends are whole. */
const [FIRST, LAST] = [4, 96]

export function DotPlot({ title, description, name, rows, isShare = false }: Props) {
  const values = rows
    .flatMap(({ score }) => [score.value, score.low, score.high, ...score.by_seed])
    .filter((value): value is number => value !== null)
  if (!values.length) return null
  let [low, high] = padRange(Math.min(...values), Math.max(...values))
  if (isShare) [low, high] = [Math.max(0, low), Math.min(1, Math.max(high, low + 0.01))]
  const ticks = chooseTicks(low, high, TICK_COUNT)
  const toX = (value: number) =>
    `${FIRST + clamp((value - low) / (high - low || 1)) * (LAST - FIRST)}%`
  const height = rows.length * ROW_HEIGHT
  return (
    <Picture name={`focus-${name}`} csv={() => toTable(rows)}>
      <figure class="dot-plot" data-score={name}>
        <figcaption>
          <b>{title}</b>
          <small class="muted">{description}</small>
        </figcaption>
        <div class="dot-plot-body">
          <div class="dot-plot-labels">
            {rows.map((row) => (
              <span key={row.key}>{row.label}</span>
            ))}
          </div>
          <svg
            height={height + AXIS_HEIGHT}
            role="img"
            aria-label={`${title}: ${rows.map((row) => `${row.label} ${formatScore(row.score)}`).join(", ")}`}
          >
            {ticks.values.map((value, index) => (
              <g key={value}>
                <line class="grid" x1={toX(value)} x2={toX(value)} y1={0} y2={height} />
                <text x={toX(value)} y={height + 13} text-anchor="middle">
                  {ticks.labels[index]}
                </text>
              </g>
            ))}
            {rows.map(({ key, colour, score }, row) => {
              const y = (row + 0.5) * ROW_HEIGHT
              return (
                <g key={key}>
                  {score.by_seed.map((value, seed) =>
                    value === null ? null : (
                      <circle
                        key={seed}
                        class="seed"
                        cx={toX(value)}
                        cy={y}
                        r={2.5}
                        stroke={colour}
                      />
                    ),
                  )}
                  {score.low !== null && score.high !== null ? (
                    <line
                      class="interval"
                      x1={toX(score.low)}
                      x2={toX(score.high)}
                      y1={y}
                      y2={y}
                      stroke={colour}
                    />
                  ) : null}
                  {score.value !== null ? (
                    <circle
                      class="mean"
                      data-paradigm={key}
                      data-value={score.value}
                      cx={toX(score.value)}
                      cy={y}
                      r={5}
                      fill={colour}
                    >
                      <title>{formatInterval(score)}</title>
                    </circle>
                  ) : null}
                </g>
              )
            })}
          </svg>
          <div class="dot-plot-values">
            {rows.map((row) => (
              <span key={row.key} title={formatInterval(row.score)}>
                {formatScore(row.score)}
              </span>
            ))}
          </div>
        </div>
      </figure>
    </Picture>
  )
}

function clamp(share: number): number {
  return Math.min(1, Math.max(0, share))
}

/** The value; of times, how many seeds reached the target if not all did. */
function formatScore(score: FocusScore): string {
  const value = score.value === null && score.reached !== undefined ? "never" : undefined
  const isPartial = score.reached !== undefined && score.reached !== score.seeds
  return `${value ?? formatNumber(score.value)}${isPartial ? ` (${score.reached} of ${score.seeds})` : ""}`
}

function formatInterval(score: FocusScore): string {
  const interval =
    score.low === null || score.high === null
      ? ""
      : ` (${formatNumber(score.low)} … ${formatNumber(score.high)})`
  return `${formatScore(score)}${interval}, ${score.seeds} ${score.seeds === 1 ? "seed" : "seeds"}`
}

function toTable(rows: DotRow[]) {
  return {
    head: ["paradigm", "value", "low", "high", "seeds"],
    rows: rows.map(({ label, score }) => [
      label,
      score.value,
      score.low,
      score.high,
      score.seeds ?? null,
    ]),
  }
}

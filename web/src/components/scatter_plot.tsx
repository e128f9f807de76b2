// Scatter plot of heads: one measure against another at a step, with the trail of earlier steps.

import { valueRange } from "../aggregation"
import { layerColour } from "../draw/colours"
import { lastIndexUpTo, type Measure } from "../run_data"
import { formatHead, formatNumber } from "../format"
import type { Theme } from "../theme"

interface Props {
  /** Axis labels. */
  labels: [across: string, up: string]
  x: Measure
  y: Measure
  step: number
  layers: number
  layer: number
  head: number
  theme: Theme
  onHead: (layer: number, head: number) => void
}

const [WIDTH, HEIGHT, MARGIN] = [560, 346, 62]
const MAX_LABELLED = 16
const TRAIL_STEPS = 12

export function ScatterPlot({ labels, x, y, step, layers, layer, head, theme, onHead }: Props) {
  const [xRange, yRange] = [valueRange(x), valueRange(y)]
  const toX = (value: number) =>
    MARGIN + ((value - xRange[0]) / (xRange[1] - xRange[0])) * (WIDTH - MARGIN - 46)
  const toY = (value: number) =>
    HEIGHT - 52 - ((value - yRange[0]) / (yRange[1] - yRange[0])) * (HEIGHT - 64)
  const current = lastIndexUpTo(x.steps, step)
  const heads = x.shape[2]
  const findPoint = (index: number, row: number, column: number): [number, number] | null => {
    const yIndex = y.steps.indexOf(x.steps[index])
    if (index < 0 || yIndex < 0) return null
    const [a, b] = [
      x.values[(index * layers + row) * heads + column],
      y.values[(yIndex * layers + row) * heads + column],
    ]
    return Number.isFinite(a) && Number.isFinite(b) ? [toX(a), toY(b)] : null
  }
  const isCrowded = layers * heads > MAX_LABELLED
  const points = []
  for (let row = 0; row < layers; row++) {
    for (let column = 0; column < heads; column++) {
      const point = findPoint(current, row, column)
      if (!point) continue
      const isSelected = row === layer && column === head
      const trail = []
      if (!isCrowded || isSelected)
        for (let index = Math.max(0, current - TRAIL_STEPS); index <= current; index++)
          trail.push(findPoint(index, row, column))
      const path = trail
        .filter((position) => position !== null)
        .map(([a, b]) => `${a.toFixed(1)},${b.toFixed(1)}`)
        .join(" ")
      const colour = layerColour(row, layers, theme)
      points.push(
        <g
          key={`${row} ${column}`}
          class={isSelected ? "point selected" : "point"}
          onClick={() => onHead(row, column)}
        >
          <title>{`${formatHead(row, column)}: ${formatNumber(x.values[(current * layers + row) * heads + column])}, ${formatNumber(y.values[(y.steps.indexOf(x.steps[current]) * layers + row) * heads + column])}`}</title>
          {path ? <polyline points={path} stroke={colour} /> : null}
          <circle cx={point[0]} cy={point[1]} r={isSelected ? 7 : 5} fill={colour} />
          <text x={point[0] + 8} y={point[1] + 3.5}>
            {formatHead(row, column)}
          </text>
        </g>,
      )
    }
  }
  const gridShares = [0, 0.25, 0.5, 0.75, 1]
  return (
    <svg
      class={isCrowded ? "scatter dense" : "scatter"}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      role="img"
      aria-label="heads by two measures"
    >
      {gridShares.map((share) => {
        const [a, b] = [
          xRange[0] + share * (xRange[1] - xRange[0]),
          yRange[0] + share * (yRange[1] - yRange[0]),
        ]
        return (
          <g key={share} class="grid">
            <line x1={toX(a)} x2={toX(a)} y1={toY(yRange[0])} y2={toY(yRange[1])} />
            <line x1={toX(xRange[0])} x2={toX(xRange[1])} y1={toY(b)} y2={toY(b)} />
            <text x={toX(a)} y={HEIGHT - 34} text-anchor="middle">
              {formatNumber(a)}
            </text>
            <text x={MARGIN - 6} y={toY(b) + 3.5} text-anchor="end">
              {formatNumber(b)}
            </text>
          </g>
        )
      })}
      <text class="axis" x={(MARGIN + WIDTH - 46) / 2} y={HEIGHT - 14} text-anchor="middle">
        {labels[0]}
      </text>
      <text
        class="axis"
        transform={`translate(11 ${HEIGHT / 2 - 20}) rotate(-90)`}
        text-anchor="middle"
      >
        {labels[1]}
      </text>
      {points}
    </svg>
  )
}

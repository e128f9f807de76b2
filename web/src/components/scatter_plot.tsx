// Scatter plot of heads: one measure against another at a step, with the trail of earlier steps.

import { valueRange } from "../aggregation"
import { layerColour } from "../draw/colours"
import { lastIndexUpTo, type Measure } from "../run_data"
import { formatHead, formatNumber } from "../format"
import "../styles/scatter_plot.css"
import type { Theme } from "../theme"
import { chooseTicks, padRange, type Ticks } from "../ticks"

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

const [WIDTH, HEIGHT, TOP, RIGHT, BOTTOM] = [560, 346, 20, 30, 52]
/** Of 10.5 px digits; SVG text cannot be measured before it is drawn. */
const CHARACTER_WIDTH = 6.4
const LABEL_HEIGHT = 12
/** With more heads than this, only the selected one has a trail. */
export const MAX_TRAILS = 16

interface Point {
  row: number
  column: number
  x: number
  y: number
  isSelected: boolean
}

interface Box {
  left: number
  top: number
  width: number
  height: number
}

export function ScatterPlot({ labels, x, y, step, layers, layer, head, theme, onHead }: Props) {
  const [xRange, yRange] = [padRange(...valueRange(x)), padRange(...valueRange(y))]
  const [xTicks, yTicks] = [chooseTicks(...xRange, 5), chooseTicks(...yRange, 5)]
  const margin = 34 + CHARACTER_WIDTH * Math.max(...yTicks.labels.map((label) => label.length))
  const toX = (value: number) =>
    margin + ((value - xRange[0]) / (xRange[1] - xRange[0])) * (WIDTH - margin - RIGHT)
  const toY = (value: number) =>
    HEIGHT - BOTTOM - ((value - yRange[0]) / (yRange[1] - yRange[0])) * (HEIGHT - TOP - BOTTOM)
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
  const points: Point[] = []
  for (let row = 0; row < layers; row++)
    for (let column = 0; column < heads; column++) {
      const position = findPoint(current, row, column)
      if (position)
        points.push({
          row,
          column,
          x: position[0],
          y: position[1],
          isSelected: row === layer && column === head,
        })
    }
  const placed = placeLabels(points)
  const hasTrails = layers * heads <= MAX_TRAILS
  const drawTrail = (row: number, column: number) => {
    const trail = []
    for (let index = 0; index <= current; index++) trail.push(findPoint(index, row, column))
    return trail
      .filter((position) => position !== null)
      .map(([a, b]) => `${a.toFixed(1)},${b.toFixed(1)}`)
      .join(" ")
  }
  return (
    <svg
      class="scatter"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      role="img"
      aria-label={`${points.length} heads by ${labels[0]} and ${labels[1]}`}
    >
      {xTicks.values.map((value, index) => (
        <g key={value} class="grid">
          <line x1={toX(value)} x2={toX(value)} y1={TOP} y2={HEIGHT - BOTTOM} />
          <text x={toX(value)} y={HEIGHT - BOTTOM + 18} text-anchor="middle">
            {xTicks.labels[index]}
          </text>
        </g>
      ))}
      {yTicks.values.map((value, index) => (
        <g key={value} class="grid">
          <line x1={margin} x2={WIDTH - RIGHT} y1={toY(value)} y2={toY(value)} />
          <text x={margin - 6} y={toY(value) + 3.5} text-anchor="end">
            {yTicks.labels[index]}
          </text>
        </g>
      ))}
      <text class="axis" x={(margin + WIDTH - RIGHT) / 2} y={HEIGHT - 14} text-anchor="middle">
        {addOffset(labels[0], xTicks)}
      </text>
      <text
        class="axis"
        transform={`translate(12 ${(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)`}
        text-anchor="middle"
      >
        {addOffset(labels[1], yTicks)}
      </text>
      {/* the selected head last: on top of the others */}
      {[...points]
        .sort((a, b) => Number(a.isSelected) - Number(b.isSelected))
        .map((point) => {
          const { row, column, isSelected } = point
          const colour = layerColour(row, layers, theme)
          const path = hasTrails || isSelected ? drawTrail(row, column) : ""
          const box = placed.get(point)
          return (
            <g
              key={`${row} ${column}`}
              class={["point", isSelected ? "selected" : "", box ? "" : "unlabelled"].join(" ")}
              onClick={() => onHead(row, column)}
            >
              <title>{`${formatHead(row, column)}: ${formatNumber(x.values[(current * layers + row) * heads + column])}, ${formatNumber(y.values[(y.steps.indexOf(x.steps[current]) * layers + row) * heads + column])}`}</title>
              {path ? <polyline points={path} stroke={colour} /> : null}
              <circle cx={point.x} cy={point.y} r={isSelected ? 7 : 5} fill={colour} />
              <text
                x={box ? box.left : Math.min(point.x + 8, WIDTH - labelWidth(point))}
                y={box ? box.top + LABEL_HEIGHT - 3 : point.y - 8}
              >
                {formatHead(row, column)}
              </text>
            </g>
          )
        })}
    </svg>
  )
}

/** An axis with an offset says so: its labels are what is added to it. */
function addOffset(label: string, ticks: Ticks): string {
  return ticks.offset ? `${label}: ${ticks.offset} +` : label
}

function labelWidth({ row, column }: Point): number {
  return formatHead(row, column).length * CHARACTER_WIDTH
}

/**
 * Boxes of labels that overlap neither each other nor a point. The selected head and the extremes come
 * first; a label without space is left out and shown while the pointer is on its point.
 */
function placeLabels(points: Point[]): Map<Point, Box> {
  const extremes = new Set<Point>()
  for (const key of ["x", "y"] as const) {
    const sorted = [...points].sort((a, b) => a[key] - b[key])
    if (sorted.length) extremes.add(sorted[0]).add(sorted[sorted.length - 1])
  }
  const rank = (point: Point) => (point.isSelected ? 0 : extremes.has(point) ? 1 : 2)
  const dots = points.map(({ x, y }) => ({ left: x - 5, top: y - 5, width: 10, height: 10 }))
  const placed = new Map<Point, Box>()
  for (const point of [...points].sort((a, b) => rank(a) - rank(b))) {
    const [width, height] = [labelWidth(point), LABEL_HEIGHT]
    const candidates: Box[] = [
      { left: point.x + 9, top: point.y - height / 2, width, height },
      { left: point.x - 9 - width, top: point.y - height / 2, width, height },
      { left: point.x - width / 2, top: point.y - 9 - height, width, height },
      { left: point.x - width / 2, top: point.y + 9, width, height },
    ].filter(({ left, top }) => left >= 30 && left + width <= WIDTH && top >= 0)
    const isFree = (box: Box) =>
      ![...placed.values()].some((other) => overlaps(box, other)) &&
      !dots.some((dot, index) => points[index] !== point && overlaps(box, dot))
    // the selected head always has its label
    const box = candidates.find(isFree) ?? (point.isSelected ? candidates[0] : undefined)
    if (box) placed.set(point, box)
  }
  return placed
}

function overlaps(a: Box, b: Box): boolean {
  return (
    a.left < b.left + b.width &&
    b.left < a.left + a.width &&
    a.top < b.top + b.height &&
    b.top < a.top + a.height
  )
}

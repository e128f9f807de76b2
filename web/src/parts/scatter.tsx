// Heads as points: one measure against another at a step, with the way that each came.

import { ends } from "../bands"
import { layerColour } from "../draw/colours"
import { lastUpTo, type Measure } from "../model"
import { headName, number } from "../numbers"
import type { Theme } from "../theme"

interface Props {
  /** What stands at the axes. */
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

const [WIDE, TALL, EDGE] = [560, 346, 62]
const CROWD = 16
const TRAIL = 12

export function Scatter({ labels, x, y, step, layers, layer, head, theme, onHead }: Props) {
  const [across, up] = [ends(x), ends(y)]
  const px = (value: number) => EDGE + ((value - across[0]) / (across[1] - across[0])) * (WIDE - EDGE - 46)
  const py = (value: number) => TALL - 52 - ((value - up[0]) / (up[1] - up[0])) * (TALL - 64)
  const now = lastUpTo(x.steps, step)
  const heads = x.shape[2]
  const place = (at: number, row: number, column: number): [number, number] | null => {
    const other = y.steps.indexOf(x.steps[at])
    if (at < 0 || other < 0) return null
    const [a, b] = [x.values[(at * layers + row) * heads + column], y.values[(other * layers + row) * heads + column]]
    return Number.isFinite(a) && Number.isFinite(b) ? [px(a), py(b)] : null
  }
  const crowded = layers * heads > CROWD
  const points = []
  for (let row = 0; row < layers; row++) {
    for (let column = 0; column < heads; column++) {
      const here = place(now, row, column)
      if (!here) continue
      const chosen = row === layer && column === head
      const trail = []
      if (!crowded || chosen) for (let at = Math.max(0, now - TRAIL); at <= now; at++) trail.push(place(at, row, column))
      const way = trail.filter((one) => one !== null).map(([a, b]) => `${a.toFixed(1)},${b.toFixed(1)}`).join(" ")
      const colour = layerColour(row, layers, theme)
      points.push(
        <g key={`${row} ${column}`} class={chosen ? "dot chosen" : "dot"} onClick={() => onHead(row, column)}>
          <title>{`${headName(row, column)}: ${number(x.values[(now * layers + row) * heads + column])}, ${number(y.values[(y.steps.indexOf(x.steps[now]) * layers + row) * heads + column])}`}</title>
          {way ? <polyline points={way} stroke={colour} /> : null}
          <circle cx={here[0]} cy={here[1]} r={chosen ? 7 : 5} fill={colour} />
          <text x={here[0] + 8} y={here[1] + 3.5}>{headName(row, column)}</text>
        </g>,
      )
    }
  }
  const marks = [0, 0.25, 0.5, 0.75, 1]
  return (
    <svg class={crowded ? "scatter crowded" : "scatter"} viewBox={`0 0 ${WIDE} ${TALL}`} role="img" aria-label="heads by two measures">
      {marks.map((share) => {
        const [a, b] = [across[0] + share * (across[1] - across[0]), up[0] + share * (up[1] - up[0])]
        return (
          <g key={share} class="grid">
            <line x1={px(a)} x2={px(a)} y1={py(up[0])} y2={py(up[1])} />
            <line x1={px(across[0])} x2={px(across[1])} y1={py(b)} y2={py(b)} />
            <text x={px(a)} y={TALL - 34} text-anchor="middle">{number(a)}</text>
            <text x={EDGE - 6} y={py(b) + 3.5} text-anchor="end">{number(b)}</text>
          </g>
        )
      })}
      <text class="axis" x={(EDGE + WIDE - 46) / 2} y={TALL - 14} text-anchor="middle">{labels[0]}</text>
      <text class="axis" transform={`translate(11 ${TALL / 2 - 20}) rotate(-90)`} text-anchor="middle">{labels[1]}</text>
      {points}
    </svg>
  )
}

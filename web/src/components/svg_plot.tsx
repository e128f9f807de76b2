// A small plot by training step as SVG: axes, curves, marked steps, shaded intervals. Text stays text.

import type { ComponentChildren } from "preact"

import { chooseStepTicks, chooseTicks, padRange } from "../ticks"

export interface PlotCurve {
  label: string
  steps: number[]
  values: (number | null)[]
  colour: string
}

export interface PlotScale {
  toX: (step: number) => number
  toY: (value: number) => number
  left: number
  right: number
  top: number
  bottom: number
}

interface Props {
  width: number
  height: number
  curves: PlotCurve[]
  /** Values that must be visible besides those of the curves. */
  extraValues?: number[]
  label: string
  /** What is drawn behind the curves. */
  background?: (scale: PlotScale) => ComponentChildren
  /** What is drawn over the curves. */
  foreground?: (scale: PlotScale) => ComponentChildren
  /** Space below the axis of steps. */
  extraHeight?: number
}

const [LEFT, RIGHT, TOP, BOTTOM] = [44, 12, 18, 20]
/** Points of a curve are marked if they are at least this far apart. */
const MIN_POINT_DISTANCE = 9

export function SvgPlot({
  width,
  height,
  curves,
  extraValues = [],
  label,
  background,
  foreground,
  extraHeight = 0,
}: Props) {
  const steps = curves.flatMap((curve) => curve.steps)
  const values = [
    ...curves.flatMap((curve) => curve.values.filter((value): value is number => value !== null)),
    ...extraValues,
  ]
  if (!steps.length || !values.length) return null
  const [firstStep, lastStep] = [Math.min(...steps), Math.max(...steps)]
  const [low, high] = padRange(Math.min(...values), Math.max(...values))
  const [right, bottom] = [width - RIGHT, height - BOTTOM]
  const scale: PlotScale = {
    toX: (step) => LEFT + ((step - firstStep) / (lastStep - firstStep || 1)) * (right - LEFT),
    toY: (value) => bottom - ((value - low) / (high - low)) * (bottom - TOP),
    left: LEFT,
    right,
    top: TOP,
    bottom,
  }
  const yTicks = chooseTicks(low, high, 4)
  const xTicks = chooseStepTicks(firstStep, lastStep, Math.max(2, Math.floor(width / 90)))
  return (
    <svg
      class="svg-plot"
      width={width}
      height={height + extraHeight}
      viewBox={`0 0 ${width} ${height + extraHeight}`}
      role="img"
      aria-label={label}
    >
      {background?.(scale)}
      {yTicks.values.map((value, index) => (
        <g key={value}>
          <line class="grid" x1={LEFT} x2={right} y1={scale.toY(value)} y2={scale.toY(value)} />
          <text class="tick" x={LEFT - 6} y={scale.toY(value) + 4} text-anchor="end">
            {yTicks.labels[index]}
          </text>
        </g>
      ))}
      {yTicks.offset ? (
        <text class="tick" x={2} y={TOP - 7}>
          {yTicks.offset} …
        </text>
      ) : null}
      {xTicks.values.map((value, index) => (
        <text key={value} class="tick" x={scale.toX(value)} y={bottom + 15} text-anchor="middle">
          {xTicks.labels[index]}
        </text>
      ))}
      {curves.map((curve) => (
        <CurvePath key={curve.label} curve={curve} scale={scale} />
      ))}
      {foreground?.(scale)}
    </svg>
  )
}

function CurvePath({ curve, scale }: { curve: PlotCurve; scale: PlotScale }) {
  let isPenDown = false
  const path = curve.values
    .map((value, index) => {
      if (value === null) {
        isPenDown = false
        return ""
      }
      const command = isPenDown ? "L" : "M"
      isPenDown = true
      return `${command}${scale.toX(curve.steps[index]).toFixed(1)} ${scale.toY(value).toFixed(1)}`
    })
    .join("")
  const distance = (scale.right - scale.left) / Math.max(1, curve.values.length - 1)
  return (
    <g>
      <path d={path} fill="none" stroke={curve.colour} stroke-width={1.8} />
      {distance >= MIN_POINT_DISTANCE
        ? curve.values.map((value, index) =>
            value === null ? null : (
              <circle
                key={curve.steps[index]}
                cx={scale.toX(curve.steps[index])}
                cy={scale.toY(value)}
                r={2.4}
                fill={curve.colour}
              />
            ),
          )
        : null}
    </g>
  )
}

/** Names of the curves with their colours, as HTML below a plot. */
export function PlotLegend({ curves }: { curves: Pick<PlotCurve, "label" | "colour">[] }) {
  return (
    <div class="plot-legend">
      {curves.map(({ label, colour }) => (
        <span key={label}>
          <i style={{ background: colour }} /> {label}
        </span>
      ))}
    </div>
  )
}

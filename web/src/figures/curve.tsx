// A curve by training step with marked steps, horizontal levels and a shaded interval.

import { lineColour } from "../draw/colours"
import type { FigureDefinition, FigureProps } from "../figure"
import { formatInteger, formatNumber } from "../format"
import { findRun } from "../components/linked_text"
import { PlotLegend, SvgPlot, type PlotCurve } from "../components/svg_plot"
import { useWidth } from "../components/use_width"
import { ViewLink } from "../components/view_link"
import "../styles/findings.css"

interface CurveFigure {
  kind: "curve"
  run: string
  /** Logged metrics of the run … */
  metrics: string[]
  /** … or other series. */
  series: { label: string; steps: number[]; values: (number | null)[] }[]
  marks: { step: number; label: string }[]
  levels: { value: number; label: string }[]
  interval: { first: number; last: number; label: string } | null
  y_label: string
}

/** Curves are told apart by these colours of the palette; orange is for warnings. */
const COLOURS = [0, 2, 3, 5, 7, 4]

function Curve({ figure, runs, theme, navigate, isCard }: FigureProps) {
  const {
    metrics,
    series,
    marks,
    levels,
    interval,
    y_label,
    run: id,
  } = figure as unknown as CurveFigure
  const run = findRun(id, runs)
  const [element, width] = useWidth(isCard ? 300 : 420)
  const curves: PlotCurve[] = [
    ...metrics.flatMap((name) => {
      const curve = run?.scalars[name]
      return curve ? [{ label: name, ...curve }] : []
    }),
    ...series,
  ].map((curve, index) => ({
    ...curve,
    colour: lineColour(COLOURS[index % COLOURS.length], theme),
  }))
  if (!curves.some((curve) => curve.steps.length)) return null
  const height = isCard ? 130 : 170
  const description = [
    curves.map((curve) => curve.label).join(", "),
    ...marks.map((mark) => `${mark.label} at step ${formatInteger(mark.step)}`),
    ...levels.map((level) => `${level.label} ${formatNumber(level.value)}`),
    interval ? `${interval.label}: steps ${interval.first} to ${interval.last}` : "",
  ]
  return (
    <div class="figure-curve" ref={element}>
      <SvgPlot
        width={width}
        height={height}
        curves={curves}
        extraValues={levels.map((level) => level.value)}
        label={description.filter(Boolean).join("; ")}
        background={(scale) =>
          interval ? (
            <g>
              <rect
                class="interval"
                x={scale.toX(interval.first)}
                y={scale.top}
                width={Math.max(2, scale.toX(interval.last) - scale.toX(interval.first))}
                height={scale.bottom - scale.top}
              />
              <text
                class="mark-label"
                x={clampX(
                  scale,
                  (scale.toX(interval.first) + scale.toX(interval.last)) / 2,
                  interval.label,
                )}
                y={scale.top - 6}
                text-anchor="middle"
              >
                {interval.label}
              </text>
            </g>
          ) : null
        }
        foreground={(scale) => (
          <>
            {levels.map(({ value, label }) => (
              <g key={label}>
                <line
                  class="level"
                  x1={scale.left}
                  x2={scale.right}
                  y1={scale.toY(value)}
                  y2={scale.toY(value)}
                />
                <text
                  class="mark-label"
                  x={scale.right - 3}
                  y={scale.toY(value) - 4}
                  text-anchor="end"
                >
                  {label} {Number(value.toPrecision(3))}
                </text>
              </g>
            ))}
            {placeLabels(marks, scale).map(({ step, label, row, x }) => (
              <g key={`${step} ${label}`}>
                <line
                  class="mark"
                  x1={scale.toX(step)}
                  x2={scale.toX(step)}
                  y1={scale.top}
                  y2={scale.bottom}
                />
                <text class="mark-label" x={x} y={scale.top - 6 + 12 * row} text-anchor="middle">
                  {label}
                </text>
              </g>
            ))}
          </>
        )}
      />
      <div class="figure-footer">
        <PlotLegend curves={curves} />
        {y_label ? <span class="muted">{y_label}</span> : null}
        {run && metrics.length ? (
          <span data-export="omit">
            <ViewLink
              route={{ pane: "curves", run: run.id, step: marks[0]?.step ?? interval?.first }}
              navigate={navigate}
            >
              curves
            </ViewLink>
          </span>
        ) : null}
      </div>
    </div>
  )
}

type Scale = { left: number; right: number; toX: (step: number) => number }

/** Half of the width of a label, at 6.2 px per character. */
function halfWidth(label: string): number {
  return label.length * 3.1
}

function clampX({ left, right }: Scale, x: number, label: string): number {
  return Math.max(left + halfWidth(label), Math.min(right - halfWidth(label), x))
}

/**
 * Labels of marks next to their lines, those of one step together. One that would cover the previous label
 * moves down a row.
 */
function placeLabels(marks: CurveFigure["marks"], scale: Scale) {
  const labels = new Map<number, string[]>()
  for (const { step, label } of marks) labels.set(step, [...(labels.get(step) ?? []), label])
  const ends: number[] = []
  return [...labels]
    .map(([step, names]) => ({ step, label: names.join(", ") }))
    .sort((first, second) => first.step - second.step)
    .map((mark) => {
      const x = clampX(scale, scale.toX(mark.step), mark.label)
      let row = 0
      while ((ends[row] ?? -Infinity) > x - halfWidth(mark.label) - 4) row++
      ends[row] = x + halfWidth(mark.label)
      return { ...mark, row, x }
    })
}

export default { component: Curve } satisfies FigureDefinition
